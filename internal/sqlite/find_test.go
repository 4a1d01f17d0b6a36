package sqlite

import (
	"testing"

	"zombiezen.com/go/sqlite"

	"oda"
)

// The archive goes on after a panic in a handler. The connection of its search must not
// stay in the transaction: others would read an old state, and the log would grow.
func TestASearchThatPanicsEndsItsTransaction(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	mustPut(t, s, put(t, "a", `{}`, 1))
	walk := oda.Walk{Kind: oda.ExecutionBlock, Sort: oda.ByIdentifier, Limit: 10}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("there was no panic")
			}
		}()
		_ = s.Walk(t.Context(), walk, func(*oda.Found, oda.Body) error { panic("a fault of a handler") })
	}()
	mustPut(t, s, put(t, "b", `{}`, 2))
	for range 2 * s.listers.size {
		n := 0
		if err := s.Walk(t.Context(), walk, func(*oda.Found, oda.Body) error { n++; return nil }); err != nil || n != 2 {
			t.Fatalf("a later search finds %d of 2 entities: %v", n, err)
		}
	}
	err := s.writer.query("PRAGMA wal_checkpoint(PASSIVE)", func(stmt *sqlite.Stmt) error {
		if log, moved := stmt.ColumnInt(1), stmt.ColumnInt(2); moved < log {
			t.Errorf("a checkpoint moves %d of the %d pages in the log", moved, log)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
