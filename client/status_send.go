package client

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"oda"
)

// SendStatus says the status of an entity with a body that was written before, byte for
// byte. Sent again with the same key, it is stored once.
func (c *Client) SendStatus(ctx context.Context, ref oda.Ref, key string, body []byte) error {
	a, err := c.write(ctx, http.MethodPost, path(ref.Kind, ref.ID)+"/status", body, key)
	if err != nil {
		return err
	}
	var entry struct {
		Sequence int64 `json:"sequence"`
	}
	if err := json.Unmarshal(a.body, &entry); err != nil {
		return garbled(a, err)
	}
	if entry.Sequence < 1 {
		return garbled(a, errors.New("it has no sequence"))
	}
	return nil
}
