package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"oda/client"
	"oda/internal/app"
	"oda/internal/files"
	"oda/internal/moving"
)

// importing brings documents from elsewhere into an archive.
type importing struct {
	Sources  []string `arg:"" name:"source" help:"What to import: an export, a file or a folder of JSON documents, http(s)://... of a running archive, or postgres://... of a database of ska-db-oda."`
	Db       database `placeholder:"DATABASE" help:"The archive to import into: sqlite:PATH, or postgres://USER@HOST/NAME for a PostgreSQL database. Without it, the running archive."`
	Preserve bool     `help:"Keep versions, users and times as they were. Needs --db, of an archive that no server has open."`
	MaxBody  byteSize `default:"64MiB" env:"ODA_MAX_BODY" placeholder:"SIZE" help:"Largest document to import, as the archive's servers have it (default ${default}). Larger ones are set aside."`
	Report   string   `placeholder:"FILE" help:"File in which to keep, as lines of JSON, what was set aside and why. It replaces an earlier report."`
	Quiet    bool     `short:"q" help:"Print no progress."`
	acting
}

// Help is what "oda import --help" says besides the flags.
func (*importing) Help() string {
	return `Documents that cannot be imported are set aside, and the rest goes on. What the
archive has already is left out, so an import that was interrupted can be started
again, and the same import again changes nothing.

Without --preserve, documents are stored as new ones: the archive gives them versions
and times, and you are their user. So are statuses, which keep the time for which they
were said. With it, everything is written as it was.

Exit codes: 0 everything was imported; 5 something was set aside; 1 failed.`
}

// Validate checks what the flag types cannot.
func (i *importing) Validate() error {
	if i.Preserve && i.Db == "" {
		return errors.New("--preserve needs --db: versions, users and times can only be kept by writing straight into a database that no server has open")
	}
	if wrong := positive(map[string]int64{"--max-body": int64(i.MaxBody)}); len(wrong) > 0 {
		return wrong
	}
	return nil
}

// told is how many documents that were set aside are named on the terminal.
const told = 20

// Run imports the sources.
func (i *importing) Run(ctx context.Context, to streams) (err error) {
	var out io.Writer
	var report *moving.Report
	if i.Report != "" {
		f, failed := beginReport(i.Report)
		if failed != nil {
			return failed
		}
		defer func() {
			// An earlier report is worth more than an empty one of an import that failed.
			if err != nil && report.Aside.Load()+report.Changed.Load() == 0 {
				f.Discard()
			} else if failed := f.Commit(); failed != nil {
				err = errors.Join(err, reportFailed(failed))
			}
		}()
		out = f
	}
	frugal(40 << 20)
	bar := newProgress(to.err, i.Quiet)
	report = moving.NewReport(out, func(s moving.SetAside) {
		if report.Aside.Load()+report.Changed.Load() <= told {
			what := "set aside"
			if s.Changed {
				what = "note"
			}
			bar.clear()
			fmt.Fprintln(to.err, visible(fmt.Sprintf("%s: %s: %s%s", what, s.Origin, about(s), s.Reason)))
		}
	})
	report.Path = i.Report
	report.Note = func(text string) {
		bar.clear()
		fmt.Fprintln(to.err, visible("note: "+text))
	}
	stop := bar.follow(func(took time.Duration) (string, float64) {
		line, share := howFar("importing", report.Read.Load(), report.Total.Load(), took, grouped)
		if n := report.Aside.Load(); n > 0 {
			line += fmt.Sprintf(", %s set aside", grouped(n))
		}
		return line, share
	})
	err = i.run(ctx, to, report)
	stop()
	if ctx.Err() != nil {
		return &failure{exitFailed, "stopped before everything was imported; run the same command again to continue"}
	}
	if err != nil {
		return err
	}
	aside, changed := report.Aside.Load(), report.Changed.Load()
	_, err = fmt.Fprintf(to.out, "Documents, records and statuses: %s read, %s imported, %s already there, %s set aside.\n",
		grouped(report.Read.Load()), grouped(report.Imported.Load()), grouped(report.Present.Load()), grouped(aside))
	if err != nil || aside+changed == 0 {
		return err
	}
	var what []string
	if aside > 0 {
		what = append(what, grouped(aside)+" could not be imported")
	}
	if changed > 0 {
		what = append(what, grouped(changed)+" could not keep all times and users")
	}
	where := "; add --report FILE to keep the whole list, with reasons"
	if i.Report != "" {
		where = ", see " + i.Report
	}
	return &failure{exitSetAside, strings.Join(what, ", and ") + where}
}

// beginReport begins a report. It appears under its name at the end of the import, and
// replaces the report of an earlier one, but no other file.
func beginReport(path string) (*files.Pending, error) {
	if err := spared(path); err != nil {
		return nil, err
	}
	f, err := files.Begin(path, moving.ReportBegin, isReport(path))
	if errors.Is(err, files.ErrExists) || errors.Is(err, files.ErrNotFile) {
		return nil, &failure{exitFailed, fmt.Sprintf("%s exists already, and is not the report of an import; choose another name for --report", path)}
	}
	if errors.Is(err, files.ErrInTheWay) {
		return nil, notWritten(context.Background(), "report", path, err)
	}
	if err != nil {
		return nil, reportFailed(err)
	}
	return f, nil
}

func reportFailed(err error) error { return fmt.Errorf("the report cannot be written: %w", err) }

// isReport reports whether a file begins as a report does.
func isReport(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	begin := make([]byte, len(moving.ReportBegin))
	_, err = io.ReadFull(f, begin)
	return err == nil && string(begin) == moving.ReportBegin
}

// about says what was set aside, as far as that is known.
func about(s moving.SetAside) string {
	switch {
	case s.ID == "":
		return ""
	case s.Status != "":
		return fmt.Sprintf("%s status %q: ", s.ID, s.Status)
	case s.Sequence > 0:
		return fmt.Sprintf("%s record %d: ", s.ID, s.Sequence)
	case s.Version > 0:
		return fmt.Sprintf("%s version %d: ", s.ID, s.Version)
	}
	return s.ID + ": "
}

func (i *importing) run(ctx context.Context, to streams, report *moving.Report) error {
	log := quietLog(to.err)
	if i.Preserve {
		return ofArchive(app.Preserve(ctx, string(i.Db), i.Sources, int64(i.MaxBody), report, log))
	}
	archive, err := i.archive(ctx)
	if err != nil {
		return err
	}
	var token func() (string, error) // else it is for the archive that is imported into
	into := func() (*client.Client, error) { return archive, nil }
	if i.Db != "" {
		token = client.EnvironmentToken
		done := func() error { return nil }
		defer func() { _ = done() }()
		into = sync.OnceValues(func() (*client.Client, error) {
			transport, opened, err := app.Interface(ctx, string(i.Db), int64(i.MaxBody), log)
			if err != nil {
				return nil, ofArchive(err)
			}
			done = opened
			return client.New("http://archive.invalid", client.WithUser(archive.User()), client.WithToken(""), client.WithHTTPClient(&http.Client{Transport: transport}))
		})
		if !app.IsNew(string(i.Db)) {
			if _, err := into(); err != nil {
				return err
			}
		}
	}
	err = moving.Store(ctx, i.Sources, int64(i.MaxBody), into, report, token, func(ctx context.Context, export string) (http.RoundTripper, func(), error) {
		database, remove, err := app.Unpack(ctx, export, int64(i.MaxBody), log)
		if err != nil {
			return nil, nil, err
		}
		transport, closed, err := app.Interface(ctx, database, int64(i.MaxBody), log)
		if err != nil {
			return nil, nil, errors.Join(err, remove())
		}
		return transport, func() { _ = errors.Join(closed(), remove()) }, nil
	})
	return explain(archive, "import", err)
}
