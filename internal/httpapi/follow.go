package httpapi

import (
	"net/http"
	"strconv"
	"time"

	"oda"
	"oda/archive"
	"oda/internal/content"
	"oda/internal/feed"
	"oda/internal/serving"
)

// eventStream is the media type of a stream of events.
const eventStream = "text/event-stream"

// changes answers with the changes after a position, or with a stream of them. If
// there are none and the client asks to wait, it answers with the first that come.
func (a *API) changes(c *call) error {
	c.accept = true
	last := ""
	if c.wantsEvents() {
		last = c.r.Header.Get("Last-Event-ID")
	}
	q, err := archive.ParseFollowing(c.query, last)
	if err != nil {
		return err
	}
	if c.wantsEvents() {
		return c.stream(func() (feed.Sent, error) { return a.cfg.Feed.StreamChanges(c, c.r, q) })
	}
	page, err := a.cfg.Archive.Changes(c.r.Context(), q)
	if err == nil && len(page.Changes) == 0 && q.Wait > 0 {
		defer c.aside(q.Wait)()
		page, err = a.cfg.Feed.Changes(c.r.Context(), q, page)
	}
	if err != nil {
		return err
	}
	out := append(make([]byte, 0, 64+256*len(page.Changes)), `{"changes":[`...)
	for i := range page.Changes {
		if i > 0 {
			out = append(out, ',')
		}
		out = page.Changes[i].AppendJSON(out)
	}
	out = strconv.AppendInt(append(out, `],"next":`...), int64(page.Next), 10)
	w := c.respond("application/json", "", held)
	c.head("Cache-Control", "no-store")
	return c.sendError(w.whole(append(out, '}')))
}

// wantsEvents reports whether the client asks for a stream of events.
func (c *call) wantsEvents() bool {
	return content.Preferred(c.r.Header, "application/json", eventStream) == eventStream
}

// lastEvent returns the sequence number of the last event that the client has seen,
// or otherwise if the client names none.
func (c *call) lastEvent(otherwise int64) (int64, error) {
	text := c.r.Header.Get("Last-Event-ID")
	if text == "" {
		return otherwise, nil
	}
	last, err := strconv.ParseInt(text, 10, 64)
	if err != nil || last < 0 {
		const detail = "must be a sequence, which is a whole number from 0"
		return 0, &oda.Error{
			Code: oda.InvalidQuery, Detail: "Invalid query: Last-Event-ID " + detail + ".",
			Faults: []oda.Fault{{Pointer: "header:Last-Event-ID", Detail: detail}},
		}
	}
	return last, nil
}

// stream answers with events until the client or the archive ends the stream, or
// the caller's credential ends.
func (c *call) stream(send func() (feed.Sent, error)) error {
	defer c.whileAllowed()()
	c.pass.Leave() // from here on it counts as a follower
	c.waited = true
	c.head("Content-Type", eventStream)
	c.head("Vary", "Accept, Accept-Encoding")
	c.head("Cache-Control", "no-store")
	c.head("X-Accel-Buffering", "no") // nginx collects an answer before it passes it on
	sent, err := send()
	if err != nil {
		return err
	}
	c.status, c.sent, c.failure = http.StatusOK, sent.Bytes, sent.Err
	if sent.Cut {
		// The rest of the event would look like all of it.
		panic(http.ErrAbortHandler)
	}
	return nil
}

// aside lets the request wait for something to answer with. Meanwhile its
// connection counts as a follower, not as an ordinary request.
func (c *call) aside(wait time.Duration) (back func()) {
	end := c.whileAllowed()
	c.pass.Leave()
	c.waited = true
	control := http.NewResponseController(c.ResponseWriter)
	// The request has arrived, so the time for reading it is over. The time for the
	// answer begins when there is one. If setting a deadline fails, the wait only
	// ends sooner.
	_ = control.SetReadDeadline(time.Time{})
	_ = control.SetWriteDeadline(time.Now().Add(wait + c.api.cfg.WriteTimeout))
	leave := serving.Aside(c.r.Context())
	return func() {
		leave()
		end()
	}
}
