package oda

import "context"

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
