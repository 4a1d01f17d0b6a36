package httpapi

// night answers with what was done in a night.
func (a *API) night(c *call) error {
	q, err := a.cfg.Nights.Zones().Parse(c.query)
	if err != nil {
		return err
	}
	night, err := a.cfg.Nights.Report(c.r.Context(), q)
	if err != nil {
		return err
	}
	return c.json(night)
}
