package app_test

import (
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"oda/internal/test/env"
	"oda/internal/test/fixture"
)

// Commands that read leave a database as it is, whatever is in it, and say so if there is
// no archive in it. On PostgreSQL they get along without the right to write.
func TestCommandsThatReadChangeNothing(t *testing.T) {
	t.Parallel()
	const foreign = "CREATE TABLE migrations (id integer, migration text); CREATE TABLE versions (id integer); INSERT INTO versions VALUES (1)"
	type content struct {
		make func(t *testing.T) (database string)
		says string // empty if the commands succeed
	}
	none := func(engine string) func(t *testing.T) string {
		return func(t *testing.T) string { return emptyDatabase(t, engine) }
	}
	older := func(engine string) func(t *testing.T) string {
		return func(t *testing.T) string {
			return env.Restore(t, slices.MinFunc(env.Fixtures(t, engine), func(a, b *fixture.Archive) int { return a.Schema - b.Schema }))
		}
	}
	healthy := func(engine string) func(t *testing.T) string {
		return func(t *testing.T) string { return healthyArchive(t, engine) }
	}
	for engine, contents := range map[string]map[string]content{
		"sqlite": {
			"nothing": {none("sqlite"), "there is no such file"},
			"an empty file": {func(t *testing.T) string {
				path := filepath.Join(t.TempDir(), "archive.db")
				if err := os.WriteFile(path, nil, 0o640); err != nil {
					t.Fatal(err)
				}
				return "sqlite:" + path
			}, "the file is empty"},
			"tables of another program": {func(t *testing.T) string {
				path := filepath.Join(t.TempDir(), "archive.db")
				conn, err := sqlite.OpenConn(path)
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				if err := sqlitex.ExecuteScript(conn, foreign, nil); err != nil {
					t.Fatal(err)
				}
				return "sqlite:" + path
			}, "not an archive of oda"},
			"an older archive": {older("sqlite"), "older than this program"},
			"an archive":       {healthy("sqlite"), ""},
		},
		"postgres": {
			"nothing": {none("postgres"), "there is no archive in it"},
			"tables of another program": {func(t *testing.T) string {
				database := env.Postgres(t)
				env.Exec(t, env.Connect(t, database), foreign)
				return database
			}, "there is no archive in it"},
			"an older archive": {older("postgres"), "older than this program"},
			"an archive":       {healthy("postgres"), ""},
		},
	} {
		for name, c := range contents {
			t.Run(engine+", "+name, func(t *testing.T) {
				t.Parallel()
				database := c.make(t)
				folder, before := filepath.Dir(strings.TrimPrefix(database, "sqlite:")), ""
				commands := []string{"export", "verify", "doctor"}
				if engine == "sqlite" {
					before = listing(t, folder)
					commands = append(commands, "backup")
				} else {
					database = readOnly(t, database)
				}
				for _, command := range commands {
					arguments := []string{command, "-q", "--db", database}
					if command == "export" || command == "backup" {
						arguments = append(arguments, "-o", filepath.Join(t.TempDir(), command))
					}
					want := c.says
					if name == "an older archive" && command == "backup" {
						want = "" // as one does before an upgrade
					}
					switch o := run(t, arguments...); {
					case want == "" && command != "doctor": // who finds that the cluster of the tests has fsync off
						succeeds(t, o)
					case want != "" && o.code == 0, !strings.Contains(o.out+o.err, want):
						t.Errorf("oda %s exits with %d and says %q, want %q", command, o.code, o.out+o.err, want)
					}
				}
				if engine == "sqlite" {
					if after := listing(t, folder); after != before {
						t.Errorf("the folder has now\n%s\nbefore it had\n%s", after, before)
					}
				}
			})
		}
	}
}

// readOnly returns the DSN for sessions that cannot write.
func readOnly(t *testing.T, dsn string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	values := u.Query()
	values.Set("default_transaction_read_only", "on")
	u.RawQuery = values.Encode()
	return u.String()
}
