package work

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/jackc/pgx/v5"
)

// removeSQLite removes the files of an embedded archive.
func removeSQLite(db string) error {
	var errs []error
	for _, path := range sqliteFiles(db) {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// sqliteFiles are the files that an embedded archive may have.
func sqliteFiles(db string) []string {
	path := strings.TrimPrefix(db, "sqlite:")
	return []string{path, path + "-wal", path + "-shm", path + ".lock"}
}

// dropDatabase removes a database, also while somebody is connected to it.
func dropDatabase(ctx context.Context, dsn string) error {
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return fmt.Errorf("reading the address of a database: %w", err)
	}
	name := config.Database
	config.Database = "postgres"
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return fmt.Errorf("connecting to drop the database %s: %w", name, err)
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, "DROP DATABASE IF EXISTS "+pgx.Identifier{name}.Sanitize()+" WITH (FORCE)")
	if err != nil {
		return fmt.Errorf("dropping the database %s: %w", name, err)
	}
	return nil
}

// ask runs statements in a database; the last one may return one row.
func ask(ctx context.Context, dsn string, into any, statements ...string) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return fmt.Errorf("connecting to PostgreSQL: %w", err)
	}
	defer conn.Close(ctx)
	for i, statement := range statements {
		if i == len(statements)-1 && into != nil {
			err = conn.QueryRow(ctx, statement).Scan(into)
		} else {
			_, err = conn.Exec(ctx, statement)
		}
		if err != nil {
			return fmt.Errorf("running %q: %w", statement, err)
		}
	}
	return nil
}

// settle brings a PostgreSQL database to the state in which it is a few
// minutes after it was filled.
func settle(ctx context.Context, dsn string) error {
	return ask(ctx, dsn, nil, "VACUUM (ANALYZE)", "CHECKPOINT")
}

// storedBytes is what an archive takes on disk.
func storedBytes(ctx context.Context, e *engine) (float64, error) {
	if e.arm == onPostgres {
		var size int64
		err := ask(ctx, e.db, &size, "SELECT pg_database_size(current_database())")
		return float64(size), err
	}
	var sum int64
	for _, path := range sqliteFiles(e.db) {
		info, err := os.Stat(path)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return 0, err
		}
		sum += info.Size()
	}
	return float64(sum), nil
}
