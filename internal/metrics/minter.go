package metrics

import (
	"context"
	"sync/atomic"
	"time"

	"oda"
	"oda/internal/measure"
)

// Minter is an oda.Minter that measures another one.
type Minter struct {
	inner  oda.Minter
	source string
	took   *measure.Histogram // in nanoseconds
	failed atomic.Int64
}

// NewMinter returns a minter that takes identifiers from another one. The source is a
// word for that.
func NewMinter(inner oda.Minter, source string) *Minter {
	return &Minter{inner: inner, source: source, took: measure.NewHistogram(measure.Durations...)}
}

// Mint implements oda.Minter.
func (m *Minter) Mint(ctx context.Context, kind oda.Kind) (string, error) {
	began := time.Now()
	id, err := m.inner.Mint(ctx, kind)
	switch {
	case err == nil:
		m.took.Note(int64(time.Since(began)))
	case ctx.Err() == nil: // else the caller has gone
		m.failed.Add(1)
	}
	return id, err
}
