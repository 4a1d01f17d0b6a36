package app_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"oda/internal/test/env"
)

// The recipes of docs/backup.md, each while clients write: the copy is whole, and has
// everything that was acknowledged before it was begun.
func TestABackupOfARunningArchiveIsWhole(t *testing.T) {
	t.Parallel()
	for name, recipe := range map[string]struct {
		database func(t *testing.T) string
		backup   func(t *testing.T, p *env.Process, database string) (restored string)
	}{
		"SQLite": {
			func(t *testing.T) string { return "sqlite:" + filepath.Join(t.TempDir(), "archive.db") },
			func(t *testing.T, _ *env.Process, database string) string {
				// As another process does: sqlite3 archive.db "VACUUM INTO 'copy.db'".
				conn, err := sqlite.OpenConn(strings.TrimPrefix(database, "sqlite:"), sqlite.OpenReadWrite)
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				copied := filepath.Join(t.TempDir(), "copy.db")
				if err := sqlitex.ExecuteTransient(conn, "VACUUM INTO '"+copied+"'", nil); err != nil {
					t.Fatal(err)
				}
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
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			database := recipe.database(t)
			p := env.Oda(t, "serve", "--db", database)
			must(t, "PUT", p.URL+"/sbds/before", `{"note":"kept"}`)
			text := must(t, "GET", p.URL+"/sbds/before", "")
			b := env.Balance(t, 4, p.URL)
			b.More("before the backup")
			restored := recipe.backup(t, p, database)
			b.More("after the backup")
			b.Whole()
			wantWhole(t, restored)
			again := env.Oda(t, "serve", "--db", restored)
			if got := must(t, "GET", again.URL+"/sbds/before", ""); got != text {
				t.Errorf("the copy has %s, want %s", got, text)
			}
			must(t, "PUT", again.URL+"/sbds/after", `{}`)
		})
	}
	t.Run("pg_basebackup", func(t *testing.T) {
		t.Parallel()
		cluster := env.NewCluster(t, env.ClusterOptions{})
		p := env.Oda(t, "serve", "--db", cluster.DSN("postgres"))
		b := env.Balance(t, 4, p.URL)
		b.More("before the backup")
		copied := cluster.Standby(t) // pg_basebackup
		copied.Promote()
		b.More("after the backup")
		b.Whole()
		wantWhole(t, copied.DSN("postgres"))
	})
}
