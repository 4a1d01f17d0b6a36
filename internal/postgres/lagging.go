package postgres

import (
	"context"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"oda"
)

// The sequence of numbers may lag behind the tables: after a move by logical
// replication, which leaves sequences out, after a restore of the tables alone, or
// because somebody has set it back. It would give numbers that rounds have passed, and
// no round would ever take what is written with them.
//
// So a statement that takes a number compares it with the last round that it sees. A
// sequence that does not lag has given every number of that round before the statement
// began. And whoever makes a round compares the sequence with the tables. While it lags,
// this process writes nothing but rounds.

// nextNumber is the next number, or null if the last round has seen it or a later one.
// The column does not take null, so nothing is written then.
const nextNumber = "CASE WHEN nextval('numbers') > coalesce(" + lastSeen + ", 0) THEN currval('numbers') END"

// newChanges begins a statement that adds a row to the log of changes. A query follows,
// and a bracket with the name c.
const newChanges = "INSERT INTO changes (number, width, names, places, seal) SELECT c.*, archive_seal_of_change(number, width, names, places) FROM ("

const lastSeen = "(SELECT seen FROM rounds ORDER BY after DESC LIMIT 1)"

// numbersTaken is how far the sequence has come, and the highest number that was taken
// from it. PostgreSQL reads the sequence after it has fixed what the statement sees of
// the tables, so the first is not lower than the second, unless the sequence lags. A role
// that may not see the sequence may not write either.
const numbersTaken = numbersGiven + `,
	greatest((SELECT max(number) FROM changes), ` + lastSeen + `, 0)`

const numbersGiven = `CASE WHEN has_sequence_privilege('numbers', 'USAGE, SELECT') THEN coalesce(pg_sequence_last_value('numbers'), 0) ELSE 9223372036854775807 END`

// sequenceLag says that the sequence stands at a lower number than was taken.
type sequenceLag struct{ at, taken int64 }

// problem returns the error for the caller. Outcome says what the lag means for the
// request.
func (l *sequenceLag) problem(outcome string) *oda.Error {
	return oda.Errorf(oda.Unavailable, "The archive can be read but not written: the sequence \"numbers\" of its database stands at %d, "+
		"but numbers up to %d are in use.%s Run this in the database: SELECT setval('numbers', %d)", l.at, l.taken, outcome, l.taken)
}

// compareNumbers notes whether the sequence lags.
func (s *Store) compareNumbers(at, taken int64) {
	var now *sequenceLag
	if at < taken {
		now = &sequenceLag{at, taken}
	}
	switch before := s.lagging.Swap(now); {
	case now != nil && before == nil:
		s.log.Error("the sequence \"numbers\" lags behind the tables of the archive, so nothing is written; "+
			"run SELECT setval('numbers', TAKEN) in the database, with the number that is taken", "at", at, "taken", taken)
	case now == nil && before != nil:
		s.log.Info("the sequence \"numbers\" no longer lags; writing works again")
	}
}

// lookAtNumbers finds out whether the sequence lags.
func (s *Store) lookAtNumbers(ctx context.Context) error {
	var at, taken int64
	err := s.reading(ctx, func(ctx context.Context, conn *pgxpool.Conn) error {
		return conn.QueryRow(ctx, "SELECT "+numbersTaken).Scan(&at, &taken)
	})
	if err == nil {
		s.compareNumbers(at, taken)
	}
	return err
}

// isOldNumber reports whether a write was rolled back because the sequence has given a
// number that is taken, or that no round would take any more.
func isOldNumber(e *pgconn.PgError) bool {
	switch e.Code {
	case codeNull:
		return e.ColumnName == "number"
	case codeUnique:
		return e.ConstraintName == "changes_pkey"
	}
	return false
}

// oldNumber returns the error for a write that was rolled back because of its number. A
// sequence that was set back a little has caught up already.
func (s *Store) oldNumber(ctx context.Context, cause error) error {
	const outcome = " Nothing was stored by this request."
	if err := s.lookAtNumbers(ctx); err != nil {
		cause = err
	}
	if lag := s.lagging.Load(); lag != nil {
		return lag.problem(outcome).Because(cause)
	}
	return oda.Errorf(oda.Overloaded, "The sequence \"numbers\" of the archive's database was set back.%s Try again shortly.", outcome).Because(cause)
}
