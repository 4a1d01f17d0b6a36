package oda

import (
	"context"
	"errors"
	"iter"
)

// Engine stores the archive. It is a compare-and-set: this package decides what
// to write, and the engine writes it if and only if the stored state is the
// expected one. It writes several entities all or none. What it acknowledges is
// on disk.
//
// All methods are safe for concurrent use. If the database does not answer or
// has no room, they return an Error with the code Unavailable or Overloaded. For
// an entity that is not stored they return an Error with the code NotFound,
// unless they say otherwise.
type Engine interface {
	Reader
	Writer
	Statuses
	Runner
	Finder
	Calendar
	NotableCalls
	Log
	Mover

	// Ping returns an error if reading or writing does not work.
	Ping(ctx context.Context) error

	// Usage returns how much room the archive takes.
	Usage(ctx context.Context) (Usage, error)

	// Close waits for running calls, then closes the engine.
	Close() error
}

// Usage is the room that an archive takes on its disk.
type Usage struct {
	Bytes int64
	Free  *int64 // what the disk has left for it; nil if the engine does not know
}

// Reader reads entities by their identifiers.
type Reader interface {
	// Get returns the current version.
	Get(ctx context.Context, ref Ref) (*Entity, error)

	// Version returns a version as it last was while it was current: with its
	// last metadata and the records that were recorded into it.
	Version(ctx context.Context, ref Ref, version int64) (*Entity, error)

	// AsOf returns the state with the latest LastModifiedOn that is not after
	// the instant. If there is none, the error is NotFound.
	AsOf(ctx context.Context, ref Ref, at Instant) (*Entity, error)

	// Versions describes up to limit versions before the given one, newest
	// first.
	Versions(ctx context.Context, ref Ref, before int64, limit int) ([]VersionInfo, error)

	// Records returns records of the current version of a block that follow the
	// given sequence number, in order. It returns at most limit of them, and
	// fewer if they are large.
	Records(ctx context.Context, block string, after int64, limit int) (RecordPage, error)
}

// Writer stores entities and records.
type Writer interface {
	// Put stores the entities, all or none. If Judge refuses one, Put returns its
	// error and stores nothing. The returned entities can be rendered without the
	// database, except for records beyond the first AnswerAhead bytes.
	Put(ctx context.Context, puts []Put) ([]*Entity, error)

	// Create stores a new entity under a generated identifier. If the
	// identifier is in use, the error is ErrTaken. If the key has already
	// created an entity, Create returns that entity as it was created, or the
	// error of Key.Check.
	Create(ctx context.Context, put Put, key *Key) (*Entity, error)

	// Created returns what a key has created, as it was created, or nil if the
	// key was never used.
	Created(ctx context.Context, kind Kind, key Key) (*Entity, error)

	// Append adds records to an ExecutionBlock. It does not add a record whose
	// key was used in the block before: the receipt is that of the first time.
	// If Append.CheckKey fails for one of the records, none is added, and the error
	// is that of the first such record.
	Append(ctx context.Context, add Append) ([]Receipt, error)
}

// Statuses keeps what people and programs say of entities.
type Statuses interface {
	// Say adds an entry to the statuses of an entity, which NewStatus.Entry makes. If
	// the key has already added one to the same entity, Say returns that, or the error
	// of Key.Check.
	Say(ctx context.Context, say NewStatus) (*Status, error)

	// Status returns the current status: an entry, or what Standing.Status returns if
	// there are no entries.
	Status(ctx context.Context, ref Ref) (*Status, error)

	// StatusesBefore returns up to limit entries before a sequence number, newest
	// first.
	StatusesBefore(ctx context.Context, ref Ref, before int64, limit int) ([]Status, error)
}

// Runner knows the calls that have begun and not ended. They are no part of the archive's
// history, and it may forget them in a crash.
type Runner interface {
	// Begin says that a call has begun, or renews its lease. If the block has a record
	// with the key, the call has ended, and Begin does nothing. If there is no room for
	// it, the error is that of CheckRunning.
	Begin(ctx context.Context, b Begun) error

	// Withdraw forgets a call, if it is known.
	Withdraw(ctx context.Context, b Begun) error

	// Running returns the calls that are running in a block, or in all blocks if it is
	// empty, in the order of their blocks and keys. Those that have ended since are not
	// among them.
	Running(ctx context.Context, block string) ([]RunningCall, error)
}

// Finder finds entities by other things than their identifiers.
type Finder interface {
	// List calls emit for each identifier that matches the query, in order, from
	// one snapshot. It stops at the first error of emit and returns it. The
	// instant is the one by which the listing is ordered.
	List(ctx context.Context, q Query, emit func(id string, at Instant) error) error

	// Look returns the current version of each entity as search sees it, nil for
	// one that is not stored.
	Look(ctx context.Context, refs []Ref) ([]*Found, error)

	// Candidates returns the places of entities that may answer a question, in
	// any order. If complete is true, every entity that answers it is among them,
	// including those of all acknowledged writes. If there are more than the
	// question allows, Candidates returns some of them.
	Candidates(ctx context.Context, q Question) (places []Place, complete bool, err error)

	// Counts returns the number of entities of each kind. Its cost does not grow
	// with these numbers.
	Counts(ctx context.Context) (map[Kind]int64, error)

	// Walk calls emit for up to walk.Limit entities, in the order of walk.Sort.
	// It stops at the first error of emit and returns it. If it finds fewer than
	// the limit, there are no more. The body is that of the current version, if
	// the walk asks for bodies.
	Walk(ctx context.Context, walk Walk, emit func(found *Found, body Body) error) error

	// Places returns the places that the entities of a walk have in another order.
	Places(ctx context.Context, walk Walk, order Sort) ([]Place, error)
}

// Calendar finds records by the days of their calls.
type Calendar interface {
	// BlocksOn returns the identifiers of up to most ExecutionBlocks that have
	// calls on one of the days, or had some in an earlier version. It returns
	// each once.
	BlocksOn(ctx context.Context, days Days, most int) ([]string, error)

	// RecordsOn reads records of the current version of a block in the order of
	// their sequence numbers, without their keys: all that are among the sequences and
	// whose calls are on one of the days, and perhaps a few of other days. It reads none
	// of an unknown block.
	RecordsOn(ctx context.Context, block string, days Days, among Sequences) iter.Seq2[Record, error]

	// DaysAround returns the last day up to one, and the first day from another
	// on, on which a block has calls, or had some in an earlier version. Where
	// there is none, it returns nil.
	DaysAround(ctx context.Context, until, from Day) (before, after *Day, err error)
}

// NotableCalls finds the calls that failed or lasted long, without reading others.
type NotableCalls interface {
	// FailedCalls yields calls that failed, of the current versions of blocks. They are
	// without their telescopes.
	FailedCalls(ctx context.Context, asked CallRange) iter.Seq2[CallEntry, error]

	// LongCalls yields the places of calls that lasted LongCall or longer and whose
	// responses were received after an instant. They may be calls that only an earlier
	// version of their block has. Of the range, it takes no texts.
	LongCalls(ctx context.Context, asked CallRange, received Instant) iter.Seq2[CallPlace, error]
}

// ErrTaken says that a generated identifier is already in use.
var ErrTaken = errors.New("the identifier is taken")

// Minter generates identifiers for new entities. An error that is not an Error
// is a fault of the server.
type Minter interface {
	Mint(ctx context.Context, kind Kind) (string, error)
}
