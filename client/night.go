package client

import (
	"context"
	"net/url"

	"oda/night"
)

// Night says which night to report on.
type Night struct {
	Date      string // on which it began, such as 2026-03-01
	Zone      string // in which it lasts from noon to noon, by its IANA name; empty: UTC
	Telescope string // empty: any
}

// Night reports what was done in a night: its calls, those that failed and the
// slowest, and the ExecutionBlocks that they belong to.
func (c *Client) Night(ctx context.Context, which Night) (*night.Report, error) {
	values := url.Values{}
	for name, value := range map[string]string{"date": which.Date, "zone": which.Zone, "telescope": which.Telescope} {
		if value != "" {
			values.Set(name, value)
		}
	}
	var report night.Report
	if _, err := c.readJSON(ctx, "/night?"+values.Encode(), &report); err != nil {
		return nil, err
	}
	return &report, nil
}
