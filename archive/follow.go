package archive

import (
	"context"
	"slices"
	"strconv"
	"time"

	"oda"
)

// Bounds of a query for changes.
const (
	MaxChanges     = 10_000 // of a page
	changesDefault = 1000   // if no limit is given
	maxChangeIDs   = 100    // identifiers to filter by
	maxWait        = 60     // seconds
)

// changesTime is how long a page of changes is read. A page is shorter if its filter
// leaves out so many changes that the time is up.
const changesTime = time.Second

// Following asks for changes.
type Following struct {
	After  oda.Position
	Now    bool // after the current end of the log, instead of After
	Limit  int
	Filter oda.ChangeFilter
	Wait   time.Duration // for the first change
}

// ParseFollowing parses the parameters of a query for changes. Last is the last
// position that the follower has seen, or empty. It takes precedence over "after".
func ParseFollowing(params map[string][]string, last string) (Following, error) {
	p := oda.Params{Values: params}
	f := Following{Limit: changesDefault}
	after, given := p.One("after")
	if last != "" {
		after, given = last, true
	}
	if given && after == "now" && last == "" {
		f.Now = true
	} else if given {
		n, err := strconv.ParseInt(after, 10, 64)
		switch {
		case err == nil && n >= 0:
			f.After = oda.Position(n)
		case last != "":
			p.Faults = append(p.Faults, oda.Fault{Pointer: "header:Last-Event-ID", Detail: "must be a position, which is a whole number from 0"})
		default:
			p.Fault("after", "must be a position, which is a whole number from 0, or now")
		}
	}
	f.Limit = int(p.Whole("limit", 1, MaxChanges, changesDefault))
	f.Wait = time.Duration(p.Whole("wait", 0, maxWait, 0)) * time.Second
	for _, name := range params["kind"] {
		kind, known := oda.KindOf(name)
		if !known {
			p.Fault("kind", "must be one of %s", oda.Collections())
			break
		}
		f.Filter.Kinds = append(f.Filter.Kinds, kind)
	}
	if slices.Contains(params["id"], "") {
		p.Fault("id", "is empty; give it a value or leave it out")
	}
	if f.Filter.IDs = params["id"]; len(f.Filter.IDs) > maxChangeIDs {
		p.Fault("id", "is given %d times; give it at most %d times, or filter what you receive", len(f.Filter.IDs), maxChangeIDs)
	}
	if err := p.Err("Invalid query"); err != nil {
		return Following{}, err
	}
	return f, nil
}

// ParseWait parses how long to wait for something new.
func ParseWait(params map[string][]string) (time.Duration, error) {
	p := oda.Params{Values: params}
	wait := p.Whole("wait", 0, maxWait, 0)
	return time.Duration(wait) * time.Second, p.Err("Invalid query")
}

// Changes returns a page of the log. It does not wait.
func (a *Archive) Changes(ctx context.Context, f Following) (oda.ChangePage, error) {
	if f.Now {
		end, err := a.engine.End(ctx)
		return oda.ChangePage{Next: end, AtEnd: true}, err
	}
	page := oda.ChangePage{Next: f.After}
	late := time.Now().Add(changesTime)
	for {
		// A filter may leave out most of what is read.
		most := f.Limit - len(page.Changes)
		if !f.Filter.All() {
			most = changesDefault
		}
		changes, next, err := a.engine.Changes(ctx, page.Next, most)
		if err != nil && page.Next > f.After {
			return page, nil // the next page will fail
		}
		if err != nil {
			return oda.ChangePage{}, err
		}
		if next == page.Next {
			page.AtEnd = true
			return page, a.checkPosition(ctx, page.Next)
		}
		for i := range changes {
			if add(&page, &changes[i], &f.Filter); len(page.Changes) == f.Limit {
				page.Next = changes[i].Position
				return page, nil
			}
		}
		// More may come all the time, and the caller waits for what there is.
		found := len(page.Changes) > 0 && len(changes) < most
		if page.Next = next; found || time.Now().After(late) {
			return page, nil
		}
	}
}

// add adds a change to the page if it is wanted. It joins a change that two calls
// of the engine have split.
func add(p *oda.ChangePage, c *oda.Change, filter *oda.ChangeFilter) {
	n := len(p.Changes)
	if filter.Wants(c) && (n == 0 || !p.Changes[n-1].Join(*c)) {
		p.Changes = append(p.Changes, *c)
	}
}

// checkPosition returns an error if the log does not reach a position. A follower
// with such a position has seen changes that this archive does not have. If the
// answer were "nothing new", it would miss what is written from now on.
func (a *Archive) checkPosition(ctx context.Context, at oda.Position) error {
	end, err := a.engine.End(ctx)
	if err != nil || at <= end {
		return err
	}
	return oda.LogEndsBefore(end, at)
}

// Start returns the position after which a stream of changes begins. It is an error
// if the log cannot be read there: a stream that has begun could not say so.
func (a *Archive) Start(ctx context.Context, f Following) (oda.Position, error) {
	if f.Now {
		return a.engine.End(ctx)
	}
	err := a.checkPosition(ctx, f.After)
	if err == nil {
		_, _, err = a.engine.Changes(ctx, f.After, 1)
	}
	return f.After, err
}

// Log returns the log of changes.
func (a *Archive) Log() oda.Log { return a.engine }
