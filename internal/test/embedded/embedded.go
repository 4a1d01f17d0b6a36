// Package embedded opens the embedded engine for tests that need an engine, but no
// server.
package embedded

import (
	"context"
	"log/slog"
	"path/filepath"
	"testing"

	"oda"
	"oda/internal/sqlite"
)

// Engine returns an empty archive on the embedded engine, which is closed when the
// test ends.
func Engine(tb testing.TB) oda.Engine {
	tb.Helper()
	engine, err := sqlite.Open(context.Background(), filepath.Join(tb.TempDir(), "archive.db"), slog.New(slog.DiscardHandler))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := engine.Close(); err != nil {
			tb.Error(err)
		}
	})
	return engine
}
