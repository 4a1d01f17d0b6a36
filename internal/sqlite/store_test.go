package sqlite

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"testing"

	"oda"
	"oda/internal/engine/audit"
	"oda/internal/test/must"
	"oda/internal/test/suite"
)

func TestTheEngineIsAStore(t *testing.T) {
	suite.Run(t, func(tb testing.TB) oda.Engine {
		path := archivePath(tb)
		tb.Cleanup(func() { wantWhole(tb, path) }) // once it is closed
		return open(tb, path)
	})
}

// wantWhole checks that an archive has no damage. Nobody may have it open.
func wantWhole(tb testing.TB, path string) {
	tb.Helper()
	report := audit.NewReport(20, func(f audit.Fault) { tb.Errorf("%s: %s: %s", f.Class, f.Place, f.Detail) })
	if err := Verify(context.Background(), path, report); err != nil {
		tb.Error(err)
	}
}

// open opens an archive that is closed when the test ends.
func open(tb testing.TB, path string) *Store {
	tb.Helper()
	s := must.Get(Open(context.Background(), path, slog.New(slog.DiscardHandler)))(tb)
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Error(err)
		}
	})
	return s
}

// archivePath returns the path of a new archive for the test.
func archivePath(tb testing.TB) string {
	tb.Helper()
	return filepath.Join(tb.TempDir(), "archive.db")
}

// fresh opens a new archive.
func fresh(tb testing.TB) *Store {
	tb.Helper()
	return open(tb, archivePath(tb))
}

// put returns the Put of an ExecutionBlock.
func put(tb testing.TB, id, text string, at oda.Instant) oda.Put {
	tb.Helper()
	return suite.Put(suite.Document(tb, oda.ExecutionBlock, text), id, "anna", at)
}

// mustPut stores an ExecutionBlock.
func mustPut(tb testing.TB, s *Store, p oda.Put) *oda.Entity {
	tb.Helper()
	entities := must.Get(s.Put(context.Background(), []oda.Put{p}))(tb)
	return entities[0]
}

// nextText returns a document that updates the entity.
func nextText(e *oda.Entity) string {
	return fmt.Sprintf(`{"metadata":%s}`, e.Metadata.AppendJSON(nil))
}

// block returns the name of an ExecutionBlock.
func block(id string) oda.Ref { return oda.Ref{Kind: oda.ExecutionBlock, ID: id} }

// oneRecord returns the Append of one record.
func oneRecord(id, text string) oda.Append {
	return oda.Append{Block: id, By: "anna", At: 1, Records: []oda.NewRecord{{Text: []byte(text)}}}
}

// record adds a record.
func record(s *Store, id, text string) (oda.Receipt, error) {
	receipts, err := s.Append(context.Background(), oneRecord(id, text))
	if err != nil {
		return oda.Receipt{}, err
	}
	return receipts[0], nil
}
