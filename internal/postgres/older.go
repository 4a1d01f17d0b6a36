package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"oda"
)

// sessionName is the name of the sessions of a process that knows this number of schema
// steps. Others learn from it who is connected. PostgreSQL keeps 63 bytes of it.
func sessionName(steps int) string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	if len(host) > 40 {
		host = host[:40]
	}
	return fmt.Sprintf("oda %d %s:%d", steps, strings.ReplaceAll(host, " ", "-"), os.Getpid())
}

// describe says who a session with this name belongs to, if to a process that knows
// fewer steps.
func describe(name string, steps int) (who string, older bool) {
	parts := strings.Fields(name)
	if len(parts) != 3 || parts[0] != "oda" {
		return "", false
	}
	known, err := strconv.Atoi(parts[1])
	return parts[2], err == nil && known < steps
}

// Alone implements migrate.Database.
func (d database) Alone(ctx context.Context, tx pgx.Tx, s step) error {
	rows, err := tx.Query(ctx, `SELECT DISTINCT application_name FROM pg_stat_activity
		WHERE datname = current_database() AND pid <> pg_backend_pid() AND application_name LIKE 'oda%'`)
	if err != nil {
		return err
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	var older []string
	for _, name := range names {
		if who, yes := describe(name, s.Number); yes {
			older = append(older, who)
		}
	}
	if len(older) == 0 {
		return nil
	}
	slices.Sort(older)
	return fmt.Errorf("older processes cannot go on beside this step, and some are connected: %s; "+
		"stop them and start this one again (docs/upgrading.md)", strings.Join(older, ", "))
}

// The time between two looks at the schema, and for one.
const (
	watchPause = time.Second
	lookTime   = 2 * time.Second
)

// Whether there is a step after those that this process knows ($1), applied or begun.
const (
	newerApplied = "SELECT EXISTS (SELECT FROM migrations WHERE number > $1)"
	newerBegun   = newerApplied + " OR EXISTS (SELECT FROM migration_progress WHERE number > $1)"
)

// excludedBy returns the number of the first step that stops processes which do not know
// it, 0 if there is none. Known is how many steps this process knows. Most looks are one
// statement.
func (s *Store) excludedBy(ctx context.Context, known int, look string) (step int, err error) {
	var newer bool
	if err = s.pool.QueryRow(ctx, look, known).Scan(&newer); err != nil || !newer {
		return 0, err
	}
	state, err := schemaState(ctx, s.pool)
	return state.Excludes(known), err
}

// watchSchema stops this process from writing once a newer one has made a schema
// step that excludes it. Such a step is made only when no older process is
// connected, but this one may have been missed.
func (s *Store) watchSchema(ctx context.Context, known int) {
	look := newerBegun
	for {
		// A look that has begun is not cancelled at the end: pgbouncer may exit when
		// a client cancels a statement and goes away.
		looking, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookTime)
		step, err := s.excludedBy(looking, known, look)
		cancel()
		if e, ok := errors.AsType[*pgconn.PgError](err); ok && (e.Code == codePrivilege || e.Code == codeNoTable) {
			look = newerApplied // a role that only serves may not know what has begun
		}
		if err == nil && step != 0 {
			s.outdated.Store(oda.Errorf(oda.Unavailable, "The database was upgraded by a newer program (schema step %d), "+
				"and this one can no longer write to it. Nothing was stored by this request. Send it to a newer one.", step))
			s.log.Error("the database was upgraded by a newer oda, so this one no longer writes; replace it", "step", step, "known", known)
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(watchPause):
		}
	}
}
