package postgres

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"oda"
	"oda/internal/engine"
)

// failedColumns are what scanFailed reads.
const failedColumns = "identifier, at, sequence, sent, received, request, error, detail, device, recorded_by"

// scanFailed reads a call that failed, and other columns before it.
func scanFailed(row pgx.Row, before ...any) (e oda.CallEntry, err error) {
	var sent, received *int64
	var kind, detail *string
	err = row.Scan(append(before, &e.Block, &e.At, &e.Sequence, &sent, &received, &e.Request, &kind, &detail, &e.Device, &e.By)...)
	e.SetTimes((*oda.Moment)(sent), (*oda.Moment)(received))
	e.Outcome, e.Error = oda.CallFailed, engine.ErrorOf(kind, detail)
	return e, err
}

// callsAtOnce is how many rows of the indexes are read at a time. In between, nothing is
// held in the database.
const callsAtOnce = 500

// FailedCalls implements oda.NotableCalls.
func (s *Store) FailedCalls(ctx context.Context, asked oda.CallRange) iter.Seq2[oda.CallEntry, error] {
	return func(yield func(oda.CallEntry, error) bool) {
		current := make(map[string]engine.Runs)
		query, filters := failedInRange(asked)
		read := func(ctx context.Context, conn *pgxpool.Conn, bounds []any) ([]oda.CallEntry, error) {
			rows, err := conn.Query(ctx, query, append(bounds, filters...)...)
			if err != nil {
				return nil, err
			}
			calls, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (oda.CallEntry, error) { return scanFailed(row) })
			if err != nil {
				return nil, err
			}
			return calls, currentOf(ctx, conn, calls, current)
		}
		for call, err := range callsInRange(ctx, s, asked, read, (*oda.CallEntry).Place) {
			if err != nil {
				yield(oda.CallEntry{}, err)
				return
			}
			if current[call.Block].Has(call.Sequence) && !yield(call, nil) {
				return
			}
		}
	}
}

// LongCalls implements oda.NotableCalls.
func (s *Store) LongCalls(ctx context.Context, asked oda.CallRange, received oda.Instant) iter.Seq2[oda.CallPlace, error] {
	asked = oda.CallRange{From: asked.From, To: asked.To, Behind: asked.Behind, Backwards: asked.Backwards}
	query := "SELECT at, identifier, sequence FROM long_calls WHERE " + inRange("", asked.Backwards, " AND received > $8")
	read := func(ctx context.Context, conn *pgxpool.Conn, bounds []any) ([]oda.CallPlace, error) {
		rows, err := conn.Query(ctx, query, append(bounds, int64(received))...)
		if err != nil {
			return nil, err
		}
		return pgx.CollectRows(rows, pgx.RowToStructByPos[oda.CallPlace])
	}
	return callsInRange(ctx, s, asked, read, func(p *oda.CallPlace) oda.CallPlace { return *p })
}

// failedInRange returns the query for calls that failed, and its parameters from $8 on. The
// first column that is asked for leads to its index. The others are written so that they do
// not: to sort what another index leads to would read all of that.
func failedInRange(asked oda.CallRange) (query string, args []any) {
	leading, where := "", ""
	if asked.Block != "" {
		leading, where = "identifier", " AND kind = 3"
	}
	for _, filter := range []struct{ column, value string }{{"device", asked.Device}, {"error", asked.Error}, {"function", asked.Function}} {
		if filter.value == "" {
			continue
		}
		args = append(args, filter.value)
		if leading == "" {
			leading, where = filter.column, " AND "+filter.column+" IS NOT NULL"
		} else {
			where += fmt.Sprintf(" AND %s || '' = $%d", filter.column, 7+len(args))
		}
	}
	return "SELECT " + failedColumns + " FROM failed_calls WHERE " + inRange(leading, asked.Backwards, where), args
}

// inRange returns the condition and the order of a query for calls between two places, $1 to
// $3 and $4 to $6, and $7 at most. If a column other than the identifier leads, it has the
// value $8. PostgreSQL does not know from a range that the column has one value, so only an
// index that begins with it has the order.
func inRange(leading string, backwards bool, where string) string {
	place, low, high := "at, identifier, sequence", "$1::bigint, $2::text, $3::bigint", "$4::bigint, $5::text, $6::bigint"
	switch leading {
	case "":
	case "identifier":
		place, low, high = "identifier, at, sequence", "$2::text, $1::bigint, $3::bigint", "$5::text, $4::bigint, $6::bigint"
	default:
		place, low, high = leading+", "+place, "$8::text, "+low, "$8::text, "+high
	}
	order := place
	if backwards {
		order = strings.ReplaceAll(place, ",", " DESC,") + " DESC"
	}
	return fmt.Sprintf("(%s) > (%s) AND (%[1]s) < (%[3]s)%s ORDER BY %s LIMIT $7", place, low, high, where, order)
}

// callsInRange yields calls in the order of their places. It reads them in parts, by what
// read does with the parameters of inRange.
func callsInRange[T any](ctx context.Context, s *Store, asked oda.CallRange, read func(context.Context, *pgxpool.Conn, []any) ([]T, error), place func(*T) oda.CallPlace) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, text := range []string{asked.Block, asked.Device, asked.Error, asked.Function} {
			if !isText(text) {
				return // nothing has that name
			}
		}
		low, high := first(asked.From), first(asked.To)
		for behind := asked.Behind; ; {
			switch {
			case behind == nil:
			case asked.Backwards && behind.Compare(high) < 0:
				high = *behind
			case !asked.Backwards && behind.Compare(low) > 0:
				low = *behind
			}
			var part []T
			err := s.reading(ctx, func(ctx context.Context, conn *pgxpool.Conn) (err error) {
				part, err = read(ctx, conn, append(bound(low, asked.Block), append(bound(high, asked.Block), callsAtOnce)...))
				return err
			})
			if err != nil {
				var none T
				yield(none, s.storageError(ctx, err))
				return
			}
			for i := range part {
				if !yield(part[i], nil) {
					return
				}
			}
			if len(part) < callsAtOnce {
				return
			}
			next := place(&part[len(part)-1])
			behind = &next
		}
	}
}

// first returns the place before all calls of a time and later.
func first(at oda.Instant) oda.CallPlace { return oda.CallPlace{At: at, Sequence: math.MinInt64} }

// bound returns a place as parameters of inRange. Among the calls of one block it is the
// place in that block that is there in the order of all calls.
func bound(p oda.CallPlace, block string) []any {
	if block != "" {
		switch cmp.Compare(p.Block, block) {
		case -1:
			p.Sequence = math.MinInt64
		case 1:
			p.Sequence = math.MaxInt64
		}
		p.Block = block
	}
	return []any{int64(p.At), p.Block, p.Sequence}
}

// selectRunsOf is selectRuns for several blocks.
const selectRunsOf = `SELECT h.identifier, h.version, h.last_sequence, coalesce(v.sequence_after, -1), v.runs FROM unnest($1::text[]) AS w (identifier)
	CROSS JOIN LATERAL (SELECT * FROM heads h WHERE ` + isBlock + ` AND h.identifier = w.identifier OFFSET 0) h
	LEFT JOIN LATERAL (SELECT sequence_after, runs FROM versions
		WHERE kind = 3 AND identifier = h.identifier AND version = h.version OFFSET 0) v ON true`

// currentOf adds the records of the current versions of those blocks that are not known.
func currentOf(ctx context.Context, conn *pgxpool.Conn, calls []oda.CallEntry, known map[string]engine.Runs) error {
	unknown := make(map[string]bool)
	for i := range calls {
		if _, ok := known[calls[i].Block]; !ok {
			unknown[calls[i].Block] = true
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	rows, err := conn.Query(ctx, selectRunsOf, slices.Sorted(maps.Keys(unknown)))
	if err != nil {
		return err
	}
	of := engine.Version{Ref: oda.Ref{Kind: oda.ExecutionBlock}}
	var last, after int64
	var packed []int64
	_, err = pgx.ForEachRow(rows, []any{&of.ID, &of.Number, &last, &after, &packed}, func() (err error) {
		known[of.ID], err = currentRuns(of, packed, after, last)
		return err
	})
	if unreadable(err) {
		return oda.Damaged(of.Ref, of.Number, 0).Because(err)
	}
	return err
}
