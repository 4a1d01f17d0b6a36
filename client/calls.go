package client

import (
	"context"
	"iter"
	"net/url"

	"oda"
	"oda/calls"
)

// Calls gives the calls that a question asks for, in its order. It reads page after page,
// of Limit calls each. An error is the last that it gives.
//
// Of a call whose record says no time, At is zero.
func (c *Client) Calls(ctx context.Context, q calls.Query) iter.Seq2[oda.CallEntry, error] {
	return each(pages(q.Params(), func(values url.Values) ([]oda.CallEntry, string, error) {
		var page struct {
			Calls []oda.CallEntry
			Next  string // null if there is none
		}
		if _, err := c.readJSON(ctx, "/calls?"+values.Encode(), &page); err != nil {
			return nil, "", err
		}
		for i := range page.Calls {
			if e := &page.Calls[i]; e.SentAt != nil {
				e.At = oda.Instant(*e.SentAt)
			} else if e.ReceivedAt != nil {
				e.At = oda.Instant(*e.ReceivedAt)
			}
		}
		return page.Calls, page.Next, nil
	}))
}

// TallyCalls counts the calls that a question asks for, in any order and number.
func (c *Client) TallyCalls(ctx context.Context, q calls.Query, by calls.By) (*calls.Tally, error) {
	q.Limit, q.OldestFirst = 0, false
	values := url.Values(q.Params())
	values.Set("by", by.String())
	var tally calls.Tally
	if _, err := c.readJSON(ctx, "/calls/tally?"+values.Encode(), &tally); err != nil {
		return nil, err
	}
	return &tally, nil
}
