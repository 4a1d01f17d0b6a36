package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// rawPragmas are those of the embedded engine.
const rawPragmas = `PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 8000;
	PRAGMA journal_size_limit = 67108864; PRAGMA cache_size = -16384`

// rawArm records into a block of an archive directly from Go, without HTTP,
// JSON or rules: each transaction adds rows, updates the head and ends with a
// sync. A row counts as an operation that took as long as the transaction.
func (s *stage) rawArm(ctx context.Context, together int) (arm, error) {
	srv, err := s.startOda(ctx, s.odas[0], onSQLite)
	if err != nil {
		return arm{}, err
	}
	if _, err := srv.storeBlocks(ctx, "eb-raw", 1); err != nil {
		return arm{}, err
	}
	if err := srv.end(); err != nil {
		return arm{}, err
	}
	conn, err := sqlite.OpenConn(strings.TrimPrefix(srv.db, "sqlite:"), sqlite.OpenReadWrite)
	if err != nil {
		return arm{}, err
	}
	s.undo = append(s.undo, conn.Close)
	for pragma := range strings.SplitSeq(rawPragmas, ";") {
		if err := sqlitex.ExecuteTransient(conn, pragma, nil); err != nil {
			return arm{}, err
		}
	}
	some := records(16)
	now := time.Now().UnixMicro()
	transaction := func() (err error) {
		end, err := sqlitex.ImmediateTransaction(conn)
		if err != nil {
			return err
		}
		defer end(&err)
		var entity, sequence, position int64
		err = sqlitex.Execute(conn, "SELECT entity, last_sequence, last_position FROM heads, state WHERE kind = 3", &sqlitex.ExecOptions{
			ResultFunc: func(stmt *sqlite.Stmt) error {
				entity, sequence, position = stmt.ColumnInt64(0), stmt.ColumnInt64(1), stmt.ColumnInt64(2)
				return nil
			},
		})
		for i := 0; i < together && err == nil; i++ {
			now++
			sequence++
			position++
			err = sqlitex.Execute(conn, "INSERT INTO records (position, entity, sequence, version, recorded_by, recorded_on, digest, seal, text) VALUES (?, ?, ?, 1, 'DefaultUser', ?, zeroblob(32), zeroblob(8), ?)",
				&sqlitex.ExecOptions{Args: []any{position, entity, sequence, now, some[i%len(some)]}})
		}
		if err == nil {
			err = sqlitex.Execute(conn, "UPDATE heads SET last_modified_on = ?, last_sequence = ? WHERE entity = ?", &sqlitex.ExecOptions{Args: []any{now, sequence, entity}})
		}
		if err == nil {
			err = sqlitex.Execute(conn, "UPDATE state SET last_position = ?", &sqlitex.ExecOptions{Args: []any{position}})
		}
		return err
	}
	return arm{name: rawSQLite, run: func(ctx context.Context, length time.Duration) (sample, error) {
		var latencies []time.Duration
		start := time.Now()
		for begin := start; begin.Sub(start) < length && ctx.Err() == nil; {
			if err := transaction(); err != nil {
				return nil, fmt.Errorf("record: %w", err)
			}
			now := time.Now()
			for range together {
				latencies = append(latencies, now.Sub(begin))
			}
			begin = now
		}
		return summary(latencies, time.Since(start))
	}}, nil
}
