package httpapi

import (
	"fmt"
	"net/url"

	"oda"
	"oda/archive"
	"oda/internal/serving"
)

// status answers with the current status of an entity.
func (a *API) status(c *call) error {
	current, err := a.cfg.Archive.Status(c.r.Context(), c.ref())
	if err != nil {
		return err
	}
	return c.saying(current)
}

// say adds an entry to the statuses of an entity.
func (a *API) say(c *call) error {
	serving.Unwatched(c.r.Context()) // once it is judged, a status is stored, whether its client stays or not
	text, nodes, err := c.body()
	if err != nil {
		return err
	}
	say := oda.ReadNewStatus(c.ref(), text, nodes)
	entry, err := asAllowed(c, c.write(c.op.ID, text), func(w archive.Write) (*oda.Status, error) {
		return a.cfg.Archive.Say(c.r.Context(), say, w)
	})
	if err != nil {
		return err
	}
	c.user = entry.By
	c.wrote(entry.Version, 0)
	return c.saying(entry)
}

// saying answers with an entry of the statuses of an entity.
func (c *call) saying(s *oda.Status) error {
	return c.sendError(c.respond("application/json", "", held).whole(s.AppendJSON(make([]byte, 0, 512))))
}

// statusesDefault is the default length of a page of statuses.
const statusesDefault = 100

// listStatuses answers with a page of the statuses of an entity, newest first.
func (a *API) listStatuses(c *call) error {
	limit, before, err := c.countedPage(oda.OfStatuses, statusesDefault)
	if err != nil {
		return err
	}
	if err := c.Keep(c.work(), pageRoom(limit)); err != nil {
		return err
	}
	page, err := a.cfg.Archive.Statuses(c.work(), c.ref(), before, int(limit))
	if err != nil {
		return err
	}
	out := append(make([]byte, 0, 32+384*len(page.Statuses)), `{"statuses":[`...)
	for i := range page.Statuses {
		if i > 0 {
			out = append(out, ',')
		}
		out = page.Statuses[i].AppendJSON(out)
	}
	c.Give(c.held()) // the answer has a copy
	next := "null"
	if page.Next != "" {
		next = `"` + page.Next + `"`
		c.head("Link", fmt.Sprintf(`<history?cursor=%s&limit=%d>; rel="next"`, url.QueryEscape(page.Next), limit))
	}
	return c.sendError(c.respond("application/json", "", held).whole(append(out, `],"next":`+next+`}`...)))
}
