package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"time"

	"oda"
)

// request is an operation to send, perhaps more than once.
type request struct {
	method     string
	path       string // with query, relative to the base address
	header     http.Header
	body       []byte // nil if there is none
	repeatable bool   // a repetition changes nothing
	stream     bool   // the caller reads the body of the answer
}

// reply is a successful answer. Its body is either in memory or in stream.
type reply struct {
	status int
	header http.Header
	body   []byte
	stream io.ReadCloser
}

func (r *reply) answer() *Answer {
	return &Answer{Status: r.status, RequestID: r.header.Get("X-Request-Id")}
}

// The pause between two tries doubles, from the first to the longest. If the
// archive asks for a longer one, the call fails instead.
const (
	firstPause   = 100 * time.Millisecond
	longestPause = 10 * time.Second
)

// do sends a request, and retries it as often as allowed.
func (c *Client) do(ctx context.Context, r request) (*reply, error) {
	pause := firstPause
	for try := 0; ; try++ {
		got, err := c.attempt(ctx, r)
		if err == nil || try >= c.retries || ctx.Err() != nil || !r.again(err) {
			return got, err
		}
		wait := pause/2 + rand.N(pause) // #nosec G404 -- so that clients do not all come back at once
		if a, ok := errors.AsType[*Answer](err); ok && a.RetryAfter > wait {
			if wait = a.RetryAfter; wait > longestPause {
				return nil, err
			}
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(wait):
		}
		pause = min(2*pause, longestPause)
	}
}

// again reports whether a request that failed with err may be retried.
func (r request) again(err error) bool {
	if !r.repeatable {
		return neverSent(err)
	}
	switch Status(err) {
	case 0:
		return errors.Is(err, ErrNoAnswer)
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// neverSent reports whether no connection was made, so that nothing can have
// reached the archive.
func neverSent(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial"
}

// mostProblem bounds how much is read of an answer that is not a success.
const mostProblem = 1 << 20

// attempt sends a request once.
func (c *Client) attempt(ctx context.Context, r request) (*reply, error) {
	p := c.newPatience(ctx)
	out, err := c.outgoing(p, r)
	if err != nil {
		p.end()
		return nil, err
	}
	response, err := c.http.Do(out)
	if err != nil {
		err = fmt.Errorf("%w: %w", ErrNoAnswer, p.why(err))
		p.end()
		return nil, err
	}
	body := &incoming{response.Body, p}
	got := &reply{status: response.StatusCode, header: response.Header}
	success := got.status == http.StatusOK || got.status == http.StatusNoContent || got.status == http.StatusNotModified
	if success && r.stream {
		p.timer.Stop()
		got.stream = body
		return got, nil
	}
	defer body.Close()
	most := c.maxBody
	if !success {
		most = mostProblem
	}
	// Reading to the end lets the connection be reused. One extra byte shows
	// that the body is too large.
	got.body, err = io.ReadAll(io.LimitReader(body, most+1))
	switch {
	case !success:
		return nil, problem(response, got.body)
	case err != nil:
		return nil, fmt.Errorf("%w: the answer was cut off: %w", ErrNoAnswer, err)
	case int64(len(got.body)) > most:
		return nil, oda.Errorf(oda.BodyTooLarge, "The answer is larger than %d bytes, the limit of this client. Read less at a time, or raise the limit with WithMaxBody.", most).Because(got.answer())
	}
	return got, nil
}

// outgoing builds the HTTP request.
func (c *Client) outgoing(p *patience, r request) (*http.Request, error) {
	out, err := http.NewRequestWithContext(p.ctx, r.method, c.base+r.path, nil)
	if err != nil {
		return nil, fmt.Errorf("write the request: %w", err)
	}
	if len(r.body) > 0 {
		out.ContentLength = int64(len(r.body))
		out.GetBody = func() (io.ReadCloser, error) {
			return io.NopCloser(&outgoing{bytes.NewReader(r.body), p}), nil
		}
		if out.Body, err = out.GetBody(); err != nil {
			return nil, err
		}
		out.Header.Set("Content-Type", "application/json")
	}
	maps.Copy(out.Header, r.header)
	if c.user != "" {
		out.Header.Set("X-Forwarded-User", c.user)
	}
	if err := c.authorize(out); err != nil {
		return nil, err
	}
	for name, values := range out.Header { // net/http would report it like a network failure
		if strings.ContainsFunc(values[0], func(c rune) bool { return c < ' ' || c == 0x7f }) {
			return nil, &oda.Error{
				Code: oda.InvalidRequest, Detail: "A header must not have control characters. Nothing was sent.",
				Faults: []oda.Fault{{Pointer: "header:" + name, Detail: "has control characters"}},
			}
		}
	}
	return out, nil
}

// patience ends a request when the archive is silent for too long: it neither
// reads nor writes. A slow request that makes progress may take as long as it
// needs.
type patience struct {
	ctx     context.Context
	cancel  context.CancelCauseFunc
	silence time.Duration
	timer   *time.Timer
}

var errSilence = errors.New("it was silent for too long")

func (c *Client) newPatience(ctx context.Context) *patience {
	p := &patience{silence: c.silence}
	p.ctx, p.cancel = context.WithCancelCause(ctx)
	p.timer = time.AfterFunc(p.silence, func() { p.cancel(errSilence) })
	return p
}

// why returns the silence if that was the reason for an error.
func (p *patience) why(err error) error {
	if errors.Is(context.Cause(p.ctx), errSilence) {
		return errSilence
	}
	return err
}

func (p *patience) end() {
	p.timer.Stop()
	p.cancel(nil)
}

// outgoing is the request body. The archive's silence is measured from the
// moment at which it has taken a part of it.
type outgoing struct {
	io.Reader
	patience *patience
}

func (o *outgoing) Read(b []byte) (int, error) {
	o.patience.timer.Reset(o.patience.silence)
	return o.Reader.Read(b)
}

// incoming is the body of an answer. The time that the caller takes between two
// reads does not count as silence.
type incoming struct {
	io.ReadCloser
	patience *patience
}

func (i *incoming) Read(b []byte) (int, error) {
	i.patience.timer.Reset(i.patience.silence)
	n, err := i.ReadCloser.Read(b)
	i.patience.timer.Stop()
	if err != nil && err != io.EOF {
		err = i.patience.why(err)
	}
	return n, err
}

func (i *incoming) Close() error {
	i.patience.end()
	return i.ReadCloser.Close()
}
