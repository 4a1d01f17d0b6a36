package env

import (
	"os"
	"path/filepath"
	"testing"

	"oda/internal/test/fixture"
)

// Fixtures returns the archives of earlier programs on an engine, "sqlite" or
// "postgres".
func Fixtures(tb testing.TB, engine string) []*fixture.Archive {
	tb.Helper()
	all, err := fixture.All(filepath.Join(repository(tb), "testdata", "archives"), engine)
	if err != nil {
		tb.Fatal(err)
	}
	return all
}

// Restore makes a copy of an archive of an earlier program for the test, and
// returns the value for --db. Nothing has opened it yet.
func Restore(tb testing.TB, a *fixture.Archive) (database string) {
	tb.Helper()
	content, err := a.Content()
	if err != nil {
		tb.Fatal(err)
	}
	if a.Engine == "sqlite" {
		path := filepath.Join(tb.TempDir(), "archive.db")
		if err := os.WriteFile(path, content, 0o640); err != nil {
			tb.Fatal(err)
		}
		return "sqlite:" + path
	}
	dsn := Postgres(tb)
	if err := execute(dsn, string(content)); err != nil {
		tb.Fatalf("restore %s: %v", a.Name(), err)
	}
	return dsn
}
