package httpapi

// progress answers with how far a Project is.
func (a *API) progress(c *call) error {
	report, err := a.cfg.Progress.Report(c.work(), c.ref().ID)
	if err != nil {
		return err
	}
	return c.json(report)
}
