package sqlite

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"

	"zombiezen.com/go/sqlite"

	"oda"
	"oda/internal/migrate"
)

// applicationID marks a SQLite file as an archive: "oda1".
const applicationID = 0x6f646131

//go:embed schema/*.sql
var schema embed.FS

// Store is the embedded engine. It implements oda.Store.
type Store struct {
	path    string
	log     *slog.Logger
	lock    *os.File
	writer  *conn
	readers pool // for single documents
	listers pool // for listings, which may take long to be read
	cache   *cache
	jobs    chan *job
	heads   map[oda.Ref]*head // of the last transactions; the writer's own
	done    sync.WaitGroup    // the writer
	once    sync.Once

	gate   sync.RWMutex // held for reading while a job is sent
	closed bool         // no more jobs

	mu     sync.Mutex // guards counts, which the writer keeps
	counts [5]int64   // by kind
}

// Open opens the archive in the file, or makes a new one. Its errors are one
// sentence each, meant for the operator.
func Open(ctx context.Context, path string, log *slog.Logger) (_ *Store, err error) {
	s := &Store{
		path: path, log: log, cache: newCache(cacheBytes),
		jobs: make(chan *job, queueLength), heads: make(map[oda.Ref]*head),
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("cannot open the archive %s: %w", path, err)
			s.release()
		}
	}()
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return nil, reason(err)
	}
	if s.lock, err = lockFile(path + ".lock"); err != nil {
		return nil, err
	}
	if s.writer, err = openConn(path, true); err != nil {
		return nil, openError(err)
	}
	last, err := s.check(ctx)
	if err != nil {
		return nil, err
	}
	for _, p := range []struct {
		pool     *pool
		size     int
		settings string
	}{{&s.readers, max(4, 2*runtime.GOMAXPROCS(0)), queryOnly}, {&s.listers, 4, queryOnly + smallCache}} {
		if err := p.pool.fill(path, p.size, p.settings); err != nil {
			return nil, openError(err)
		}
	}
	s.done.Go(func() { s.write(last) })
	return s, nil
}

// openError says in a person's words what SQLite says in a code.
func openError(err error) error {
	switch sqlite.ErrCode(err).ToPrimary() {
	case sqlite.ResultNotADB:
		return errors.New("the file is not an archive of oda; name another file with --db")
	case sqlite.ResultCantOpen, sqlite.ResultPerm, sqlite.ResultReadOnly:
		return errors.New("the file cannot be opened for writing; check its owner and permissions")
	}
	return err
}

// reason drops the path from a file error: the message has it already.
func reason(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return fmt.Errorf("cannot write to %s: %w", p.Path, p.Err)
	}
	return err
}

// lockFile makes this process the only one that has the archive open. The lock
// goes with the process, however it ends.
func lockFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o640)
	if err != nil {
		return nil, reason(err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		holder := make([]byte, 32)
		n, _ := f.ReadAt(holder, 0) // who holds it is only a hint
		_ = f.Close()
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("cannot lock %s: %w", path, err)
		}
		return nil, fmt.Errorf("another oda has it open (process %s); stop that one, or name another file with --db",
			strings.TrimSpace(string(holder[:n])))
	}
	if err := f.Truncate(0); err != nil {
		_ = f.Close()
		return nil, reason(err)
	}
	if _, err := fmt.Fprintln(f, os.Getpid()); err != nil {
		_ = f.Close()
		return nil, reason(err)
	}
	return f, nil
}

// recognise makes sure that the file is an archive or empty, before anything in
// it is changed.
func recognise(c *conn) error {
	id, err := c.number("PRAGMA application_id")
	if err != nil {
		return err
	}
	tables, err := c.number("SELECT count(*) FROM sqlite_schema")
	if err != nil {
		return err
	}
	if id != applicationID && tables > 0 {
		return errors.New("the file is a SQLite database, but not an archive of oda; name another file with --db")
	}
	return nil
}

// check brings the schema up to date and makes sure that this is a whole
// archive. What it looks at does not grow with the archive. It returns the last
// position of the log.
func (s *Store) check(ctx context.Context) (int64, error) {
	if err := s.migrate(ctx); err != nil {
		return 0, err
	}
	if err := s.checkSchema(); err != nil {
		return 0, err
	}
	return s.checkLog()
}

// migrations lists the schema steps that the file has had. The checksum of the
// schema as it stood after the step tells whether anybody changed it since.
const migrations = `CREATE TABLE migrations (
    number INTEGER PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL, schema_checksum TEXT NOT NULL
) STRICT`

// migrate applies the schema steps that the file lacks.
func (s *Store) migrate(ctx context.Context) error {
	files, err := fs.Sub(schema, "schema")
	if err != nil {
		return err
	}
	steps, err := migrate.Load(files)
	if err != nil {
		return err
	}
	if err := s.mark(); err != nil {
		return openError(err)
	}
	var applied []migrate.Applied
	err = s.writer.query("SELECT number, checksum FROM migrations ORDER BY number", func(stmt *sqlite.Stmt) error {
		applied = append(applied, migrate.Applied{Number: stmt.ColumnInt(0), Checksum: stmt.ColumnText(1)})
		return nil
	})
	if err != nil {
		return err
	}
	pending, err := migrate.Pending(steps, applied)
	if err != nil {
		return err
	}
	for _, step := range pending {
		s.log.InfoContext(ctx, "schema step", "number", step.Number, "name", step.Name)
		if err := s.apply(step); err != nil {
			return fmt.Errorf("schema step %d: %w", step.Number, err)
		}
	}
	return nil
}

// mark makes an empty file an archive, in one commit: a first start that is cut
// off leaves a file that the next start recognises.
func (s *Store) mark() error {
	id, err := s.writer.number("PRAGMA application_id")
	if err != nil || id == applicationID {
		return err
	}
	return s.writer.script(fmt.Sprintf("BEGIN IMMEDIATE; PRAGMA application_id = %d; %s; COMMIT", applicationID, migrations))
}

func (s *Store) apply(step migrate.Step) (err error) {
	if err := s.writer.script("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = s.writer.script("ROLLBACK") // the first error is the one to tell
		}
	}()
	if err := s.writer.script(step.SQL); err != nil {
		return err
	}
	sum, err := s.schemaChecksum()
	if err != nil {
		return err
	}
	if err := s.writer.exec("INSERT INTO migrations VALUES (?, ?, ?, ?)", int64(step.Number), step.Name, step.Checksum, sum); err != nil {
		return err
	}
	return s.writer.script("COMMIT")
}

// schemaChecksum is over the definitions of all tables and indexes.
func (s *Store) schemaChecksum() (string, error) {
	h := sha256.New()
	err := s.writer.query("SELECT name, coalesce(sql, '') FROM sqlite_schema ORDER BY name", func(stmt *sqlite.Stmt) error {
		fmt.Fprintf(h, "%s\n%s\n", stmt.ColumnText(0), stmt.ColumnText(1))
		return nil
	})
	return hex.EncodeToString(h.Sum(nil)), err
}

func (s *Store) checkSchema() error {
	now, err := s.schemaChecksum()
	if err != nil {
		return err
	}
	return s.writer.query("SELECT schema_checksum FROM migrations ORDER BY number DESC LIMIT 1", func(stmt *sqlite.Stmt) error {
		if stmt.ColumnText(0) != now {
			return errors.New("its tables or indexes were changed by something other than oda; restore it from a backup")
		}
		return nil
	})
}

// checkLog compares where the log should end with where it ends.
func (s *Store) checkLog() (int64, error) {
	var last int64
	err := s.writer.query(`SELECT last_position, sbdefinitions, sbinstances, executionblocks, projects FROM state`,
		func(stmt *sqlite.Stmt) error {
			last = stmt.ColumnInt64(0)
			for i := range 4 {
				s.counts[i+1] = stmt.ColumnInt64(i + 1)
			}
			return nil
		})
	if err != nil {
		return 0, err
	}
	found, err := s.writer.number(`SELECT max(coalesce((SELECT max(position) FROM versions), 0),
		coalesce((SELECT max(position) FROM records), 0))`)
	if err != nil {
		return 0, err
	}
	if found != last {
		return 0, fmt.Errorf("its log of changes ends at position %d, but should end at %d; restore it from a backup", found, last)
	}
	return last, nil
}

// Close lets running writes finish, then closes the file.
func (s *Store) Close() error {
	s.once.Do(func() {
		s.gate.Lock()
		s.closed = true
		close(s.jobs)
		s.gate.Unlock()
		s.done.Wait()
		// What stays in the write-ahead log is read again at the next start.
		if err := s.writer.script("PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
			s.log.Warn("the write-ahead log was not folded into the archive", "error", err)
		}
		s.release()
	})
	return nil
}

// release gives back whatever Open took.
func (s *Store) release() {
	s.readers.close()
	s.listers.close()
	if s.writer != nil {
		if err := s.writer.close(); err != nil {
			s.log.Warn("closing the archive", "error", err)
		}
	}
	if s.lock != nil {
		_ = s.lock.Close() // gives the lock up
	}
}
