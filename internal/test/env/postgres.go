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
	"oda/internal/test/must"
)

// serverVariable names a PostgreSQL server for the tests to use instead of
// their own.
const serverVariable = "ODA_TEST_POSTGRES"

// databaseTimeout bounds what a test does itself in a database, on a busy machine.
const databaseTimeout = 2 * time.Minute

// shared is the cluster that all tests of a test binary share. The first of
// them starts it, and Main ends it.
var shared struct {
	sync.Mutex
	inMain  bool // Main runs and will end the cluster
	started bool
	cluster *fault.Cluster
	err     error
}

// Main runs the tests of a package whose tests call Postgres or Program, and
// then removes what they shared:
//
//	func TestMain(m *testing.M) { os.Exit(env.Main(m)) }
func Main(m *testing.M) int {
	shared.Lock()
	shared.inMain = true
	shared.Unlock()
	code := m.Run()
	if err := errors.Join(endShared(), endBrowser(), Clean()); err != nil {
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

// Postgres creates an empty database for the test and returns its DSN. The
// database is dropped after the test. It is in a throw-away cluster that the
// tests of the package share, or, if ODA_TEST_POSTGRES is set, on the server with
// that DSN. The shared cluster is in memory, or at least does not wait for the disk,
// because nobody takes its power; tests of durability make a cluster of their own. Without a PostgreSQL the
// test fails. The package must call Main from its TestMain.
func Postgres(tb testing.TB) string {
	tb.Helper()
	return newDatabase(tb, "template1")
}

// PostgresCopy is like Postgres, but the database is a copy of another one, to which
// nobody may be connected meanwhile.
func PostgresCopy(tb testing.TB, dsn string) string {
	tb.Helper()
	config := must.Get(pgx.ParseConfig(dsn))(tb)
	return newDatabase(tb, config.Database)
}

func newDatabase(tb testing.TB, template string) string {
	tb.Helper()
	name := "oda_test_" + strings.ToLower(rand.Text())
	server := os.Getenv(serverVariable)
	if server == "" {
		cluster := must.Get(sharedCluster())(tb)
		server = cluster.DSN("postgres")
		begin := cluster.Log().Size()
		tb.Cleanup(func() {
			if tb.Failed() {
				tb.Logf("PostgreSQL logged about its database meanwhile, lost connections aside:\n%s",
					linesAbout(name, cluster.Log().Since(begin)))
			}
		})
	}
	dsn, err := withDatabase(server, name)
	if err != nil {
		tb.Fatalf("the variable %s: %v", serverVariable, err)
	}
	if err := execute(server, "CREATE DATABASE "+name+" TEMPLATE "+template); err != nil {
		tb.Fatalf("make a database for the test: %v", err)
	}
	tb.Cleanup(func() {
		if err := execute(server, "DROP DATABASE "+name+" WITH (FORCE)"); err != nil {
			tb.Errorf("drop the database of the test: %v", err)
		}
	})
	return dsn
}

// linesAbout returns what a log says about a database. Tests that cut connections would
// else drown the reason of their failure in lines about that.
func linesAbout(database, log string) string {
	var about strings.Builder
	for line := range strings.Lines(log) {
		if strings.Contains(line, database) && !strings.Contains(line, "client") {
			about.WriteString(line)
		}
	}
	return about.String()
}

// PostgresProgram returns the path of a program of PostgreSQL, such as pg_dump.
func PostgresProgram(tb testing.TB, name string) string {
	tb.Helper()
	cluster := must.Get(sharedCluster())(tb)
	return cluster.Program(name)
}

// sharedCluster starts the shared cluster unless it is running.
func sharedCluster() (*fault.Cluster, error) {
	shared.Lock()
	defer shared.Unlock()
	if !shared.inMain {
		return nil, errors.New("the package must have: func TestMain(m *testing.M) { os.Exit(env.Main(m)) }")
	}
	if !shared.started {
		shared.started = true
		shared.cluster, shared.err = newCluster(ClusterOptions{
			InMemory: true, // creating and dropping many databases on a disk takes half of the time of the tests
			Settings: map[string]string{"fsync": "off", "full_page_writes": "off"},
		})
	}
	return shared.cluster, shared.err
}

// execute runs statements in a separate connection.
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

// withDatabase returns a DSN, in either of its two forms, with another
// database.
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

// Connect returns a connection that ends with the test.
func Connect(tb testing.TB, dsn string) *pgx.Conn {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), databaseTimeout)
	defer cancel()
	conn := must.Get(pgx.Connect(ctx, dsn))(tb)
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = conn.Close(ctx) // the test may have cut it
	})
	return conn
}

// Exec runs statements without results.
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

// Query returns the single value that a statement returns.
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
