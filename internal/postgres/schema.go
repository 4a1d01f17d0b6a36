package postgres

import (
	"context"
	"embed"
	"errors"
	"log/slog"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"oda/internal/engine/migrate"
)

//go:embed schema/*.sql
var schema embed.FS

// step is a schema step.
type step = migrate.Step[pgx.Tx]

// schemaSteps returns all steps.
func schemaSteps() ([]step, error) { return migrate.Load[pgx.Tx](schema) }

// prepare brings the schema up to date. Processes that start at the same time wait
// for each other. If there is nothing to do, prepare takes no lock and needs no
// right to change the schema.
func prepare(ctx context.Context, pool *pgxpool.Pool, steps []step, log *slog.Logger, tell ...func(migrate.Status)) error {
	return migrate.Run(ctx, database{pool}, steps, log, tell...)
}

// database is the PostgreSQL database as a migrate.Database.
type database struct{ pool *pgxpool.Pool }

// migrationLock is the number of the advisory lock for changing the schema: "oda"
// and a 1. The lock belongs to a transaction, so it works behind pgbouncer and ends
// with the process that holds it.
const migrationLock = 0x6f646101

// State implements migrate.Database.
func (d database) State(ctx context.Context) (migrate.State, error) {
	ctx, cancel := context.WithTimeout(ctx, openTime)
	defer cancel()
	for {
		// A step may have locked the tables.
		state, err := schemaState(ctx, d.pool)
		if !isHeld(err) || ctx.Err() != nil {
			return state, err
		}
	}
}

// StateOf implements migrate.Database.
func (d database) StateOf(ctx context.Context, tx pgx.Tx) (migrate.State, error) {
	return schemaState(ctx, tx)
}

// querier is a pool or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// schemaState reads the applied steps, and how far the next one has come. It leaves
// the latter out if the role may not read it, as one that only serves need not.
func schemaState(ctx context.Context, q querier) (migrate.State, error) {
	var state migrate.State
	var listed, known bool
	// to_regclass would not do: it may remember that the table did not exist before
	// another process created it.
	err := q.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_class WHERE relname = 'migrations' AND pg_table_is_visible(oid)),
		EXISTS (SELECT FROM pg_class WHERE relname = 'migration_progress' AND pg_table_is_visible(oid)
			AND has_table_privilege(oid, 'SELECT'))`).Scan(&listed, &known)
	if err != nil || !listed {
		return state, err
	}
	rows, err := q.Query(ctx, "SELECT number, checksum, beside FROM migrations ORDER BY number")
	if err != nil {
		return state, err
	}
	if state.Applied, err = pgx.CollectRows(rows, pgx.RowToStructByPos[migrate.Applied]); err != nil || !known {
		return state, err
	}
	err = q.QueryRow(ctx, "SELECT number, place, done, total, beside FROM migration_progress").
		Scan(&state.Begun, &state.Part.At, &state.Part.Done, &state.Part.Total, &state.Beside)
	if errors.Is(err, pgx.ErrNoRows) {
		return state, nil
	}
	return state, err
}

// unboundedTime lets a transaction take as long as it needs, whatever the role, the
// database or the DSN says. Which of these settings exist depends on the version of
// PostgreSQL.
const unboundedTime = `SELECT set_config(name, '0', true) FROM pg_settings WHERE name IN
	('statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout', 'transaction_timeout')`

// Transact implements migrate.Database.
func (d database) Transact(ctx context.Context, work func(pgx.Tx) error) error {
	err := pgx.BeginFunc(ctx, d.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, unboundedTime); err != nil {
			return err
		}
		var locked bool
		if err := tx.QueryRow(ctx, "SELECT pg_try_advisory_xact_lock($1)", int64(migrationLock)).Scan(&locked); err != nil {
			return err
		}
		if !locked {
			return migrate.ErrLocked
		}
		return work(tx)
	})
	if e, ok := errors.AsType[*pgconn.PgError](err); ok && (e.Code == codeDeadlock || e.Code == codeHeld) {
		return migrate.ErrLocked // by readers or writers, which continue
	}
	return err
}

// Script implements migrate.Database.
func (d database) Script(ctx context.Context, tx pgx.Tx, sql string) error {
	return script(ctx, tx, sql)
}

// script runs several statements.
func script(ctx context.Context, tx pgx.Tx, sql string) error {
	_, err := tx.Exec(ctx, sql, pgx.QueryExecModeSimpleProtocol)
	return err
}

// stepTables makes the tables of steps: the applied ones, and how far the next one
// has come, in at most one row.
const stepTables = `
CREATE TABLE IF NOT EXISTS migrations (
	number integer PRIMARY KEY, name text NOT NULL, checksum text NOT NULL, applied_on timestamptz NOT NULL DEFAULT now(),
	beside boolean NOT NULL DEFAULT false);
CREATE TABLE IF NOT EXISTS migration_progress (
	number integer PRIMARY KEY, place text NOT NULL, done bigint NOT NULL, total bigint NOT NULL, beside boolean NOT NULL DEFAULT false);
DELETE FROM migration_progress`

// Enter implements migrate.Database.
func (d database) Enter(ctx context.Context, tx pgx.Tx, s step) error {
	if err := script(ctx, tx, stepTables); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, "INSERT INTO migrations (number, name, checksum, beside) VALUES ($1, $2, $3, $4)", s.Number, s.Name, s.Checksum, s.Beside)
	return err
}

// Keep implements migrate.Database.
func (d database) Keep(ctx context.Context, tx pgx.Tx, s step, part migrate.Part) error {
	if err := script(ctx, tx, stepTables); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, "INSERT INTO migration_progress (number, place, done, total, beside) VALUES ($1, $2, $3, $4, $5)",
		s.Number, part.At, part.Done, part.Total, s.Beside)
	return err
}
