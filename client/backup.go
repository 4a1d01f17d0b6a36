package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// Backup returns a backup of the whole archive as it arrives. It takes the role
// admin. The caller must close it. That it is complete and not damaged is known only
// when it was read to its end, as "oda backup" does. If it is cut off, the error has
// ErrNoAnswer in its chain.
func (c *Client) Backup(ctx context.Context) (io.ReadCloser, error) {
	r, err := c.do(ctx, request{method: http.MethodGet, path: api + "/backup", repeatable: true, stream: true})
	if err != nil {
		return nil, err
	}
	return arriving{r.stream}, nil
}

// arriving is a stream that may be cut off.
type arriving struct{ io.ReadCloser }

// Read implements io.Reader.
func (a arriving) Read(p []byte) (int, error) {
	n, err := a.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = fmt.Errorf("%w: it was cut off: %w", ErrNoAnswer, err)
	}
	return n, err
}
