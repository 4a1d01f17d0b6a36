package client

import (
	"context"
	"net/http"
	"time"
)

// Metrics returns the metrics of the archive in the text format of Prometheus, and the
// time on the clock of its machine. It asks once. An archive whose metrics are at an
// address of their own has none here (oda.NoSuchPath).
func (c *Client) Metrics(ctx context.Context) (text []byte, clock time.Time, err error) {
	r, err := c.attempt(ctx, request{method: http.MethodGet, path: "/metrics"})
	if err != nil {
		return nil, time.Time{}, err
	}
	clock, _ = http.ParseTime(r.header.Get("Date")) // zero if there is none
	return r.body, clock, nil
}
