package oda

import (
	"bytes"
	"errors"
	"io"
)

// Entity is one stored version of an entity. Body and Records make up the
// document until it is rendered.
type Entity struct {
	Ref
	Metadata Metadata
	Body     Body
	Records  Texts // nil where the document has no list of records

	// Superseded says that there is a later version, so that what was read never
	// changes again.
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

// Render renders the document in memory, so that many can read it. What it was
// made of is let go.
func (e *Entity) Render() error {
	if e.rendered != nil {
		return nil
	}
	var b bytes.Buffer
	b.Grow(len(e.Body.Text) + 256)
	if err := e.Body.WriteTo(&b, e.Metadata, e.Records); err != nil {
		return err
	}
	e.rendered = b.Bytes()
	e.Body, e.Records = Body{}, nil
	return nil
}

// textWithoutRecords is the document for those who do not look at the records,
// which may be many. Where it is rendered already, they are in it.
func (e *Entity) textWithoutRecords() ([]byte, error) {
	if e.rendered != nil {
		return e.rendered, nil
	}
	return e.Body.withoutRecords(e.Metadata)
}

// AtLeast gives the size of the document, or n where it is no smaller: no more
// of it is rendered than that takes.
func (e *Entity) AtLeast(n int) (int, error) {
	if known := max(len(e.rendered), len(e.Body.Text)); e.rendered != nil || known >= n {
		return min(known, n), nil
	}
	c := countingWriter{w: io.Discard, most: int64(n)}
	if err := e.Body.WriteTo(&c, e.Metadata, e.Records); err != nil && !errors.Is(err, errEnough) {
		return 0, err
	}
	return min(int(c.n), n), nil
}

// errEnough ends a rendering whose size alone matters.
var errEnough = errors.New("the document is large enough")

// Rendered is the document where Render has been called, else nil.
func (e *Entity) Rendered() []byte { return e.rendered }

type countingWriter struct {
	w    io.Writer
	n    int64
	most int64 // from there on writing fails; 0 is no bound
}

func (c *countingWriter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	if err == nil && c.most > 0 && c.n >= c.most {
		err = errEnough
	}
	return n, err
}

// AnswerAhead is how many bytes of the records that a version keeps are read
// before it is committed. An answer that has come so far is under way, so what
// fails from there on cannot make a failure of a write that is stored.
const AnswerAhead = 256 << 10
