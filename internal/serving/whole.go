package serving

import (
	"bytes"
	"context"
	"sync"
)

// mostHeld bounds the answers that are sent in one piece.
const mostHeld = 16 << 10

// pieces has the buffers in which answers are put together.
var pieces = sync.Pool{New: func() any { return new([mostHeld]byte) }}

// Whole says that the handler of a request is about to write its answer, and how many
// bytes its body has. If the answer is small, it is sent in one piece. Otherwise
// net/http would send the first 4 KiB separately, and client and server would each
// work twice for it.
func Whole(ctx context.Context, body int) {
	if c, ok := ctx.Value(connKey{}).(conn); ok && c.http1 != nil && body < mostHeld {
		c.http1.body = body
	}
}

// piece is the beginning of an answer that will be sent in one piece.
type piece struct {
	buffer  *[mostHeld]byte // nil if there is none
	size    int
	missing int // bytes that are still to come
}

// send sends a part of an answer, or keeps it until the rest is there. net/http sees
// to it that a body is not longer than announced.
func (c *http1Conn) send(p []byte) (int, error) {
	if c.piece.buffer == nil {
		_, body, headed := bytes.Cut(p, []byte("\r\n\r\n"))
		missing := c.body - len(body)
		c.body = 0
		if !headed || missing <= 0 || len(p)+missing > mostHeld {
			return c.Conn.Write(p)
		}
		c.piece = piece{buffer: pieces.Get().(*[mostHeld]byte), missing: len(p) + missing}
	}
	c.piece.size += copy(c.piece.buffer[c.piece.size:], p)
	c.piece.missing -= len(p)
	if c.piece.missing > 0 {
		return len(p), nil
	}
	return len(p), c.release()
}

// release sends what is kept.
func (c *http1Conn) release() error {
	if c.piece.buffer == nil {
		return nil
	}
	defer func() {
		pieces.Put(c.piece.buffer)
		c.piece = piece{}
	}()
	_, err := c.Conn.Write(c.piece.buffer[:c.piece.size])
	return err
}
