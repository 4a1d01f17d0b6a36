package load

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
)

// header is what of an answer's header decides how its body is read.
type header struct {
	status  int
	length  int64 // -1: not said
	chunked bool
	closes  bool
}

var (
	endOfHeader = []byte("\r\n\r\n")
	http11      = []byte("HTTP/1.1 ")
	http10      = []byte("HTTP/1.0 ")
)

// parseHeader looks at the few lines that matter; the rest is the worker's.
func parseHeader(b []byte) (header, error) {
	h := header{length: -1}
	switch {
	case bytes.HasPrefix(b, http11):
	case bytes.HasPrefix(b, http10):
		h.closes = true
	default:
		return h, errors.New("it is not HTTP/1")
	}
	for _, digit := range b[len(http11) : len(http11)+3] {
		if digit < '0' || digit > '9' {
			return h, errors.New("it has no status")
		}
		h.status = h.status*10 + int(digit-'0')
	}
	b = b[bytes.IndexByte(b, '\n')+1:]
	for len(b) > len("\r\n") {
		end := bytes.IndexByte(b, '\n')
		if err := h.line(b[:end]); err != nil {
			return h, err
		}
		b = b[end+1:]
	}
	return h, nil
}

// line takes one line of a header up. The first letter and the length of the
// name rule most lines out before anything is compared.
func (h *header) line(line []byte) error {
	colon := bytes.IndexByte(line, ':')
	switch {
	case colon == len("Content-Length") && is(line[:colon], "content-length"):
		value := bytes.TrimSpace(line[colon+1:])
		length, err := strconv.ParseInt(string(value), 10, 64)
		if err != nil || length < 0 {
			return fmt.Errorf("%q is no length", value)
		}
		h.length = length
	case colon == len("Transfer-Encoding") && is(line[:colon], "transfer-encoding"):
		value := bytes.TrimSpace(line[colon+1:])
		if !is(value, "chunked") {
			return fmt.Errorf("the transfer encoding %q is not known", value)
		}
		h.chunked = true
	case colon == len("Connection") && is(line[:colon], "connection"):
		value := bytes.TrimSpace(line[colon+1:])
		h.closes = is(value, "close") || h.closes && !is(value, "keep-alive")
	}
	return nil
}

// is compares without regard to case; lower is in lower case.
func is(b []byte, lower string) bool {
	if len(b) != len(lower) {
		return false
	}
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}

// chunkSize reads the line in front of a chunk: its size in hexadecimal, and
// perhaps extensions.
func chunkSize(line []byte) (int64, error) {
	digits, _, _ := bytes.Cut(line, []byte(";"))
	size, err := strconv.ParseInt(string(bytes.TrimSpace(digits)), 16, 64)
	if err != nil || size < 0 {
		return 0, fmt.Errorf("%q is no size of a chunk", line)
	}
	return size, nil
}

// isHead says whether a request is one whose answer has no body.
func isHead(request []byte) bool {
	return bytes.HasPrefix(request, []byte("HEAD "))
}
