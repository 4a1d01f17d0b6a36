package web

import (
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"oda"
	"oda/archive"
	"oda/calls"
	"oda/internal/sqlite"
	"oda/internal/test/must"
	"oda/naming"
	"oda/night"
	"oda/search"
)

// emptySite returns the pages of an archive without entities.
func emptySite(t *testing.T) *Site {
	t.Helper()
	engine := must.Get(sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "archive.db"), slog.New(slog.DiscardHandler)))(t)
	t.Cleanup(func() { _ = engine.Close() })
	names, searcher := naming.New(engine), search.New(engine)
	return New(Config{
		Archive: archive.New(engine, nil), Searcher: searcher, Names: names, Nights: night.New(engine, names, searcher), Calls: calls.New(engine), Version: "1.2.3<b>", Engine: "sqlite",
	})
}

// ShowShare writes a share in per cent.
var ShowShare = showShare

// CallIndexes are the indexes of blocks.
type CallIndexes struct{ callIndexes }

// Use takes the index of a block, which then costs so much.
func (c *CallIndexes) Use(block string, cost int) { c.keep(c.take(block), cost) }

// Kept returns the blocks whose indexes are kept, and what they cost.
func (c *CallIndexes) Kept() (blocks []string, cost int) {
	for _, x := range c.cache {
		blocks, cost = append(blocks, x.of), cost+x.cost
	}
	return blocks, cost
}

// LateRequests is how many requests it takes to know all calls of an older state, if the
// time of each is up before it begins; most if these do not suffice.
func LateRequests(e *oda.Entity, most int) (requests int, err error) {
	var x callIndex
	for ; !x.complete && requests < most && err == nil; requests++ {
		err = x.extendOld(e, time.Time{})
	}
	return requests, err
}
