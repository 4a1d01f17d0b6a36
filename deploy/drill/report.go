package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
	"time"

	"oda/internal/test/history"
)

// report prints the result.
func report(to io.Writer, events []event, t *tally, v history.Verdict) {
	seconds := func(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }
	w := tabwriter.NewWriter(to, 0, 0, 3, ' ', 0)
	fmt.Fprint(w, "\nevent\tleader\tnew leader\telected after\tdatabase writes after\tfirst write after")
	for way := range path(paths) {
		fmt.Fprintf(w, "\t%v", way)
	}
	fmt.Fprintln(w, "\twhole after return\t")
	for _, e := range events {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s", e.kind, e.from, e.to, seconds(e.elected), seconds(e.database), seconds(slices.Min(e.firsts[:])))
		for _, first := range e.firsts {
			fmt.Fprintf(w, "\t%s", seconds(first))
		}
		fmt.Fprintf(w, "\t%s\t\n", seconds(e.whole))
	}
	_ = w.Flush()
	fmt.Fprintln(w, "\noperations acknowledged\t", t.outcomes[acknowledged])
	fmt.Fprintln(w, "operations refused\t", t.outcomes[refused])
	fmt.Fprintln(w, "operations unknown\t", t.outcomes[unknown])
	fmt.Fprintln(w, "found, not acknowledged\t", v.Unacknowledged)
	for _, how := range slices.Sorted(maps.Keys(t.attempts)) {
		fmt.Fprintf(w, "attempts: %s\t %d\n", how, t.attempts[how])
	}
	fmt.Fprintln(w, "longest time without a successful write\t", seconds(t.quiet[paths].longest))
	for way := range path(paths) {
		fmt.Fprintf(w, "  of %v\t %s\n", way, seconds(t.quiet[way].longest))
	}
	fmt.Fprintln(w, "LOST (must be 0)\t", v.Lost)
	fmt.Fprintln(w, "DUPLICATED (must be 0)\t", v.Twice)
	fmt.Fprintln(w, "READ, THEN GONE (must be 0)\t", v.Vanished)
	fmt.Fprintln(w, "OUT OF ORDER (must be 0)\t", v.Disordered)
	fmt.Fprintln(w, "NEVER SENT (must be 0)\t", v.Unsent)
	_ = w.Flush()
	for _, example := range v.Faults {
		fmt.Fprintln(to, "  ", example)
	}
}
