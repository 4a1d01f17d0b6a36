package sqlite

import (
	"fmt"
	"slices"

	"oda"
)

// doubt is the state after a commit that failed. SQLite continues as if the
// transaction had never happened, but its frames may be in the write-ahead log, and
// a crash would bring them back. The next frames overwrite them, and once those are
// synced, the transaction is gone for good. So the writer makes a small commit
// first. Until that succeeds, nothing is acknowledged, and the entities that the
// transaction changed cannot be read.
type doubt struct {
	changed []oda.Ref // by the transaction
}

// endDoubt ends the doubt, if there is one. After that, the commit that failed is
// certainly not stored.
func (s *Store) endDoubt() error {
	if s.doubt.Load() == nil {
		return nil
	}
	return s.touch()
}

// touch makes a commit that changes nothing, which also ends a doubt. SQLite does
// not write a row that stays the same, so touch changes a row and changes it back.
func (s *Store) touch() (err error) {
	c := s.writer
	defer func() {
		if err != nil && !c.AutocommitEnabled() {
			_ = c.exec("ROLLBACK") // the first error matters
		}
	}()
	if err := c.exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	for _, move := range []struct{ from, to int64 }{{s.last, s.last + 1}, {s.last + 1, s.last}} {
		if err := c.exec("UPDATE state SET last_position = ?2 WHERE last_position = ?1", move.from, move.to); err != nil {
			return err
		}
		if c.Changes() != 1 {
			return fmt.Errorf("the log of changes does not end at position %d, as it did before a commit failed", s.last)
		}
	}
	if err := s.committed(); err != nil {
		return err
	}
	if s.doubt.Swap(nil) != nil {
		s.log.Info("the storage takes writes again; the commit that failed is not stored")
	}
	return nil
}

// readable returns an error if the stored state of an entity is in doubt.
func (s *Store) readable(ref oda.Ref) error {
	if d := s.doubt.Load(); d != nil && slices.Contains(d.changed, ref) {
		return oda.Errorf(oda.Unavailable, "It is not yet known whether the last change of %s %s is stored, because the archive's disk reported an error. "+
			"Try again shortly; if this persists, tell the operator.", ref.Kind, ref.ID)
	}
	return nil
}
