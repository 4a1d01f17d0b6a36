package app_test

import (
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"oda/internal/test/env"
	"oda/internal/test/must"
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
	other := func(engine string) func(t *testing.T) string {
		return func(t *testing.T) string {
			database := healthyArchive(t, engine)
			changeSchema(t, database, "UPDATE migrations SET checksum = 'of another text'")
			return database
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
				must.Do(t, os.WriteFile(path, nil, 0o640))
				return "sqlite:" + path
			}, "the file is empty"},
			"tables of another program": {func(t *testing.T) string {
				path := filepath.Join(t.TempDir(), "archive.db")
				conn := must.Get(sqlite.OpenConn(path))(t)
				defer conn.Close()
				must.Do(t, sqlitex.ExecuteScript(conn, foreign, nil))
				return "sqlite:" + path
			}, "not an archive of oda"},
			"other tables": {other("sqlite"), "made by another oda"},
			"an archive":   {healthy("sqlite"), ""},
		},
		"postgres": {
			"nothing": {none("postgres"), "there is no archive in it"},
			"tables of another program": {func(t *testing.T) string {
				database := env.Postgres(t)
				env.Exec(t, env.Connect(t, database), foreign)
				return database
			}, "there is no archive in it"},
			"other tables": {other("postgres"), "made by another oda"},
			"an archive":   {healthy("postgres"), ""},
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
					if name == "other tables" && command == "backup" {
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

// changeSchema executes a statement in a database that nobody has open.
func changeSchema(t *testing.T, database, statement string) {
	t.Helper()
	path, ok := strings.CutPrefix(database, "sqlite:")
	if !ok {
		env.Exec(t, env.Connect(t, database), statement)
		return
	}
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadWrite)
	if err == nil {
		err = errors.Join(sqlitex.ExecuteScript(conn, statement, nil), conn.Close())
	}
	must.Do(t, err)
}

// readOnly returns the DSN for sessions that cannot write.
func readOnly(t *testing.T, dsn string) string {
	t.Helper()
	u := must.Get(url.Parse(dsn))(t)
	values := u.Query()
	values.Set("default_transaction_read_only", "on")
	u.RawQuery = values.Encode()
	return u.String()
}
