package postgres_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"oda"
	"oda/internal/postgres"
	"oda/internal/test/env"
	"oda/internal/test/must"
)

func TestPostgreSQLCrashesUnderLoadAndComesBack(t *testing.T) {
	t.Parallel()
	cluster := env.NewCluster(t, env.ClusterOptions{})
	dsn := cluster.DSN("postgres")
	first, second := open(t, dsn), open(t, dsn)
	process := env.Oda(t, "serve", "--db", dsn)
	ready := strings.TrimSuffix(process.URL, "/api/v1") + "/readyz"
	l := startLoad(t, first, second)
	l.More()
	if status, text := send(t, "GET", ready, ""); status != 200 {
		t.Errorf("readyz answers %d %s", status, text)
	}
	for range 2 {
		cluster.Stop("immediate")
		wantCode(t, first.Ping(t.Context()), oda.Unavailable)
		_, err := second.Get(t.Context(), sbd("load-0"))
		wantCode(t, err, oda.Unavailable)
		_, err = one(t.Context(), second, adding("load-0", "none", ""))
		wantCode(t, err, oda.Unavailable)
		for _, request := range [][2]string{{"GET", ready}, {"PUT", process.URL + "/sbds/http"}, {"GET", process.URL + "/sbds/load-0"}} {
			status, header, text := sendHeader(t, request[0], request[1], map[string]string{"PUT": "{}"}[request[0]])
			if status != 503 || header.Get("Retry-After") == "" {
				t.Errorf("%s %s answers %d, Retry-After %q: %s", request[0], request[1], status, header.Get("Retry-After"), text)
			}
		}
		cluster.Start()
		l.More()
		await(t, "the process is ready again", patience, func() bool {
			status, _ := send(t, "GET", ready, "")
			return status == 200
		})
		await(t, "the process stores again", patience, func() bool {
			status, _ := send(t, "PUT", process.URL+"/sbds/http-again", `{}`)
			return status == 200 || status == 422
		})
	}
	if l.Count("unclear") == 0 {
		t.Error("no writer was refused")
	}
	wantStored(t, l, first, dsn)
}

func TestTheWaitForAnExhaustedPoolIsBounded(t *testing.T) {
	t.Parallel()
	dsn := env.Postgres(t)
	s, watch := open(t, with(t, dsn, "pool_max_conns", "2", "lock_timeout", "0")), connect(t, dsn)
	mustPut(t, s, write(t, sbd("a"), `{}`))
	locker := connect(t, dsn)
	do(t, locker, "BEGIN", "LOCK TABLE heads")
	var group sync.WaitGroup
	for range 2 {
		group.Go(func() {
			if _, err := s.Get(context.Background(), sbd("a")); err != nil {
				t.Errorf("a request with a connection got %v", err)
			}
		})
	}
	await(t, "all connections are in use", patience, func() bool { return waiting(t, watch) == 2 })
	began := time.Now()
	_, err := s.Get(t.Context(), sbd("a"))
	wantCode(t, err, oda.Overloaded)
	if took := time.Since(began); took > env.AtMost(8*time.Second) {
		t.Errorf("the answer took %v", took)
	}
	do(t, locker, "ROLLBACK")
	group.Wait()
	mustGet(t, s, sbd("a"))
}

func TestAStatementIsCancelledWhenItsCallerGoesAway(t *testing.T) {
	t.Parallel()
	s, watch, dsn := fresh(t)
	m := mustPut(t, s, write(t, sbd("a"), `{}`)).Metadata
	locker := connect(t, dsn)
	do(t, locker, "BEGIN", "LOCK TABLE heads")
	for name, call := range map[string]func(ctx context.Context) error{
		"list": func(ctx context.Context) error {
			return s.List(ctx, oda.Query{Kind: oda.SBDefinition, Order: oda.ByModification}, func(string, oda.Instant) error { return nil })
		},
		"get": func(ctx context.Context) error {
			_, err := s.Get(ctx, sbd("a"))
			return err
		},
		"put": func(ctx context.Context) error {
			_, err := s.Put(ctx, []oda.Put{next(t, sbd("a"), m)})
			return err
		},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		answer := make(chan error, 1)
		go func() { answer <- call(ctx) }()
		await(t, name+" waits", patience, func() bool { return waiting(t, watch) == 1 })
		cancel()
		await(t, name+" is gone from the server", 5*time.Second, func() bool { return waiting(t, watch) == 0 })
		await(t, "its session has ended", patience, func() bool {
			return query[int](t, watch, "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'oda%' AND datname = current_database()") == s.Connections()
		})
		if err := <-answer; !errors.Is(err, context.Canceled) {
			t.Errorf("%s answers %v", name, err)
		}
	}
	do(t, locker, "ROLLBACK")
	if got := mustGet(t, s, sbd("a")).Metadata; got != m {
		t.Errorf("a cancelled write was stored: %+v", got)
	}
}

func TestADeadlockWithOthersIsTriedAgain(t *testing.T) {
	t.Parallel()
	dsn := env.Postgres(t)
	s, watch, other := open(t, dsn), connect(t, dsn), connect(t, dsn)
	a := mustPut(t, s, write(t, sbd("a"), `{}`)).Metadata
	b := mustPut(t, s, write(t, sbd("b"), `{}`)).Metadata
	// The other session locks b, then a, and waits long. So PostgreSQL rolls back the
	// transaction of the archive.
	do(t, other, "SET deadlock_timeout = '60s'", "BEGIN", "SELECT FROM heads WHERE identifier = 'b' FOR UPDATE")
	var entities []*oda.Entity
	var err error
	var group sync.WaitGroup
	group.Go(func() {
		entities, err = s.Put(context.Background(), []oda.Put{next(t, sbd("b"), b), next(t, sbd("a"), a), write(t, sbd("c"), `{}`)})
	})
	await(t, "the archive has a and waits for b", patience, func() bool { return waiting(t, watch) == 1 })
	do(t, other, "SELECT FROM heads WHERE identifier = 'a' FOR UPDATE", "ROLLBACK")
	group.Wait()
	must.Do(t, err)
	for i, want := range []int64{2, 2, 1} {
		if got := mustGet(t, s, entities[i].Ref).Metadata.Version; got != want {
			t.Errorf("%s has version %d, want %d", entities[i].ID, got, want)
		}
	}
	if n := query[int](t, watch, "SELECT sum(n)::int FROM counts WHERE kind > 0"); n != 3 {
		t.Errorf("%d entities are counted, want 3", n)
	}
}

// Connections to a server that is no longer the primary must be dropped.
func TestConnectionsToAServerThatBecameReadOnlyAreDropped(t *testing.T) {
	t.Parallel()
	s, admin, _ := fresh(t)
	mustPut(t, s, write(t, block("b"), `{}`))
	name := query[string](t, admin, "SELECT current_database()")
	do(t, admin, "ALTER DATABASE "+name+" SET default_transaction_read_only = on",
		"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")
	await(t, "the archive says that it is read-only", patience, func() bool {
		_, err := s.Put(t.Context(), []oda.Put{write(t, sbd("a"), `{}`)})
		wantCode(t, err, oda.Unavailable)
		return strings.Contains(err.Error(), "read-only")
	})
	if err := s.Ping(t.Context()); oda.CodeOf(err) != oda.Unavailable || !strings.Contains(err.Error(), "read-only") {
		t.Errorf("the archive is ready, or gives no reason: %v", err)
	}
	do(t, admin, "ALTER DATABASE "+name+" RESET default_transaction_read_only")
	await(t, "it is ready again", patience, func() bool { return s.Ping(t.Context()) == nil })
	mustPut(t, s, write(t, sbd("a"), `{}`))
	mustRecord(t, s, "b", "x")
}

func TestAFullDisk(t *testing.T) {
	t.Parallel()
	dir := env.SmallDisk(t, 192<<20)
	cluster := env.NewCluster(t, env.ClusterOptions{
		DataDir: filepath.Join(dir, "data"),
		// A large file takes the room, not old logs.
		Settings: map[string]string{"max_wal_size": "32MB", "shared_buffers": "16MB"},
	})
	dsn := cluster.DSN("postgres")
	s := open(t, dsn)
	l := startLoad(t, s)
	l.More()

	empty := env.FillDisk(t, dir)
	// Large documents need new pages at once.
	large := `{"a":"` + strings.Repeat("0123456789abcdef", 1<<14) + `"}`
	var full error
	await(t, "a store is refused", patience, func() bool {
		_, full = s.Put(t.Context(), []oda.Put{write(t, sbd(fmt.Sprint("large-", time.Now().UnixNano())), large)})
		return full != nil
	})
	wantCode(t, full, oda.Unavailable)
	await(t, "the archive is not ready", patience, func() bool { return oda.CodeOf(s.Ping(t.Context())) == oda.Unavailable })
	empty()
	// PostgreSQL stops if there is no room for its log, and an operator restarts it.
	time.Sleep(time.Second)
	if !cluster.Running() {
		t.Log("PostgreSQL has stopped")
		cluster.Start()
	}
	l.More()
	await(t, "the archive is ready again", patience, func() bool { return s.Ping(t.Context()) == nil })
	wantStored(t, l, s, dsn)
}

// The archive notices that a database refuses writes when a write fails or when it
// asks. It also notices when the database accepts them again.
func TestAnArchiveThatMayNotWriteIsNotReady(t *testing.T) {
	t.Parallel()
	s, admin, dsn := fresh(t)
	mustPut(t, s, write(t, block("b"), `{}`))
	role := "oda_reader_" + strings.ToLower(rand.Text())
	do(t, admin, "CREATE ROLE "+role+" LOGIN", "GRANT SELECT ON ALL TABLES IN SCHEMA public TO "+role)
	t.Cleanup(func() { do(t, admin, "DROP OWNED BY "+role, "DROP ROLE "+role) })
	reader := must.Get(postgres.OpenWith(t.Context(), dsn, slog.New(slog.DiscardHandler), func(c *pgxpool.Config) { c.ConnConfig.User = role }))(t)
	defer reader.Close()
	if err := reader.Ping(t.Context()); err != nil {
		t.Fatalf("no write has failed yet, but the archive is not ready: %v", err)
	}
	_, err := one(t.Context(), reader, adding("b", "x", ""))
	wantCode(t, err, oda.Unavailable)
	if err := reader.Ping(t.Context()); oda.CodeOf(err) != oda.Unavailable || !strings.Contains(err.Error(), "may not write") {
		t.Errorf("the archive is ready, or gives no reason: %v", err)
	}
	mustGet(t, reader, block("b"))
	// The probe needs every right.
	do(t, admin, "GRANT INSERT, UPDATE ON ALL TABLES IN SCHEMA public TO "+role, "GRANT DELETE ON standings, running TO "+role, "GRANT USAGE ON SEQUENCE numbers TO "+role)
	for _, right := range []string{
		"INSERT ON heads", "UPDATE ON heads", "INSERT ON creations", "UPDATE ON creations", "INSERT ON catalogue", "UPDATE ON catalogue", "INSERT ON creation_keys",
		"INSERT ON versions", "INSERT ON records", "INSERT ON changes", "INSERT ON rounds", "UPDATE ON counts",
		"INSERT ON statuses", "INSERT ON standings", "UPDATE ON standings", "DELETE ON standings", "UPDATE ON log_end", "INSERT ON running", "UPDATE ON running", "DELETE ON running", "USAGE ON SEQUENCE numbers",
	} {
		do(t, admin, "REVOKE "+right+" FROM "+role)
		if err := reader.TryWrite(t.Context()); err == nil {
			t.Errorf("without the right to %s the archive counts as ready", right)
		}
		do(t, admin, "GRANT "+right+" TO "+role)
	}
	await(t, "it is ready again by itself", patience, func() bool { return reader.Ping(t.Context()) == nil })
	if n := query[int](t, admin, "SELECT count(*) FROM heads FULL JOIN versions USING (kind) WHERE kind = 0"); n != 0 {
		t.Errorf("the probe left %d rows behind", n)
	}
}

// The archive also notices that the database refuses writes for a reason that it does
// not know, but not if only one write is refused.
func TestADatabaseThatRefusesWritesIsNotReady(t *testing.T) {
	t.Parallel()
	s, admin, _ := fresh(t)
	mustPut(t, s, write(t, block("b"), `{}`))
	do(t, admin, "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'the operator said no'; END $$",
		"CREATE TRIGGER refuse BEFORE INSERT ON versions FOR EACH ROW WHEN (NEW.identifier = 'unwanted') EXECUTE FUNCTION refuse()")
	_, err := s.Put(t.Context(), []oda.Put{write(t, sbd("unwanted"), `{}`)})
	wantCode(t, err, oda.Internal)
	if err := s.TryWrite(t.Context()); err != nil {
		t.Errorf("a small write fails: %v", err)
	}
	if err := s.Ping(t.Context()); err != nil {
		t.Errorf("only one write is refused, and the archive is not ready: %v", err)
	}
	do(t, admin, "CREATE TRIGGER refuse_all BEFORE INSERT ON records FOR EACH ROW EXECUTE FUNCTION refuse()")
	_, err = one(t.Context(), s, adding("b", "x", ""))
	wantCode(t, err, oda.Internal)
	await(t, "the archive is not ready, and says why", patience, func() bool {
		err := s.Ping(t.Context())
		return oda.CodeOf(err) == oda.Unavailable && strings.Contains(err.Error(), "refuses writes")
	})
	mustGet(t, s, block("b"))
	do(t, admin, "DROP TRIGGER refuse_all ON records")
	await(t, "it is ready again by itself", patience, func() bool { return s.Ping(t.Context()) == nil })
	mustRecord(t, s, "b", "x")
}
