package app_test

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"oda"
	"oda/internal/test/env"
	"oda/internal/test/load"
	"oda/internal/test/must"
)

// The recipes of docs/backup.md and docs/moving.md, each while clients write: the copy is
// whole, shows the archive as of one position, and has everything that was acknowledged
// before it was begun.
func TestACopyOfARunningArchiveIsWhole(t *testing.T) {
	t.Parallel()
	for name, recipe := range map[string]struct {
		database func(t *testing.T) string
		backup   func(t *testing.T, p *env.Process, database string) (restored string)
	}{
		"SQLite": {
			func(t *testing.T) string { return "sqlite:" + filepath.Join(t.TempDir(), "archive.db") },
			func(t *testing.T, _ *env.Process, database string) string {
				// As another process does: sqlite3 archive.db "VACUUM INTO 'copy.db'".
				conn := must.Get(sqlite.OpenConn(strings.TrimPrefix(database, "sqlite:"), sqlite.OpenReadWrite))(t)
				defer conn.Close()
				copied := filepath.Join(t.TempDir(), "copy.db")
				must.Do(t, sqlitex.ExecuteTransient(conn, "VACUUM INTO '"+copied+"'", nil))
				return "sqlite:" + copied
			},
		},
		"pg_dump": {func(t *testing.T) string { return env.Postgres(t) }, func(t *testing.T, _ *env.Process, database string) string {
			file, restored := filepath.Join(t.TempDir(), "oda.dump"), env.Postgres(t)
			for _, command := range [][]string{{"pg_dump", "-Fc", "-f", file, database}, {"pg_restore", "--no-owner", "-d", restored, file}} {
				if out, err := exec.Command(env.PostgresProgram(t, command[0]), command[1:]...).CombinedOutput(); err != nil {
					t.Fatalf("%s: %v\n%s", command[0], err, out)
				}
			}
			return restored
		}},
		"oda backup": {
			func(t *testing.T) string { return "sqlite:" + filepath.Join(t.TempDir(), "archive.db") },
			func(t *testing.T, p *env.Process, _ string) string {
				file, restored := filepath.Join(t.TempDir(), "oda.backup"), "sqlite:"+filepath.Join(t.TempDir(), "new", "archive.db")
				succeeds(t, run(t, "backup", "-o", file, "--url", p.URL))
				succeeds(t, run(t, "restore", file, "--db", restored))
				return restored
			},
		},
		"oda export, from SQLite": {
			func(t *testing.T) string { return emptyDatabase(t, "sqlite") },
			func(t *testing.T, p *env.Process, _ string) string { return moved(t, "postgres", "--url", p.URL) },
		},
		"oda export, from PostgreSQL": {
			func(t *testing.T) string { return emptyDatabase(t, "postgres") },
			func(t *testing.T, p *env.Process, _ string) string { return moved(t, "sqlite", "--url", p.URL) },
		},
		"oda export, straight from PostgreSQL": {
			func(t *testing.T) string { return emptyDatabase(t, "postgres") },
			func(t *testing.T, _ *env.Process, database string) string {
				return moved(t, "postgres", "--db", database)
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			database := recipe.database(t)
			p := env.Oda(t, "serve", "--db", database)
			answered(t, "PUT", p.URL+"/sbds/before", `{"note":"kept"}`)
			text := answered(t, "GET", p.URL+"/sbds/before", "")
			l := env.NewLoad(t, load.Options{Writers: 8, Patient: true}, p.Host())
			l.More()
			acknowledged := l.Units()
			restored := recipe.backup(t, p, database)
			l.More()
			l.Whole(p.Host())
			wantWhole(t, restored)
			again := env.Oda(t, "serve", "--db", restored)
			if got := answered(t, "GET", again.URL+"/sbds/before", ""); got != text {
				t.Errorf("the copy has %s, want %s", got, text)
			}
			stored := must.Get(l.Read(t.Context(), again.Host()))(t)
			for _, unit := range acknowledged {
				if _, ok := stored[unit]; !ok {
					t.Errorf("%v was acknowledged before, and is not in the copy", unit)
				}
			}
			// A dump may have changes that were not numbered yet, and are numbered again.
			if copied, changes := followed(t, again.URL), followed(t, p.URL); name == "pg_dump" {
				t.Logf("%d changes, of %d", len(copied), len(changes))
			} else if len(copied) >= len(changes) {
				t.Errorf("the copy has %d changes, and there are %d", len(copied), len(changes))
			} else if last := len(copied) - 1; last < 1 {
				t.Error("the copy has no changes")
			} else if diff := cmp.Diff(changes[:last], copied[:last]); diff != "" { // the last may have had more records since
				t.Errorf("the changes of the copy are not the first ones (-want +got):\n%s", diff)
			}
			answered(t, "PUT", again.URL+"/sbds/after", `{}`)
		})
	}
	t.Run("pg_basebackup", func(t *testing.T) {
		t.Parallel()
		cluster := env.NewCluster(t, env.ClusterOptions{})
		p := env.Oda(t, "serve", "--db", cluster.DSN("postgres"))
		l := env.NewLoad(t, load.Options{Writers: 8, Patient: true}, p.Host())
		l.More()
		copied := cluster.Standby(t) // pg_basebackup
		copied.Promote()
		l.More()
		l.Whole(p.Host())
		wantWhole(t, copied.DSN("postgres"))
	})
}

// moved moves an archive into a database of an engine, and returns it. From says which
// archive.
func moved(t *testing.T, engine string, from ...string) (database string) {
	t.Helper()
	file, database := filepath.Join(t.TempDir(), "export.zst"), emptyDatabase(t, engine)
	succeeds(t, run(t, append([]string{"export", "-o", file}, from...)...))
	succeeds(t, run(t, "import", file, "--preserve", "--db", database))
	wantSame(t, file, exported(t, database, oda.Scope{}))
	return database
}

// followed returns all changes of an archive, each as text.
func followed(t *testing.T, url string) (changes []string) {
	t.Helper()
	var page struct {
		Changes []json.RawMessage
		Next    int64
	}
	for {
		page.Changes = nil
		must.Do(t, json.Unmarshal([]byte(answered(t, "GET", fmt.Sprintf("%s/changes?after=%d", url, page.Next), "")), &page))
		if len(page.Changes) == 0 {
			return changes
		}
		for _, change := range page.Changes {
			changes = append(changes, string(change))
		}
	}
}
