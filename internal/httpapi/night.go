package httpapi

import (
	"oda/internal/content"
	"oda/internal/sheet"
	"oda/night"
)

const markdown = "text/markdown"

// night answers with what was done in a night.
func (a *API) night(c *call) error {
	q, err := a.cfg.Nights.Zones().Parse(c.query)
	if err != nil {
		return err
	}
	report, err := a.cfg.Nights.Report(c.r.Context(), q)
	if err != nil {
		return err
	}
	c.accept = true
	switch content.Preferred(c.r.Header, "application/json", markdown, sheet.Media) {
	case markdown:
		text, err := a.cfg.Nights.ShiftLog(c.r.Context(), q, report)
		if err != nil {
			return err
		}
		return c.sendError(c.respond(markdown+"; charset=utf-8", "", held).whole(text))
	case sheet.Media:
		return c.table(night.BlockColumns, func(t *sheet.Table) error { return sheet.AddAll(t, report.Blocks) })
	}
	return c.json(report)
}
