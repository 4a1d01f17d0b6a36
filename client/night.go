package client

import (
	"context"
	"net/http"
	"net/url"

	"oda/night"
)

// Night says which night to report on.
type Night struct {
	Date      string // on which it began, such as 2026-03-01
	Zone      string // in which it lasts from noon to noon, by its IANA name; empty: that of the telescope, or of the archive
	Telescope string // empty: any
}

// Night reports what was done in a night: its calls, those that failed and with which
// errors, the ExecutionBlocks that they belong to, and how long the telescopes were busy.
func (c *Client) Night(ctx context.Context, which Night) (*night.Report, error) {
	var report night.Report
	if _, err := c.readJSON(ctx, which.path(), &report); err != nil {
		return nil, err
	}
	return &report, nil
}

// ShiftLog is Night for people: Markdown to paste into a message, with times in the zone
// of the night.
func (c *Client) ShiftLog(ctx context.Context, which Night) (string, error) {
	text, err := content(c.read(ctx, which.path(), http.Header{"Accept": {"text/markdown"}}))
	return string(text), err
}

func (which Night) path() string {
	values := url.Values{}
	for name, value := range map[string]string{"date": which.Date, "zone": which.Zone, "telescope": which.Telescope} {
		if value != "" {
			values.Set(name, value)
		}
	}
	return "/night?" + values.Encode()
}
