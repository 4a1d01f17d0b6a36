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
	selectRecords = `SELECT sequence, coalesce(key, ''), recorded_on, CASE WHEN octet_length(text) <= 65536 THEN text END, octet_length(text), digest, recorded_by FROM records
		WHERE kind = 3 AND identifier = $1 AND sequence BETWEEN $2 AND $3 ORDER BY sequence LIMIT $4`
)

// Records implements oda.Engine.
func (s *Store) Records(ctx context.Context, block string, after int64, limit int) (oda.RecordPage, error) {
	var page *engine.Page
	err := s.reading(ctx, func(ctx context.Context, conn *pgxpool.Conn) (err error) {
		page, err = readPage(ctx, conn, block, after, limit)
		return err
	})
	if err != nil {
		return oda.RecordPage{}, s.storageError(ctx, err)
	}
	return page.Complete(ctx, func(sequence int64) ([]byte, error) {
		text, err := s.recordText(ctx, oda.Ref{Kind: oda.ExecutionBlock, ID: block}, sequence)
		return text, s.storageError(ctx, err)
	})
}

// readPage reads a page without its large texts.
func readPage(ctx context.Context, conn *pgxpool.Conn, block string, after int64, limit int) (*engine.Page, error) {
	of := engine.Version{Ref: oda.Ref{Kind: oda.ExecutionBlock, ID: block}}
	var last, stored int64
	var packed []int64
	err := conn.QueryRow(ctx, selectRuns, block).Scan(&of.Number, &last, &stored, &packed)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, oda.Missing(of.Ref)
	case unreadable(err):
		return nil, oda.Damaged(of.Ref, of.Number, 0).Because(err)
	case err != nil:
		return nil, err
	}
	runs, err := currentRuns(of, packed, stored, last)
	if err != nil {
		return nil, err
	}
	page, err := engine.ReadPage(of, runs.Behind(after), limit, func(run engine.Run, most int, add func(engine.Paged) error) error {
		rows, err := conn.Query(ctx, selectRecords, block, run.First, run.Last, most)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var r engine.Paged
			if err := rows.Scan(&r.Sequence, &r.Key, &r.RecordedOn, &r.Text, &r.Bytes, (*digest)(&r.Digest), &r.By); err != nil {
				return err
			}
			if err := add(r); err != nil {
				return err
			}
		}
		return rows.Err()
	})
	if page != nil {
		page.Last = last
	}
	return page, err
}
