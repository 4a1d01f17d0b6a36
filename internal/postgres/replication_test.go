package postgres_test

import (
	"context"
	"crypto/rand"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"oda"
	"oda/internal/test/env"
	"oda/internal/test/must"
)

// If the wait for a synchronous standby is cancelled, PostgreSQL answers the commit
// with success and a warning. The write is on one disk only, and a failover would
// lose it. So it must not be acknowledged.
func TestAWriteThatNoStandbyConfirmedIsNotAcknowledged(t *testing.T) {
	t.Parallel()
	cluster := env.NewCluster(t, env.ClusterOptions{})
	dsn := cluster.DSN("postgres")
	s, conn := open(t, dsn), connect(t, dsn)
	e := mustPut(t, s, write(t, sbd("stored"), `{}`))
	mustPut(t, s, write(t, block("stored"), `{}`))
	t.Cleanup(func() {
		do(t, conn, "ALTER SYSTEM RESET synchronous_standby_names", "SELECT pg_reload_conf()")
		await(t, "the archive to store again", patience, func() bool {
			_, err := s.Put(context.Background(), []oda.Put{write(t, sbd(rand.Text()), `{}`)})
			return err == nil && s.Ping(context.Background()) == nil
		})
	})
	waitForNobody(t, conn, connect(t, dsn))

	put := func(ctx context.Context, puts ...oda.Put) error { _, err := s.Put(ctx, puts); return err }
	create := func(ctx context.Context) error {
		_, err := s.Create(ctx, write(t, sbd("created"), `{}`), &oda.Key{Value: "key"})
		return err
	}
	say := func(ctx context.Context) error {
		said := saying(sbd("stored"), "Observed")
		said.Key = &oda.Key{Value: "key"}
		_, err := s.Say(ctx, said)
		return err
	}
	for name, write := range map[string]func(context.Context) error{
		"store":  func(ctx context.Context) error { return put(ctx, write(t, sbd("one"), `{}`)) },
		"update": func(ctx context.Context) error { return put(ctx, next(t, sbd("stored"), e.Metadata)) },
		"store several": func(ctx context.Context) error {
			return put(ctx, write(t, sbd("two"), `{}`), write(t, sbd("three"), `{}`))
		},
		"record": func(ctx context.Context) error {
			_, err := one(ctx, s, adding("stored", "one", ""))
			return err
		},
		"record with a key": func(ctx context.Context) error {
			_, err := one(ctx, s, adding("stored", "two", "key"))
			return err
		},
		"create with a key":   create,
		"a status with a key": say,
	} {
		t.Run(name, func(t *testing.T) {
			answered := make(chan error, 1)
			go func() { answered <- write(context.Background()) }()
			uncertain(t, endWait(t, conn, answered))
		})
	}
	// The writes with a key are now visible to all, but not safe.
	for name, again := range map[string]struct {
		table string
		write func(context.Context) error
	}{
		"record with a key again": {"records", func(ctx context.Context) error {
			_, err := one(ctx, s, adding("stored", "two", "key"))
			return err
		}},
		"create with a key again":   {"creation_keys", create},
		"a status with a key again": {"statuses", say},
		"ask what a key created": {"creation_keys", func(ctx context.Context) error {
			_, err := s.Created(ctx, oda.SBDefinition, oda.Key{Value: "key"})
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			if n := query[int](t, conn, "SELECT count(*) FROM "+again.table+" WHERE key = 'key'"); n != 1 {
				t.Fatalf("the key is stored %d times", n)
			}
			answered := make(chan error, 1)
			go func() { answered <- again.write(context.Background()) }()
			uncertain(t, endWait(t, conn, answered))
		})
	}
	await(t, "the archive to be not ready", patience, func() bool { return oda.CodeOf(s.Ping(t.Context())) == oda.Unavailable })
}

// waitForNobody makes commits wait for a standby that never comes. Sessions see the
// setting before commits wait, so a probe checks that they do.
func waitForNobody(t *testing.T, conn, probe *pgx.Conn) {
	t.Helper()
	do(t, conn, "CREATE TABLE standby_probe (n integer)", "ALTER SYSTEM SET synchronous_standby_names = 'nobody'", "SELECT pg_reload_conf()")
	await(t, "PostgreSQL to wait for a standby", patience, func() bool { return commitWaits(t, conn, probe) })
}

// commitWaits reports whether a commit of the probe waits for a standby.
func commitWaits(t *testing.T, conn, probe *pgx.Conn) (yes bool) {
	done := make(chan error, 1)
	go func() {
		_, err := probe.Exec(context.Background(), "INSERT INTO standby_probe VALUES (1)")
		done <- err
	}()
	for {
		select {
		case err := <-done:
			must.Do(t, err)
			return yes
		default:
			ended := query[int](t, conn, "SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
			yes = yes || ended > 0
		}
	}
}

// endWait cancels the wait of commits for a standby until there is an answer.
func endWait(t *testing.T, conn *pgx.Conn, answered <-chan error) (err error) {
	await(t, "an answer without a standby", patience, func() bool {
		query[int](t, conn, `SELECT count(*) FILTER (WHERE pg_cancel_backend(pid)) FROM pg_stat_activity
			WHERE application_name LIKE 'oda%' AND wait_event = 'SyncRep'`)
		select {
		case err = <-answered:
			return true
		default:
			return false
		}
	})
	return err
}

// The caller gives up, or the gatherer does. Either way, nobody sees a write that a
// failover would lose, and a retry is not acknowledged.
func TestAnAbandonedWriteStaysUnseenUntilAStandbyConfirmsIt(t *testing.T) {
	t.Parallel()
	cluster := env.NewCluster(t, env.ClusterOptions{})
	dsn := cluster.DSN("postgres")
	s, conn := open(t, dsn), connect(t, dsn)
	waitForNobody(t, conn, connect(t, dsn))
	key := &oda.Key{Value: "key"}
	create := func(ctx context.Context) error {
		_, err := s.Create(ctx, write(t, sbd("created"), `{}`), key)
		return err
	}
	commits := func() int {
		return query[int](t, conn, "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'oda%' AND wait_event = 'SyncRep'")
	}

	ctx, cancel := context.WithCancel(context.Background())
	answered := make(chan error, 1)
	go func() { answered <- create(ctx) }()
	await(t, "the write to wait for a standby", patience, func() bool { return commits() == 1 })
	cancel()
	if err := <-answered; err == nil {
		t.Fatal("the write was acknowledged")
	}
	retried, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	if err := create(retried); err == nil {
		t.Error("the retry was acknowledged")
	}
	if _, err := s.Get(context.Background(), sbd("created")); oda.CodeOf(err) != oda.NotFound {
		t.Errorf("get: %v, want that it could not be found", err)
	}
	if commits() != 1 {
		t.Error("the write no longer waits")
	}

	do(t, conn, "ALTER SYSTEM RESET synchronous_standby_names", "SELECT pg_reload_conf()")
	await(t, "the write to be seen", patience, func() bool {
		_, err := s.Get(context.Background(), sbd("created"))
		return err == nil
	})
	if err := create(context.Background()); err != nil {
		t.Errorf("the retry: %v", err)
	}
}

// The pool hands a connection to the next user only if it can still be used.
func TestACallerWhoLeavesBreaksNoOtherRequest(t *testing.T) {
	t.Parallel()
	s := open(t, with(t, env.Postgres(t), "pool_max_conns", "1"))
	for range 10 {
		must.Do(t, s.LeaveWhenAnswered(t.Context()))
		if _, err := s.Usage(t.Context()); err != nil {
			t.Fatalf("somebody else's request: %v", err)
		}
	}
}
