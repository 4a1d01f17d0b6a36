package httpapi

import (
	"fmt"
	"net/url"

	"oda"
	"oda/calls"
	"oda/internal/sheet"
)

// findCalls answers with a page of calls.
func (a *API) findCalls(c *call) error {
	q, err := calls.Parse(c.query)
	if err != nil {
		return err
	}
	page, err := a.cfg.Calls.Page(c.work(), q)
	if err != nil {
		return err
	}
	if page.Next != nil {
		c.head("Link", fmt.Sprintf(`<calls?cursor=%s&limit=%d>; rel="next"`, url.QueryEscape(*page.Next), q.Limit))
	}
	if c.wantsTable() {
		return c.table(calls.Columns, func(t *sheet.Table) error { return sheet.AddAll(t, page.Calls) })
	}
	return c.json(page)
}

// tallyCalls answers with how many calls there are.
func (a *API) tallyCalls(c *call) error {
	q, by, err := calls.ParseTally(c.query)
	if err != nil {
		return err
	}
	tally, err := a.cfg.Calls.Tally(c.work(), q, by)
	if err != nil {
		return err
	}
	if !c.wantsTable() {
		return c.json(tally)
	}
	if !tally.Complete {
		return oda.Errorf(oda.InvalidQuery, "Not all calls could be counted, and a table cannot say that. Ask for a shorter time, or for JSON, which has what was counted.")
	}
	return c.table(calls.TallyColumns, func(t *sheet.Table) error { return sheet.AddAll(t, tally.Tally) })
}
