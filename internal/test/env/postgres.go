package env

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"oda/internal/test/fault"
)

// serverVariable names a PostgreSQL that the tests use instead of their own.
const serverVariable = "ODA_TEST_POSTGRES"

// databaseTimeout bounds making or dropping the database of a test.
const databaseTimeout = 30 * time.Second

// shared is the cluster that all tests of a test binary use. It is started when
// the first of them asks for it, and ended by Main.
var shared struct {
	sync.Mutex
	inMain  bool // Main runs, so the cluster will be ended
	started bool
	cluster *fault.Cluster
	err     error
}

// Main runs the tests of a package whose tests call Postgres or Program, and
// afterwards ends and removes what they shared:
//
//	func TestMain(m *testing.M) { os.Exit(env.Main(m)) }
func Main(m *testing.M) int {
	shared.Lock()
	shared.inMain = true
	shared.Unlock()
	code := m.Run()
	if err := errors.Join(endShared(), Clean()); err != nil {
		fmt.Fprintf(os.Stderr, "remove what the tests shared: %v\n", err)
		return max(code, 1)
	}
	return code
}

func endShared() error {
	shared.Lock()
	defer shared.Unlock()
	if shared.cluster == nil {
		return nil
	}
	return shared.cluster.Close()
}

// Postgres makes an empty database and gives its DSN. The database is the
// test's own and is dropped after it. It is in a throw-away cluster that the
// tests of the package share, with the durability of a real one, or, if the
// variable ODA_TEST_POSTGRES is set, in the server with that DSN. Without a
// PostgreSQL the test fails. The package must call Main from its TestMain.
func Postgres(tb testing.TB) string {
	tb.Helper()
	server, cluster := os.Getenv(serverVariable), (*fault.Cluster)(nil)
	if server == "" {
		var err error
		if cluster, err = sharedCluster(); err != nil {
			tb.Fatal(err)
		}
		server = cluster.DSN("postgres")
		begin := cluster.Log().Size()
		tb.Cleanup(func() {
			if tb.Failed() {
				tb.Logf("PostgreSQL logged meanwhile:\n%s", cluster.Log().Since(begin))
			}
		})
	}
	name := "oda_test_" + strings.ToLower(rand.Text())
	dsn, err := withDatabase(server, name)
	if err != nil {
		tb.Fatalf("the variable %s: %v", serverVariable, err)
	}
	if err := execute(server, "CREATE DATABASE "+name); err != nil {
		tb.Fatalf("make a database for the test: %v", err)
	}
	tb.Cleanup(func() {
		if err := execute(server, "DROP DATABASE "+name+" WITH (FORCE)"); err != nil {
			tb.Errorf("drop the database of the test: %v", err)
		}
	})
	return dsn
}

// sharedCluster starts the shared cluster if it does not run yet.
func sharedCluster() (*fault.Cluster, error) {
	shared.Lock()
	defer shared.Unlock()
	if !shared.inMain {
		return nil, errors.New("the package must have: func TestMain(m *testing.M) { os.Exit(env.Main(m)) }")
	}
	if !shared.started {
		shared.started = true
		shared.cluster, shared.err = newCluster(ClusterOptions{})
	}
	return shared.cluster, shared.err
}

// execute runs statements in a connection of their own.
func execute(dsn string, statements ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), databaseTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	for _, statement := range statements {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return errors.Join(fmt.Errorf("%s: %w", statement, err), conn.Close(ctx))
		}
	}
	return conn.Close(ctx)
}

// withDatabase gives a DSN, in either of its two forms, with another database.
func withDatabase(dsn, name string) (string, error) {
	if !strings.Contains(dsn, "://") {
		return dsn + " dbname=" + name, nil
	}
	u, err := url.Parse(dsn)
	if err != nil {
		return "", err
	}
	u.Path = "/" + name
	return u.String(), nil
}

// Connect gives a connection that ends with the test.
func Connect(tb testing.TB, dsn string) *pgx.Conn {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), databaseTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = conn.Close(ctx) // a test may have cut it
	})
	return conn
}

// Exec runs statements that answer nothing.
func Exec(tb testing.TB, conn *pgx.Conn, statements ...string) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), databaseTimeout)
	defer cancel()
	for _, statement := range statements {
		if _, err := conn.Exec(ctx, statement, pgx.QueryExecModeSimpleProtocol); err != nil {
			tb.Fatalf("%s: %v", statement, err)
		}
	}
}

// Query gives the one value of a statement's answer.
func Query[T any](tb testing.TB, conn *pgx.Conn, statement string, args ...any) T {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), databaseTimeout)
	defer cancel()
	var value T
	if err := conn.QueryRow(ctx, statement, args...).Scan(&value); err != nil {
		tb.Fatalf("%s: %v", statement, err)
	}
	return value
}
