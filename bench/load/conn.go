package load

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

const (
	// defaultPatience is how long an exchange may take before it is given up,
	// and how long a connection may take to come about.
	defaultPatience = 10 * time.Second
	// firstBuffer holds most answers whole, so that one read gets them.
	firstBuffer = 16 << 10
	// discardBuffer is for the rest of long answers that nobody looks at.
	discardBuffer = 128 << 10
	// largestHeader, largestLine and largestBody bound what is kept of an
	// answer.
	largestHeader = firstBuffer
	largestLine   = 4 << 10
	largestBody   = 256 << 20
)

// conn is a connection to a server with the buffer for its answers.
type conn struct {
	net.Conn
	patience time.Duration
	deadline time.Time
	// reusable says that another request may follow.
	reusable bool
	stop     func() bool

	// buf[:head] is the header of the answer being read, buf[from:to] what
	// has been received after it and not yet taken.
	buf            []byte
	head, from, to int
	// fills counts the reads that this answer has taken.
	fills int
	// joined takes the body of an answer that comes in chunks.
	joined []byte
	answer Answer
}

// dial connects. When the context ends, so does the connection, and with it
// whatever waits on it.
func dial(ctx context.Context, addr string, patience time.Duration) (*conn, error) {
	dialer := net.Dialer{Timeout: defaultPatience}
	nc, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("connecting to the server: %w", err)
	}
	return &conn{
		Conn:     nc,
		patience: patience,
		reusable: true,
		stop:     context.AfterFunc(ctx, func() { nc.Close() }),
		buf:      make([]byte, firstBuffer),
	}, nil
}

func (c *conn) close() {
	c.stop()
	c.Close()
}

// exchange sends a request and reads the whole answer; done is the moment at
// which its last byte was there. After an error the connection is of no use.
func (c *conn) exchange(request []byte, discard bool) (a *Answer, done time.Time, err error) {
	sent := time.Now()
	c.reusable = false
	// Moving the deadline has its cost in the runtime, so it is set a tenth
	// too far and moved only when that is used up.
	if c.deadline.Sub(sent) < c.patience {
		c.deadline = sent.Add(c.patience + c.patience/10)
		if err := c.SetDeadline(c.deadline); err != nil {
			return nil, sent, fmt.Errorf("setting a deadline: %w", err)
		}
	}
	if _, err := c.Write(request); err != nil {
		return nil, sent, fmt.Errorf("sending a request: %w", err)
	}
	done, err = c.receive(sent, isHead(request), discard)
	if err != nil {
		return nil, done, fmt.Errorf("reading an answer: %w", err)
	}
	return &c.answer, done, nil
}

// fill reads once into the buffer, behind what is there.
func (c *conn) fill() error {
	if c.from == c.to {
		c.from, c.to = c.head, c.head
	}
	if c.to == len(c.buf) {
		c.makeRoom()
	}
	n, err := c.Read(c.buf[c.to:])
	c.to += n
	c.fills++
	if n > 0 {
		// What came with an error is used first; the error comes again.
		return nil
	}
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// makeRoom moves what has not been taken to the front, or doubles the buffer
// where it begins there already.
func (c *conn) makeRoom() {
	if c.from > c.head {
		c.to = c.head + copy(c.buf[c.head:], c.buf[c.from:c.to])
		c.from = c.head
		return
	}
	c.reserve(2 * len(c.buf))
}

// reserve makes the buffer at least that large.
func (c *conn) reserve(size int) {
	if size <= len(c.buf) {
		return
	}
	larger := make([]byte, size)
	copy(larger, c.buf[:c.to])
	c.buf = larger
}
