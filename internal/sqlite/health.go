package sqlite

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"time"

	"zombiezen.com/go/sqlite"

	"oda/internal/files"
)

// refused notes that a write failed, if the disk or the file is the reason.
func (s *Store) refused(err error) {
	if errors.Is(err, errMoved) {
		s.health.Refused(err.Error()+" while it was in use; put it back, or back the archive up from this server and restore it", err)
		return
	}
	switch sqlite.ErrCode(err).ToPrimary() {
	case sqlite.ResultFull:
		s.health.Refused("the disk of the archive is full", err)
	case sqlite.ResultIOErr:
		s.health.Refused("the disk of the archive reports errors", err)
	case sqlite.ResultReadOnly, sqlite.ResultCantOpen, sqlite.ResultPerm, sqlite.ResultAuth:
		s.health.Refused("the file of the archive cannot be written; check its owner and permissions", err)
	case sqlite.ResultBusy, sqlite.ResultLocked:
		s.health.Refused("another program has locked the file of the archive; end it", err)
	case sqlite.ResultCorrupt, sqlite.ResultNotADB:
		s.health.Refused("the file of the archive is damaged; restore it from a backup", err)
	}
}

// lookEvery is how long the writer relies on the files being in their places.
const lookEvery = 100 * time.Millisecond

// look returns an error if the files are not in their places. The writer calls it before
// each transaction.
func (s *Store) look() error {
	now := time.Now()
	if now.Sub(s.looked) < lookEvery {
		return nil
	}
	if err := s.file.inPlace(); err != nil {
		return err
	}
	s.looked = now
	return nil
}

// probeRoom is how much room the disk must have before the archive counts as
// writable again. A commit alone proves little: a small one fits into the space
// that the failed transaction left in the write-ahead log.
const probeRoom = 1 << 20

// tryWrite asks the writer for a small commit that changes nothing, and then checks
// whether there is room for larger ones.
func (s *Store) tryWrite(ctx context.Context) error {
	if err := s.file.inPlace(); err != nil {
		return err
	}
	answer := make(chan error, 1)
	select {
	case s.probes <- answer:
		if err := <-answer; err != nil {
			return err
		}
	case <-ctx.Done():
		return ctx.Err()
	}
	return findRoom(s.file.path + ".probe")
}

// findRoom returns an error if a file of probeRoom bytes cannot be written. It
// removes the file.
func findRoom(path string) (err error) {
	content := make([]byte, probeRoom)
	_, _ = rand.Read(content) // never fails; a disk cannot compress the result
	f, err := files.Anew(path, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Sync(), f.Close(), os.Remove(path))
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
	if err := s.file.inPlace(); err != nil {
		s.refused(err)
	}
	return s.health.Err()
}
