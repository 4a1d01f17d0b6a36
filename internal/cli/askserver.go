package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"oda"
	"oda/client"
	"oda/internal/doctor"
)

// Bounds for what a server says about itself.
const (
	logMost   = 256 << 20 // bytes of the write-ahead log; the server ends listings from there on
	lagMost   = 60        // seconds for which records may wait
	clockMost = time.Minute
)

// askServer asks a running archive what can be asked over HTTP.
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
		add(doctor.Server, false, "run \"oda doctor\" with --db when it is stopped, or look at the metrics there", "its metrics are at an address of their own (--admin-listen), and were not looked at")
		return nil
	}
	if err != nil {
		return explain(archive, "doctor", err)
	}
	if apart := time.Since(clock).Abs(); !clock.IsZero() && apart > clockMost {
		add(doctor.Clock, true, "set both clocks by NTP or chrony", "its clock and the one of this machine are %s apart", apart.Round(time.Second))
	}
	values := samples(string(text))
	if free, ok := values["oda_disk_free_bytes"]; ok {
		report.Room(archive.Address(), int64(free))
	}
	if n := values["oda_wal_bytes"]; n > logMost {
		add(doctor.Space, false, "find out what reads for so long: a backup by other tools, an open sqlite3 shell, an unused replication slot", "its write-ahead log has %d MiB", int64(n)>>20)
	}
	if n := values[`oda_problems_total{problem="damaged"}`]; n > 0 {
		add(doctor.Damage, true, "its log names the entities; find all damage with \"oda verify\"", "%.0f requests since its start met something that is damaged", n)
	}
	if n := values["oda_commit_failures_total"]; n > 0 {
		add(doctor.Server, false, "its log says why", "%.0f transactions since its start have failed", n)
	}
	if n := values["oda_recorder_lag_seconds"]; n > lagMost {
		add(doctor.Spool, false, "see what keeps them with \"oda record status\" where they run", "%.0f records wait at recorders, the oldest for %.0f seconds", values["oda_recorder_lag_records"], n)
	}
	for name := range values {
		if running := label(name, "oda_build_info", "version"); running != "" && running != version {
			add(doctor.Server, false, "use the same release on both sides", "it runs oda %s, but this is oda %s", running, version)
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
