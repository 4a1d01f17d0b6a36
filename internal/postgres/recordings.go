package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"oda"
)

const (
	selectRuns = `SELECT h.last_sequence, v.sequence_after, v.runs
		FROM heads h JOIN versions v USING (kind, identifier, version) WHERE h.kind = 3 AND h.identifier = $1`
	selectRecordings = `SELECT sequence, coalesce(key, ''), recorded_on, text FROM records
		WHERE kind = 3 AND identifier = $1 AND sequence BETWEEN $2 AND $3 ORDER BY sequence LIMIT $4`
)

// Recordings implements oda.Store.
func (s *Store) Recordings(ctx context.Context, block string, after int64, limit int) ([]oda.Recording, bool, error) {
	var page oda.RecordingsPage
	err := s.again(ctx, func(ctx context.Context) error {
		page = oda.RecordingsPage{}
		return s.with(ctx, func(ctx context.Context, conn *pgxpool.Conn) error {
			return recordings(ctx, conn, block, after, limit, &page)
		})
	})
	if err != nil {
		return nil, false, s.storageError(ctx, err)
	}
	return page.Recordings, page.More, nil
}

func recordings(ctx context.Context, conn *pgxpool.Conn, block string, after int64, limit int, page *oda.RecordingsPage) error {
	var last, stored int64
	var packed []int64
	err := conn.QueryRow(ctx, selectRuns, block).Scan(&last, &stored, &packed)
	if errors.Is(err, pgx.ErrNoRows) {
		return oda.Missing(oda.Ref{Kind: oda.ExecutionBlock, ID: block})
	}
	if err != nil {
		return err
	}
	for _, run := range decodeRuns(packed).AddRun(stored+1, last).Behind(after) {
		rows, err := conn.Query(ctx, selectRecordings, block, run.First, run.Last, limit+1)
		if err != nil {
			return err
		}
		for err == nil && rows.Next() {
			var r oda.Recording
			if err = rows.Scan(&r.Sequence, &r.Key, &r.RecordedOn, &r.Record); err == nil {
				err = page.Add(r, limit)
			}
		}
		rows.Close()
		if errors.Is(err, oda.ErrPageFull) {
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
