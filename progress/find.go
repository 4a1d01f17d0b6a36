package progress

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"oda"
)

const (
	askedAtOnce  = 100 // terms in one question to the index
	lookedAtOnce = 100 // entities that are looked up together
	workers      = 4   // that ask and look up
)

// finder finds entities, as many as a report may have. It asks a few questions, however
// many entities there are.
type finder struct {
	oda.Finder
	turns     oda.Turns
	unbounded bool // nothing is left out
	truncated bool

	kept     int    // entities
	giveBack func() // ends its turn; nil if it has none
}

// end must be called when everything was found.
func (f *finder) end() {
	if f.giveBack != nil {
		f.giveBack()
	}
}

// ask calls take for the entities of a kind that may refer to one of some identifiers, once
// for each and for at most so many.
func (f *finder) ask(ctx context.Context, kind oda.Kind, ids []string, most int, take func(*oda.Found)) error {
	var questions []oda.Question
	for part := range slices.Chunk(slices.Sorted(slices.Values(ids)), askedAtOnce) {
		terms := make([]string, len(part))
		for i, id := range part {
			terms[i] = oda.ReferenceTerm(kind, id)
		}
		questions = append(questions, oda.Question{Kind: kind, Clauses: []oda.Clause{{Any: terms}}, Sort: oda.ByIdentifier, Most: most})
	}
	isPlace := make(map[string]bool)
	var refs []oda.Ref
	err := share(ctx, questions, f.candidates, func(places []oda.Place, complete bool) {
		f.truncated = f.truncated || !complete
		for _, place := range places {
			switch {
			case isPlace[place.ID]:
			case len(refs) == most && !f.unbounded:
				f.truncated = true
			default:
				isPlace[place.ID] = true
				refs = append(refs, oda.Ref{Kind: kind, ID: place.ID})
			}
		}
	})
	if err != nil {
		return err
	}
	return f.look(ctx, refs, take)
}

// candidates asks the index: for more until it has everything, if there is no bound.
func (f *finder) candidates(ctx context.Context, q oda.Question) (places []oda.Place, complete bool, err error) {
	for ; ; q.Most *= 10 {
		places, complete, err = f.Candidates(ctx, q)
		if err != nil || complete || !f.unbounded {
			return places, complete, err
		}
	}
}

// look calls take for those entities that are stored.
func (f *finder) look(ctx context.Context, refs []oda.Ref, take func(*oda.Found)) error {
	if f.kept += len(refs); f.kept > fewFound && f.giveBack == nil && !f.unbounded {
		var err error
		if f.giveBack, err = f.turns.Take(ctx, oda.Errorf(oda.Overloaded, "The progress of too many large Projects is asked for at once. Try again shortly.")); err != nil {
			return err
		}
	}
	look := func(ctx context.Context, refs []oda.Ref) ([]*oda.Found, bool, error) {
		found, err := f.Look(ctx, refs)
		for i, one := range found {
			if one != nil && one.Damage != nil {
				return nil, false, one.Damage
			}
			if one != nil {
				found[i] = kept(one)
			}
		}
		return found, true, err
	}
	return share(ctx, slices.Collect(slices.Chunk(refs, lookedAtOnce)), look, func(found []*oda.Found, _ bool) {
		for _, one := range found {
			if one != nil {
				take(one)
			}
		}
	})
}

// share has workers ask all questions, each by one of them, until an error. It calls take
// with the answers, one at a time, in any order.
func share[Q, A any](ctx context.Context, questions []Q, ask func(context.Context, Q) (A, bool, error), take func(A, bool)) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var next atomic.Int64
	var one sync.Mutex
	var group sync.WaitGroup
	for range min(workers, len(questions)) {
		group.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(questions) && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				answer, ok, err := ask(ctx, questions[i])
				if err != nil {
					stop(err)
					return
				}
				one.Lock()
				take(answer, ok)
				one.Unlock()
			}
		})
	}
	group.Wait()
	return context.Cause(ctx)
}

// kept returns what is remembered of an entity. The texts of a summary share memory, and
// one would hold all of it, so it has copies.
func kept(f *oda.Found) *oda.Found {
	one := &oda.Found{Ref: f.Ref, Metadata: f.Metadata, Standing: f.Standing}
	one.Standing.Text = strings.Clone(f.Standing.Text)
	one.Summary.Name = strings.Clone(f.Summary.Name)
	for _, r := range f.Summary.References {
		r.ID, r.Field = strings.Clone(r.ID), ""
		one.Summary.References = append(one.Summary.References, r)
	}
	return one
}
