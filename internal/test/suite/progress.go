package suite

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"oda"
	"oda/internal/test/must"
	"oda/internal/test/proof"
	"oda/night"
	"oda/progress"
)

// progress gives that of a Project.
func (d *desk) progress(id string) *progress.Report {
	d.tb.Helper()
	report, err := d.store.Progress(d.ctx, id)
	if err != nil {
		d.tb.Fatalf("progress of %s: %v", id, err)
	}
	return report
}

// outline gives the blocks of a report with their SBDefinitions, and the runs of each.
func outline(report *progress.Report) []string {
	lines := []string{}
	for _, b := range report.Blocks {
		lines = append(lines, fmt.Sprintf("%s %q", orNone(b.ID), orNone(b.Name)))
		for _, d := range b.Definitions {
			line := fmt.Sprintf("- %s done:%t", d.ID, d.Done)
			for _, r := range d.Runs {
				line += fmt.Sprintf(" %s+%s:%s", orNone(r.Instance), orNone(r.Block), r.Class)
			}
			lines = append(lines, line)
		}
	}
	return lines
}

func orNone(text *string) string {
	if text == nil {
		return "none"
	}
	return *text
}

var progressing = []scenario{
	{"all SBDefinitions of a Project are there, in its order", func(t *testing.T, d *desk) {
		d.mustPut(prj("p"), `{"obs_programmes":[{"name":"Old","sbd_ids":["z","gone"]}],"obs_blocks":[{"obs_block_id":"ob-1","name":"First","sbd_ids":["b","a","b"]},`+
			`{"obs_block_id":"ob-2"},{"sbd_ids":["z"]}],"science":{"deep":[{"obs_block_id":"ob-deep"}]}}`)
		for id, text := range map[string]string{
			"a": `{"name":"A","status":"Ready"}`, "b": `{"prj_ref":"p"}`, "z": `{"ob_ref":"ob-2"}`,
			"d": `{"ob_ref":"ob-2"}`, "c": `{"ob_ref":"ob-2","prj_ref":"p"}`, "e": `{"prj_ref":"p"}`, "f": `{"ob_ref":"p"}`, "g": `{"ob_ref":"ob-deep"}`,
			"stranger": `{"ob_ref":"ob-3"}`,
		} {
			d.mustPut(sbd(id), text)
		}
		report := d.progress("p")
		same(t, "the outline", outline(report), []string{
			`none "Old"`, "- z done:false", "- gone done:false", `ob-1 "First"`, "- b done:false", "- a done:false",
			`ob-2 "none"`, "- c done:false", "- d done:false", `none "none"`, `ob-deep "none"`, "- g done:false", `none "none"`, "- e done:false", "- f done:false",
		})
		same(t, "how many there are", []any{report.Definitions, report.Done, report.Truncated}, []any{9, 0, false})
		a := report.Blocks[1].Definitions[1]
		same(t, "what is known of one", []any{orNone(a.Name), *a.Version, orNone(a.Status), a.Changed == nil}, []any{"A", int64(1), "Ready", true})
		gone := report.Blocks[0].Definitions[1]
		same(t, "what is known of one that is not stored", gone, progress.Definition{ID: "gone", Runs: []progress.Run{}})
	}},
	{"instances and blocks find each other in both directions", func(t *testing.T, d *desk) {
		d.mustPut(prj("p"), `{"obs_blocks":[{"sbd_ids":["d"]}]}`)
		d.mustPut(sbd("d"), `{}`)
		d.mustUpdate(sbd("d"), `"n":1`)
		for _, one := range []struct {
			ref  oda.Ref
			text string
		}{
			{sbi("i-new"), `{"sbd_ref":"d","sbd_version":1,"status":"Created"}`},
			{sbi("i-both"), `{"sbd_ref":"d","eb_ref":"b-both","status":"Observed"}`},
			{eb("b-both"), `{"sbi_ref":"i-both","sbd_ref":"d","status":"Failed"}`},
			{eb("b-second"), `{"sbi_ref":"i-both","status":"Observed"}`},
			{sbi("i-names"), `{"sbd_id":"d","eb_ref":"b-named","status":"Executing"}`},
			{eb("b-named"), `{}`},
			{sbi("i-late"), `{"sbd_id":"d","eb_ref":"b-spooled"}`},
			{eb("b-alone"), `{"sbd_id":"d","status":"Aborted"}`},
			{eb("b-lost"), `{"sbd_ref":"d","sbi_ref":"i-gone"}`},
			{sbi("i-other"), `{"status":"Cancelled"}`},
			{eb("b-other"), `{"sbd_ref":"d","sbi_ref":"i-other"}`},
			{eb("d"), `{"sbi_ref":"d"}`},
		} {
			d.mustPut(one.ref, one.text)
		}
		same(t, "the outline", outline(d.progress("p")), []string{
			`none "none"`,
			"- d done:true i-new+none:planned i-both+b-both:failed i-both+b-second:done i-names+b-named:running i-late+b-spooled: none+b-alone:stopped i-gone+b-lost: i-other+b-other:stopped",
		})
		changed := func() any {
			if c := d.progress("p").Blocks[0].Definitions[0].Changed; c != nil {
				return *c
			}
			return nil
		}
		same(t, "whether it was changed", changed(), true)
		d.mustUpdate(eb("b-second"), `"sbd_ref":"d","sbd_version":2,"sbi_ref":"i-both"`)
		same(t, "whether it was changed since it ran again", changed(), false)
	}},
	{"random Projects are as a simple model has them", func(t *testing.T, d *desk) { newPlanner(t, d).run(proof.Rounds(40, 300)) }},
	{"there are at most 1,000 SBDefinitions and 10,000 runs", func(t *testing.T, d *desk) {
		var ids []string
		for i := range 1001 {
			ids = append(ids, fmt.Sprintf(`"d-%04d"`, i))
		}
		d.mustPut(prj("p"), `{"obs_blocks":[{"sbd_ids":[`+strings.Join(ids[:1000], ",")+`]}]}`)
		report := d.progress("p")
		same(t, "with as many", []any{report.Definitions, len(report.Blocks[0].Definitions), report.Truncated}, []any{1000, 1000, false})
		d.mustUpdate(prj("p"), `"obs_blocks":[{"sbd_ids":[`+strings.Join(ids, ",")+`]}]`)
		report = d.progress("p")
		same(t, "with one more", []any{report.Definitions, len(report.Blocks[0].Definitions), report.Truncated}, []any{1000, 1000, true})
		d.mustUpdate(prj("p"), `"obs_blocks":[{"sbd_ids":["d-0","d-1"]}]`)
		var puts []writing
		for i := range 5001 {
			puts = append(puts, d.write(sbi(fmt.Sprint("i-", i)), `{"sbd_ref":"d-0"}`), d.write(eb(fmt.Sprint("b-", i)), `{"sbd_ref":"d-1"}`))
		}
		for part := range slices.Chunk(puts, 5000) {
			must.Get(d.store.Put(d.ctx, part))(t)
		}
		if report = d.progress("p"); runsIn(report) != 10_000 || !report.Truncated {
			t.Errorf("%d runs, truncated: %t", runsIn(report), report.Truncated)
		}
	}},
	{"an unknown Project has none", func(t *testing.T, d *desk) {
		_, err := d.store.Progress(d.ctx, "unknown")
		refused(t, err, oda.NotFound)
	}},
}

// progressInside need an engine itself.
var progressInside = []scenario{
	{"a run ends when its status says so", func(t *testing.T, d *desk) {
		d.mustPut(prj("p"), `{"obs_blocks":[{"sbd_ids":["d"]}]}`)
		d.mustPut(sbd("d"), `{}`)
		d.mustPut(sbi("i"), `{"sbd_ref":"d","eb_ref":"b"}`)
		d.mustPut(eb("b"), `{}`)
		say := func(ref oda.Ref, status string, at oda.Instant) {
			t.Helper()
			must.Get(d.engine.Say(d.ctx, oda.NewStatus{Ref: ref, Text: status, At: &at, By: "anna", Now: d.clock.Now()}))(t)
		}
		check := func(what, status, started, ended string) {
			t.Helper()
			r := d.progress("p").Blocks[0].Definitions[0].Runs[0]
			text := func(m *oda.Moment) string {
				if m == nil {
					return ""
				}
				return m.String()[11:19]
			}
			same(t, what, []string{orNone(r.Status), text(r.Started), text(r.Ended)}, []string{status, started, ended})
		}
		now := oda.InstantOf(at("2026-03-01T23:00:00Z"))
		d.clock.Set(now, 0)
		check("without calls", "none", "", "")
		d.mustRecord("b", `{"request":"r","request_sent_at":"2026-03-01T20:00:00Z","response_received_at":"2026-03-01T20:05:00Z"}`)
		check("if nobody says", "none", "20:00:00", "20:05:00")
		say(sbi("i"), "Executing", now-2)
		check("while the instance is running", "Executing", "20:00:00", "")
		say(sbi("i"), "Observed", now-1)
		check("if the instance says, at no time of the block", "Observed", "20:00:00", "20:05:00")
		say(eb("b"), "Executing", now-3)
		check("while it is running", "Executing", "20:00:00", "")
		say(eb("b"), "Aborted", oda.InstantOf(at("2026-03-01T22:00:00Z"))+3_600_000_000)
		check("when it has ended", "Aborted", "20:00:00", "23:00:00")
	}},
	{"the progress of 200 definitions and 1,000 runs is known at once", func(t *testing.T, d *desk) {
		d.largeProject(200, 5, 20)
		reporter := progress.New(d.engine, night.New(d.engine, nil, nil))
		var times []time.Duration
		for range proof.Rounds(3, 300) {
			began := time.Now()
			report := must.Get(reporter.Report(d.ctx, "prj"))(t)
			times = append(times, time.Since(began))
			if runs := runsIn(report); runs != 1000 || report.Definitions != 200 || report.Truncated {
				t.Fatalf("%d definitions with %d runs, truncated: %t", report.Definitions, runs, report.Truncated)
			}
		}
		first, again := times[0], times[1:]
		slices.Sort(again)
		p99 := again[len(again)*99/100]
		t.Logf("first %v, then median %v, p99 %v", first, again[len(again)/2], p99)
		if proof.Running() && p99 > 50*time.Millisecond {
			t.Errorf("p99 is %v", p99)
		}
	}},
	{"what was read of a block is not read again until it changes", func(t *testing.T, d *desk) {
		d.largeProject(2, 3, 10)
		store := &reading{Engine: d.engine}
		reporter := progress.New(store, night.New(store, nil, nil))
		mustRead := func(what string, most int64, calls int64) {
			t.Helper()
			store.records.Store(0)
			report := must.Get(reporter.Report(d.ctx, "prj"))(t)
			got := int64(0)
			for _, r := range report.Blocks[0].Definitions[1].Runs {
				got += *r.Calls
			}
			if got != calls {
				t.Errorf("%s: %d calls, want %d", what, got, calls)
			}
			if read := store.records.Load(); read > most {
				t.Errorf("%s: %d records were read, want at most %d", what, read, most)
			}
		}
		mustRead("first", 60, 30)
		mustRead("again", 0, 30)
		d.mustRecord("eb-1-2", `{"request":"r"}`)
		mustRead("after a record", 2, 31)
	}},
}

// largeProject stores the Project prj, with so many SBDefinitions, runs of each, and calls
// of each run.
func (d *desk) largeProject(definitions, runs, calls int) {
	var puts []writing
	var ids []string
	for i := range definitions {
		id := fmt.Sprint("sbd-", i)
		ids = append(ids, `"`+id+`"`)
		puts = append(puts, d.write(sbd(id), `{"name":"Definition"}`))
		for j := range runs {
			var records []string
			for k := range calls {
				records = append(records, fmt.Sprintf(`{"request":"r","request_sent_at":"2026-03-01T20:%02d:%02d.5Z","response_received_at":"2026-03-01T20:%02d:%02d.25Z"}`, k/30, k%30*2, k/30, k%30*2+1))
			}
			puts = append(puts, d.write(sbi(fmt.Sprint("sbi-", i, "-", j)), fmt.Sprintf(`{"sbd_ref":%q,"sbd_version":1}`, id)),
				d.write(eb(fmt.Sprint("eb-", i, "-", j)), fmt.Sprintf(`{"sbd_ref":%q,"sbd_version":1,"sbi_ref":"sbi-%d-%d",%s}`, id, i, j, listing(records...))))
		}
	}
	puts = append(puts, d.write(prj("prj"), `{"obs_blocks":[{"obs_block_id":"ob","sbd_ids":[`+strings.Join(ids, ",")+`]}]}`))
	for part := range slices.Chunk(puts, 500) {
		must.Get(d.store.Put(d.ctx, part))(d.tb.(*testing.T))
	}
}

// runsIn counts the runs of a report.
func runsIn(report *progress.Report) (n int) {
	for _, b := range report.Blocks {
		for _, d := range b.Definitions {
			n += len(d.Runs)
		}
	}
	return n
}
