package httpapi

import (
	"bytes"
	"encoding/json"

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
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(night); err != nil {
		return err
	}
	return c.sendError(c.respond("application/json", "", held).whole(bytes.TrimSuffix(out.Bytes(), []byte("\n"))))
}
