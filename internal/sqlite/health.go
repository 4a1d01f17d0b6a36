package sqlite

import (
	"context"

	"zombiezen.com/go/sqlite"
)

// refused tells the health of the engine that a write failed, where the disk or
// the file refuses.
func (s *Store) refused(err error) {
	switch sqlite.ErrCode(err).ToPrimary() {
	case sqlite.ResultFull:
		s.health.Refused("the disk of the archive is full", err)
	case sqlite.ResultIOErr:
		s.health.Refused("the disk of the archive reports errors", err)
	case sqlite.ResultReadOnly, sqlite.ResultCantOpen, sqlite.ResultPerm, sqlite.ResultAuth:
		s.health.Refused("the file of the archive cannot be written; check its owner and permissions", err)
	case sqlite.ResultCorrupt, sqlite.ResultNotADB:
		s.health.Refused("the file of the archive is damaged; restore it from a backup", err)
	}
}

// tryWrite lets the writer make a small commit that changes nothing.
func (s *Store) tryWrite(ctx context.Context) error {
	answer := make(chan error, 1)
	select {
	case s.probes <- answer:
		return <-answer
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Ping implements oda.Engine.
func (s *Store) Ping(ctx context.Context) error {
	c, err := s.readers.take(ctx)
	if err != nil {
		return err
	}
	defer s.readers.give(c)
	if err := c.query("SELECT one FROM state", func(*sqlite.Stmt) error { return nil }); err != nil {
		return storageError(err)
	}
	return s.health.Err()
}
