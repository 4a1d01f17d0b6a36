package client_test

import (
	"log/slog"
	"path/filepath"
	"testing"

	"oda"
	"oda/internal/sqlite"
	"oda/internal/test/suite"
)

// What every engine must do is what a client sees over HTTP.
func TestTheClientSpeaksToAStore(t *testing.T) {
	suite.RunSpoken(t, func(tb testing.TB) oda.Engine {
		engine, err := sqlite.Open(t.Context(), filepath.Join(tb.TempDir(), "archive.db"), slog.New(slog.DiscardHandler))
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(func() {
			if err := engine.Close(); err != nil {
				tb.Error(err)
			}
		})
		return engine
	})
}
