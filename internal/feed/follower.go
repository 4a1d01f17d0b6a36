package feed

import (
	"context"
	"time"

	"oda"
	"oda/archive"
)

// follower is the place of one client in the log of changes.
type follower struct {
	hub    *Hub
	tail   *tail
	at     oda.Position
	filter *oda.ChangeFilter
}

// follow begins to follow after a position. The caller must call leave.
func (h *Hub) follow(at oda.Position, filter *oda.ChangeFilter) (*follower, error) {
	t, err := h.join()
	if err != nil {
		return nil, err
	}
	return &follower{hub: h, tail: t, at: at, filter: filter}, nil
}

func (f *follower) leave() { f.hub.leave() }

// chunk waits until there is something after the follower's place. It returns the
// chunk that has it, or says that the follower must read it from the log. A beat
// ends the wait; then chunk returns neither.
func (f *follower) chunk(ctx context.Context, beat <-chan time.Time) (found *chunk, inLog bool, err error) {
	for {
		c, moved, err := f.tail.after(f.at)
		if err != nil || c != nil || moved == nil {
			return c, c == nil, err
		}
		select {
		case <-moved:
		case <-beat:
			return nil, false, nil
		case <-ctx.Done():
			return nil, false, ctx.Err()
		}
	}
}

// await waits until there may be a change that the follower wants. It returns false
// after a beat. The follower's place moves past changes that it does not want.
func (f *follower) await(ctx context.Context, beat <-chan time.Time) (come bool, err error) {
	for {
		c, inLog, err := f.chunk(ctx, beat)
		if err != nil || inLog || c == nil {
			return inLog, err
		}
		for i := range c.changes {
			if c.changes[i].Position > f.at && f.filter.Wants(&c.changes[i]) {
				return true, nil
			}
		}
		f.at = c.to
	}
}

// next waits for changes and returns those that the follower wants as a frame, nil
// if it wants none. The follower's place moves past them. After a beat, the frame is
// a comment with the follower's place.
func (f *follower) next(ctx context.Context, beat <-chan time.Time) (*frame, error) {
	c, inLog, err := f.chunk(ctx, beat)
	switch {
	case err != nil:
		return nil, err
	case inLog:
		return f.read(ctx, beat)
	case c == nil:
		return f.beat(), nil
	}
	from := f.at
	f.at = c.to
	if from == c.from && f.filter.All() {
		return c.frame, nil
	}
	var wanted []oda.Change
	for i := range c.changes {
		if c.changes[i].Position > from && f.filter.Wants(&c.changes[i]) {
			wanted = append(wanted, c.changes[i].Behind(from))
		}
	}
	return shared(changesFrame(wanted)), nil
}

// read reads a page of the log. Only a few followers do so at a time, and the others
// wait. A beat ends the wait.
func (f *follower) read(ctx context.Context, beat <-chan time.Time) (*frame, error) {
	select {
	case f.hub.places <- struct{}{}:
		defer func() { <-f.hub.places }()
	case <-beat:
		return f.beat(), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	page, err := f.hub.archive.Changes(ctx, archive.Following{After: f.at, Limit: chunkMost, Filter: *f.filter})
	if err != nil {
		return nil, err
	}
	f.at = page.Next
	if len(page.Changes) == 0 {
		return f.beat(), nil // if the stream ends, the client need not look here again
	}
	return shared(changesFrame(page.Changes)), nil
}

// beat returns a comment with the follower's place.
func (f *follower) beat() *frame { return shared(noteFrame(": %d\n\n", f.at)) }
