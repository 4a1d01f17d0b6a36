package env

import (
	"path/filepath"
	"testing"

	"oda/internal/app"
	"oda/internal/test/must"
	"oda/internal/test/sample"
)

// Sample makes an archive on an engine, "sqlite" or "postgres", in which there is
// something of everything. It returns the value for --db. Nobody has it open.
func Sample(tb testing.TB, engine string) (database string, answers *sample.Archive) {
	tb.Helper()
	if database = "sqlite:" + filepath.Join(tb.TempDir(), "archive.db"); engine == "postgres" {
		database = Postgres(tb)
	}
	a := Start(tb, func(c *app.Config) { c.Database = database })
	answers = must.Get(sample.Fill(a.URL(), filepath.Join(repository(tb), "testdata")))(tb)
	a.Do("GET", "/changes", "") // so that everything has its position
	must.Do(tb, a.Stop())
	return database, answers
}
