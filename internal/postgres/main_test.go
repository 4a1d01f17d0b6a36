package postgres_test

import (
	"context"
	"flag"
	"log/slog"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"oda"
	"oda/internal/postgres"
	"oda/internal/test/env"
	"oda/internal/test/must"
	"oda/internal/test/suite"
)

// Many tests here wait for a server that is down or silent. The processors are free
// for others meanwhile.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	os.Exit(env.Main(m))
}

// patience is how long a test waits for something that must happen. The machine may
// be busy. A test that passes does not wait so long.
const patience = 30 * time.Second

// open opens an archive that is closed when the test ends.
func open(tb testing.TB, dsn string) *postgres.Store {
	tb.Helper()
	s := must.Get(postgres.Open(context.Background(), dsn, slog.New(slog.DiscardHandler)))(tb)
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Error(err)
		}
	})
	return s
}

// fresh opens an archive in a new database, with a connection of the test's own.
func fresh(tb testing.TB) (s *postgres.Store, conn *pgx.Conn, dsn string) {
	tb.Helper()
	dsn = env.Postgres(tb)
	return open(tb, dsn), connect(tb, dsn), dsn
}

// Shorter names for what the tests do with the database directly.
var (
	connect = env.Connect
	do      = env.Exec
)

// query returns the single value of a query.
func query[T any](tb testing.TB, conn *pgx.Conn, sql string, args ...any) T {
	tb.Helper()
	return env.Query[T](tb, conn, sql, args...)
}

// await waits until something is true.
func await(tb testing.TB, what string, within time.Duration, yes func() bool) {
	tb.Helper()
	for deadline := time.Now().Add(within); !yes(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			tb.Fatalf("not within %v: %s", within, what)
		}
	}
}

// with adds parameters to a DSN that is a URL: name, value...
func with(tb testing.TB, dsn string, parameters ...string) string {
	tb.Helper()
	u := must.Get(url.Parse(dsn))(tb)
	values := u.Query()
	for i := 0; i < len(parameters); i += 2 {
		values.Set(parameters[i], parameters[i+1])
	}
	u.RawQuery = values.Encode()
	return u.String()
}

// address returns the address of the server of a DSN.
func address(tb testing.TB, dsn string) string {
	tb.Helper()
	config := must.Get(pgx.ParseConfig(dsn))(tb)
	return net.JoinHostPort(config.Host, strconv.Itoa(int(config.Port)))
}

// waiting returns how many sessions of the archive wait for a lock.
func waiting(tb testing.TB, conn *pgx.Conn) int {
	tb.Helper()
	return query[int](tb, conn, `SELECT count(*) FROM pg_stat_activity
		WHERE datname = current_database() AND application_name LIKE 'oda%' AND state = 'active' AND wait_event_type = 'Lock'`)
}

// pause stops all statements that insert such identifiers into the tables, together
// with the heads that they have locked, until the test releases them. They do not
// wait for a lock, because such a wait soon ends.
func pause(tb testing.TB, dsn, identifiers string, tables ...string) (letGo func()) {
	tb.Helper()
	conn := connect(tb, dsn)
	do(tb, conn, `CREATE FUNCTION pause() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			WHILE NOT pg_try_advisory_xact_lock_shared(1) LOOP PERFORM pg_sleep(0.01); END LOOP; RETURN NEW;
		END $$`)
	for _, table := range tables {
		do(tb, conn, "CREATE TRIGGER pause BEFORE INSERT ON "+table+
			" FOR EACH ROW WHEN (NEW.identifier LIKE '"+identifiers+"') EXECUTE FUNCTION pause()")
	}
	do(tb, conn, "BEGIN", "SELECT pg_advisory_xact_lock(1)")
	return func() {
		tb.Helper()
		do(tb, conn, "ROLLBACK")
	}
}

// paused returns how many statements are stopped.
func paused(tb testing.TB, conn *pgx.Conn) int {
	tb.Helper()
	return query[int](tb, conn, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'")
}

func block(id string) oda.Ref { return oda.Ref{Kind: oda.ExecutionBlock, ID: id} }
func sbd(id string) oda.Ref   { return oda.Ref{Kind: oda.SBDefinition, ID: id} }

// now returns the instant at which a test writes.
func now() oda.Instant { return oda.InstantOf(time.Now()) }

// write returns the Put of a document.
func write(tb suite.TB, ref oda.Ref, text string) oda.Put {
	tb.Helper()
	return suite.Put(suite.Document(tb, ref.Kind, text), ref.ID, "anna", now())
}

// next returns the Put of the next version, with the metadata of this one.
func next(tb suite.TB, ref oda.Ref, m oda.Metadata, members ...string) oda.Put {
	tb.Helper()
	members = append([]string{`"metadata":` + string(m.AppendJSON(nil))}, members...)
	return write(tb, ref, "{"+strings.Join(members, ",")+"}")
}

// mustPut stores a document.
func mustPut(tb testing.TB, s oda.Engine, put oda.Put) *oda.Entity {
	tb.Helper()
	entities, err := s.Put(context.Background(), []oda.Put{put})
	if err != nil {
		tb.Fatalf("store %s: %v", put.ID, err)
	}
	return entities[0]
}

// mustGet reads an entity.
func mustGet(tb testing.TB, s oda.Engine, ref oda.Ref) *oda.Entity {
	tb.Helper()
	e, err := s.Get(context.Background(), ref)
	if err != nil {
		tb.Fatalf("get %s: %v", ref.ID, err)
	}
	return e
}

// adding returns the Append of one record, without a key if that is empty.
func adding(block, request, key string) oda.Append {
	return oda.Append{Block: block, By: "anna", At: now(), Records: []oda.NewRecord{{Key: key, Text: []byte(`{"request":"` + request + `"}`)}}}
}

// one adds one record.
func one(ctx context.Context, s oda.Engine, add oda.Append) (oda.Receipt, error) {
	receipts, err := s.Append(ctx, add)
	if err != nil {
		return oda.Receipt{}, err
	}
	return receipts[0], nil
}

// mustRecord adds a record.
func mustRecord(tb testing.TB, s oda.Engine, block, request string) oda.Receipt {
	tb.Helper()
	r, err := one(context.Background(), s, adding(block, request, ""))
	if err != nil {
		tb.Fatalf("record into %s: %v", block, err)
	}
	return r
}

// wantCode checks that an error has one of these codes.
func wantCode(tb testing.TB, err error, codes ...oda.Code) {
	tb.Helper()
	for _, code := range codes {
		if oda.CodeOf(err) == code {
			return
		}
	}
	tb.Fatalf("got the error %v, want one with the code %v", err, codes)
}
