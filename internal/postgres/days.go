package postgres

import (
	"context"
	"errors"
	"iter"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"oda"
	"oda/internal/engine"
)

// The index of days, call_days, has a row for each block, each day in UTC on which
// it has calls, and each part of engine.PartLength sequence numbers. For one day,
// the head says up to which sequence number the index has it (call_day, calls_to).
// So a record that follows another on the same day is added by a statement that
// does not touch the index. If the head has another day, that statement does
// nothing, and a longer one follows.

// dayOf makes a day of an instant in a statement, after a bracket. PostgreSQL divides towards
// zero, so it counts from the year 0, before which nothing can be stored.
const dayOf = " + 62167219200000000) / 86400000000 - 719528"

// spans holds parameters of statements that add to the index of days. A day that is
// null is that of the recording.
type spans struct {
	block       []int32 // of several, counted from 1
	first, last []int32
	day         []*int32
}

// add adds the records of a block. Place returns the place of a record in the
// statement's parameters.
func (s *spans) add(block int, keys []oda.CallKeys, place func(i int) int) {
	for _, one := range engine.DaySpans(keys) {
		s.block, s.day = append(s.block, int32(block)), append(s.day, dayOrNull(one.Day))
		s.first, s.last = append(s.first, int32(place(one.First))), append(s.last, int32(place(one.Last)))
	}
}

func dayOrNull(day oda.Day) *int32 {
	if day == oda.DayOfRecording {
		return nil
	}
	number := int32(day)
	return &number
}

// hints remembers the day that the heads of blocks have, so that the right
// statement is sent first. A hint may be wrong.
type hints struct {
	mu   sync.Mutex
	days map[string]oda.Day
}

// hintsKept is how many hints are kept. If there are more, all are dropped.
const hintsKept = 4096

func (h *hints) has(block string, day oda.Day) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	known, ok := h.days[block]
	return ok && known == day
}

func (h *hints) note(block string, day oda.Day) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.days == nil || len(h.days) >= hintsKept {
		h.days = make(map[string]oda.Day)
	}
	h.days[block] = day
}

const (
	selectBlocksOn = `SELECT DISTINCT identifier FROM call_days WHERE kind = 3 AND day BETWEEN $1 AND $2 LIMIT $3`
	// The order makes the planner read one row of the index.
	selectDaysAround = `SELECT (SELECT day FROM call_days WHERE kind = 3 AND day <= $1 ORDER BY kind DESC, day DESC LIMIT 1),
			(SELECT day FROM call_days WHERE kind = 3 AND day >= $2 ORDER BY kind, day LIMIT 1)`
	selectRunsOn = `SELECT h.version, h.last_sequence, coalesce(v.sequence_after, -1), v.runs,
			(SELECT array_agg(first) FROM call_days d WHERE d.kind = 3 AND d.identifier = h.identifier AND d.day BETWEEN $2 AND $3)
		FROM heads h LEFT JOIN LATERAL (SELECT sequence_after, runs FROM versions
			WHERE kind = 3 AND identifier = h.identifier AND version = h.version OFFSET 0) v ON true
		WHERE ` + isBlock + ` AND h.identifier = $1`
)

// BlocksOn implements oda.Engine.
func (s *Store) BlocksOn(ctx context.Context, days oda.Days, most int) (ids []string, err error) {
	err = s.reading(ctx, func(ctx context.Context, conn *pgxpool.Conn) error {
		rows, err := conn.Query(ctx, selectBlocksOn, int32(days.First), int32(days.Last), most)
		if err == nil {
			ids, err = pgx.CollectRows(rows, pgx.RowTo[string])
		}
		return err
	})
	return ids, s.storageError(ctx, err)
}

// DaysAround implements oda.Engine.
func (s *Store) DaysAround(ctx context.Context, until, from oda.Day) (before, after *oda.Day, err error) {
	err = s.reading(ctx, func(ctx context.Context, conn *pgxpool.Conn) error {
		return conn.QueryRow(ctx, selectDaysAround, int32(until), int32(from)).Scan(&before, &after)
	})
	return before, after, s.storageError(ctx, err)
}

// RecordsOn implements oda.Engine.
func (s *Store) RecordsOn(ctx context.Context, block string, days oda.Days, among oda.Sequences) iter.Seq2[oda.Record, error] {
	return func(yield func(oda.Record, error) bool) {
		of := engine.Version{Ref: oda.Ref{Kind: oda.ExecutionBlock, ID: block}}
		runs, err := s.runsOn(ctx, &of, days)
		if err != nil {
			yield(oda.Record{}, s.storageError(ctx, err))
			return
		}
		read := s.parts(ctx, of.Ref)
		engine.Records(of, runs.Among(among), func(first, last int64) ([]engine.Numbered, error) {
			part, err := read(first, last)
			return part, s.storageError(ctx, err)
		})(yield)
	}
}

// runsOn returns records of the current version that include all those of the
// days.
func (s *Store) runsOn(ctx context.Context, of *engine.Version, days oda.Days) (engine.Runs, error) {
	var last, after int64
	var packed, firsts []int64
	err := s.reading(ctx, func(ctx context.Context, conn *pgxpool.Conn) error {
		return conn.QueryRow(ctx, selectRunsOn, of.ID, int32(days.First), int32(days.Last)).Scan(&of.Number, &last, &after, &packed, &firsts)
	})
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, nil
	case unreadable(err):
		return nil, oda.Damaged(of.Ref, of.Number, 0).Because(err)
	case err != nil:
		return nil, err
	}
	runs, err := currentRuns(*of, packed, after, last)
	return runs.Within(engine.Parts(firsts)), err
}
