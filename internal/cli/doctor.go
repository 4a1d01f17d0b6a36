package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"oda"
	"oda/client"
	"oda/client/recorder"
	"oda/internal/app"
	"oda/internal/doctor"
	"oda/internal/engine/audit"
)

// examine looks for everything that can be wrong.
type examine struct {
	Db database `placeholder:"DATABASE" help:"The archive to look into: sqlite:PATH, which no server may have open, or postgres://USER@HOST/NAME. Without it, the running archive at --url is asked."`
	remote
	Settings string `aliases:"config" env:"ODA_CONFIG" placeholder:"FILE" help:"File of settings of \"oda serve\" to check as well; --config works, too."`
	Spool    string `placeholder:"DIR" help:"Folder of a spool to check for waiting records (default as for \"oda record status\")."`
	Strict   bool   `help:"Exit with 1 even if there are only warnings."`
	examining
}

// Help is what "oda doctor --help" says besides the flags.
func (*examine) Help() string {
	return `Looks for everything that can be wrong with an archive, and says what to do: damage,
gaps and indexes (as "oda verify" does), references that lead nowhere, a clock that
went back, a disk that is almost full, permissions, files left by an interruption,
the age of the schema, settings of the server and of PostgreSQL, and records waiting
in a spool. It changes nothing.

Exit codes: 0 nothing is wrong, but there may be warnings (--strict); 1 something is
wrong and listed; 2 the archive could not be examined.`
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
			err = errors.New("stopped before everything was checked")
		}
		return &failure{exitUnverified, err.Error()}
	}
	if err := e.print(to.out, report, findings, unseen); err != nil {
		return &failure{exitUnverified, err.Error()}
	}
	if report.Wrong > 0 || e.Strict && report.Warnings > 0 {
		return &failure{exitDamaged, "something is wrong; what to do is listed above"}
	}
	return nil
}

// look examines the database, or asks the server. It returns what could not be checked.
func (e *examine) look(ctx context.Context, report *doctor.Report, p *progress, version string) (unseen string, err error) {
	if e.Db == "" {
		archive, err := e.archive(ctx)
		if err != nil {
			return "", err
		}
		return "damage, references, clocks that went back, permissions and leftover files: for these, stop the server and name its file with --db; " +
			"an archive on PostgreSQL can keep running", askServer(ctx, archive, report, version)
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
				Check: doctor.Spool, Place: s.Dir, Detail: fmt.Sprintf("no process is sending %s of %s", manyOf(s.Records, "record"), s.Block),
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
		if _, err := fmt.Fprintf(out, "not checked: %s\n", unseen); err != nil {
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

// Bounds for what a server says about itself.
const (
	logMost   = 256 << 20 // bytes of the write-ahead log; the server ends listings from there on
	lagMost   = 60        // seconds for which records may wait
	clockMost = time.Minute
)

// askServer checks what a running archive says over HTTP.
func askServer(ctx context.Context, archive *client.Client, report *doctor.Report, version string) error {
	add := func(check doctor.Check, wrong bool, do, format string, args ...any) {
		report.Add(doctor.Finding{Check: check, Wrong: wrong, Place: archive.Address(), Detail: fmt.Sprintf(format, args...), Do: do})
	}
	if err := archive.Ready(ctx); client.Status(err) == 0 && err != nil {
		return explain(archive, "doctor", err)
	} else if err != nil {
		detail := err.Error()
		if refused, ok := errors.AsType[*oda.Error](err); ok {
			detail = refused.Detail
		}
		add(doctor.Server, true, "docs/troubleshooting.md says what each reason means", "it is not ready: %s", detail)
	}
	text, clock, err := archive.Metrics(ctx)
	if oda.CodeOf(err) == oda.NoSuchPath {
		add(doctor.Server, false, "stop it and run \"oda doctor\" with --db, or look at the metrics there", "its metrics have an address of their own (--admin-listen) and were not checked")
		return nil
	}
	if err != nil {
		return explain(archive, "doctor", err)
	}
	if difference := time.Since(clock).Abs(); !clock.IsZero() && difference > clockMost {
		add(doctor.Clock, true, "synchronize both clocks with NTP", "its clock and the clock of this machine differ by %s", difference.Round(time.Second))
	}
	values := samples(string(text))
	if free, ok := values["oda_disk_free_bytes"]; ok {
		report.Room(archive.Address(), int64(free))
	}
	if n := values["oda_wal_bytes"]; n > logMost {
		add(doctor.Space, false, "find out what has been reading for so long: a backup by other tools, an open sqlite3 shell, an unused replication slot", "its write-ahead log has %d MiB", int64(n)>>20)
	}
	if n := values[`oda_problems_total{problem="damaged"}`]; n > 0 {
		add(doctor.Damage, true, "its log names the entities; find all damage with \"oda verify\"", "%.0f requests since it started have met damaged data", n)
	}
	if n := values["oda_commit_failures_total"]; n > 0 {
		add(doctor.Server, false, "its log says why", "%.0f transactions since it started have failed", n)
	}
	if n := values["oda_recorder_lag_seconds"]; n > lagMost {
		add(doctor.Spool, false, "run \"oda record status\" where the recorders run to see why", "%.0f records are waiting in recorders, the oldest for %.0f seconds", values["oda_recorder_lag_records"], n)
	}
	for name := range values {
		if running := label(name, "oda_build_info", "version"); running != "" && running != version {
			add(doctor.Server, false, "use the same release for both", "it runs oda %s, but this is oda %s", running, version)
		}
	}
	return nil
}

// samples reads metrics in the text format of Prometheus, by name and labels as they
// are written there.
func samples(text string) map[string]float64 {
	values := make(map[string]float64)
	for line := range strings.Lines(text) {
		at := strings.LastIndexByte(strings.TrimSpace(line), ' ')
		if at < 0 || strings.HasPrefix(line, "#") {
			continue
		}
		if value, err := strconv.ParseFloat(strings.TrimSpace(line[at:]), 64); err == nil {
			values[line[:at]] = value
		}
	}
	return values
}

// label returns a label of a metric, empty if it is another metric.
func label(sample, metric, name string) string {
	labels, ok := strings.CutPrefix(sample, metric+"{")
	if !ok {
		return ""
	}
	_, value, _ := strings.Cut(","+labels, ","+name+`="`)
	value, _, _ = strings.Cut(value, `"`)
	return value
}
