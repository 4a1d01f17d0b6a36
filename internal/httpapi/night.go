package httpapi

import (
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
	return c.json(night)
}
