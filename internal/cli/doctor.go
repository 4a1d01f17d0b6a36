package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"oda/client/recorder"
	"oda/internal/app"
	"oda/internal/doctor"
	"oda/internal/engine/audit"
)

// examine looks for everything that can be wrong.
type examine struct {
	Db database `placeholder:"DATABASE" help:"The archive to look into: sqlite:PATH, which no server may have open, or postgres://USER@HOST/NAME. Without it, the running archive at --url is asked."`
	remote
	Settings string `aliases:"config" env:"ODA_CONFIG" placeholder:"FILE" help:"File of settings of \"oda serve\", to check it, too; you can also write --config, as there."`
	Spool    string `placeholder:"DIR" help:"Folder of a spool, to look for records that wait (default as for \"oda record status\")."`
	Most     int    `default:"20" placeholder:"N" help:"How many findings of each kind to list; all are counted (default ${default})."`
	Strict   bool   `help:"Exit with 1 for warnings, too."`
	Quiet    bool   `short:"q" help:"Print no progress."`
	reporting
}

// Help is what "oda doctor --help" says besides the flags.
func (*examine) Help() string {
	return `Looks for everything that can be wrong with an archive, and says what to do: damage,
gaps and indexes (as "oda verify" does), references that lead nowhere, a clock that
went back, a disk that is almost full, permissions, files that something interrupted
has left, the age of the schema, settings of the server and of PostgreSQL, records
that wait in a spool. It changes nothing.

Exit codes: 0 nothing is wrong, but there may be warnings (--strict); 1 something is
wrong, and is listed; 2 the archive could not be examined.`
}

// Validate checks what the types of the flags do not.
func (e *examine) Validate() error {
	if e.Most < 0 {
		return errors.New("--most must not be negative")
	}
	return nil
}

// Run examines the archive.
func (e *examine) Run(ctx context.Context, to streams) error {
	p := newProgress(to.err, e.Quiet)
	findings := []doctor.Finding{}
	said := ""
	// Servers and files are quoted, and may say anything.
	advise := func(do string) { fmt.Fprintln(to.out, visible("    what to do: "+do)) }
	report := doctor.NewReport(e.Most, func(f doctor.Finding) {
		findings = append(findings, f)
		if e.format() != "" {
			return
		}
		p.clear()
		level := "warning"
		if f.Wrong {
			level = "wrong"
		}
		if said != "" && said != f.Do {
			advise(said)
		}
		fmt.Fprintln(to.out, visible(fmt.Sprintf("%s: %s: %s: %s", level, f.Check, f.Place, f.Detail)))
		said = f.Do
	})
	e.settings(report, to.version)
	e.spools(report)
	unseen, err := e.look(ctx, report, p, to.version)
	if said != "" {
		advise(said)
	}
	if err != nil {
		if ctx.Err() != nil {
			err = errors.New("stopped before everything was looked at")
		}
		return &failure{exitUnverified, err.Error()}
	}
	if err := e.print(to.out, report, findings, unseen); err != nil {
		return &failure{exitUnverified, err.Error()}
	}
	if report.Wrong > 0 || e.Strict && report.Warnings > 0 {
		return &failure{exitDamaged, "not everything is as it should be; what to do is said above"}
	}
	return nil
}

// look examines the database, or asks the server. It returns what could not be looked
// at.
func (e *examine) look(ctx context.Context, report *doctor.Report, p *progress, version string) (unseen string, err error) {
	if e.Db == "" {
		archive, err := e.archive(ctx)
		if err != nil {
			return "", err
		}
		return "damage, references, the clock of the past, permissions and leftover files: for these, stop the server and give its file with --db; " +
			"an archive on PostgreSQL may run meanwhile", askServer(ctx, archive, report, version)
	}
	told := 0
	damage := audit.NewReport(e.Most, func(f audit.Fault) {
		told++
		report.Add(doctor.Finding{Check: doctor.Damage, Wrong: true, Place: f.Place, Detail: fmt.Sprintf("%s (%s)", f.Detail, f.Class), Do: remedy(f.Class)})
	})
	stop := p.follow(func(took time.Duration) (string, float64) { return audited(damage, took) })
	err = app.Examine(ctx, string(e.Db), report, damage)
	stop()
	report.Wrong += int(damage.Faulty.Load()) - told
	return "", err
}

// remedy says what to do about a class of damage.
func remedy(class audit.Class) string {
	if class == audit.Index {
		return "documents and records are whole, but lists and searches may miss some of them: restore the last backup that verifies, or export the archive and import it into a new one"
	}
	return "keep a copy of the archive as it is, and stop writing to it; restore the last backup that verifies (docs/backup.md)"
}

// settings checks the settings of the server, as "oda config check" does.
func (e *examine) settings(report *doctor.Report, version string) {
	if e.Settings == "" {
		return
	}
	for _, mistake := range mistakesIn(e.Settings, version) {
		report.Add(doctor.Finding{Check: doctor.Settings, Wrong: true, Place: e.Settings, Detail: mistake.Error(), Do: "correct it; \"oda config check\" shows all mistakes"})
	}
}

// mistakesIn returns what is wrong with the settings of a server in a file and the
// environment.
func mistakesIn(file, version string) []error {
	read, err := parsed("config", "check", "--config", file)
	if err != nil {
		return []error{err}
	}
	return read.Config.Check.mistakes(&read.settings, version)
}

// spools looks for records that wait.
func (e *examine) spools(report *doctor.Report) {
	folders, err := spoolIn{Dir: e.Spool}.dirs()
	if err != nil {
		report.Add(doctor.Finding{Check: doctor.Spool, Wrong: true, Place: "ODA_SPOOL", Detail: err.Error(), Do: "name the folder of the spool with --spool"})
	}
	for _, folder := range folders {
		spooled(folder, report)
	}
}

// spooled looks for records that wait in a folder.
func spooled(folder string, report *doctor.Report) {
	sessions, err := recorder.Status(folder)
	if err != nil {
		report.Add(doctor.Finding{Check: doctor.Spool, Wrong: true, Place: folder, Detail: err.Error(), Do: "name the folder of the spool with --spool"})
		return
	}
	for _, s := range sessions {
		switch {
		case s.Err != nil:
			report.Add(doctor.Finding{Check: doctor.Spool, Wrong: true, Place: s.Dir, Detail: s.Err.Error(), Do: "keep a copy of the folder, and see docs/spool.md"})
		case s.Refused+s.Damaged > 0:
			report.Add(doctor.Finding{
				Check: doctor.Spool, Wrong: true, Place: s.Dir, Detail: fmt.Sprintf("of the records of %s, the archive refused %d, and %d are damaged", s.Block, s.Refused, s.Damaged),
				Do: "look at refused.log and damaged.log in it",
			})
		case s.Records > 0 && !s.Held:
			report.Add(doctor.Finding{
				Check: doctor.Spool, Place: s.Dir, Detail: fmt.Sprintf("nobody sends %s of %s", manyOf(s.Records, "waiting record"), s.Block),
				Do: "send them with: oda record drain " + folder,
			})
		}
	}
}

// print prints the result.
func (e *examine) print(out io.Writer, report *doctor.Report, findings []doctor.Finding, unseen string) error {
	if format := e.format(); format != "" {
		return coloring{}.look(out).printResult(out, format, map[string]any{"wrong": report.Wrong, "warnings": report.Warnings, "listed": findings, "not_looked_at": unseen})
	}
	if unseen != "" {
		if _, err := fmt.Fprintf(out, "not looked at: %s\n", unseen); err != nil {
			return err
		}
	}
	warnings := manyOf(int64(report.Warnings), "warning")
	if report.Wrong == 0 {
		_, err := fmt.Fprintf(out, "nothing is wrong; %s\n", warnings)
		return err
	}
	_, err := fmt.Fprintf(out, "wrong: %s; %s\n", manyOf(int64(report.Wrong), "place"), warnings)
	return err
}
