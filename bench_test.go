package oda_test

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"oda"
)

// benchText is an SBDefinition of about 5 KB, with the metadata that stored
// gives.
func benchText() string {
	var b strings.Builder
	b.WriteString(`{"sbd_id":"sbd-bench","targets":[`)
	for i := 0; b.Len() < 4800; i++ {
		fmt.Fprintf(&b, `{"target_id": "calibrator %d", "ra": "19:39:25.026%d", "dec": "-63:42:45.63", "rate": 0.35e9, "tied": null},`, i, i)
	}
	return b.String() + `{}],"metadata":` + matching + `}`
}

// From a scanned body to what is kept: the server's values are taken out.
func BenchmarkSplit(b *testing.B) {
	text := benchText()
	d := mustRead(b, "storeSBD", oda.SBDefinition, text)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if body := d.Body("sbd-bench"); len(body.Slots) != 5 {
			b.Fatalf("%d slots", len(body.Slots))
		}
	}
}

// From what is kept to an answer: the values are put in again.
func BenchmarkSplice(b *testing.B) {
	text := benchText()
	body, m := mustRead(b, "storeSBD", oda.SBDefinition, text).Body("sbd-bench"), stored(b)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if err := body.WriteTo(io.Discard, m, nil); err != nil {
			b.Fatal(err)
		}
	}
}

// The same, in memory and to be kept.
func BenchmarkRender(b *testing.B) {
	text := benchText()
	body, m := mustRead(b, "storeSBD", oda.SBDefinition, text).Body("sbd-bench"), stored(b)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		e := oda.Entity{Metadata: m, Body: body}
		if err := e.Render(); err != nil {
			b.Fatal(err)
		}
	}
}

// The rule of the compare-and-set, on an update that matches.
func BenchmarkJudge(b *testing.B) {
	puts, m := []oda.Put{putOf(b, matching)}, stored(b)
	head := []*oda.Metadata{&m}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := oda.Judge(puts, head); err != nil {
			b.Fatal(err)
		}
	}
}

// From a body to a document: the way that every PUT takes before the engine.
func BenchmarkDocument(b *testing.B) {
	text := []byte(benchText())
	mustRead(b, "storeSBD", oda.SBDefinition, string(text)) // compiles the description
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := read("storeSBD", oda.SBDefinition, text); err != nil {
			b.Fatal(err)
		}
	}
}

// The name of a state, which is its entity tag.
func BenchmarkTag(b *testing.B) {
	m := stored(b)
	b.ReportAllocs()
	for b.Loop() {
		if m.Tag() == "" {
			b.Fatal("there is no tag")
		}
	}
}
