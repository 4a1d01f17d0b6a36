package sqlite

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"oda/internal/test/suite"

	"oda"
)

// benchText returns an ExecutionBlock of about 5 KB.
func benchText() string {
	return `{"eb_id":"b","notes":["` + strings.Repeat(`a line of notes, as people write them","`, 125) + `"]}`
}

// BenchmarkGet reads a document from the cache.
func BenchmarkGet(b *testing.B) {
	s, ctx := fresh(b), context.Background()
	mustPut(b, s, put(b, "b", benchText(), 1))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Get(ctx, block("b")); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkGetFromFile reads a document that is not in the cache.
func BenchmarkGetFromFile(b *testing.B) {
	s, ctx := fresh(b), context.Background()
	mustPut(b, s, put(b, "b", benchText(), 1))
	refs := []oda.Ref{block("b")}
	b.SetBytes(int64(len(benchText())))
	b.ReportAllocs()
	for b.Loop() {
		s.cache.leave(refs)
		s.cache.readmit(refs)
		if _, err := s.Get(ctx, refs[0]); err != nil {
			b.Fatal(err)
		}
	}
}

// longPast stores an entity of about 5 KB with so many versions, each a second after
// the previous one.
func longPast(b *testing.B, s *Store, versions int) {
	b.Helper()
	e := mustPut(b, s, put(b, "b", benchText(), 1_000_000))
	for i := 1; i < versions; i++ {
		e = mustPut(b, s, put(b, "b", suite.Render(b, e), oda.Instant(i+1)*1_000_000))
	}
}

// BenchmarkVersion reads random ones of 2,000 versions.
func BenchmarkVersion(b *testing.B) {
	s, ctx := fresh(b), context.Background()
	const versions = 2000
	longPast(b, s, versions)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Version(ctx, block("b"), 1+rand.Int64N(versions-1)); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkAsOf reads the state at random instants among 2,000 versions.
func BenchmarkAsOf(b *testing.B) {
	s, ctx := fresh(b), context.Background()
	const versions = 2000
	longPast(b, s, versions)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.AsOf(ctx, block("b"), oda.Instant(1_000_000+rand.Int64N(versions*1_000_000))); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRecord records from one caller that waits for each, so each record is a
// commit.
func BenchmarkRecord(b *testing.B) {
	s := fresh(b)
	mustPut(b, s, put(b, "b", benchText(), 1))
	add := usualRecord()
	b.SetBytes(int64(add.Size()))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Append(context.Background(), add); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRecordTogether records from many callers at once, so records are
// committed together.
func BenchmarkRecordTogether(b *testing.B) {
	for _, callers := range []int{4, 64} {
		b.Run(fmt.Sprint(callers), func(b *testing.B) {
			s := fresh(b)
			mustPut(b, s, put(b, "b", benchText(), 1))
			add := usualRecord()
			b.SetBytes(int64(add.Size()))
			b.ReportAllocs()
			b.SetParallelism(max(1, callers/runtime.GOMAXPROCS(0)))
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if _, err := s.Append(context.Background(), add); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}

func usualRecord() oda.Append {
	return oda.Append{
		Block: "b", By: "anna", At: oda.InstantOf(time.Unix(1_772_000_000, 0)),
		Records: []oda.NewRecord{{Text: []byte(`{"request":"devicecontrol.assign_resources","request_args":{"args":null,"kwargs":{"subarray_id":"1"}},` +
			`"status":"OK","request_sent_at":"2026-03-01T21:04:05.500000Z","response":{"result":"resources are assigned"},` +
			`"response_received_at":"2026-03-01T21:04:05.900000Z"}`)}},
	}
}

// plan returns an SBDefinition of about 5 KB with a few targets.
func plan() string {
	var b strings.Builder
	b.WriteString(`{"telescope":"ska_mid","description":"Interferometric observation of the target field.","targets":[`)
	for i := range 6 {
		fmt.Fprintf(&b, `{"target_id":"target-%03d","reference_coordinate":{"kind":"equatorial","ra":"%02d:39:25.026","dec":"-%02d:42:45.63"}},`, i, 3*i, 10*i)
	}
	return b.String() + `{}],"rest":"` + strings.Repeat("x", 4200) + `"}`
}

// BenchmarkCreateTogether creates entities from many callers at once, so they are
// committed together. The terms of most are moved into the index meanwhile.
func BenchmarkCreateTogether(b *testing.B) {
	s := fresh(b)
	var number atomic.Int64
	b.SetParallelism(32)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			id := fmt.Sprintf("sbd-new-%07d", number.Add(1))
			d := suite.Document(b, oda.SBDefinition, plan())
			if _, err := s.Put(context.Background(), []oda.Put{suite.Put(d, id, "anna", 1)}); err != nil {
				b.Error(err)
				return
			}
		}
	})
}
