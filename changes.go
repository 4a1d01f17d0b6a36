package oda

import (
	"context"
	"slices"
	"strconv"

	"oda/internal/rawjson"
)

// Position is a place in the log of changes. Every version and every record
// takes up one; they count up from 1, in an order that never changes.
type Position int64

// Change is something that happened to an entity: a version was stored, or
// records were recorded into an ExecutionBlock.
type Change struct {
	Position Position // of the version, or of the last of the records
	Ref
	Version int64 // that was stored, or that the block had

	// FirstSequence and LastSequence are those of the records, 0 where a version
	// was stored. Records that came with a version belong to it and are no
	// change of their own.
	FirstSequence, LastSequence int64

	By string
	On Instant // of the version, or of the last of the records
}

// Stored tells whether the change is a version.
func (c *Change) Stored() bool { return c.LastSequence == 0 }

// Join adds the records of a change to those of the one before it, where the two
// can stand as one: consecutive records of a block by one user, at positions that
// follow each other. A follower may stop at any position and go on behind it, so
// a change must not reach across the position of another.
func (c *Change) Join(next Change) bool {
	if c.Stored() || next.Stored() || c.Ref != next.Ref || c.Version != next.Version || c.By != next.By ||
		next.FirstSequence != c.LastSequence+1 || next.Position-Position(next.LastSequence-next.FirstSequence) != c.Position+1 {
		return false
	}
	c.Position, c.LastSequence, c.On = next.Position, next.LastSequence, next.On
	return true
}

// Behind gives what of a change lies behind a position, which must be before that
// of the change: of records, those that follow.
func (c Change) Behind(after Position) Change {
	if !c.Stored() {
		c.FirstSequence = max(c.FirstSequence, c.LastSequence-int64(c.Position-after)+1)
	}
	return c
}

// AppendJSON appends the change as an object on one line.
func (c *Change) AppendJSON(dst []byte) []byte {
	dst = strconv.AppendInt(append(dst, `{"position":`...), int64(c.Position), 10)
	dst = append(append(dst, `,"kind":"`...), c.Kind.Collection()...)
	dst = rawjson.AppendQuoted(append(dst, `","id":`...), c.ID)
	if c.Stored() {
		dst = append(dst, `,"change":"stored"`...)
	} else {
		dst = append(dst, `,"change":"recorded"`...)
	}
	dst = strconv.AppendInt(append(dst, `,"version":`...), c.Version, 10)
	if !c.Stored() {
		dst = strconv.AppendInt(append(dst, `,"first_sequence":`...), c.FirstSequence, 10)
		dst = strconv.AppendInt(append(dst, `,"last_sequence":`...), c.LastSequence, 10)
	}
	dst = rawjson.AppendQuoted(append(dst, `,"by":`...), c.By)
	dst = c.On.AppendTo(append(dst, `,"on":"`...))
	return append(dst, '"', '}')
}

// ChangeFilter tells which changes somebody wants: those of one of the kinds and
// of one of the identifiers. A list that is empty excludes nothing.
type ChangeFilter struct {
	Kinds []Kind
	IDs   []string
}

// All tells whether every change is wanted.
func (f *ChangeFilter) All() bool { return len(f.Kinds) == 0 && len(f.IDs) == 0 }

// Wants tells whether a change is wanted.
func (f *ChangeFilter) Wants(c *Change) bool {
	return (len(f.Kinds) == 0 || slices.Contains(f.Kinds, c.Kind)) && (len(f.IDs) == 0 || slices.Contains(f.IDs, c.ID))
}

// Log is the log of changes. When a change is visible, so are all before it, for
// ever.
type Log interface {
	// Changes gives changes behind a position, in order, at most limit, and the
	// position up to which it has read: the next call goes on there. There may be
	// no changes up to it. At the end of the log it is the position that was asked
	// with. A change that the position lies within is given from there on.
	// Changes that were acknowledged before the call are not missed.
	Changes(ctx context.Context, after Position, limit int) ([]Change, Position, error)

	// End gives the last position that is visible. It is no earlier than those of
	// the changes that were acknowledged before the call.
	End(ctx context.Context) (Position, error)

	// Await returns once there may be changes behind the position. An error is
	// that of the context, or says why there is nothing to wait for any more.
	Await(ctx context.Context, after Position) error
}
