package client

import (
	"context"

	"oda"
	"oda/progress"
)

// Progress returns how far a Project is: its SBDefinitions in its order, and the runs of
// each. If the Project is unknown, the error is oda.NotFound.
func (c *Client) Progress(ctx context.Context, id string) (*progress.Report, error) {
	var report progress.Report
	if _, err := c.readJSON(ctx, path(oda.Project, id)+"/progress", &report); err != nil {
		return nil, err
	}
	return &report, nil
}
