// Package calls finds calls: those that failed, those of a block, those in progress at an
// instant, and all of a range of time; and counts them.
//
// Start reading at Finder. A Query (query.go) has its calls from a source (source.go),
// which yields them in order; judge.go says which of them are asked for.
package calls

import (
	"cmp"
	"context"
	"iter"
	"runtime"
	"time"

	"oda"
	"oda/internal/kept"
	"oda/internal/words"
)

// Engine is what calls are found in.
type Engine interface {
	oda.Calendar
	oda.NotableCalls
	oda.Reader
	oda.Finder
}

// Finder finds calls. It is safe for concurrent use.
type Finder struct {
	engine       Engine
	quick, walks oda.Turns
	time         time.Duration // after which a page ends as it is
	blocks       *kept.Cache[string, *blockTimes]
	sums         *kept.Cache[sumKey, *unitSum]
}

// Bounds of questions about calls.
const (
	pageTime  = time.Second
	tallyTime = 5 * time.Second
	mostTime  = 30 * time.Second // of a question, whatever it is

	blockBytes = 16 << 20 // of the times of the calls of blocks
	sumBytes   = 16 << 20 // of sums

	lookAtOnce = 1000
	readAtOnce = 200
)

// New returns a Finder for the calls in an engine.
func New(engine Engine) *Finder {
	n := max(2, runtime.GOMAXPROCS(0)/2)
	return &Finder{
		engine: engine, quick: oda.NewTurns(4 * n), walks: oda.NewTurns(n), time: pageTime,
		blocks: kept.New[string, *blockTimes](blockBytes), sums: kept.New[sumKey, *unitSum](sumBytes),
	}
}

// Page is a page of calls.
type Page struct {
	Calls []oda.CallEntry `json:"calls"`
	Next  *string         `json:"next"` // the cursor of the next page; nil if there is none
}

// Page returns a page of calls. It looks for a limited time: a page that is cut short has
// a next page.
func (f *Finder) Page(ctx context.Context, asked Query) (*Page, error) {
	q, ctx, done, err := f.begin(ctx, asked)
	if err != nil {
		return nil, err
	}
	defer done()
	page := &Page{Calls: []oda.CallEntry{}}
	q.late = time.Now().Add(cmp.Or(asked.Within, f.time))
	for e, err := range q.found(ctx, q.Limit+1) {
		if err != nil {
			return nil, err
		}
		if len(page.Calls) == q.Limit {
			next := q.cursor(q.place(&page.Calls[q.Limit-1]))
			page.Next = &next
			return page, nil
		}
		page.Calls = append(page.Calls, e)
	}
	if q.cut != nil {
		next := q.cursor(*q.cut)
		page.Next = &next
	}
	return page, nil
}

// begin waits for a turn. The caller must call done.
func (f *Finder) begin(ctx context.Context, asked Query) (q *question, _ context.Context, done func(), err error) {
	q = &question{Query: asked, Finder: f, words: words.Of(asked.Words), telescopes: make(map[string]string)}
	turns := f.walks
	if q.At != nil || q.Outcome == oda.CallFailed {
		turns = f.quick
	}
	giveBack, err := turns.Take(ctx, oda.Errorf(oda.Overloaded, "Too many questions about calls at once. Try again shortly, or ask for failed calls, which takes less."))
	if err != nil {
		return nil, nil, nil, err
	}
	ctx, cancel := context.WithTimeoutCause(oda.WithRoom(ctx, nil), mostTime, oda.Errorf(oda.Overloaded,
		"It took longer than %d seconds to read these calls. Ask for a shorter time, or try again when the archive is less busy.", int(mostTime.Seconds())))
	return q, ctx, func() {
		cancel()
		giveBack()
	}, nil
}

// place returns the place of a call in the order of the question.
func (q *question) place(e *oda.CallEntry) oda.CallPlace {
	place := e.Place()
	if !q.byTime() {
		place.At = oda.DayOf(e.At).Begin()
	}
	return place
}

// found yields the calls that match, until the time is up. It looks up the telescopes of a
// number of them at once.
func (q *question) found(ctx context.Context, atOnce int) iter.Seq2[oda.CallEntry, error] {
	return func(yield func(oda.CallEntry, error) bool) {
		var matching []oda.CallEntry
		flush := func() bool {
			if err := q.setTelescopes(ctx, matching); err != nil {
				yield(oda.CallEntry{}, err)
				return false
			}
			for i := range matching {
				if e := &matching[i]; (q.Telescope == "" || is(e.Telescope, q.Telescope)) && !yield(*e, nil) {
					return false
				}
			}
			matching = matching[:0]
			return true
		}
		for e, err := range q.source(ctx) {
			if err != nil {
				yield(oda.CallEntry{}, cause(ctx, err))
				return
			}
			if q.matches(&e) {
				if matching = append(matching, e); len(matching) >= atOnce && !flush() {
					return
				}
			}
			if time.Now().After(q.late) {
				place := q.place(&e)
				q.cut = &place
				break
			}
		}
		flush()
	}
}

// cause returns why the time of a question ended, if that is why it failed.
func cause(ctx context.Context, err error) error {
	if ended, ok := context.Cause(ctx).(*oda.Error); ok {
		return ended
	}
	return err
}

// setTelescopes sets the telescopes of calls.
func (q *question) setTelescopes(ctx context.Context, calls []oda.CallEntry) error {
	var unknown []string
	for i := range calls {
		if _, known := q.telescopes[calls[i].Block]; !known {
			q.telescopes[calls[i].Block] = ""
			unknown = append(unknown, calls[i].Block)
		}
	}
	if _, err := q.look(ctx, unknown); err != nil {
		return err
	}
	for i := range calls {
		if telescope := q.telescopes[calls[i].Block]; telescope != "" {
			calls[i].Telescope = &telescope
		}
	}
	return nil
}

// look looks up blocks, and notes their telescopes. One that is not stored is left out.
func (q *question) look(ctx context.Context, ids []string) ([]*oda.Found, error) {
	blocks, err := oda.LookBlocks(ctx, q.engine, ids)
	for _, f := range blocks {
		q.telescopes[f.ID] = f.Summary.Telescope
	}
	return blocks, err
}
