package oda

import (
	"bytes"
	"context"
	"errors"
	"iter"
)

// Engine is what keeps the archive. It is a compare-and-set: the rules work out
// what is to be written, the engine writes it if and only if the stored state is
// the expected one, and all or nothing where several entities are written. What
// it acknowledges is on disk.
//
// All methods are safe for concurrent use. An engine that does not answer, or
// that has no room, gives an Error with the code Unavailable or Overloaded.
type Engine interface {
	Reader
	Writer
	Finder
	Diary

	// Ping tells whether reading and writing work; an Error says why not.
	Ping(ctx context.Context) error

	// Close ends the work of the engine; running calls finish first.
	Close() error
}

// Reader reads what stands under an identifier.
type Reader interface {
	// Get reads the current version. Unknown: NotFound.
	Get(ctx context.Context, ref Ref) (*Entity, error)

	// Version reads a version as it last was while it was current: with its last
	// metadata, and the records that were recorded into it. Unknown: NotFound.
	Version(ctx context.Context, ref Ref, version int64) (*Entity, error)

	// AsOf reads the state with the latest LastModifiedOn that is not after the
	// instant. If there is none: NotFound.
	AsOf(ctx context.Context, ref Ref, at Instant) (*Entity, error)

	// Versions tells of the versions before the given one, newest first, as many
	// as fit: at most limit. Unknown: NotFound.
	Versions(ctx context.Context, ref Ref, before int64, limit int) ([]VersionInfo, error)

	// Records reads the records of the current version of a block in the order
	// of their sequence numbers, behind the given one, as many as fit: at most
	// limit, and not many bytes. Unknown: NotFound.
	Records(ctx context.Context, block string, after int64, limit int) (RecordPage, error)
}

// Writer stores entities and records.
type Writer interface {
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

	// Append adds records to an ExecutionBlock. Unknown: NotFound. A record
	// whose key was used in the block before is not added; its receipt is that
	// of the first time, or the error of Key.Check is returned for all.
	Append(ctx context.Context, add Append) ([]Receipt, error)
}

// Finder finds entities without being told their identifiers.
type Finder interface {
	// List calls emit for each identifier that matches, in order, from one
	// snapshot, until emit returns an error, which List passes on. The instant
	// is the one by which the listing is ordered.
	List(ctx context.Context, q Query, emit func(id string, at Instant) error) error

	// Look gives the current version of each of the entities as search sees it,
	// nil where it is unknown.
	Look(ctx context.Context, refs []Ref) ([]*Found, error)

	// Candidates calls take for the entities that may answer a question, in no
	// order. Take judges them, and says whether it takes one. Those that answer
	// the question are among them, if they are complete: they are not where a
	// bound of the question is reached. An acknowledged write is taken into
	// account.
	Candidates(ctx context.Context, q Question, take func(*Found) bool) (complete bool, err error)

	// Counts gives the number of entities of each kind, at no cost that grows
	// with them.
	Counts(ctx context.Context) (map[Kind]int64, error)

	// Walk calls emit for entities in the order of the walk's sort, at most as
	// many as its limit, until emit returns an error, which Walk passes on. Fewer
	// than the limit are all that there are. The body is that of the current
	// version, for a walk that wants it.
	Walk(ctx context.Context, walk Walk, emit func(found *Found, body Body) error) error
}

// Diary finds records by the days of their calls.
type Diary interface {
	// BlocksOn gives the identifiers of the ExecutionBlocks that have calls on
	// one of the days, or had some in a version before, each once, at most so
	// many.
	BlocksOn(ctx context.Context, days Days, most int) ([]string, error)

	// RecordsOn reads records of the current version of a block, without their
	// keys, in the order of their sequence numbers: all whose calls are of one
	// of the days, and few others. Unknown: none.
	RecordsOn(ctx context.Context, block string, days Days) iter.Seq2[Record, error]
}

// Days are days that follow each other, from the first to the last, at most
// MaxDays.
type Days struct{ First, Last Day }

// MaxDays is how many days a night can touch.
const MaxDays = 3

// ErrTaken says that a generated identifier is in use already.
var ErrTaken = errors.New("the identifier is taken")

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
