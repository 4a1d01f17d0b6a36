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
	selectRuns = `SELECT h.version, h.last_sequence, coalesce(v.sequence_after, -1), v.runs
		FROM heads h LEFT JOIN LATERAL (SELECT sequence_after, runs FROM versions
			WHERE kind = 3 AND identifier = h.identifier AND version = h.version OFFSET 0) v ON true
		WHERE ` + isBlock + ` AND h.identifier = $1`
	selectRecords = `SELECT sequence, coalesce(key, ''), recorded_on, text, digest FROM records
		WHERE kind = 3 AND identifier = $1 AND sequence BETWEEN $2 AND $3 ORDER BY sequence LIMIT $4`
)

// Records implements oda.Engine.
func (s *Store) Records(ctx context.Context, block string, after int64, limit int) (oda.RecordPage, error) {
	var page oda.RecordPage
	err := s.reading(ctx, func(ctx context.Context, conn *pgxpool.Conn) (err error) {
		page, err = readPage(ctx, conn, block, after, limit)
		return err
	})
	return page, s.storageError(ctx, err)
}

func readPage(ctx context.Context, conn *pgxpool.Conn, block string, after int64, limit int) (oda.RecordPage, error) {
	of := engine.Version{Ref: oda.Ref{Kind: oda.ExecutionBlock, ID: block}}
	var last, stored int64
	var packed []int64
	err := conn.QueryRow(ctx, selectRuns, block).Scan(&of.Number, &last, &stored, &packed)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return oda.RecordPage{}, oda.Missing(of.Ref)
	case unreadable(err):
		return oda.RecordPage{}, oda.Damaged(of.Ref, of.Number, 0).Because(err)
	case err != nil:
		return oda.RecordPage{}, err
	}
	runs, err := currentRuns(of, packed, stored, last)
	if err != nil {
		return oda.RecordPage{}, err
	}
	page, err := engine.Page(of, runs.Behind(after), limit, func(run engine.Run, most int, add func(oda.Record, oda.Digest) error) error {
		rows, err := conn.Query(ctx, selectRecords, block, run.First, run.Last, most)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var r oda.Record
			var d digest
			if err := rows.Scan(&r.Sequence, &r.Key, &r.RecordedOn, &r.Text, &d); err != nil {
				return err
			}
			if err := add(r, oda.Digest(d)); err != nil {
				return err
			}
		}
		return rows.Err()
	})
	page.Last = last
	return page, err
}
