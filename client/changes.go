package client

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"net/url"
	"strconv"
	"time"

	"oda"
)

// Now, as the position to begin at, stands for the end of the log of changes.
const Now oda.Position = -1

// ChangesQuery says which changes to return.
type ChangesQuery struct {
	After  oda.Position // 0 for all of them, Now for none of those that there are
	Filter oda.ChangeFilter
	Limit  int           // the maximum number of changes of a page; 0 leaves it to the archive
	Wait   time.Duration // for the first change: whole seconds, at most 60
}

func (q ChangesQuery) values() url.Values {
	values := url.Values{"after": {"now"}}
	if q.After != Now {
		values.Set("after", strconv.FormatInt(int64(q.After), 10))
	}
	for _, kind := range q.Filter.Kinds {
		values.Add("kind", kind.Collection())
	}
	for _, id := range q.Filter.IDs {
		values.Add("id", id)
	}
	if q.Limit > 0 {
		values.Set("limit", strconv.Itoa(q.Limit))
	}
	if q.Wait > 0 {
		values.Set("wait", strconv.FormatInt(int64(q.Wait/time.Second), 10))
	}
	return values
}

// Changes returns a page of the changes of the archive, in the order of their
// positions. The next page comes after its Next. If the archive does not reach
// the position, because it was restored from an older backup, the error is
// oda.UnknownPosition.
func (c *Client) Changes(ctx context.Context, q ChangesQuery) (oda.ChangePage, error) {
	var in struct {
		Changes []change     `json:"changes"`
		Next    oda.Position `json:"next"`
	}
	if _, err := c.patient(q.Wait+heartbeats).readJSON(ctx, "/changes?"+q.values().Encode(), &in); err != nil {
		return oda.ChangePage{}, err
	}
	page := oda.ChangePage{Next: in.Next, Changes: make([]oda.Change, 0, len(in.Changes))}
	for i := range in.Changes {
		if one := &in.Changes[i]; one.known() {
			page.Changes = append(page.Changes, one.change())
		}
	}
	return page, nil
}

// change is a change on the wire.
type change struct {
	Position oda.Position `json:"position"`
	oda.Ref
	Change        string     `json:"change"`
	Version       int64      `json:"version"`
	FirstSequence int64      `json:"first_sequence"`
	LastSequence  int64      `json:"last_sequence"`
	Sequence      int64      `json:"sequence"`
	Status        string     `json:"status"`
	Class         oda.Class  `json:"class"`
	At            oda.Moment `json:"at"`
	Current       bool       `json:"current"`
	By            string     `json:"by"`
	On            oda.Moment `json:"on"`
}

// known reports whether this client knows what the change is. Archives may have others
// later.
func (c *change) known() bool {
	return c.Change == "stored" || c.Change == "recorded" || c.Change == "status"
}

func (c *change) change() oda.Change {
	change := oda.Change{
		Position: c.Position, Ref: c.Ref, Version: c.Version,
		FirstSequence: c.FirstSequence, LastSequence: c.LastSequence, By: c.By, On: oda.Instant(c.On),
	}
	if c.Change == "status" {
		change.Said = &oda.Said{Sequence: c.Sequence, Text: c.Status, Class: c.Class, At: oda.Instant(c.At), Current: c.Current}
	}
	return change
}

// Follow returns the changes after a position as they come, and does not end by
// itself: if the archive restarts or cannot be reached, it asks again, after
// pauses of at most a minute, and goes on after the last change. Nothing is
// missed and nothing comes twice. The sequence ends after an error: that of the
// context, or of an archive that refuses to go on, such as oda.UnknownPosition. It
// logs when the archive does not answer (WithLogger).
//
// To go on after a restart of the caller, keep the position of the last change
// that was dealt with.
func (c *Client) Follow(ctx context.Context, after oda.Position, filter oda.ChangeFilter) iter.Seq2[oda.Change, error] {
	return func(yield func(oda.Change, error) bool) {
		f := following{
			client: c, last: int64(after),
			path: func(last int64) string {
				return "/changes?" + ChangesQuery{After: oda.Position(last), Filter: filter}.values().Encode()
			},
			take: func(e event) (bool, error) {
				var in change
				if err := json.Unmarshal(e.data, &in); err != nil {
					return false, err
				}
				return !in.known() || yield(in.change(), nil), nil
			},
		}
		var err error
		if after == Now {
			// What comes while the stream is not open yet must not be missed.
			f.last, err = c.now(ctx, &f.outage)
		}
		if err == nil {
			err = f.run(ctx)
		}
		if err != nil {
			yield(oda.Change{}, err)
		}
	}
}

// now asks where the log of changes ends, until it is answered.
func (c *Client) now(ctx context.Context, o *outage) (int64, error) {
	pause := firstPause
	for {
		page, err := c.Once().Changes(ctx, ChangesQuery{After: Now, Limit: 1})
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
		if err == nil || !resumable(err) {
			o.end(c)
			return int64(page.Next), err
		}
		o.begin(c, err)
		if err := wait(ctx, &pause, err); err != nil {
			return 0, err
		}
	}
}

// FollowRecords returns the records of an ExecutionBlock after a sequence (0 for
// all) as they come. It goes on like Follow.
func (c *Client) FollowRecords(ctx context.Context, block string, after int64) iter.Seq2[oda.Record, error] {
	return func(yield func(oda.Record, error) bool) {
		f := following{
			client: c, last: after,
			path: func(last int64) string {
				return path(oda.ExecutionBlock, block) + "/request_responses?after=" + strconv.FormatInt(last, 10)
			},
			take: func(e event) (bool, error) {
				var in storedRecord
				if err := json.Unmarshal(e.data, &in); err != nil {
					return false, err
				}
				return yield(in.record(), nil), nil
			},
		}
		if err := f.run(ctx); err != nil {
			yield(oda.Record{}, err)
		}
	}
}

// resumable reports whether a follower may ask again.
func resumable(err error) bool { return request{repeatable: true}.again(err) }

var errOrder = errors.New("its events are not in order")
