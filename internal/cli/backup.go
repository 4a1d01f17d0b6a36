package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"oda/client"
	"oda/internal/app"
	"oda/internal/backup"
)

// backUp takes a backup.
type backUp struct {
	Output string   `short:"o" required:"" placeholder:"FILE" help:"File to write. It appears when it is complete."`
	Db     database `placeholder:"DATABASE" help:"The archive, sqlite:PATH, if no server has it open. Without it, the running archive at --url is backed up."`
	remote
	Force bool `help:"Replace FILE if it exists."`
	Quiet bool `short:"q" help:"Print no progress."`
}

// Help is what "oda backup --help" says besides the flags.
func (*backUp) Help() string {
	return `Writes a copy of an archive of the embedded engine, as of one moment, to a file.
Without --db it asks the running server for it, which takes the role admin; others go
on reading and writing meanwhile. With --db it reads the file of a stopped server.

"oda restore" makes an archive from the file again. An archive on PostgreSQL is backed
up with PostgreSQL's own tools; docs/backup.md has the commands.

Exit codes: 0 the backup is complete and on disk; 1 it is not, and there is no FILE;
2 invalid command line.`
}

// Run takes the backup.
func (b *backUp) Run(ctx context.Context, to streams) error {
	if b.Output == "" || b.Output == "-" {
		return &failure{exitUsage, "--output needs the name of a file: a backup appears when it is complete, and stdout has no such moment"}
	}
	began := time.Now()
	var written, total atomic.Int64
	var end backup.End
	err := writeFresh(ctx, "backup", b.Output, backup.Begins, b.Force, func(file io.Writer) (err error) {
		stop := newProgress(to.err, b.Quiet).follow(func(took time.Duration) (string, float64) {
			return howFar("backing up", written.Load(), total.Load(), took, size)
		})
		defer stop()
		end, err = b.take(ctx, file, to.version, &written, &total)
		return err
	})
	if err != nil {
		return err
	}
	took := time.Since(began)
	_, err = fmt.Fprintf(to.out, "%s up to position %s in %s: %s in %s, %s per second\n", manyOf(counted(end), "entity"), grouped(end.Position), b.Output,
		size(written.Load()), took.Round(10*time.Millisecond), size(int64(float64(written.Load())/took.Seconds())))
	return err
}

// take writes the backup to the file.
func (b *backUp) take(ctx context.Context, file io.Writer, version string, written, total *atomic.Int64) (backup.End, error) {
	if b.Db != "" {
		if info, err := os.Stat(strings.TrimPrefix(string(b.Db), "sqlite:")); err == nil {
			total.Store(info.Size())
		}
		return app.Backup(ctx, string(b.Db), counting{file, written}, version)
	}
	archive, err := b.archive(ctx)
	if err != nil {
		return backup.End{}, err
	}
	stream, err := archive.Backup(ctx)
	if err != nil {
		return backup.End{}, explain(archive, "backup", err)
	}
	defer stream.Close()
	_, end, err := backup.Copy(counting{file, written}, stream, func(h backup.Header) { total.Store(h.Pages * int64(h.PageSize)) })
	if damage, ok := errors.AsType[*backup.Damage](err); ok {
		err = fmt.Errorf("what the archive at %s sent is not a whole backup: %w; see its log", archive.Address(), damage)
	} else if errors.Is(err, client.ErrNoAnswer) {
		err = explain(archive, "backup", err)
	}
	return end, err
}

// counted returns the number of entities in a backup.
func counted(end backup.End) (n int64) {
	for _, count := range end.Entities {
		n += count
	}
	return n
}
