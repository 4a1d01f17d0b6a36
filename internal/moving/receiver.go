package moving

import (
	"context"
	"io"
	"math"
)

// Receiver checks an export while it is received. A connection that is cut is an error of
// its own, but something in between may also leave out or change a part of an answer.
type Receiver struct {
	to      *io.PipeWriter
	checked chan received
}

type received struct {
	manifest *Manifest
	err      error
}

// NewReceiver returns a receiver. Done ends it.
func NewReceiver(ctx context.Context) *Receiver {
	from, to := io.Pipe()
	r := &Receiver{to, make(chan received, 1)}
	go func() {
		m, err := check(ctx, from, math.MaxInt64) // long lines take no memory there
		// If it is damaged, nobody needs the rest.
		from.CloseWithError(err)
		r.checked <- received{m, err}
	}()
	return r
}

// Write implements io.Writer. Its error may be a Damage.
func (r *Receiver) Write(p []byte) (int, error) { return r.to.Write(p) }

// Done returns the manifest once everything was written. The error may be a Damage.
func (r *Receiver) Done() (*Manifest, error) {
	_ = r.to.Close() // it never fails
	result := <-r.checked
	return result.manifest, result.err
}
