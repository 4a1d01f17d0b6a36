package load

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"time"
)

// receive reads one whole answer into c.answer and returns when its last byte
// was there.
func (c *conn) receive(sent time.Time, toHead, discard bool) (time.Time, error) {
	c.head, c.from, c.to, c.fills = 0, 0, 0, 0
	if err := c.fill(); err != nil {
		return sent, err
	}
	done := time.Now()
	c.answer = Answer{FirstByte: done.Sub(sent)}
	h, err := c.readHeader()
	if err != nil {
		return done, err
	}
	c.answer.Status = h.status
	switch {
	case toHead || h.status == 204 || h.status == 304:
	case h.chunked:
		err = c.readChunks(discard)
	case h.length >= 0:
		err = c.readLength(h.length, discard)
	default:
		h.closes = true
		err = c.readToEnd(discard)
	}
	if err != nil {
		return done, err
	}
	if c.from != c.to {
		return done, errors.New("more bytes came than the answer holds")
	}
	c.answer.Header = c.buf[:c.head]
	c.reusable = !h.closes
	if c.fills > 1 {
		done = time.Now()
	}
	return done, nil
}

// readHeader reads to the end of the header and leaves it in buf[:head].
func (c *conn) readHeader() (header, error) {
	for {
		if end := bytes.Index(c.buf[:c.to], endOfHeader); end >= 0 {
			c.head = end + len(endOfHeader)
			c.from = c.head
			h, err := parseHeader(c.buf[:c.head])
			if err != nil || h.status >= 200 {
				return h, err
			}
			// An interim answer (100 Continue): the real one follows.
			c.to = copy(c.buf, c.buf[c.from:c.to])
			c.head, c.from = 0, 0
			continue
		}
		if c.to >= largestHeader {
			return header{}, fmt.Errorf("the header is longer than %d bytes", largestHeader)
		}
		if err := c.fill(); err != nil {
			return header{}, err
		}
	}
}

// readLength reads a body of known length.
func (c *conn) readLength(length int64, discard bool) error {
	c.answer.Size = length
	if discard {
		return c.skip(length)
	}
	if length > largestBody {
		return errTooLarge
	}
	end := c.head + int(length)
	c.reserve(end)
	for c.to < end {
		if err := c.fill(); err != nil {
			return err
		}
	}
	c.answer.Body = c.buf[c.head:end]
	c.from = end
	return nil
}

// readToEnd reads a body that ends with the connection.
func (c *conn) readToEnd(discard bool) error {
	c.joined = c.joined[:0]
	for {
		if err := c.take(int64(c.to-c.from), discard); err != nil {
			return err
		}
		if err := c.fill(); errors.Is(err, io.ErrUnexpectedEOF) {
			c.answer.Body = c.joined
			return nil
		} else if err != nil {
			return err
		}
	}
}

// readChunks reads a body in chunks, and the trailer after it.
func (c *conn) readChunks(discard bool) error {
	c.joined = c.joined[:0]
	for {
		line, err := c.readLine()
		if err != nil {
			return err
		}
		size, err := chunkSize(line)
		if err != nil {
			return err
		}
		if size == 0 {
			break
		}
		if err := c.take(size, discard); err != nil {
			return err
		}
		if line, err = c.readLine(); err != nil {
			return err
		}
		if len(line) > 0 {
			return errors.New("a chunk is longer than it says")
		}
	}
	for {
		line, err := c.readLine()
		if err != nil {
			return err
		}
		if len(line) == 0 {
			c.answer.Body = c.joined
			return nil
		}
	}
}

// take moves n bytes of body, now or to come, to joined, or only counts them.
func (c *conn) take(n int64, discard bool) error {
	c.answer.Size += n
	if discard {
		return c.skip(n)
	}
	if c.answer.Size > largestBody {
		return errTooLarge
	}
	for n > 0 {
		if c.from == c.to {
			if err := c.fill(); err != nil {
				return err
			}
		}
		part := min(n, int64(c.to-c.from))
		c.joined = append(c.joined, c.buf[c.from:c.from+int(part)]...)
		c.from += int(part)
		n -= part
	}
	return nil
}

// skip passes over n bytes, now or to come.
func (c *conn) skip(n int64) error {
	for {
		part := min(n, int64(c.to-c.from))
		c.from += int(part)
		if n -= part; n == 0 {
			return nil
		}
		c.reserve(discardBuffer)
		if err := c.fill(); err != nil {
			return err
		}
	}
}

// readLine returns the next line without its end.
func (c *conn) readLine() ([]byte, error) {
	for {
		if end := bytes.IndexByte(c.buf[c.from:c.to], '\n'); end >= 0 {
			line := c.buf[c.from : c.from+end]
			c.from += end + 1
			return bytes.TrimSuffix(line, []byte("\r")), nil
		}
		if c.to-c.from > largestLine {
			return nil, fmt.Errorf("a line between chunks is longer than %d bytes", largestLine)
		}
		if err := c.fill(); err != nil {
			return nil, err
		}
	}
}

var errTooLarge = fmt.Errorf("the body is larger than %d bytes: discard it", largestBody)
