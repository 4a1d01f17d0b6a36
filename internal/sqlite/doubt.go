package sqlite

import (
	"fmt"
	"slices"

	"oda"
)

// doubt is what a failed commit leaves. SQLite goes on as if the transaction had
// never been, but its frames may stand in the write-ahead log, and a crash would
// bring them back. The next frames that are written take their place, and once
// these are synced, the transaction is gone for good. So a small commit comes
// before everything else. Until it succeeds, nothing is acknowledged, and nobody
// is told that what the transaction changed is as it was before.
type doubt struct {
	changed []oda.Ref // by the transaction
}

// settle ends the doubt, where there is one. Then the commit that failed is
// certainly not stored.
func (s *Store) settle(last int64) error {
	if s.doubt.Load() == nil {
		return nil
	}
	return s.touch(last)
}

// touch makes a commit that changes nothing, which also ends a doubt. SQLite
// writes nothing for a row that stays as it is, so the row is changed and changed
// back.
func (s *Store) touch(last int64) (err error) {
	c := s.writer
	defer func() {
		if err != nil && !c.AutocommitEnabled() {
			_ = c.exec("ROLLBACK") // the first error is the one to tell
		}
	}()
	if err := c.exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	for _, move := range []struct{ from, to int64 }{{last, last + 1}, {last + 1, last}} {
		if err := c.exec("UPDATE state SET last_position = ?2 WHERE last_position = ?1", move.from, move.to); err != nil {
			return err
		}
		if c.Changes() != 1 {
			return fmt.Errorf("the log of changes does not end at position %d, as it did before a commit failed", last)
		}
	}
	if err := c.exec("COMMIT"); err != nil {
		return err
	}
	if s.doubt.Swap(nil) != nil {
		s.log.Info("the storage takes writes again; the commit that failed is not stored")
	}
	return nil
}

// readable makes sure that the stored state of an entity is not in doubt.
func (s *Store) readable(ref oda.Ref) error {
	if d := s.doubt.Load(); d != nil && slices.Contains(d.changed, ref) {
		return oda.Errorf(oda.Unavailable, "It is not yet known whether the last change of %s %s is stored, because the archive's disk reported an error. "+
			"Try again shortly; if this persists, tell the operator.", ref.Kind, ref.ID)
	}
	return nil
}
