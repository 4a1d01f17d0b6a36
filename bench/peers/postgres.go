package peers

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5"

	"oda/internal/pgcluster"
)

// postgresSettings are what differs from a cluster that Debian made. fsync and
// synchronous_commit stay on.
var postgresSettings = map[string]string{
	"shared_buffers":  "512MB",
	"max_wal_size":    "4GB",
	"min_wal_size":    "80MB", // the default, which throw-away clusters lower
	"max_connections": "200",
}

// PostgresSettings is how the cluster of a lab is set, for the report.
const PostgresSettings = "shared_buffers 512MB, max_wal_size 4GB, max_connections 200, all else as PostgreSQL comes: fsync and synchronous_commit are on"

// Postgres is the PostgreSQL of a lab. Everything that needs one uses it.
type Postgres struct {
	lab     *Lab
	cluster *pgcluster.Cluster
}

// Postgres starts the PostgreSQL of the lab if it does not run yet. Its data
// is in the folder of the lab; for root, who runs it as another user, the
// folders above must let others through.
func (l *Lab) Postgres(ctx context.Context) (*Postgres, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.postgres != nil {
		return l.postgres, nil
	}
	data := filepath.Join(l.Dir, "postgres")
	// Of a run that was cut off.
	if err := os.RemoveAll(data); err != nil {
		return nil, fmt.Errorf("remove an old PostgreSQL: %w", err)
	}
	cluster, err := pgcluster.New(ctx, pgcluster.Options{DataDir: data, Settings: postgresSettings})
	if err != nil {
		return nil, err
	}
	p := &Postgres{lab: l, cluster: cluster}
	var version string
	err = p.connected(ctx, "postgres", func(conn *pgx.Conn) error {
		return conn.QueryRow(ctx, "SHOW server_version").Scan(&version)
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("ask PostgreSQL for its version: %w", err), p.close())
	}
	l.postgres, l.versions["PostgreSQL"] = p, version
	return p, nil
}

// close ends it and removes its data.
func (p *Postgres) close() error {
	return errors.Join(p.cluster.Close(), os.RemoveAll(p.cluster.DataDir))
}

// PID is the number of its first process, the parent of all others.
func (p *Postgres) PID() int { return p.cluster.PID() }

// Database makes an empty database and gives its DSN. One that has the name
// already is dropped.
func (p *Postgres) Database(ctx context.Context, name string) (dsn string, err error) {
	quoted := pgx.Identifier{name}.Sanitize()
	err = p.connected(ctx, "postgres", func(conn *pgx.Conn) error {
		for _, statement := range []string{"DROP DATABASE IF EXISTS " + quoted + " WITH (FORCE)", "CREATE DATABASE " + quoted} {
			if _, err := conn.Exec(ctx, statement); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("make the database %s: %w", name, err)
	}
	return p.cluster.DSN(url.PathEscape(name)), nil
}

// Settle writes what is in memory to the disk and brings the statistics of a
// database up to date, so that none of it falls into a measurement.
func (p *Postgres) Settle(ctx context.Context, dsn string) error {
	return withConn(ctx, dsn, func(conn *pgx.Conn) error {
		for _, statement := range []string{"VACUUM ANALYZE", "CHECKPOINT"} {
			if _, err := conn.Exec(ctx, statement); err != nil {
				return fmt.Errorf("%s: %w", strings.ToLower(statement), err)
			}
		}
		return nil
	})
}

// connected does something in a connection to a database.
func (p *Postgres) connected(ctx context.Context, database string, do func(*pgx.Conn) error) error {
	return withConn(ctx, p.cluster.DSN(database), do)
}

func withConn(ctx context.Context, dsn string, do func(*pgx.Conn) error) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	return errors.Join(do(conn), conn.Close(context.WithoutCancel(ctx)))
}
