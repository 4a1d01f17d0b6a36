package follow

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"oda"
	"oda/internal/test/embedded"
	"oda/internal/test/fault"
	"oda/internal/test/history"
	"oda/internal/test/must"
)

// seldom is how rarely a broken feed shows its fault: one time in this many.
const seldom = 10

// How much is written while a feed is followed, how often at most, and how long
// a broken one may take to come to the end.
const (
	much   = 500 // versions and records
	often  = 10
	slowly = time.Second
)

// engine is an engine with a log of changes.
type engine interface {
	oda.Engine
	oda.Log
}

// A feed with a fault is caught, and one without is not.
func TestABrokenFeedIsCaught(t *testing.T) {
	for about, test := range map[string]struct {
		damage func(engine) engine
		caught func(*verdict) bool
	}{
		"records merged across other changes": {
			func(e engine) engine { return merging{e} },
			func(v *verdict) bool { return v.backward > 0 },
		},
		"a change again after a resume": {
			func(e engine) engine { return repeating{e} },
			func(v *verdict) bool { return v.twice > 0 && v.backward > 0 },
		},
		"a change dropped at the end of a page": {
			func(e engine) engine { return dropping{e} },
			func(v *verdict) bool { return v.missed > 0 },
		},
		"versions of an entity in another order": {
			func(e engine) engine { return shuffling{e} },
			func(v *verdict) bool { return v.disordered > 0 && v.overtaken > 0 },
		},
		"a change at another position the next time": {
			func(e engine) engine { return moving{e} },
			func(v *verdict) bool { return v.moved > 0 },
		},
	} {
		t.Run(about, func(t *testing.T) {
			t.Parallel()
			for range often {
				_, err := followFor(t, test.damage(embedded.Engine(t)), slowly)
				for _, v := range verdicts(err) {
					if test.caught(v) {
						t.Logf("caught: %v", v)
						return
					}
				}
			}
			t.Fatal("the fault was not caught")
		})
	}
	t.Run("nothing is broken", func(t *testing.T) {
		t.Parallel()
		report, err := followFor(t, embedded.Engine(t), patience)
		if err != nil {
			t.Fatalf("a sound feed was found to be broken: %v", err)
		}
		t.Log(report)
	})
}

// verdicts returns all verdicts in an error.
func verdicts(err error) []*verdict {
	var all []*verdict
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, one := range joined.Unwrap() {
			all = append(all, verdicts(one)...)
		}
	} else if v, ok := errors.AsType[*verdict](err); ok {
		all = append(all, v)
	}
	return all
}

// followFor follows an archive on an engine for a while.
func followFor(t *testing.T, e engine, patience time.Duration) (report string, err error) {
	t.Helper()
	api := must.Get(history.Serve(t, e).URL(t.Context()))(t)
	host := []string{hostOf(t, api)}
	p := start(t, host, host)
	p.patience = patience
	err = fault.Poll(t.Context(), progressIn, "writes", func() (bool, error) {
		return p.Acknowledged() >= much, p.failure()
	})
	if err != nil {
		t.Log(err) // the verdict says why
	}
	return p.end(t.Context(), host[0])
}

// merging merges records of a block that have other changes between them.
type merging struct{ engine }

func (s merging) Changes(ctx context.Context, after oda.Position, limit int) ([]oda.Change, oda.Position, error) {
	changes, next, err := s.engine.Changes(ctx, after, limit)
	for i, last := range changes {
		for j, before := range changes[:max(0, i-1)] {
			if !last.Stored() && !before.Stored() && last.Ref == before.Ref && last.Version == before.Version &&
				last.By == before.By && last.FirstSequence == before.LastSequence+1 {
				changes[i].FirstSequence = before.FirstSequence
				return slices.Delete(changes, j, j+1), next, err
			}
		}
	}
	return changes, next, err
}

// repeating sometimes repeats the change before the place where a follower goes
// on.
type repeating struct{ engine }

func (s repeating) Changes(ctx context.Context, after oda.Position, limit int) ([]oda.Change, oda.Position, error) {
	if after > 0 && rand.N(seldom) == 0 {
		after--
	}
	return s.engine.Changes(ctx, after, limit)
}

// dropping sometimes drops the last change of a page.
type dropping struct{ engine }

func (s dropping) Changes(ctx context.Context, after oda.Position, limit int) ([]oda.Change, oda.Position, error) {
	changes, next, err := s.engine.Changes(ctx, after, limit)
	if len(changes) > 1 && rand.N(seldom) == 0 {
		changes = changes[:len(changes)-1]
	}
	return changes, next, err
}

// shuffling exchanges two versions of an entity that are near each other.
type shuffling struct{ engine }

func (s shuffling) Changes(ctx context.Context, after oda.Position, limit int) ([]oda.Change, oda.Position, error) {
	changes, next, err := s.engine.Changes(ctx, after, limit)
	for i := range changes {
		for j := range i {
			if changes[i].Ref == changes[j].Ref && changes[i].Stored() && changes[j].Stored() {
				changes[i], changes[j] = changes[j], changes[i]
				changes[i].Position, changes[j].Position = changes[j].Position, changes[i].Position
				return changes, next, err
			}
		}
	}
	return changes, next, err
}

// moving sometimes shows the change at the end of the log at another position.
type moving struct{ engine }

func (s moving) Changes(ctx context.Context, after oda.Position, limit int) ([]oda.Change, oda.Position, error) {
	changes, next, err := s.engine.Changes(ctx, after, limit)
	if last := len(changes) - 1; last >= 0 && rand.N(seldom) == 0 {
		changes[last].Position++
		next++
	}
	return changes, next, err
}
