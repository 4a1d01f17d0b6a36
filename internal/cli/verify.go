package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"oda/internal/app"
	"oda/internal/engine/audit"
)

// verify checks an archive.
type verify struct {
	Config string   `env:"ODA_CONFIG" placeholder:"FILE" help:"File of settings of \"oda serve\", for --db."`
	Db     database `default:"sqlite:oda-data/archive.db" env:"ODA_DB" placeholder:"DATABASE" help:"The archive: sqlite:PATH, or postgres://USER@HOST/NAME for a PostgreSQL database (default ${default})."`
	examining
}

// examining are the flags of commands that look for what is wrong.
type examining struct {
	Most  int  `default:"20" placeholder:"N" help:"How many findings of each kind to list; all are counted (default ${default})."`
	Quiet bool `short:"q" help:"Print no progress."`
	reporting
}

// Validate checks what the types of the flags do not.
func (e *examining) Validate() error {
	if e.Most < 0 {
		return errors.New("--most must not be negative")
	}
	return nil
}

// Help is what "oda verify --help" says besides the flags.
func (*verify) Help() string {
	return `Reads every document and record in an archive, and says whether each is what was
stored and whether nothing is missing. It changes nothing. A file of the embedded
engine must not be open in a server meanwhile; a PostgreSQL database may be in use.

Exit codes: 0 everything fits; 1 something does not, and is listed; 2 the archive
could not be verified.`
}

// Exit codes of verify.
const (
	exitDamaged    = 1
	exitUnverified = 2
)

// Run verifies the archive.
func (v *verify) Run(ctx context.Context, to streams) error {
	p := newProgress(to.err, v.Quiet)
	faults := []audit.Fault{}
	report := audit.NewReport(v.Most, func(f audit.Fault) {
		faults = append(faults, f)
		if v.format() == "" {
			p.clear()
			fmt.Fprintln(to.out, visible(fmt.Sprintf("%s: %s: %s", f.Class, f.Place, f.Detail)))
		}
	})
	began := time.Now()
	stop := p.follow(func(took time.Duration) (string, float64) { return audited(report, took) })
	err := app.Verify(ctx, string(v.Db), report)
	stop()
	if err != nil {
		if errors.Is(err, context.Canceled) || ctx.Err() != nil {
			err = errors.New("stopped before everything was read")
		}
		return &failure{exitUnverified, err.Error()}
	}
	if err := v.print(to.out, report, faults, time.Since(began)); err != nil {
		return &failure{exitUnverified, err.Error()}
	}
	if n := report.Faulty.Load(); n > 0 {
		return &failure{exitDamaged, fmt.Sprintf("the archive is damaged in %s. Keep a copy of it as it is, and stop writing to it. "+
			"Restore it from the last backup that verifies; docs/backup.md says how", manyOf(n, "place"))}
	}
	return nil
}

// print prints the result.
func (v *verify) print(out io.Writer, report *audit.Report, faults []audit.Fault, took time.Duration) error {
	counts := report.Faults()
	if format := v.format(); format != "" {
		return coloring{}.look(out).printResult(out, format, map[string]any{
			"entities": report.Entities.Load(), "versions": report.Versions.Load(), "records": report.Records.Load(), "statuses": report.Statuses.Load(),
			"faults": report.Faulty.Load(), "faults_by_class": counts, "listed": faults, "seconds": took.Seconds(),
		})
	}
	result := "everything fits"
	if report.Faulty.Load() > 0 {
		var parts []string
		for _, class := range audit.Classes {
			if n := counts[class]; n > 0 {
				parts = append(parts, fmt.Sprintf("%s %s", grouped(n), class))
			}
		}
		result = "faults: " + strings.Join(parts, ", ")
	}
	_, err := fmt.Fprintf(out, "%s, %s, %s and %s read in %s; %s\n",
		manyOf(report.Entities.Load(), "entity"), manyOf(report.Versions.Load(), "version"), manyOf(report.Records.Load(), "record"),
		manyOf(report.Statuses.Load(), "status"), took.Round(10*time.Millisecond), result)
	return err
}

// audited says how far an audit is.
func audited(report *audit.Report, took time.Duration) (line string, share float64) {
	line, share = report.Doing(), -1
	if total := report.Total.Load(); total > 0 {
		line, share = howFar(line, report.Versions.Load()+report.Records.Load()+report.Statuses.Load(), total, took, grouped)
	}
	if n := report.Faulty.Load(); n > 0 {
		line += "; " + manyOf(n, "fault")
	}
	return line, share
}

// manyOf writes how many there are of a thing.
func manyOf(n int64, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	if stem, ok := strings.CutSuffix(thing, "y"); ok {
		return grouped(n) + " " + stem + "ies"
	}
	if strings.HasSuffix(thing, "s") {
		return grouped(n) + " " + thing + "es"
	}
	return grouped(n) + " " + thing + "s"
}

// grouped writes a number with commas.
func grouped(n int64) string {
	text := strconv.FormatInt(n, 10)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
