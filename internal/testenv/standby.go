package testenv

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Standby makes a standby of the cluster and waits until it streams. It has a
// replication slot and a Name of its own, with which SetSynchronous makes it
// synchronous. It is gone when the test ends.
func (c *Cluster) Standby(tb testing.TB) *Cluster {
	tb.Helper()
	standby, err := prepare("")
	if err != nil {
		tb.Fatalf("prepare a standby: %v", err)
	}
	standby.Name = fmt.Sprintf("standby_%d", standby.Port)
	standby.endWith(tb)
	primary := fmt.Sprintf("host=127.0.0.1 port=%d user=postgres application_name=%s", c.Port, standby.Name)
	err = standby.run("pg_basebackup", "--pgdata", standby.DataDir, "--dbname", primary,
		"--write-recovery-conf", "--create-slot", "--slot", standby.Name,
		"--wal-method=stream", "--checkpoint=fast", "--no-sync")
	if err != nil {
		tb.Fatalf("copy the primary: %v", err)
	}
	// The copy would, once promoted, wait for the standbys of its primary.
	if err := appendTo(filepath.Join(standby.DataDir, "postgresql.auto.conf"), "synchronous_standby_names = ''\n"); err != nil {
		tb.Fatalf("configure the standby: %v", err)
	}
	if err := standby.start(); err != nil {
		tb.Fatalf("start the standby: %v", err)
	}
	err = c.connected(func(ctx context.Context, conn *pgx.Conn) error {
		return replicates(ctx, conn, standby.Name, "async", "potential", "sync")
	})
	if err != nil {
		tb.Fatalf("wait until the standby streams: %v\n%s", err, standby.Log())
	}
	return standby
}

// SetSynchronous makes commits wait for the standby of that name, from when it
// returns; "": for none.
func (c *Cluster) SetSynchronous(name string) {
	c.tb.Helper()
	names := ""
	if name != "" {
		names = `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
	}
	err := c.connected(func(ctx context.Context, conn *pgx.Conn) error {
		for _, statement := range []string{
			"ALTER SYSTEM SET synchronous_standby_names = " + literal(names),
			"SELECT pg_reload_conf()",
		} {
			if _, err := conn.Exec(ctx, statement); err != nil {
				return err
			}
		}
		if err := setting(ctx, conn, "synchronous_standby_names", names); err != nil {
			return err
		}
		if name != "" {
			if err := replicates(ctx, conn, name, "sync"); err != nil {
				return err
			}
		}
		// Commits begin to wait when the checkpointer has read the setting. It
		// does that before it answers a request.
		_, err := conn.Exec(ctx, "CHECKPOINT")
		return err
	})
	if err != nil {
		c.tb.Fatalf("set the synchronous standby to %q: %v", name, err)
	}
}

// Promote makes a standby a primary, and returns when it takes writes.
func (c *Cluster) Promote() {
	c.tb.Helper()
	err := c.connected(func(ctx context.Context, conn *pgx.Conn) error {
		var promoted bool
		if err := conn.QueryRow(ctx, "SELECT pg_promote(true, $1)", int(clusterTimeout.Seconds())).Scan(&promoted); err != nil {
			return err
		}
		if !promoted {
			return errors.New("it stays a standby")
		}
		return nil
	})
	if err != nil {
		c.tb.Fatalf("promote the standby: %v", err)
	}
}

// connected does something in a connection.
func (c *Cluster) connected(do func(context.Context, *pgx.Conn) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), clusterTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, c.DSN("postgres"))
	if err != nil {
		return err
	}
	return errors.Join(do(ctx, conn), conn.Close(ctx))
}

// setting waits until the session has read a setting that was changed.
func setting(ctx context.Context, conn *pgx.Conn, name, want string) error {
	return poll(ctx, func() (bool, error) {
		var got string
		err := conn.QueryRow(ctx, "SELECT current_setting($1)", name).Scan(&got)
		return got == want, err
	})
}

// replicates waits until a standby streams in one of the given states.
func replicates(ctx context.Context, conn *pgx.Conn, name string, states ...string) error {
	return poll(ctx, func() (bool, error) {
		var yes bool
		err := conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_stat_replication
			WHERE application_name = $1 AND state = 'streaming' AND sync_state = ANY ($2))`, name, states).Scan(&yes)
		return yes, err
	})
}
