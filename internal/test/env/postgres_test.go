package env

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"oda/internal/test/fault"
)

func TestMain(m *testing.M) { os.Exit(Main(m)) }

func TestEachTestHasAnEmptyDatabaseOfItsOwn(t *testing.T) {
	var first string
	t.Run("one test", func(t *testing.T) {
		first = Postgres(t)
		do(t, connect(t, first), "CREATE TABLE notes (note text)")
	})
	t.Run("another test", func(t *testing.T) {
		conn := connect(t, Postgres(t))
		if n := query[int](t, conn, "SELECT count(*) FROM pg_stat_user_tables"); n != 0 {
			t.Errorf("the database has %d tables, want none", n)
		}
		for _, name := range []string{"fsync", "synchronous_commit", "full_page_writes"} {
			if got := query[string](t, conn, "SELECT current_setting($1)", name); got != "on" {
				t.Errorf("%s is %s, want on: durability is tested", name, got)
			}
		}
		if got := query[string](t, conn, "SHOW server_encoding"); got != "UTF8" {
			t.Errorf("the encoding is %s, want UTF8", got)
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), fault.Timeout)
	defer cancel()
	if conn, err := pgx.Connect(ctx, first); err == nil {
		_ = conn.Close(ctx)
		t.Error("the database of the first test is still there")
	}
}

func TestANamedServerIsUsedInsteadOfAnOwnCluster(t *testing.T) {
	server := NewCluster(t, ClusterOptions{})
	for form, dsn := range map[string]string{
		"a URL":               server.DSN("postgres"),
		"keywords and values": fmt.Sprintf("host=127.0.0.1 port=%d user=postgres dbname=postgres", server.Port),
	} {
		t.Run(form, func(t *testing.T) {
			t.Setenv(serverVariable, dsn)
			conn := connect(t, Postgres(t))
			if port := query[int](t, conn, "SELECT inet_server_port()"); port != server.Port {
				t.Errorf("the database is on port %d, want %d", port, server.Port)
			}
			if name := query[string](t, conn, "SELECT current_database()"); !strings.HasPrefix(name, "oda_test_") {
				t.Errorf("the database is %q, want one of the test's own", name)
			}
		})
	}
	if n := query[int](t, connect(t, server.DSN("postgres")), "SELECT count(*) FROM pg_database WHERE datname LIKE 'oda%'"); n != 0 {
		t.Errorf("%d databases of tests remain", n)
	}
}

func TestWithoutPostgreSQLOneIsToldWhatToSet(t *testing.T) {
	err := explain(fmt.Errorf("prepare: %w", fault.ErrMissing))
	if !strings.Contains(err.Error(), "make setup") || !strings.Contains(err.Error(), serverVariable) {
		t.Errorf("got %v, want what to run and what to set", err)
	}
	other := errors.New("something else")
	if err := explain(other); err != other {
		t.Errorf("got %v, want another error as it was", err)
	}
}

// poll asks until the answer is yes.
func poll(ctx context.Context, done func() (bool, error)) error {
	for {
		if yes, err := done(); yes || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// connect gives a connection that ends with the test.
func connect(t *testing.T, dsn string) *pgx.Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), fault.Timeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = conn.Close(ctx) // a test may have cut it
	})
	return conn
}

// query gives the one value of a statement's answer.
func query[T any](t *testing.T, conn *pgx.Conn, statement string, args ...any) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), fault.Timeout)
	defer cancel()
	var value T
	if err := conn.QueryRow(ctx, statement, args...).Scan(&value); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	return value
}

// do runs a statement that answers nothing.
func do(t *testing.T, conn *pgx.Conn, statement string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), fault.Timeout)
	defer cancel()
	if _, err := conn.Exec(ctx, statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}
