package httpapi

import (
	"net/http"

	"oda"
	"oda/internal/feed"
)

// The operation that says that a call is running, and its largest body.
const (
	beginOperation = "beginCall"
	runningBody    = 16 << 10
)

// begin notes that a call is running.
func (a *API) begin(c *call) error {
	text, nodes, err := c.body()
	if err != nil {
		return err
	}
	b := oda.ReadBegun(text, nodes)
	b.Block, b.Key = c.id, c.r.PathValue("key")
	if err := a.cfg.Archive.Begin(c.r.Context(), b, c.write(c.op.ID, nil)); err != nil {
		return err
	}
	return c.nothing()
}

// withdraw takes back that a call is running.
func (a *API) withdraw(c *call) error {
	if err := a.cfg.Archive.Withdraw(c.r.Context(), c.id, c.r.PathValue("key"), c.write(c.op.ID, nil)); err != nil {
		return err
	}
	return c.nothing()
}

// nothing answers that all is done, and that there is nothing to say about it.
func (c *call) nothing() error {
	c.WriteHeader(http.StatusNoContent)
	return nil
}

// runningIn answers with the calls that are running in a block.
func (a *API) runningIn(c *call) error {
	calls, err := a.cfg.Archive.Running(c.work(), c.id)
	if err != nil {
		return err
	}
	return c.json(oda.RunningCalls{Running: oda.RunningAt(calls, "")})
}

// running answers with the calls that are running, or with a stream of them.
func (a *API) running(c *call) error {
	c.accept = true
	telescope, err := c.one("telescope")
	if err != nil {
		return err
	}
	if c.wantsEvents() {
		return c.stream(func() (feed.Sent, error) { return a.cfg.Feed.StreamRunning(c, c.r, telescope) })
	}
	calls, err := a.cfg.Archive.Running(c.work(), "")
	if err != nil {
		return err
	}
	return c.json(oda.RunningCalls{Running: oda.RunningAt(calls, telescope)})
}
