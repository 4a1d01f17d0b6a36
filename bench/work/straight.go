package work

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// straight asks the database itself, without oda, as quickly as Go can.
func (l *listed) straight(ctx context.Context, a *large, q query) error {
	var (
		count int64
		took  time.Duration
		err   error
	)
	if a.arm == onPostgres {
		count, took, err = askPostgres(ctx, a.db, "SELECT identifier FROM "+strings.NewReplacer("OF", "births", "MODIFIED", "listed_on").Replace(q.straight))
	} else {
		count, took, err = askSQLite(ctx, a.db, "SELECT identifier FROM "+strings.NewReplacer("OF", "heads", "MODIFIED", "last_modified_on").Replace(q.straight))
	}
	if err != nil {
		return fmt.Errorf("listing %s straight from the database: %w", q.name, err)
	}
	if count != q.expect(a) {
		return fmt.Errorf("the database has %d identifiers %s, expected %d", count, q.name, q.expect(a))
	}
	l.rate = append(l.rate, float64(count)/took.Seconds())
	return nil
}

func askPostgres(ctx context.Context, dsn, statement string) (int64, time.Duration, error) {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return 0, 0, err
	}
	defer conn.Close(ctx)
	// As oda sets it, so that both walk along the same index.
	if _, err := conn.Exec(ctx, "SET enable_seqscan = off; SET enable_bitmapscan = off; SET jit = off"); err != nil {
		return 0, 0, err
	}
	begin := time.Now()
	rows, err := conn.Query(ctx, statement)
	if err != nil {
		return 0, 0, err
	}
	var id string
	tag, err := pgx.ForEachRow(rows, []any{&id}, func() error { return nil })
	return tag.RowsAffected(), time.Since(begin), err
}

func askSQLite(ctx context.Context, db, statement string) (int64, time.Duration, error) {
	conn, err := sqlite.OpenConn(strings.TrimPrefix(db, "sqlite:"), sqlite.OpenReadOnly)
	if err != nil {
		return 0, 0, err
	}
	conn.SetInterrupt(ctx.Done())
	begin := time.Now()
	var count int64
	err = sqlitex.ExecuteTransient(conn, statement, &sqlitex.ExecOptions{ResultFunc: func(stmt *sqlite.Stmt) error {
		if stmt.ColumnText(0) != "" {
			count++
		}
		return nil
	}})
	took := time.Since(begin)
	return count, took, errors.Join(err, conn.Close())
}
