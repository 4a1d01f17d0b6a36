package client

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"net/url"
	"time"

	"oda"
)

// NewRunning is a call that has begun.
type NewRunning struct {
	Request   string
	Arguments json.RawMessage // nil: none are said
	SentAt    time.Time       // zero: now
	Lease     time.Duration   // whole seconds; 0: as long as the archive gives it by itself
}

// Begin says that a call is running in an ExecutionBlock, or renews its lease. It ends
// with the record that has the key. If the block is unknown, the error is oda.NotFound;
// if too much is running, oda.TooManyRunning. It is not repeated if it fails: the next
// renewal says the same.
func (c *Client) Begin(ctx context.Context, block, key string, call NewRunning) error {
	body, err := json.Marshal(struct {
		Request   string          `json:"request"`
		Arguments json.RawMessage `json:"request_args,omitempty"`
		SentAt    time.Time       `json:"request_sent_at,omitzero"`
		Lease     int64           `json:"lease_seconds,omitempty"`
	}{call.Request, call.Arguments, call.SentAt.UTC(), int64(call.Lease / time.Second)})
	if err != nil {
		return err
	}
	_, err = c.Once().do(ctx, request{method: http.MethodPut, path: api + runningPath(block) + "/" + url.PathEscape(key), body: body})
	return err
}

// Withdraw takes back that a call is running. It is no error if nobody has said so.
func (c *Client) Withdraw(ctx context.Context, block, key string) error {
	_, err := c.do(ctx, request{method: http.MethodDelete, path: api + runningPath(block) + "/" + url.PathEscape(key), repeatable: true})
	return err
}

// Running returns the calls that are running at a telescope, or at any if it is empty, in
// the order of their blocks and keys.
func (c *Client) Running(ctx context.Context, telescope string) ([]oda.RunningCall, error) {
	return c.running(ctx, allRunning(telescope))
}

// RunningIn returns the calls that are running in an ExecutionBlock. Unknown:
// oda.NotFound.
func (c *Client) RunningIn(ctx context.Context, block string) ([]oda.RunningCall, error) {
	return c.running(ctx, runningPath(block))
}

// FollowRunning returns what Running does, and again whenever it has changed. It goes on
// like Follow.
func (c *Client) FollowRunning(ctx context.Context, telescope string) iter.Seq2[[]oda.RunningCall, error] {
	return func(yield func([]oda.RunningCall, error) bool) {
		f := following{
			client: c, unnumbered: true, path: func(int64) string { return allRunning(telescope) },
			take: func(e event) (bool, error) {
				var in oda.RunningCalls
				if err := json.Unmarshal(e.data, &in); err != nil {
					return false, err
				}
				return yield(in.Running, nil), nil
			},
		}
		if err := f.run(ctx); err != nil {
			yield(nil, err)
		}
	}
}

func (c *Client) running(ctx context.Context, path string) ([]oda.RunningCall, error) {
	var in oda.RunningCalls
	_, err := c.readJSON(ctx, path, &in)
	return in.Running, err
}

func runningPath(block string) string { return path(oda.ExecutionBlock, block) + "/running" }

func allRunning(telescope string) string {
	if telescope == "" {
		return "/running"
	}
	return "/running?" + url.Values{"telescope": {telescope}}.Encode()
}
