package oda

import (
	"context"
	"slices"
	"strconv"

	"oda/internal/rawjson"
)

// Position is a place in the log of changes. Every version, record and status has
// one. Positions count up from 1, in an order that never changes.
type Position int64

// Change is something that happened to an entity: a version was stored, records were
// recorded into an ExecutionBlock, or a status was said.
type Change struct {
	Position Position // of the version, or of the last of the records
	Ref
	Version int64 // that was stored, that the block had, or that the status means

	// FirstSequence and LastSequence are those of the records; 0 if none were
	// recorded. Records that came with a version belong to that change.
	FirstSequence, LastSequence int64

	Said *Said // the status; nil if none was said

	By string
	On Instant // of the version, the status, or the last of the records
}

// Stored reports whether a version was stored.
func (c *Change) Stored() bool { return c.LastSequence == 0 && c.Said == nil }

// Recorded reports whether records were recorded.
func (c *Change) Recorded() bool { return c.LastSequence != 0 }

// Word returns what the change is called on the wire.
func (c *Change) Word() string {
	switch {
	case c.Recorded():
		return "recorded"
	case c.Said != nil:
		return "status"
	}
	return "stored"
}

// Join adds the records of the next change to this one, if the two can be one
// change: consecutive records of a block by one user, at consecutive positions. It
// reports whether it did. A follower may stop at any position and continue after
// it, so a change must not span the position of another.
func (c *Change) Join(next Change) bool {
	if !c.Recorded() || !next.Recorded() || c.Ref != next.Ref || c.Version != next.Version || c.By != next.By ||
		next.FirstSequence != c.LastSequence+1 || next.Position-Position(next.LastSequence-next.FirstSequence) != c.Position+1 {
		return false
	}
	c.Position, c.LastSequence, c.On = next.Position, next.LastSequence, next.On
	return true
}

// Behind returns the part of a change that follows a position: all of it, or the
// later ones of the records. The position must be before that of the change.
func (c Change) Behind(after Position) Change {
	if c.Recorded() {
		c.FirstSequence = max(c.FirstSequence, c.LastSequence-int64(c.Position-after)+1)
	}
	return c
}

// AppendJSON appends the change as an object on one line.
func (c *Change) AppendJSON(dst []byte) []byte {
	dst = strconv.AppendInt(append(dst, `{"position":`...), int64(c.Position), 10)
	dst = append(append(dst, `,"kind":"`...), c.Kind.Collection()...)
	dst = rawjson.AppendQuoted(append(dst, `","id":`...), c.ID)
	dst = append(append(append(dst, `,"change":"`...), c.Word()...), '"')
	dst = strconv.AppendInt(append(dst, `,"version":`...), c.Version, 10)
	switch {
	case c.Said != nil:
		dst = c.Said.appendJSON(dst)
	case c.Recorded():
		dst = strconv.AppendInt(append(dst, `,"first_sequence":`...), c.FirstSequence, 10)
		dst = strconv.AppendInt(append(dst, `,"last_sequence":`...), c.LastSequence, 10)
	}
	dst = rawjson.AppendQuoted(append(dst, `,"by":`...), c.By)
	dst = c.On.AppendTo(append(dst, `,"on":"`...))
	return append(dst, '"', '}')
}

// Said is what the log of changes has about an entry.
type Said struct {
	Sequence int64
	Text     string
	Class    Class
	At       Instant
	Current  bool
}

// Change returns the change that the entry is, without its position.
func (s *Status) Change() Change {
	return Change{
		Ref: s.Ref, Version: s.Version, By: s.By, On: s.On,
		Said: &Said{Sequence: s.Sequence, Text: s.Text, Class: s.Class, At: s.At, Current: s.Current},
	}
}

// appendJSON appends the members of a change.
func (s *Said) appendJSON(dst []byte) []byte {
	dst = strconv.AppendInt(append(dst, `,"sequence":`...), s.Sequence, 10)
	dst = rawjson.AppendQuoted(append(dst, `,"status":`...), s.Text)
	dst = appendTextOrNull(append(dst, `,"class":`...), s.Class.String())
	dst = appendInstantOrNull(append(dst, `,"at":`...), s.At, true)
	return strconv.AppendBool(append(dst, `,"current":`...), s.Current)
}

// ChangeFilter says which changes a follower wants: those of one of the kinds and of
// one of the identifiers. An empty list excludes nothing.
type ChangeFilter struct {
	Kinds []Kind
	IDs   []string
}

// All reports whether every change is wanted.
func (f *ChangeFilter) All() bool { return len(f.Kinds) == 0 && len(f.IDs) == 0 }

// Wants reports whether a change is wanted.
func (f *ChangeFilter) Wants(c *Change) bool {
	return (len(f.Kinds) == 0 || slices.Contains(f.Kinds, c.Kind)) && (len(f.IDs) == 0 || slices.Contains(f.IDs, c.ID))
}

// Log is the log of changes. Once a change is visible, so are all before it, and
// they stay visible.
type Log interface {
	// Changes returns up to limit changes after a position, in order, and the
	// position up to which it has read; the next call continues there. There may be
	// no changes up to that position. At the end of the log it is the position
	// asked for. If the position is in the middle of a change, Changes returns the
	// rest of that change. It misses no change that was acknowledged before the
	// call.
	Changes(ctx context.Context, after Position, limit int) ([]Change, Position, error)

	// End returns the last visible position. No change that was acknowledged before
	// the call has a later one.
	End(ctx context.Context) (Position, error)

	// Await returns nil once there may be changes after the position. It returns
	// the error of the context, or one that says why there is nothing more to wait
	// for.
	Await(ctx context.Context, after Position) error
}

// LostChange returns the error for a change that is missing or cannot be read, after a
// position up to which the log is complete. To read on would be to skip the change.
func LostChange(after Position) *Error {
	return Errorf(DamagedText, "A change after position %d is missing in the archive's database, so the log of changes cannot be read beyond it. "+FindDamage, after)
}

// LogEndsBefore returns the error for a position that the log does not reach.
func LogEndsBefore(end, at Position) error {
	return Errorf(UnknownPosition, "The log of changes ends at position %d, before position %d. "+
		"The archive was probably restored from a backup that is older than what you have seen. "+
		"Read the changes again from after=0, or follow only new ones with after=now.", end, at)
}

// ChangePage is a page of changes, in the order of their positions.
type ChangePage struct {
	Changes []Change
	Next    Position // after which the next page begins
	AtEnd   bool     // nothing followed
}
