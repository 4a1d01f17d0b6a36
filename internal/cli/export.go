package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"runtime/debug"
	"sync/atomic"
	"time"

	"oda"
	"oda/internal/app"
	"oda/internal/moving"
)

// export writes everything in an archive into one file.
type export struct {
	Output  string   `short:"o" required:"" placeholder:"FILE" help:"File to write, which appears when it is complete; \"-\" for the standard output."`
	Db      database `placeholder:"DATABASE" help:"The archive: sqlite:PATH, or postgres://USER@HOST/NAME for a PostgreSQL database. Without it, the running archive."`
	Kind    string   `narrows:"" placeholder:"KIND" enum:"sbds,sbis,ebs,prjs,notes," default:"" help:"Only entities of this kind: sbds, sbis, ebs, prjs or notes."`
	Since   moment   `placeholder:"TIME" help:"Only entities that were stored, recorded into or given a status since."`
	Project string   `narrows:"" placeholder:"ID" help:"Only this Project and what belongs to it."`
	Force   bool     `help:"Replace FILE if it exists."`
	Quiet   bool     `short:"q" help:"Print no progress."`
	remote
}

// Help is what "oda export --help" says besides the flags.
func (*export) Help() string {
	return `Writes every version, record and status, with users, times and keys, as of one
moment, while others keep writing. "oda import" reads the file, and "oda serve
--export" shows it. A running archive gives it to admins; the file of the embedded
engine can be read with --db only while no server has it open.`
}

// scope returns what is to be exported.
func (e *export) scope() (oda.Scope, error) {
	params := make(map[string][]string)
	if !e.Since.IsZero() {
		params["since"] = []string{e.Since.Format(time.RFC3339Nano)}
	}
	for name, value := range map[string]string{"kind": e.Kind, "prj_id": e.Project} {
		if value != "" {
			params[name] = []string{value}
		}
	}
	scope, err := oda.ParseScope(params)
	if refused, ok := errors.AsType[*oda.Error](err); ok {
		return scope, &failure{exitUsage, refused.Detail}
	}
	return scope, err
}

// Run exports the archive.
func (e *export) Run(ctx context.Context, to streams) error {
	scope, err := e.scope()
	if err != nil {
		return err
	}
	switch e.Output {
	case "":
		return &failure{exitUsage, "--output needs the name of a file"}
	case "-":
		if isTerminal(to.out) {
			return &failure{exitUsage, "an export is compressed, and a terminal cannot show it: name a file with --output, or send the output to another program"}
		}
		if _, err = e.write(ctx, scope, to, to.out); ctx.Err() != nil {
			return &failure{exitFailed, "stopped before the export was complete"}
		}
		return err
	}
	var said string
	err = writeFresh(ctx, "export", e.Output, moving.Begins, e.Force, func(file io.Writer) (err error) {
		said, err = e.write(ctx, scope, to, file)
		return err
	})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(to.out, said)
	return err
}

// write writes the export, and returns what to say about it.
func (e *export) write(ctx context.Context, scope oda.Scope, to streams, out io.Writer) (string, error) {
	frugal(64 << 20)
	var done, total atomic.Int64
	if e.Db == "" {
		archive, err := e.archive(ctx)
		if err != nil {
			return "", err
		}
		stop := newProgress(to.err, e.Quiet).follow(func(took time.Duration) (string, float64) {
			return howFar("exporting", done.Load(), 0, took, size)
		})
		defer stop()
		receiver := moving.NewReceiver(ctx)
		err = archive.Export(ctx, scope, io.MultiWriter(counting{out, &done}, receiver))
		m, damage := receiver.Done()
		_, ours := errors.AsType[*fs.PathError](err)
		_, noticed := errors.AsType[*moving.Damage](err)
		switch {
		case ours: // the file cannot be written
			return "", err
		case lost(err):
			return "", fmt.Errorf("%w; its log may say why", explain(archive, "export", err))
		case err != nil && !noticed:
			return "", explain(archive, "export", err)
		case damage != nil:
			return "", fmt.Errorf("the archive at %s did not send a complete export: %w; see its log", archive.Address(), damage)
		}
		return e.said(m), nil
	}
	stop := newProgress(to.err, e.Quiet).follow(func(took time.Duration) (string, float64) {
		return howFar("exporting", done.Load(), total.Load(), took, grouped)
	})
	defer stop()
	m, err := app.Export(ctx, string(e.Db), scope, out, quietLog(to.err), total.Store, func(n int64) { done.Add(n) })
	if err != nil {
		return "", ofArchive(err)
	}
	return e.said(m), nil
}

// said says what was exported.
func (e *export) said(m *moving.Manifest) string {
	return fmt.Sprintf("Exported %s, %s, %s, %s and %s, with %s, %s and %s into %s.",
		manyOf(m.SBDefinitions, "SBDefinition"), manyOf(m.SBInstances, "SBInstance"), manyOf(m.ExecutionBlocks, "ExecutionBlock"), manyOf(m.Projects, "Project"),
		manyOf(m.Notes, "note"), manyOf(m.Versions, "version"), manyOf(m.Records, "record"), manyOf(m.Statuses, "status"), e.Output)
}

// ofArchive returns an error of the archive for a person. Whoever runs the command
// operates the archive, too, and may see the cause.
func ofArchive(err error) error {
	refused, ok := errors.AsType[*oda.Error](err)
	if !ok {
		return err
	}
	text, exit := refused.Detail, exitFailed
	if refused.Code == oda.NotFound {
		exit = exitNotFound
	}
	if cause := refused.Unwrap(); cause != nil {
		text += fmt.Sprintf(" The cause is: %v", cause)
	}
	return &failure{exit, text}
}

// counting counts what is written.
type counting struct {
	to io.Writer
	n  *atomic.Int64
}

func (c counting) Write(p []byte) (int, error) {
	n, err := c.to.Write(p)
	c.n.Add(int64(n))
	return n, err
}

// frugal limits the memory of a command that reads a whole archive: there is much more
// garbage than what it holds. SQLite and the program itself take more: 20
// MiB for an export, and 50 for an import, whose SQLite writes.
func frugal(limit int64) {
	debug.SetGCPercent(100)
	debug.SetMemoryLimit(limit)
}

// quietLog returns a log of warnings only.
func quietLog(out io.Writer) *slog.Logger {
	return slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: slog.LevelWarn}))
}
