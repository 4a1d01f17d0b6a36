package history

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"oda"
	"oda/internal/test/embedded"
)

// seldom is how rarely a broken archive shows its fault: one time in this many.
const seldom = 10

// patience bounds how long a fault may stay hidden.
const patience = 60 * time.Second

// An archive with a fault is caught, and one without is not.
func TestABrokenArchiveIsCaught(t *testing.T) {
	for about, damage := range map[string]func(oda.Engine) oda.Engine{
		"the metadata check is ignored":             func(s oda.Engine) oda.Engine { return careless{s} },
		"a read is stale now and then":              func(s oda.Engine) oda.Engine { return &stale{Engine: s, kept: map[oda.Ref]*oda.Entity{}} },
		"several entities are stored one by one":    func(s oda.Engine) oda.Engine { return oneByOne{s} },
		"a key is forgotten":                        func(s oda.Engine) oda.Engine { return forgetful{s} },
		"a record is acknowledged and not stored":   func(s oda.Engine) oda.Engine { return leaky{s} },
		"a record is stored and said to be missing": func(s oda.Engine) oda.Engine { return liar{s} },
	} {
		t.Run(about, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			o := usual
			o.Dir = t.TempDir()
			report, err := Play(ctx, Serve(t, damage(embedded.Engine(t))), o)
			if !errors.Is(err, ErrNotLinearizable) {
				t.Fatalf("the fault was not caught: %v, %v", report, err)
			}
			t.Logf("caught after %d games: %v", report.Games, err)
		})
	}
	t.Run("nothing is broken", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		report, err := Play(ctx, Serve(t, embedded.Engine(t)), usual)
		if err != nil {
			t.Fatalf("a sound archive was found to be broken: %v, %v", report, err)
		}
		t.Log(report)
	})
}

// careless sometimes stores a refused update as if its metadata had matched, so
// that another update is lost.
type careless struct{ oda.Engine }

func (s careless) Put(ctx context.Context, puts []oda.Put) ([]*oda.Entity, error) {
	entities, err := s.Engine.Put(ctx, puts)
	if oda.CodeOf(err) != oda.MetadataMismatch || rand.N(seldom) > 0 {
		return entities, err
	}
	for i := range puts {
		e, err := s.Get(ctx, puts[i].Ref)
		if err != nil {
			continue // the entity is new
		}
		m := e.Metadata
		puts[i].Expected = oda.Received{
			Has: oda.AllFields, Version: m.Version, CreatedBy: m.CreatedBy, CreatedOn: m.CreatedOn.Time(),
			LastModifiedBy: m.LastModifiedBy, LastModifiedOn: m.LastModifiedOn.Time(),
		}
	}
	return s.Engine.Put(ctx, puts)
}

// stale sometimes answers a read with an earlier state.
type stale struct {
	oda.Engine
	mu   sync.Mutex
	kept map[oda.Ref]*oda.Entity
}

func (s *stale) Get(ctx context.Context, ref oda.Ref) (*oda.Entity, error) {
	s.mu.Lock()
	old := s.kept[ref]
	s.mu.Unlock()
	if old != nil && rand.N(seldom) == 0 {
		return old, nil
	}
	e, err := s.Engine.Get(ctx, ref)
	if err == nil {
		s.mu.Lock()
		s.kept[ref] = e
		s.mu.Unlock()
	}
	return e, err
}

// oneByOne stores several entities in separate transactions.
type oneByOne struct{ oda.Engine }

func (s oneByOne) Put(ctx context.Context, puts []oda.Put) ([]*oda.Entity, error) {
	var all []*oda.Entity
	for i := range puts {
		one, err := s.Engine.Put(ctx, puts[i:i+1])
		if err != nil {
			return nil, err
		}
		all = append(all, one...)
	}
	return all, nil
}

// forgetful sometimes forgets a key.
type forgetful struct{ oda.Engine }

func (s forgetful) Append(ctx context.Context, add oda.Append) ([]oda.Receipt, error) {
	add.Records = slices.Clone(add.Records)
	for i := range add.Records {
		if rand.N(seldom) == 0 {
			add.Records[i].Key = ""
		}
	}
	return s.Engine.Append(ctx, add)
}

// leaky sometimes acknowledges a record that it did not store.
type leaky struct{ oda.Engine }

func (s leaky) Append(ctx context.Context, add oda.Append) ([]oda.Receipt, error) {
	if rand.N(seldom) > 0 {
		return s.Engine.Append(ctx, add)
	}
	e, err := s.Get(ctx, oda.Ref{Kind: oda.ExecutionBlock, ID: add.Block})
	if err != nil {
		return nil, err
	}
	return []oda.Receipt{{Sequence: 1, Metadata: e.Metadata.Touched(add.By, add.At)}}, nil
}

// liar sometimes refuses a record that it did store.
type liar struct{ oda.Engine }

func (s liar) Append(ctx context.Context, add oda.Append) ([]oda.Receipt, error) {
	receipts, err := s.Engine.Append(ctx, add)
	if err == nil && rand.N(seldom) == 0 {
		return nil, oda.Missing(oda.Ref{Kind: oda.ExecutionBlock, ID: add.Block})
	}
	return receipts, err
}
