package sqlite

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"

	"zombiezen.com/go/sqlite"

	"oda/internal/engine/migrate"
)

//go:embed schema/*.sql
var schema embed.FS

// step is a schema step.
type step = migrate.Step[*conn]

// schemaSteps returns all steps.
func schemaSteps() ([]step, error) { return migrate.Load[*conn](schema) }

// Two tables are about the steps. The first lists the applied steps, with a
// checksum of the schema after each, which shows whether anyone has changed it
// since. The second says how far a step has come. It exists only while a step is in
// progress.
const (
	migrations = `CREATE TABLE migrations (
    number INTEGER PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL, schema_checksum TEXT NOT NULL
) STRICT`
	migrationProgress = `CREATE TABLE IF NOT EXISTS migration_progress (
    number INTEGER PRIMARY KEY, place TEXT NOT NULL, done INTEGER NOT NULL, total INTEGER NOT NULL
) STRICT`
)

// migrate applies the schema steps that the file lacks.
func (s *Store) migrate(ctx context.Context, steps []step, tell ...func(migrate.Status)) error {
	s.writer.SetInterrupt(ctx.Done())
	defer s.writer.SetInterrupt(nil)
	err := migrate.Run(ctx, archiveFile{s.writer}, steps, s.log, tell...)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// archiveFile is the archive's file as a migrate.Database. Only this process has it
// open, so no step ever waits for another process.
type archiveFile struct{ writer *conn }

// State implements migrate.Database.
func (f archiveFile) State(context.Context) (state migrate.State, err error) {
	err = f.writer.query("SELECT number, checksum FROM migrations ORDER BY number", func(stmt *sqlite.Stmt) error {
		state.Applied = append(state.Applied, migrate.Applied{Number: stmt.ColumnInt(0), Checksum: stmt.ColumnText(1)})
		return nil
	})
	if err != nil {
		return state, err
	}
	begun, err := f.writer.number("SELECT count(*) FROM sqlite_schema WHERE name = 'migration_progress'")
	if err != nil || begun == 0 {
		return state, err
	}
	err = f.writer.query("SELECT number, place, done, total FROM migration_progress", func(stmt *sqlite.Stmt) error {
		state.Begun = stmt.ColumnInt(0)
		state.Part = migrate.Part{At: stmt.ColumnText(1), Done: stmt.ColumnInt64(2), Total: stmt.ColumnInt64(3)}
		return nil
	})
	return state, err
}

// Alone implements migrate.Database.
func (f archiveFile) Alone(context.Context, *conn, step) error { return nil }

// StateOf implements migrate.Database.
func (f archiveFile) StateOf(ctx context.Context, _ *conn) (migrate.State, error) {
	return f.State(ctx)
}

// Transact implements migrate.Database.
func (f archiveFile) Transact(ctx context.Context, work func(*conn) error) error {
	if err := f.writer.script("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	err := work(f.writer)
	if err == nil {
		err = f.writer.script("COMMIT")
	}
	if err != nil && !f.writer.AutocommitEnabled() {
		f.writer.SetInterrupt(nil)
		_ = f.writer.script("ROLLBACK") // the first error matters
		f.writer.SetInterrupt(ctx.Done())
	}
	return err
}

// Script implements migrate.Database.
func (f archiveFile) Script(_ context.Context, tx *conn, sql string) error { return tx.script(sql) }

// Enter implements migrate.Database.
func (f archiveFile) Enter(_ context.Context, tx *conn, s step) error {
	if err := tx.script("DROP TABLE IF EXISTS migration_progress"); err != nil {
		return err
	}
	sum, err := schemaChecksum(tx)
	if err != nil {
		return err
	}
	return tx.exec("INSERT INTO migrations VALUES (?, ?, ?, ?)", int64(s.Number), s.Name, s.Checksum, sum)
}

// Keep implements migrate.Database.
func (f archiveFile) Keep(_ context.Context, tx *conn, s step, part migrate.Part) error {
	if err := tx.script(migrationProgress); err != nil {
		return err
	}
	return tx.exec("INSERT OR REPLACE INTO migration_progress VALUES (?, ?, ?, ?)", int64(s.Number), part.At, part.Done, part.Total)
}

// schemaChecksum returns a checksum of the definitions of all tables and indexes.
func schemaChecksum(c *conn) (string, error) {
	h := sha256.New()
	err := c.query("SELECT name, coalesce(sql, '') FROM sqlite_schema ORDER BY name", func(stmt *sqlite.Stmt) error {
		fmt.Fprintf(h, "%s\n%s\n", stmt.ColumnText(0), stmt.ColumnText(1))
		return nil
	})
	return hex.EncodeToString(h.Sum(nil)), err
}

func (s *Store) checkSchema() error {
	now, err := schemaChecksum(s.writer)
	if err != nil {
		return err
	}
	return s.writer.query("SELECT schema_checksum FROM migrations ORDER BY number DESC LIMIT 1", func(stmt *sqlite.Stmt) error {
		if stmt.ColumnText(0) != now {
			return errors.New("its tables or indexes were changed by something other than oda; restore it from a backup")
		}
		return nil
	})
}
