package app_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"oda"
	"oda/internal/app"
	"oda/internal/moving"
	"oda/internal/test/env"
	"oda/internal/test/fixture"
)

var quiet = slog.New(slog.DiscardHandler)

// emptyDatabase returns a database without an archive.
func emptyDatabase(t *testing.T, engine string) string {
	t.Helper()
	if engine == "postgres" {
		return env.Postgres(t)
	}
	return "sqlite:" + filepath.Join(t.TempDir(), "archive.db")
}

// exported exports a database into a file.
func exported(t *testing.T, database string, scope oda.Scope) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "export.oda.zst")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	ignore := func(int64) {}
	if _, err := app.Export(t.Context(), database, scope, f, quiet, ignore, ignore); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// imported imports sources as they were, and returns what was set aside.
func imported(t *testing.T, database string, sources ...string) (aside []string) {
	t.Helper()
	report := moving.NewReport(nil, func(s moving.SetAside) {
		aside = append(aside, fmt.Sprintf("%s %s version %d: %s", s.Place, s.ID, s.Version, s.Reason))
	})
	if err := app.Preserve(t.Context(), database, sources, report, quiet); err != nil {
		t.Fatal(err)
	}
	return aside
}

// wantSame demands that two exports are the same.
func wantSame(t *testing.T, one, other string) {
	t.Helper()
	a, err := os.ReadFile(one)
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(other)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(a, b) {
		t.Errorf("the exports differ: %d and %d bytes", len(a), len(b))
	}
}

func TestAnArchiveMovesBetweenEnginesAndBackUnchanged(t *testing.T) {
	t.Parallel()
	for from := range fixture.Engines {
		t.Run("from "+from, func(t *testing.T) {
			t.Parallel()
			fixtures := env.Fixtures(t, from)
			old := fixtures[len(fixtures)-1]
			first := exported(t, healthyArchive(t, from), oda.Scope{})
			there := map[string]string{"sqlite": "postgres", "postgres": "sqlite"}[from]
			for _, to := range []string{there, from} {
				database := emptyDatabase(t, to)
				for _, time := range []string{"first", "second"} {
					if aside := imported(t, database, first); len(aside) > 0 {
						t.Fatalf("the %s import into %s sets aside:\n%s", time, to, strings.Join(aside, "\n"))
					}
				}
				second := exported(t, database, oda.Scope{})
				wantSame(t, first, second)
				wantWhole(t, database)
				first = second
				a := env.Start(t, func(c *app.Config) { c.Database = database })
				for _, u := range upgraded {
					t.Run(u.name+" on "+to, func(t *testing.T) { u.check(t, a, old) })
				}
			}
		})
	}
}
