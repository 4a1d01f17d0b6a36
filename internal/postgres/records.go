package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"oda"
	"oda/internal/engine"
)

const (
	selectRuns = `SELECT h.last_sequence, v.sequence_after, v.runs
		FROM heads h JOIN versions v USING (kind, identifier, version) WHERE h.kind = 3 AND h.identifier = $1`
	selectRecords = `SELECT sequence, coalesce(key, ''), recorded_on, text FROM records
		WHERE kind = 3 AND identifier = $1 AND sequence BETWEEN $2 AND $3 ORDER BY sequence LIMIT $4`
)

// Records implements oda.Engine.
func (s *Store) Records(ctx context.Context, block string, after int64, limit int) (oda.RecordPage, error) {
	var page engine.Page
	err := s.again(ctx, func(ctx context.Context) error {
		page = engine.Page{}
		return s.with(ctx, func(ctx context.Context, conn *pgxpool.Conn) error {
			return readPage(ctx, conn, block, after, limit, &page)
		})
	})
	if err != nil {
		return oda.RecordPage{}, s.storageError(ctx, err)
	}
	return page.RecordPage, nil
}

func readPage(ctx context.Context, conn *pgxpool.Conn, block string, after int64, limit int, page *engine.Page) error {
	var last, stored int64
	var packed []int64
	err := conn.QueryRow(ctx, selectRuns, block).Scan(&last, &stored, &packed)
	if errors.Is(err, pgx.ErrNoRows) {
		return oda.Missing(oda.Ref{Kind: oda.ExecutionBlock, ID: block})
	}
	if err != nil {
		return err
	}
	for _, run := range engine.Current(decodeRuns(packed), stored, last).Behind(after) {
		rows, err := conn.Query(ctx, selectRecords, block, run.First, run.Last, limit+1)
		if err != nil {
			return err
		}
		for err == nil && rows.Next() {
			var r oda.Record
			if err = rows.Scan(&r.Sequence, &r.Key, &r.RecordedOn, &r.Text); err == nil {
				err = page.Add(r, limit)
			}
		}
		rows.Close()
		if errors.Is(err, engine.ErrPageFull) {
			return nil
		}
		if err == nil {
			err = rows.Err()
		}
		if err != nil {
			return err
		}
	}
	return nil
}
