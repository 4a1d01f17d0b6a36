package oda

import (
	"context"
	"strconv"
	"strings"
	"time"
)

// Bounds of a question about changes.
const (
	MaxChanges     = 10_000 // of a page
	changesDefault = 1000   // where no limit is given
	maxChangeIDs   = 100    // identifiers to filter by
	maxWait        = 60     // seconds
)

// changesTime bounds how long a page of changes is read. It ends early where a
// filter leaves out a great many.
const changesTime = time.Second

// Following asks for changes.
type Following struct {
	After  Position
	Now    bool // after the end, whatever that is
	Limit  int
	Filter ChangeFilter
	Wait   time.Duration // for the first change
}

// ParseFollowing reads the parameters of a question about changes. The last
// position that a follower has seen, where it names one, goes before "after".
func ParseFollowing(params map[string][]string, last string) (Following, error) {
	p := queryParser{params: params}
	f := Following{Limit: changesDefault}
	after, given := p.one("after")
	if last != "" {
		after, given = last, true
	}
	if given && after == "now" && last == "" {
		f.Now = true
	} else if given {
		n, err := strconv.ParseInt(after, 10, 64)
		switch {
		case err == nil && n >= 0:
			f.After = Position(n)
		case last != "":
			p.faults = append(p.faults, Fault{"header:Last-Event-ID", "must be a position, which is a whole number from 0"})
		default:
			p.fault("after", "must be a position, which is a whole number from 0, or now")
		}
	}
	f.Limit = int(p.whole("limit", 1, MaxChanges, changesDefault))
	f.Wait = time.Duration(p.whole("wait", 0, maxWait, 0)) * time.Second
	for _, name := range params["kind"] {
		kind, known := KindOf(name)
		if !known {
			p.fault("kind", "must be one of sbds, sbis, ebs and prjs")
			break
		}
		f.Filter.Kinds = append(f.Filter.Kinds, kind)
	}
	for _, id := range params["id"] {
		if id == "" {
			p.fault("id", "is empty; give it a value or leave it out")
			break
		}
	}
	if f.Filter.IDs = params["id"]; len(f.Filter.IDs) > maxChangeIDs {
		p.fault("id", "is given %d times; give it at most %d times, or filter what you receive", len(f.Filter.IDs), maxChangeIDs)
	}
	if len(p.faults) > 0 {
		_, name, _ := strings.Cut(p.faults[0].Pointer, ":")
		return Following{}, &Error{Code: InvalidQuery, Faults: p.faults, Detail: "Invalid query: " + name + " " + p.faults[0].Detail + "."}
	}
	return f, nil
}

// ParseWait reads how long to wait for something new.
func ParseWait(params map[string][]string) (time.Duration, error) {
	p := queryParser{params: params}
	wait := p.whole("wait", 0, maxWait, 0)
	if len(p.faults) > 0 {
		return 0, &Error{Code: InvalidQuery, Faults: p.faults, Detail: "Invalid query: wait " + p.faults[0].Detail + "."}
	}
	return time.Duration(wait) * time.Second, nil
}

// whole reads a whole number within bounds.
func (p *queryParser) whole(name string, least, most, otherwise int64) int64 {
	text, given := p.one(name)
	if !given {
		return otherwise
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < least || n > most {
		p.fault(name, "must be a whole number from %d to %d", least, most)
	}
	return n
}

// ChangePage is some changes, in the order of their positions.
type ChangePage struct {
	Changes []Change
	Next    Position // the next page is behind it
	AtEnd   bool     // there was nothing more
}

// Changes reads a page of the log. It does not wait.
func (a *Archive) Changes(ctx context.Context, f Following) (ChangePage, error) {
	if f.Now {
		end, err := a.engine.End(ctx)
		return ChangePage{Next: end, AtEnd: true}, err
	}
	page := ChangePage{Next: f.After}
	late := time.Now().Add(changesTime)
	for {
		// With a filter, most of what is read may be left out.
		most := f.Limit - len(page.Changes)
		if !f.Filter.All() {
			most = changesDefault
		}
		changes, next, err := a.engine.Changes(ctx, page.Next, most)
		if err != nil && len(page.Changes) > 0 {
			return page, nil // the next page tells
		}
		if err != nil {
			return ChangePage{}, err
		}
		if next == page.Next {
			page.AtEnd = true
			return page, a.checkPosition(ctx, page.Next)
		}
		for i := range changes {
			if page.add(&changes[i], &f.Filter); len(page.Changes) == f.Limit {
				page.Next = changes[i].Position
				return page, nil
			}
		}
		if page.Next = next; time.Now().After(late) {
			return page, nil
		}
	}
}

// add adds a change that is wanted to the page. What one call of the engine left
// off and the next goes on with is one change.
func (p *ChangePage) add(c *Change, filter *ChangeFilter) {
	n := len(p.Changes)
	if filter.Wants(c) && (n == 0 || !p.Changes[n-1].Join(*c)) {
		p.Changes = append(p.Changes, *c)
	}
}

// checkPosition refuses a position that the log does not reach. Whoever has one
// follows an archive that had more changes than this one: to answer that there is
// nothing new would let them miss what is written from here on.
func (a *Archive) checkPosition(ctx context.Context, at Position) error {
	end, err := a.engine.End(ctx)
	if err != nil || at <= end {
		return err
	}
	return Errorf(UnknownPosition, "The log of changes ends at position %d, before position %d. "+
		"The archive was probably restored from a backup that is older than what you have seen. "+
		"Read the changes again from after=0, or follow only new ones with after=now.", end, at)
}

// Start gives the position behind which a stream of changes begins.
func (a *Archive) Start(ctx context.Context, f Following) (Position, error) {
	if f.Now {
		return a.engine.End(ctx)
	}
	return f.After, a.checkPosition(ctx, f.After)
}

// Log gives the log of changes to those who follow it.
func (a *Archive) Log() Log { return a.engine }
