package oda

import (
	"bytes"
	"context"
	"errors"
	"io"
)

// Store is what the rules need from a database. An engine is a compare-and-set:
// the rules work out what is to be written, the engine writes it if and only
// if the stored state is the expected one, and all or nothing where several
// entities are written. What it acknowledges is on disk.
//
// All methods are safe for concurrent use. An engine that does not answer, or
// that has no room, gives an Error with the code Unavailable or Overloaded.
type Store interface {
	// Get reads the current version. Unknown: NotFound.
	Get(ctx context.Context, ref Ref) (*Entity, error)

	// Put stores the entities, all or none. Where Judge refuses, its error is
	// returned and nothing is stored. What is returned needs the database only
	// for records behind the first AnswerAhead bytes.
	Put(ctx context.Context, puts []Put) ([]*Entity, error)

	// Create stores a new entity under a generated identifier. If the
	// identifier is in use already, the error is ErrTaken. If the key has
	// created an entity before, that entity is returned as it was created, or
	// the error of Key.Check.
	Create(ctx context.Context, put Put, key *Key) (*Entity, error)

	// Created gives what a key created before, as it was created. A key that
	// was never used gives nil.
	Created(ctx context.Context, kind Kind, key Key) (*Entity, error)

	// Record adds records to one ExecutionBlock, in order, all or none.
	// Unknown: NotFound. A record whose key was used in the block before is not
	// added; its answer is that of the first time, or the error of Key.Check
	// for all. No key stands twice among them.
	Record(ctx context.Context, adds []Addition) ([]Recorded, error)

	// Recordings reads the records of the current version of a block in the
	// order of their sequence numbers, behind the given one, as many as fit: at
	// most limit, and not many bytes. It tells whether there are more. Unknown:
	// NotFound.
	Recordings(ctx context.Context, block string, after int64, limit int) ([]Recording, bool, error)

	// List calls emit for each identifier that matches, in order, from one
	// snapshot, until emit returns an error, which List passes on. The instant
	// is the one by which the listing is ordered.
	List(ctx context.Context, q Query, emit func(id string, at Instant) error) error

	// Counts gives the number of entities of each kind, at no cost that grows
	// with them.
	Counts(ctx context.Context) (map[Kind]int64, error)

	// Ping tells whether reading and writing work; an Error says why not.
	Ping(ctx context.Context) error

	// Close ends the work of the engine; running calls finish first.
	Close() error
}

// ErrTaken says that a generated identifier is in use already.
var ErrTaken = errors.New("the identifier is taken")

// Entity is one stored version of an entity. Body and Records make up the
// document until it is rendered.
type Entity struct {
	Ref
	Metadata Metadata
	Body     Body
	Records  Records // nil where the document has no list of records

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

// Key makes a retry safe: the same key with the same request is answered as
// the first time. The digest is of the request that it came with.
type Key struct {
	Value  string
	Digest [32]byte
}

// Check compares the key with the digest that it was first used with.
func (k Key) Check(digest []byte) error {
	if bytes.Equal(k.Digest[:], digest) {
		return nil
	}
	return Errorf(KeyReused, "This Idempotency-Key was used before, with another body. "+
		"Send the same body to retry, or a new key to store something new.")
}

// Addition is one record to be added to an ExecutionBlock.
type Addition struct {
	Block  string
	Record []byte // as sent
	Key    *Key
	By     string
	At     Instant
}

// Recording is a record as it is kept.
type Recording struct {
	Sequence   int64
	Key        string // empty where it came without one
	RecordedOn Instant
	Record     []byte // as sent
}

// RecordingsBytes is the size of records from which on no more are read at
// once.
const RecordingsBytes = 4 << 20

// Recorded says where a record stands, and the metadata of the block at that
// moment.
type Recorded struct {
	Sequence int64
	Metadata Metadata
}

// Missing is the error for an entity that is not in the archive.
func Missing(ref Ref) *Error {
	return Errorf(NotFound, "The requested identifier %s could not be found among the %s.", clip(ref.ID), ref.Kind.Collection())
}

// clip bounds what a message repeats of a request.
func clip(text string) string {
	if len(text) > maxID {
		return text[:maxID] + "…"
	}
	return text
}
