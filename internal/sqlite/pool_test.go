package sqlite

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"zombiezen.com/go/sqlite"

	"oda/internal/test/must"
)

func TestAPoolThatCouldNotBeFilledClosesAtOnce(t *testing.T) {
	var p pool
	if err := p.fill(filepath.Join(t.TempDir(), "nothing.db"), 3, queryOnly); err == nil {
		t.Fatal("a file that does not exist was opened")
	}
	started := time.Now()
	p.close()
	if took := time.Since(started); took >= poolWait {
		t.Errorf("closing took %v", took)
	}
}

// takeAll takes all connections for reading.
func takeAll(t *testing.T, s *Store) []*conn {
	t.Helper()
	taken := make([]*conn, s.readers.size)
	for i := range taken {
		taken[i] = must.Get(s.readers.take(t.Context()))(t)
	}
	return taken
}

func TestAReadStopsWaitingForAConnectionWhenItsCallerLeaves(t *testing.T) {
	s := fresh(t)
	for _, c := range takeAll(t, s) {
		defer s.readers.give(c)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	if err := s.Ping(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

func TestClosingWaitsForARunningRead(t *testing.T) {
	s := fresh(t)
	c := must.Get(s.readers.take(context.Background()))(t)
	closed := make(chan error)
	go func() { closed <- s.Close() }()
	select {
	case <-closed:
		t.Error("the archive closed during a read")
	case <-time.After(20 * time.Millisecond):
	}
	if err := c.exec("BEGIN"); err != nil {
		t.Errorf("a running read got %v", err)
	}
	s.readers.give(c)
	if err := <-closed; err != nil {
		t.Error(err)
	}
}

// A listing of a million identifiers reads tens of megabytes of an index once.
func TestListingsHaveASmallCache(t *testing.T) {
	s := fresh(t)
	c := must.Get(s.listers.take(t.Context()))(t)
	defer s.listers.give(c)
	var kib int64
	err := c.query("PRAGMA cache_size", func(stmt *sqlite.Stmt) error {
		kib = -stmt.ColumnInt64(0)
		return nil
	})
	if err != nil || kib <= 0 || kib > 2048 {
		t.Errorf("the cache has %d KiB, %v; want at most 2048", kib, err)
	}
}
