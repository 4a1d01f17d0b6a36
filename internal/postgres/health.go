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

// refusal returns why the database refuses writes, "" if the error does not say so.
// Ping notices a server that is away or has become a standby.
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

// probes lists all kinds of writes that the archive makes. They show whether it
// still has the right to write, and whether there is room in the files of the
// tables.
var probes = []string{
	`INSERT INTO heads (kind, identifier, version, created_by, created_on, last_modified_by, last_modified_on, last_sequence, listed_on,
			summary_hash) VALUES (0, '', 0, '', 0, '', 0, 0, 0, 0)`,
	"UPDATE heads SET last_sequence = 1 WHERE kind = 0",
	"INSERT INTO creations (kind, identifier, created_by, created_on) VALUES (0, '', '', 0)",
	"UPDATE creations SET telescope = '' WHERE kind = 0",
	"INSERT INTO catalogue (kind, identifier, summary, terms, created_on) VALUES (0, '', '', '', 0)",
	"UPDATE catalogue SET summary = '' WHERE kind = 0",
	"INSERT INTO creation_keys (kind, key, identifier, digest, seal) VALUES (0, '', '', '', '')",
	"SELECT FROM creation_keys WHERE kind = 0 FOR NO KEY UPDATE",
	"INSERT INTO call_days (kind, identifier, day, part, first) VALUES (0, '', 0, 0, 0)",
	"INSERT INTO failed_calls (kind, identifier, at, sequence, request, function, recorded_by) VALUES (0, '', 0, 0, '', '', '')",
	"INSERT INTO long_calls (kind, identifier, at, sequence, received) VALUES (0, '', 0, 0, 0)",
	`INSERT INTO versions (kind, identifier, version, stored_by, stored_on, sequence_before, sequence_after, slots, text, digest, seal)
		VALUES (0, '', 0, '', 0, 0, 0, '{}', $1, '', '')`,
	"INSERT INTO records (kind, identifier, sequence, version, recorded_by, recorded_on, text, digest, seal) VALUES (0, '', 0, 0, '', 0, $1, '', '')",
	`INSERT INTO statuses (kind, identifier, sequence, version, status, class, at, current, said_by, said_on, digest)
		VALUES (0, '', 0, 0, '', 0, 0, false, '', 0, '')`,
	"INSERT INTO standings (kind, identifier, created_on, status, folded, class, sequence, at, last) VALUES (0, '', 0, '', '', 0, 0, 0, 0)",
	"UPDATE standings SET last = 1 WHERE kind = 0",
	"DELETE FROM standings WHERE kind = 0",
	`INSERT INTO running (kind, identifier, key, request, sent_at, since, renewed_on, lease_until, said_by, said_in)
		VALUES (0, '', '', '', 0, 0, 0, 0, '', '0')`,
	"UPDATE running SET since = 1 WHERE kind = 0",
	"DELETE FROM running WHERE kind = 0",
	"UPDATE counts SET n = n WHERE kind = 1 AND shard = 0",
	"INSERT INTO changes (number, width, names, places, seal) VALUES (-nextval('numbers'), 0, '{}', '{}', '')",
	"INSERT INTO rounds (after, last, seen, runs, seal) VALUES (-1, -1, 0, '{}', '')",
	"UPDATE log_end SET position = 0 WHERE position < 0",
}

// tryWrite makes a small write that changes nothing: it rolls everything back to a
// savepoint and then commits. So nobody waits for a row that it changed, but the
// commit shows whether there is room in the write-ahead log, and whether a
// synchronous standby confirms it.
func (s *Store) tryWrite(ctx context.Context) error {
	text := make([]byte, 64<<10)
	_, _ = rand.Read(text) // never fails; PostgreSQL cannot compress the result
	return s.write(ctx, func(ctx context.Context, conn *pgxpool.Conn) error {
		return transact(ctx, conn, func(tx pgx.Tx) error {
			inner, err := tx.Begin(ctx)
			if err != nil {
				return err
			}
			for _, probe := range probes {
				var args []any
				if strings.Contains(probe, "$1") {
					args = append(args, text)
				}
				if _, err := inner.Exec(ctx, probe, args...); err != nil {
					return err
				}
			}
			return inner.Rollback(ctx)
		})
	})
}

// Ping implements oda.Engine.
func (s *Store) Ping(ctx context.Context) error {
	var readOnly bool
	err := s.with(ctx, func(ctx context.Context, conn *pgxpool.Conn) error {
		return conn.QueryRow(ctx, "SELECT current_setting('transaction_read_only')::boolean").Scan(&readOnly)
	})
	outdated, lag := s.outdated.Load(), s.lagging.Load()
	switch {
	case err != nil:
		return s.storageError(ctx, err)
	case outdated != nil:
		return outdated
	case lag != nil:
		return lag.problem("")
	case readOnly:
		// New connections may find a server that accepts writes.
		s.reconnect()
		return oda.Errorf(oda.Unavailable, "The archive can be read but not written: the database is read-only.")
	}
	return s.health.Err()
}
