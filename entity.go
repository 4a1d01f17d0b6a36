package oda

import (
	"bytes"
	"errors"
	"io"
	"strconv"
)

// Entity is one stored version of an entity. Body and Records make up the
// document until it is rendered.
type Entity struct {
	Ref
	Metadata Metadata
	Body     Body
	Records  Texts // nil if the document has no list of records

	// Superseded says that there is a later version, so this one never changes
	// again.
	Superseded bool

	rendered []byte
}

// WriteTo renders the document.
func (e *Entity) WriteTo(w io.Writer) (int64, error) {
	if e.rendered != nil {
		n, err := w.Write(e.rendered)
		return int64(n), err
	}
	c := countingWriter{w: w}
	err := e.Body.WriteTo(&c, e.Metadata, e.Records)
	return c.n, err
}

// Render renders the document in memory, so that it can be written many times, unless
// it has more than so many bytes. It drops Body and Records.
func (e *Entity) Render(most int) error {
	if e.rendered != nil {
		return nil
	}
	var b bytes.Buffer
	b.Grow(len(e.Body.Text) + 256)
	err := e.Body.WriteTo(&countingWriter{w: &b, most: int64(most) + 1}, e.Metadata, e.Records)
	if errors.Is(err, errLongEnough) {
		return nil
	}
	if err != nil {
		return err
	}
	e.rendered = b.Bytes()
	e.Body, e.Records = Body{}, nil
	return nil
}

// WithoutRecords returns the document for callers that ignore its records,
// of which there may be many. A document that is already rendered still has them.
func (e *Entity) WithoutRecords() ([]byte, error) {
	if e.rendered != nil {
		return e.rendered, nil
	}
	return e.Body.WithoutRecords(e.Metadata)
}

// AtLeast returns the size of the document, or n if the document is larger. It
// renders no more of it than it needs to.
func (e *Entity) AtLeast(n int) (int, error) {
	if known := max(len(e.rendered), len(e.Body.Text)); e.rendered != nil || known >= n {
		return min(known, n), nil
	}
	c := countingWriter{w: io.Discard, most: int64(n)}
	if err := e.Body.WriteTo(&c, e.Metadata, e.Records); err != nil && !errors.Is(err, errLongEnough) {
		return 0, err
	}
	return min(int(c.n), n), nil
}

// errLongEnough stops AtLeast and Render once the document has reached the size in question.
var errLongEnough = errors.New("the document is large enough")

// Rendered returns the document if Render has been called, else nil.
func (e *Entity) Rendered() []byte { return e.rendered }

type countingWriter struct {
	w    io.Writer
	n    int64
	most int64 // writing fails once so many bytes are written; 0 is no bound
}

func (c *countingWriter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	if err == nil && c.most > 0 && c.n >= c.most {
		err = errLongEnough
	}
	return n, err
}

// AnswerAhead is how many bytes of a version's kept records are read before the
// version is committed. By the time the rest is read, the answer is on its way,
// so a fault there cannot make a stored write look like a failure.
const AnswerAhead = 256 << 10

// VersionInfo describes a version without its document.
type VersionInfo struct {
	Metadata Metadata // as it last was while the version was current
	Bytes    int64    // of the stored text, without records
	Listed   bool     // the document has a list of records
	Records  int64    // how many records it has
}

// AppendJSON appends the info as a JSON object: the managed fields, the size, and
// the number of records if the document has a list of them.
func (v VersionInfo) AppendJSON(dst []byte) []byte {
	dst = v.Metadata.AppendJSON(dst)
	dst = strconv.AppendInt(append(dst[:len(dst)-1], `,"bytes":`...), v.Bytes, 10)
	if v.Listed {
		dst = strconv.AppendInt(append(dst, `,"records":`...), v.Records, 10)
	}
	return append(dst, '}')
}

// MaxVersions is the largest page of versions.
const MaxVersions = 1000
