package env

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"oda/internal/test/fault"
)

func TestMain(m *testing.M) { os.Exit(Main(m)) }

func TestEachTestHasItsOwnEmptyDatabase(t *testing.T) {
	var first string
	t.Run("one test", func(t *testing.T) {
		first = Postgres(t)
		Exec(t, Connect(t, first), "CREATE TABLE notes (note text)")
	})
	t.Run("another test", func(t *testing.T) {
		conn := Connect(t, Postgres(t))
		if n := Query[int](t, conn, "SELECT count(*) FROM pg_stat_user_tables"); n != 0 {
			t.Errorf("the database has %d tables, want none", n)
		}
		if got := Query[string](t, conn, "SHOW synchronous_commit"); got != "on" {
			t.Errorf("synchronous_commit is %s, want on, because the archive relies on it", got)
		}
		if got := Query[string](t, conn, "SHOW server_encoding"); got != "UTF8" {
			t.Errorf("the encoding is %s, want UTF8", got)
		}
	})
	if conn, err := pgx.Connect(t.Context(), first); err == nil {
		_ = conn.Close(t.Context())
		t.Error("the database of the first test is still there")
	}
}

func TestAConfiguredServerReplacesTheCluster(t *testing.T) {
	server := NewCluster(t, ClusterOptions{})
	for form, dsn := range map[string]string{
		"a URL":               server.DSN("postgres"),
		"keywords and values": fmt.Sprintf("host=127.0.0.1 port=%d user=postgres dbname=postgres", server.Port),
	} {
		t.Run(form, func(t *testing.T) {
			t.Setenv(serverVariable, dsn)
			conn := Connect(t, Postgres(t))
			if port := Query[int](t, conn, "SELECT inet_server_port()"); port != server.Port {
				t.Errorf("the database is on port %d, want %d", port, server.Port)
			}
			if name := Query[string](t, conn, "SELECT current_database()"); !strings.HasPrefix(name, "oda_test_") {
				t.Errorf("the database is %q, want one for this test", name)
			}
		})
	}
	if n := Query[int](t, Connect(t, server.DSN("postgres")), "SELECT count(*) FROM pg_database WHERE datname LIKE 'oda%'"); n != 0 {
		t.Errorf("%d databases of tests remain", n)
	}
}

func TestWithoutPostgreSQLTheErrorSaysWhatToDo(t *testing.T) {
	err := explain(fmt.Errorf("prepare: %w", fault.ErrMissing))
	if !strings.Contains(err.Error(), "make setup") || !strings.Contains(err.Error(), serverVariable) {
		t.Errorf("got %v, want a command to run and a variable to set", err)
	}
	other := errors.New("something else")
	if err := explain(other); err != other {
		t.Errorf("got %v, want the error unchanged", err)
	}
}
