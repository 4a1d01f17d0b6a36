package archive

import (
	"context"
	"slices"
	"time"

	"oda"
)

// RecentQuery asks for changes as people read them: the newest first.
type RecentQuery struct {
	Before oda.Position // only what comes before it; 0 stands for the end of the log
	Limit  int
	Wants  func(*oda.Change) bool // nil: all
	Within time.Duration          // how long to look, once 4,096 positions were read
}

// RecentPage is a page of changes, the newest first. Consecutive records of a block
// by one user are one change, even if there are other changes between them; its
// position is that of the last of them.
type RecentPage struct {
	Changes []oda.Change
	Next    oda.Position // before which the next page begins; 0 if there is none
	End     oda.Position // of the log
}

// Bounds of how many positions are read at a time. Many of them may be one change.
const (
	recentFirst = 256
	recentMost  = 4096
)

// Recent returns a page of the log in reverse. It returns fewer changes than asked
// for if the time is up; the next page continues there. However busy the machine is,
// it reads some of the log, so that a short one is always read whole.
func (a *Archive) Recent(ctx context.Context, q RecentQuery) (RecentPage, error) {
	end, err := a.engine.End(ctx)
	if err != nil {
		return RecentPage{}, err
	}
	page := RecentPage{End: end}
	last := end
	if q.Before > 0 {
		last = min(last, q.Before-1)
	}
	late := time.Now().Add(q.Within)
	enough := last - recentMost
	for size := oda.Position(recentFirst); last > 0; size = min(2*size, recentMost) {
		first := max(1, last-size+1)
		changes, err := a.between(ctx, first, last)
		if err != nil {
			return page, err
		}
		for _, c := range slices.Backward(changes) {
			if (q.Wants == nil || q.Wants(&c)) && !page.add(c, q.Limit) {
				page.Next = c.Position + 1
				return page, nil
			}
		}
		if last = first - 1; 0 < last && last <= enough && time.Now().After(late) {
			page.Next = first
			break
		}
	}
	return page, nil
}

// add adds an earlier change to the page, or to a later one of the same records. It
// reports false if the page has no room for it.
func (p *RecentPage) add(c oda.Change, limit int) bool {
	same := slices.IndexFunc(p.Changes, func(later oda.Change) bool {
		return c.Recorded() && later.Recorded() && later.Ref == c.Ref && later.Version == c.Version && later.By == c.By && later.FirstSequence == c.LastSequence+1
	})
	switch {
	case same >= 0:
		p.Changes[same].FirstSequence = c.FirstSequence
	case len(p.Changes) == limit:
		return false
	default:
		p.Changes = append(p.Changes, c)
	}
	return true
}

// between returns the changes from one position to another, with the records in
// this range only.
func (a *Archive) between(ctx context.Context, first, last oda.Position) ([]oda.Change, error) {
	var all []oda.Change
	for at := first - 1; at < last; {
		changes, next, err := a.engine.Changes(ctx, at, int(last-at))
		if err != nil {
			return nil, err
		}
		if next == at {
			break
		}
		all, at = append(all, changes...), next
	}
	for i := range all {
		beyond := int64(all[i].Position - last)
		switch {
		case beyond <= 0:
			continue
		case !all[i].Recorded() || all[i].LastSequence-beyond < all[i].FirstSequence:
			return all[:i], nil
		}
		all[i].Position, all[i].LastSequence = last, all[i].LastSequence-beyond
		return all[:i+1], nil
	}
	return all, nil
}
