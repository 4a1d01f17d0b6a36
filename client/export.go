package client

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"oda"
)

// Export writes an export of the archive, or of a part of it. The caller must be an
// admin. If it fails, what was written is not complete.
func (c *Client) Export(ctx context.Context, scope oda.Scope, to io.Writer) error {
	values := url.Values{}
	if scope.Kind != 0 {
		values.Set("kind", scope.Kind.Collection())
	}
	if scope.Since != nil {
		values.Set("since", scope.Since.String())
	}
	if scope.Project != "" {
		values.Set("prj_id", scope.Project)
	}
	r, err := c.do(ctx, request{method: http.MethodGet, path: api + "/export?" + values.Encode(), repeatable: true, stream: true})
	if err != nil {
		return err
	}
	defer r.stream.Close()
	written := &writing{to: to}
	if _, err = io.Copy(written, r.stream); err != nil && written.err == nil {
		return fmt.Errorf("%w: the export was cut off: %w", ErrNoAnswer, err)
	}
	return err
}

// writing remembers that writing failed, not reading.
type writing struct {
	to  io.Writer
	err error
}

func (w *writing) Write(p []byte) (n int, err error) {
	n, err = w.to.Write(p)
	w.err = err
	return n, err
}
