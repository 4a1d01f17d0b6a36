package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"zombiezen.com/go/sqlite"

	"oda"
	"oda/internal/backup"
)

// A backup that is taken while others write copies the file as it lies there, and
// then, in rounds, the pages that were written meanwhile, until few are left. Those
// it reads from one snapshot, which it holds for milliseconds. The copy shows the
// archive at the moment of that snapshot, and the write-ahead log is checkpointed
// as always, however long the backup takes.
const (
	lastPages    = 4096 // that may be left for the snapshot
	backupRounds = 64
)

// Backup writes a copy of the archive as of one moment.
func (s *Store) Backup(ctx context.Context, to io.Writer, program string) error {
	if !s.backingUp.CompareAndSwap(false, true) {
		return oda.Errorf(oda.Overloaded, "Another backup of this archive is being taken. Try again when it has ended.")
	}
	defer s.backingUp.Store(false)
	c, err := s.listers.take(ctx)
	if err != nil {
		return err
	}
	defer s.listers.give(c)
	c.SetInterrupt(ctx.Done())
	defer c.SetInterrupt(nil)
	b := copying{conn: c, file: s.file.self, touched: touched{path: s.file.path + "-wal"}}
	receiver := &receiver{Writer: to}
	err = s.backup(ctx, &b, receiver, program)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case receiver.err != nil:
		return receiver.err
	}
	return storageError(err)
}

// receiver keeps the error of writing, which is not one of the archive.
type receiver struct {
	io.Writer
	err error
}

// Write implements io.Writer.
func (r *receiver) Write(p []byte) (int, error) {
	n, err := r.Writer.Write(p)
	if err != nil {
		r.err = err
	}
	return n, err
}

func (s *Store) backup(ctx context.Context, b *copying, to io.Writer, program string) error {
	if err := b.begin(to, program); err != nil {
		return err
	}
	defer b.out.Close() // it returns the error of sending, which another method has returned
	watch := func() { s.touched = &b.touched; s.noteTouched() }
	if err := s.between(ctx, watch); err != nil {
		return err
	}
	defer func() {
		// If the writer has ended, nobody uses it any more.
		_ = s.between(context.WithoutCancel(ctx), func() { s.touched = nil })
		b.touched.close()
	}()
	if err := b.copyFile(ctx); err != nil {
		return err
	}
	for range backupRounds {
		isLast := false
		var pages backup.Set
		var err error
		next := func() {
			if isLast = b.touched.pages.Len() <= lastPages; isLast {
				err = b.snapshot()
			}
			var failed error
			pages, failed = b.touched.take()
			err = errors.Join(err, failed)
		}
		if err := s.between(ctx, next); err != nil {
			return err
		}
		if err != nil {
			return err
		}
		if isLast {
			return b.finish(pages)
		}
		if err := b.copyPages(ctx, pages); err != nil {
			return err
		}
	}
	return oda.Errorf(oda.Overloaded, "The archive is written faster than the backup is received. "+
		"Take it nearer to the archive, or while less is stored.")
}

// between lets the writer do something between two transactions.
func (s *Store) between(ctx context.Context, do func()) error {
	done := make(chan struct{})
	select {
	case s.pauses <- func() { do(); close(done) }:
		<-done
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-s.listers.closed:
		return oda.Errorf(oda.Unavailable, "The archive is stopping. Try again shortly.")
	}
}

// committed commits a transaction of the writer.
func (s *Store) committed() error {
	err := s.writer.exec("COMMIT")
	if s.touched != nil && err == nil {
		s.noteTouched()
	}
	return err
}

// noteTouched tells the backup that is being taken what the last commit has written.
func (s *Store) noteTouched() {
	err := s.writer.query("PRAGMA wal_checkpoint(NOOP)", func(stmt *sqlite.Stmt) error {
		s.touched.note(stmt.ColumnInt64(1)) // the frames in the log
		return nil
	})
	if err != nil && s.touched.err == nil {
		s.touched.err = err
	}
}

// BackupFile writes a copy of the archive in a file that no server has open.
func BackupFile(ctx context.Context, path string, to io.Writer, program string) (_ backup.End, err error) {
	defer func() {
		if errors.Is(err, errHeld) {
			err = fmt.Errorf("a server has the archive %s open; leave --db out, and it is backed up through the server at ODA_URL", path)
		} else if err != nil && ctx.Err() == nil {
			err = fmt.Errorf("cannot back up the archive %s: %w", path, openError(err))
		}
	}()
	f, err := claimToRead(path)
	if err != nil {
		return backup.End{}, err
	}
	defer f.release()
	if err := checkLog(f.path); err != nil {
		return backup.End{}, err
	}
	c, err := openToRead(f.path)
	if err != nil {
		return backup.End{}, err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	c.SetInterrupt(ctx.Done())
	b := copying{conn: c, file: f.self, touched: touched{path: f.path + "-wal"}}
	defer b.touched.close()
	err = b.whole(ctx, to, program)
	return b.end, err
}

// whole copies an archive that nobody writes.
func (b *copying) whole(ctx context.Context, to io.Writer, program string) error {
	if err := recognise(b.conn); err != nil {
		return err
	}
	if err := b.begin(to, program); err != nil {
		return err
	}
	defer b.out.Close() // it returns the error of sending, which another method has returned
	b.touched.note(wholeLog)
	if err := b.copyFile(ctx); err != nil {
		return err
	}
	pages, err := b.touched.take()
	if err != nil {
		return err
	}
	if err := b.snapshot(); err != nil {
		return err
	}
	// Nobody waits for the end of the snapshot here.
	if err := b.copyPages(ctx, pages); err != nil {
		return err
	}
	return b.finish(backup.Set{})
}

// copying is a backup that is being taken.
type copying struct {
	conn    *conn
	file    *os.File // not closed here: that would remove SQLite's locks
	touched touched
	out     *backup.Writer
	end     backup.End
}

// begin writes the beginning of the backup.
func (b *copying) begin(to io.Writer, program string) error {
	size, err := b.conn.number("PRAGMA page_size")
	if err != nil {
		return err
	}
	pages, err := b.conn.number("PRAGMA page_count")
	if err != nil {
		return err
	}
	b.touched.pageSize = size
	b.out, err = backup.NewWriter(to, backup.Header{Program: program, Began: time.Now().UTC(), PageSize: int(size), Pages: pages})
	return err
}

// copyFile copies the file as it is. A checkpoint may write to it meanwhile; the pages
// that it writes are copied again later.
func (b *copying) copyFile(ctx context.Context) error {
	info, err := b.file.Stat()
	if err != nil {
		return err
	}
	pages := info.Size() / b.touched.pageSize
	for first := int64(0); first < pages; {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		room, err := b.out.Room(uint32(first + 1))
		if err != nil {
			return err
		}
		room = room[:min(int64(len(room)), (pages-first)*b.touched.pageSize)]
		if _, err := b.file.ReadAt(room, first*b.touched.pageSize); err != nil {
			return fmt.Errorf("read the file of the archive: %w", err)
		}
		b.out.Fill(len(room))
		first += int64(len(room)) / b.touched.pageSize
	}
	return nil
}

// copyPages copies pages as they are now.
func (b *copying) copyPages(ctx context.Context, pages backup.Set) error {
	content := make([]byte, b.touched.pageSize)
	for page := range pages.All {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if found, err := b.page(page, content); err != nil {
			return err
		} else if !found {
			continue
		}
		if err := b.out.Page(page, content); err != nil {
			return err
		}
	}
	return nil
}

// page reads a page through SQLite, which finds the newest one in the log. It reports
// whether the page is part of the database.
func (b *copying) page(number uint32, into []byte) (found bool, err error) {
	err = b.conn.query("SELECT data FROM sqlite_dbpage WHERE pgno = ?", func(stmt *sqlite.Stmt) error {
		if n := stmt.ColumnBytes(0, into); n != len(into) {
			return fmt.Errorf("page %d of the file has %d bytes", number, n)
		}
		found = true
		return nil
	}, int64(number))
	return found, err
}

// snapshot begins to read the moment that the backup shows.
func (b *copying) snapshot() error {
	if err := b.conn.exec("BEGIN"); err != nil {
		return err
	}
	b.end.Entities = make(map[string]int64)
	for _, kind := range oda.Kinds {
		b.end.Entities[kind.Collection()] = 0
	}
	err := b.conn.query("SELECT last_position, (SELECT max(number) FROM migrations) FROM state", func(stmt *sqlite.Stmt) error {
		b.end.Taken, b.end.Position, b.end.Schema = time.Now().UTC(), stmt.ColumnInt64(0), stmt.ColumnInt64(1)
		return nil
	})
	if err == nil {
		err = b.conn.query("SELECT kind, n FROM counts", func(stmt *sqlite.Stmt) error {
			b.end.Entities[oda.Kind(stmt.ColumnInt64(0)).Collection()] = stmt.ColumnInt64(1)
			return nil
		})
	}
	if err == nil {
		b.end.Pages, err = b.conn.number("PRAGMA page_count")
	}
	if err != nil {
		_ = b.conn.exec("ROLLBACK") // the first error matters
	}
	return err
}

// finish reads the last pages from the snapshot, ends it, and then writes them, so that
// a slow receiver does not hold it.
func (b *copying) finish(pages backup.Set) error {
	type page struct {
		number  uint32
		content []byte
	}
	last := make([]page, 0, pages.Len())
	var err error
	for number := range pages.All {
		content, found := make([]byte, b.touched.pageSize), false
		if found, err = b.page(number, content); err != nil {
			break
		}
		if found {
			last = append(last, page{number, content})
		}
	}
	if ended := b.conn.exec("ROLLBACK"); err == nil {
		err = ended
	}
	if err != nil {
		return err
	}
	for _, p := range last {
		if err := b.out.Page(p.number, p.content); err != nil {
			return err
		}
	}
	return b.out.End(b.end)
}
