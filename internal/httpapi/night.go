package httpapi

import (
	"oda/internal/rawjson"
	"oda/night"
)

// night answers with what was done in a night.
func (a *API) night(c *call) error {
	q, err := night.Parse(c.query)
	if err != nil {
		return err
	}
	night, err := a.cfg.Nights.Report(c.r.Context(), q)
	if err != nil {
		return err
	}
	text, err := rawjson.Marshal(night)
	if err != nil {
		return err
	}
	return c.sendError(c.respond("application/json", "", held).whole(text))
}
