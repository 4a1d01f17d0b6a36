package client

import (
	"context"
	"encoding/json"
	"time"
)

// Caller is who an archive takes the caller for.
type Caller struct {
	User       string      `json:"user"`       // that is written down for what the caller stores
	Name       string      `json:"name"`       // of the token, or of the person who has signed in
	Means      string      `json:"means"`      // how the archive knows the caller; open: it does not
	Role       string      `json:"role"`       // for everything; empty if there are roles for telescopes only
	Telescopes []BoundRole `json:"telescopes"` // the roles for some of them
	Ends       *time.Time  `json:"ends"`       // of the credential; nil: never

	JSON json.RawMessage `json:"-"` // all this as the archive sent it
}

// BoundRole is a role for the documents of one telescope.
type BoundRole struct {
	Telescope string `json:"telescope"`
	Role      string `json:"role"`
}

// Whoami returns who the archive takes the caller for.
func (c *Client) Whoami(ctx context.Context) (*Caller, error) {
	caller := new(Caller)
	r, err := c.readJSON(ctx, "/whoami", caller)
	if err != nil {
		return nil, err
	}
	caller.JSON = r.body
	return caller, nil
}
