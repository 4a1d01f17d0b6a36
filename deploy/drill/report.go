package main

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"oda/internal/test/load"
)

// report prints the result.
func report(to io.Writer, events []event, l *load.Load) {
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
	fmt.Fprintf(to, "\n%v\n", l)
}
