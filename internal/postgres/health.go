package postgres

import (
	"context"
	"crypto/rand"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"oda"
)

// refusal says why the database takes no writes, for those of its errors that
// say so. A server that is away, or that has become a standby, is found out by
// asking it.
func refusal(e *pgconn.PgError) string {
	switch {
	case e.Code == codeDiskFull:
		return "the disk of the database is full"
	case strings.HasPrefix(e.Code, classSystem):
		return "the disk of the database reports errors"
	case e.Code == codePrivilege:
		return "the database role of the archive may not write; see the grants in docs/postgres.md"
	}
	return ""
}

// tryWrite makes a small write that changes nothing. What is inserted and taken
// back finds out whether there is room in the files of the tables; a count that
// stays as it is, whether there is room in the write-ahead log.
func (s *Store) tryWrite(ctx context.Context) error {
	text := make([]byte, 64<<10)
	_, _ = rand.Read(text) // cannot fail; it cannot be compressed either
	return s.write(ctx, func(ctx context.Context, conn *pgxpool.Conn) error {
		return transact(ctx, conn, func(tx pgx.Tx) error {
			inner, err := tx.Begin(ctx)
			if err != nil {
				return err
			}
			_, err = inner.Exec(ctx, `INSERT INTO versions (kind, identifier, version, position, stored_by, stored_on,
				sequence_before, sequence_after, slots, text) VALUES (0, '', 0, 0, '', 0, 0, 0, '{}', $1)`, text)
			if err != nil {
				return err
			}
			if err := inner.Rollback(ctx); err != nil {
				return err
			}
			_, err = tx.Exec(ctx, "UPDATE counts SET n = n WHERE kind = 1 AND shard = 0")
			return err
		})
	})
}

// Ping implements oda.Engine.
func (s *Store) Ping(ctx context.Context) error {
	var readOnly bool
	err := s.with(ctx, func(ctx context.Context, conn *pgxpool.Conn) error {
		return conn.QueryRow(ctx, "SELECT current_setting('transaction_read_only')::boolean").Scan(&readOnly)
	})
	switch {
	case err != nil:
		return s.storageError(ctx, err)
	case readOnly:
		// New connections may find a server that takes writes.
		s.reconnect()
		return oda.Errorf(oda.Unavailable, "The archive can be read but not written: the database is read-only.")
	}
	return s.health.Err()
}
