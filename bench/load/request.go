package load

import (
	"bytes"
	"context"
	"strconv"
	"time"
)

// Request renders a request and appends it to buf. Headers are pairs of name
// and value; Host and Content-Length are put in. A nil body is no body, an
// empty one is a body of length zero.
func Request(buf []byte, method, path string, headers []string, body []byte) []byte {
	buf = append(buf, method...)
	buf = append(buf, ' ')
	buf = append(buf, path...)
	buf = append(buf, " HTTP/1.1\r\nHost: bench\r\n"...)
	for i := 0; i+1 < len(headers); i += 2 {
		buf = append(buf, headers[i]...)
		buf = append(buf, ": "...)
		buf = append(buf, headers[i+1]...)
		buf = append(buf, "\r\n"...)
	}
	if body != nil {
		buf = append(buf, "Content-Length: "...)
		buf = strconv.AppendInt(buf, int64(len(body)), 10)
		buf = append(buf, "\r\n"...)
	}
	buf = append(buf, "\r\n"...)
	return append(buf, body...)
}

// Once sends one request over a new connection and reads the answer; for
// set-up and checks. It takes as long as the context allows, or ten seconds
// where that sets no deadline. The answer is the caller's to keep.
func Once(ctx context.Context, addr string, request []byte) (*Answer, error) {
	patience := defaultPatience
	if deadline, set := ctx.Deadline(); set {
		patience = time.Until(deadline)
	}
	c, err := dial(ctx, addr, patience)
	if err != nil {
		return nil, err
	}
	defer c.close()
	answer, _, err := c.exchange(request, false)
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, err
	}
	kept := *answer
	return &kept, nil
}

// Get returns the value of a header line, nil where it is missing. The name is
// given in lower case.
func (a *Answer) Get(name string) []byte {
	rest := a.Header[bytes.IndexByte(a.Header, '\n')+1:]
	for len(rest) > 0 {
		end := bytes.IndexByte(rest, '\n')
		if end < 0 {
			end = len(rest) - 1
		}
		line := rest[:end]
		if colon := bytes.IndexByte(line, ':'); colon >= 0 && is(line[:colon], name) {
			return bytes.TrimSpace(line[colon+1:])
		}
		rest = rest[end+1:]
	}
	return nil
}
