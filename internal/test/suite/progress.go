package suite

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"oda/internal/test/must"
	"oda/internal/test/proof"
	"oda/night"
	"oda/progress"
)

// progressInside need an engine itself.
var progressInside = []scenario{
	{"the progress of 200 definitions and 1,000 runs is known at once", func(t *testing.T, d *desk) {
		d.largeProject(200, 5, 20)
		reporter := progress.New(d.engine, night.New(d.engine))
		var times []time.Duration
		for range proof.Rounds(20, 200) {
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
			puts = append(puts, d.write(sbi(fmt.Sprint("sbi-", i, "-", j)), fmt.Sprintf(`{"sbd_ref":%q,"sbd_version":1}`, id)))
			puts = append(puts, d.write(eb(fmt.Sprint("eb-", i, "-", j)), fmt.Sprintf(`{"sbd_ref":%q,"sbd_version":1,"sbi_ref":"sbi-%d-%d",%s}`, id, i, j, listing(records...))))
		}
	}
	puts = append(puts, d.write(prj("prj"), `{"obs_blocks":[{"obs_block_id":"ob","sbd_ids":[`+strings.Join(ids, ",")+`]}]}`))
	for part := range slices.Chunk(puts, 500) {
		if _, err := d.store.Put(d.ctx, part); err != nil {
			d.tb.Fatalf("store a large Project: %v", err)
		}
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
