package fault

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5"
)

// Standby makes a standby of the cluster and waits until it streams. It has its
// own replication slot and Name; SetSynchronous makes it synchronous. Close
// ends it.
func (c *Cluster) Standby(ctx context.Context) (*Cluster, error) {
	standby, err := prepare("", "")
	if err != nil {
		return nil, fmt.Errorf("prepare a standby: %w", err)
	}
	standby.Name = fmt.Sprintf("standby_%d", standby.Port)
	if err := standby.follow(ctx, c); err != nil {
		return nil, errors.Join(fmt.Errorf("make a standby: %w\n%s", err, standby.log.Since(0)), standby.Close())
	}
	return standby, nil
}

// follow turns a prepared cluster into a standby of a primary and starts it.
func (c *Cluster) follow(ctx context.Context, primary *Cluster) error {
	err := c.run(ctx, c.Program("pg_basebackup"), "--pgdata", c.DataDir,
		"--dbname", fmt.Sprintf("host=127.0.0.1 port=%d user=postgres application_name=%s", primary.Port, c.Name),
		"--write-recovery-conf", "--create-slot", "--slot", c.Name,
		"--wal-method=stream", "--checkpoint=fast", "--no-sync")
	if err != nil {
		return fmt.Errorf("copy the primary: %w", err)
	}
	// Once promoted, the copy would otherwise wait for the standbys of its
	// primary.
	if err := appendTo(filepath.Join(c.DataDir, "postgresql.auto.conf"), "synchronous_standby_names = ''\n"); err != nil {
		return fmt.Errorf("configure the standby: %w", err)
	}
	if err := c.Start(ctx); err != nil {
		return fmt.Errorf("start the standby: %w", err)
	}
	return primary.connected(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		if err := replicates(ctx, conn, c.Name, "async", "potential", "sync"); err != nil {
			return fmt.Errorf("wait until the standby streams: %w", err)
		}
		return nil
	})
}

// SetSynchronous makes commits wait for the standby of this name from now on;
// with "" they wait for none.
func (c *Cluster) SetSynchronous(ctx context.Context, name string) error {
	names := ""
	if name != "" {
		names = `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
	}
	return c.connected(ctx, func(ctx context.Context, conn *pgx.Conn) error {
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
		// Commits begin to wait when the checkpointer has read the setting,
		// which it does before it answers a request.
		_, err := conn.Exec(ctx, "CHECKPOINT")
		return err
	})
}

// Promote turns a standby into a primary, and returns when it accepts writes.
func (c *Cluster) Promote(ctx context.Context) error {
	return c.connected(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		if _, err := conn.Exec(ctx, "SELECT pg_promote(false)"); err != nil {
			return err
		}
		// A statement that waited for it could be cancelled by what is still replayed.
		for standby := true; standby; {
			if err := conn.QueryRow(ctx, "SELECT pg_is_in_recovery() FROM pg_sleep(0.02)").Scan(&standby); err != nil {
				return err
			}
		}
		return nil
	})
}

// connected runs a function with a connection.
func (c *Cluster) connected(ctx context.Context, do func(context.Context, *pgx.Conn) error) error {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, c.DSN("postgres"))
	if err != nil {
		return err
	}
	return errors.Join(do(ctx, conn), conn.Close(ctx))
}

// setting waits until the session has read a changed setting.
func setting(ctx context.Context, conn *pgx.Conn, name, want string) error {
	return Poll(ctx, Timeout, "the setting "+name, func() (bool, error) {
		var got string
		err := conn.QueryRow(ctx, "SELECT current_setting($1)", name).Scan(&got)
		return got == want, err
	})
}

// replicates waits until a standby streams in one of the given states.
func replicates(ctx context.Context, conn *pgx.Conn, name string, states ...string) error {
	return Poll(ctx, Timeout, "the standby "+name, func() (bool, error) {
		var yes bool
		err := conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_stat_replication
			WHERE application_name = $1 AND state = 'streaming' AND sync_state = ANY ($2))`, name, states).Scan(&yes)
		return yes, err
	})
}
