package feed

import (
	"context"
	"time"

	"oda"
	"oda/archive"
)

// Changes waits until there are changes to answer with, at most as long as the query
// allows. Page is the first page, which was empty; Changes continues after it.
func (h *Hub) Changes(ctx context.Context, q archive.Following, page oda.ChangePage) (oda.ChangePage, error) {
	f, err := h.follow(page.Next, &q.Filter)
	if err != nil {
		return page, err
	}
	defer f.leave()
	waiting, cancel := context.WithTimeout(ctx, q.Wait)
	defer cancel()
	q.Now = false
	for {
		if page.AtEnd {
			_, err = f.await(waiting, nil)
			page.Next = f.at
		}
		if h.over(waiting) {
			return page, ctx.Err()
		}
		if err != nil {
			return page, err
		}
		q.After = page.Next
		if page, err = h.archive.Changes(ctx, q); err != nil || len(page.Changes) > 0 {
			return page, err
		}
		f.at = page.Next
	}
}

// over reports whether the wait has ended without a failure: the time is up, the
// archive stops, or the client is gone.
func (h *Hub) over(waiting context.Context) bool { return waiting.Err() != nil || h.stop.Err() != nil }

// Records returns records of a block. It waits for the first of them.
func (h *Hub) Records(ctx context.Context, block string, after int64, limit int, wait time.Duration) (oda.RecordPage, error) {
	t, err := h.newBlockTail(ctx, block, after)
	if err != nil {
		return oda.RecordPage{}, err
	}
	defer t.leave()
	waiting, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	for {
		page, err := t.read(ctx, limit)
		if err != nil || len(page.Records) > 0 {
			return page, err
		}
		_, err = t.await(waiting, nil)
		if h.over(waiting) {
			return page, ctx.Err()
		}
		if err != nil {
			return page, err
		}
	}
}
