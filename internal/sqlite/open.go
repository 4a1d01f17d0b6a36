package sqlite

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"zombiezen.com/go/sqlite"

	"oda"
	"oda/internal/engine"
	"oda/internal/engine/migrate"
)

// applicationID marks a SQLite file as an archive: "oda1".
const applicationID = 0x6f646131

// listingsAtOnce is how many listings without a limit can be read at the same time.
// There are more connections, so that pages and searches need not wait for them.
const listingsAtOnce = 4

// Store is the embedded engine. It implements oda.Engine.
type Store struct {
	file    *file
	log     *slog.Logger
	writer  *conn
	readers pool // for single documents
	listers pool // for listings
	cache   *cache
	marks   marks // instants of past states

	listings  *engine.Listings // those without a limit
	logIsHeld bool             // no listing may begin; only the writer uses it

	health  *engine.Health
	probes  chan chan error // requests for a small write
	commits *engine.Commits

	queue    *engine.Queue[*job]
	writing  sync.Mutex        // held by whoever is the writer at the moment
	last     int64             // the last position of the log; only the writer uses it
	answered int               // jobs of the last transaction; only the writer uses it
	ended    bool              // nothing may be written any more; only the writer uses it
	heads    map[oda.Ref]*head // of the last transactions; only the writer uses it
	looked   time.Time         // when the files were in their places; only the writer uses it

	tail    engine.Tail // of the log of changes
	recent  recent
	changed []oda.Change // room for those of a transaction; only the writer uses it

	backingUp atomic.Bool
	pauses    chan func() // requests to do something between two transactions
	touched   *touched    // by a backup; only the writer uses it

	failedHours map[failedHour]bool // rows that are known to be there; only the writer uses it

	running   running
	unindexed unindexed
	indexed   int64 // the last entity in the index of terms; only the writer uses it

	doubt atomic.Pointer[doubt]
	done  sync.WaitGroup // the writer
	once  sync.Once

	mu     sync.Mutex                // guards counts, which only the writer changes
	counts [len(oda.Kinds) + 1]int64 // by kind
}

// Open opens the archive in a file, or makes a new one, and brings its schema up to
// date, however long that takes. It calls tell with its progress. Its errors are
// single sentences for the operator.
func Open(ctx context.Context, path string, log *slog.Logger, tell ...func(migrate.Status)) (*Store, error) {
	steps, err := schemaSteps()
	if err != nil {
		return nil, err
	}
	return openWith(ctx, path, log, steps, tell...)
}

// OpenExisting is like Open, but neither makes an archive nor upgrades its schema.
func OpenExisting(ctx context.Context, path string, log *slog.Logger) (*Store, error) {
	if err := existing(ctx, path); err != nil {
		return nil, fmt.Errorf("cannot open the archive %s: %w", path, openError(err))
	}
	return Open(ctx, path, log)
}

func openWith(ctx context.Context, path string, log *slog.Logger, steps []step, tell ...func(migrate.Status)) (_ *Store, err error) {
	s := &Store{
		log: log, cache: newCache(cacheBytes), listings: engine.NewListings(listingsAtOnce),
		queue: engine.NewQueue[*job](queueLength), probes: make(chan chan error), pauses: make(chan func()), commits: engine.NewCommits(), heads: make(map[oda.Ref]*head),
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("cannot open the archive %s: %w", path, openError(err))
			s.release()
		}
	}()
	if s.file, err = claim(path); err != nil {
		return nil, err
	}
	if err := s.file.check(); err != nil {
		return nil, err
	}
	if s.writer, err = openConn(s.file.path, sqlite.OpenReadWrite, recognise); err != nil {
		return nil, err
	}
	last, err := s.check(ctx, steps, tell...)
	if err != nil {
		return nil, err
	}
	for _, p := range []struct {
		pool     *pool
		size     int
		settings string
	}{{&s.readers, max(4, 2*runtime.GOMAXPROCS(0)), queryOnly}, {&s.listers, listingsAtOnce + 4, queryOnly + smallCache}} {
		if err := p.pool.fill(s.file.path, p.size, p.settings); err != nil {
			return nil, err
		}
	}
	if err := s.file.note(); err != nil {
		return nil, err
	}
	s.tail.Move(oda.Position(last))
	s.recent.start = oda.Position(last)
	s.health = engine.NewHealth(log, s.tryWrite)
	s.last = last
	s.done.Go(s.write)
	return s, nil
}

// check brings the schema up to date and checks that the archive is complete. Its
// cost does not grow with the archive. It returns the last position of the log.
func (s *Store) check(ctx context.Context, steps []step, tell ...func(migrate.Status)) (int64, error) {
	if err := s.migrate(ctx, steps, tell...); err != nil {
		return 0, err
	}
	if err := s.checkSchema(); err != nil {
		return 0, err
	}
	if err := s.readUnindexed(); err != nil {
		return 0, err
	}
	return s.checkLog()
}

// checkLog compares where the log should end with where it ends.
func (s *Store) checkLog() (int64, error) {
	last, err := s.writer.number("SELECT last_position FROM state")
	if err != nil {
		return 0, err
	}
	err = s.writer.query("SELECT kind, n FROM counts", func(stmt *sqlite.Stmt) error {
		if kind := stmt.ColumnInt64(0); kind > 0 && kind < int64(len(s.counts)) {
			s.counts[kind] = stmt.ColumnInt64(1)
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	found, err := s.writer.number(`SELECT max(coalesce((SELECT max(position) FROM versions), 0),
		coalesce((SELECT max(position) FROM records), 0), coalesce((SELECT max(position) FROM statuses), 0))`)
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
		s.tail.Close()
		s.queue.Close()
		s.done.Wait()
		s.health.Close()
		// If this fails, the next start reads the write-ahead log.
		if err := s.writer.script("PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
			s.log.Warn("the write-ahead log was not checkpointed", "error", err)
		}
		s.release()
	})
	return nil
}

// release closes what Open has opened, and unlocks the file.
func (s *Store) release() {
	readers, listers := s.readers.close(), s.listers.close()
	if s.writer != nil {
		if err := s.writer.close(); err != nil {
			s.log.Warn("closing the archive", "error", err)
		}
	}
	if !readers || !listers {
		s.log.Warn("the archive was closed while it was being read; it stays locked until the process ends")
		return
	}
	if s.file != nil {
		s.file.release()
	}
}
