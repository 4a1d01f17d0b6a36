package oda_test

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"oda"
	"oda/internal/test/suite"
)

// benchText returns an SBDefinition of about 5 KB, with the metadata that stored
// returns.
func benchText() string {
	var b strings.Builder
	b.WriteString(`{"sbd_id":"sbd-bench","targets":[`)
	for i := 0; b.Len() < 4800; i++ {
		fmt.Fprintf(&b, `{"target_id": "calibrator %d", "ra": "19:39:25.026%d", "dec": "-63:42:45.63", "rate": 0.35e9, "tied": null},`, i, i)
	}
	return b.String() + `{}],"metadata":` + matching + `}`
}

// BenchmarkSplit takes the server's values out of a scanned body.
func BenchmarkSplit(b *testing.B) {
	text := benchText()
	d := suite.Document(b, oda.SBDefinition, text)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if body := d.Body("sbd-bench"); len(body.Slots) != 5 {
			b.Fatalf("%d slots", len(body.Slots))
		}
	}
}

// BenchmarkSplice puts the server's values into a stored body, as an answer does.
func BenchmarkSplice(b *testing.B) {
	text := benchText()
	body, m := suite.Document(b, oda.SBDefinition, text).Body("sbd-bench"), stored(b)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if err := body.WriteTo(io.Discard, m, nil); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRender does the same in memory, for an answer that is written often.
func BenchmarkRender(b *testing.B) {
	text := benchText()
	body, m := suite.Document(b, oda.SBDefinition, text).Body("sbd-bench"), stored(b)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		e := oda.Entity{Metadata: m, Body: body}
		if err := e.Render(1 << 20); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkJudge judges an update that matches.
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

// BenchmarkDocument checks and parses a body, as every PUT does before it calls
// the engine.
func BenchmarkDocument(b *testing.B) {
	text := []byte(benchText())
	suite.Document(b, oda.SBDefinition, string(text)) // compiles the description
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := suite.Read("store", oda.SBDefinition, text); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkTag makes the entity tag of a state.
func BenchmarkTag(b *testing.B) {
	m := stored(b)
	b.ReportAllocs()
	for b.Loop() {
		if m.Tag() == "" {
			b.Fatal("there is no tag")
		}
	}
}
