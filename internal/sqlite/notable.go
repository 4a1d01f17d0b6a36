package sqlite

import (
	"context"
	"fmt"
	"iter"

	"zombiezen.com/go/sqlite"

	"oda"
	"oda/internal/engine"
)

const (
	failedColumns = "at, c.identifier, sequence, sent, received, request, error, detail, device, recorded_by"
	insertFailed  = `INSERT INTO failed_calls (at, identifier, sequence, sent, received, request, error, detail, device, recorded_by, function)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
	longColumns = "at, c.identifier, sequence, received"
	insertLong  = "INSERT INTO long_calls (at, identifier, sequence, received) VALUES (?, ?, ?, ?)"
)

// noteCall adds a notable call to the indexes that have it.
func (t *txn) noteCall(e oda.CallEntry) error {
	if e.Outcome == oda.CallFailed {
		problem, detail := engine.ErrorColumns(&e)
		err := t.exec(insertFailed, int64(e.At), e.Block, e.Sequence, e.SentAt, e.ReceivedAt, e.Request, problem, detail, e.Device, e.By, oda.Function(e.Request))
		if err == nil {
			err = t.noteHours(&e)
		}
		if err != nil {
			return err
		}
	}
	if !e.IsLong() {
		return nil
	}
	return t.exec(insertLong, int64(e.At), e.Block, e.Sequence, int64(*e.ReceivedAt))
}

// failedCall reads failedColumns from one on.
func failedCall(stmt *sqlite.Stmt, from int) oda.CallEntry {
	text := func(column int) *string {
		if stmt.ColumnIsNull(from + column) {
			return nil
		}
		text := stmt.ColumnText(from + column)
		return &text
	}
	moment := func(column int) *oda.Moment {
		if stmt.ColumnIsNull(from + column) {
			return nil
		}
		at := oda.Moment(stmt.ColumnInt64(from + column))
		return &at
	}
	e := oda.CallEntry{
		At: oda.Instant(stmt.ColumnInt64(from)), Block: stmt.ColumnText(from + 1), Sequence: stmt.ColumnInt64(from + 2),
		Request: stmt.ColumnText(from + 5), Outcome: oda.CallFailed, Error: engine.ErrorOf(text(6), text(7)), Device: text(8), By: stmt.ColumnText(from + 9),
	}
	e.SetTimes(moment(3), moment(4))
	return e
}

// longCall reads the place in longColumns from one on.
func longCall(stmt *sqlite.Stmt, from int) oda.CallPlace {
	return oda.CallPlace{At: oda.Instant(stmt.ColumnInt64(from)), Block: stmt.ColumnText(from + 1), Sequence: stmt.ColumnInt64(from + 2)}
}

// callsAtOnce is how many rows of the indexes are read at a time. In between, nothing is
// held in the database.
const callsAtOnce = 500

// FailedCalls implements oda.NotableCalls.
func (s *Store) FailedCalls(ctx context.Context, asked oda.CallRange) iter.Seq2[oda.CallEntry, error] {
	return func(yield func(oda.CallEntry, error) bool) {
		current := make(map[string]engine.Runs)
		for calls, err := range s.failedIn(ctx, asked) {
			if err == nil {
				err = s.currentOf(ctx, calls, current)
			}
			if err != nil {
				yield(oda.CallEntry{}, storageError(err))
				return
			}
			for i := range calls {
				if current[calls[i].Block].Has(calls[i].Sequence) && !yield(calls[i], nil) {
					return
				}
			}
		}
	}
}

// failedIn yields the calls of a range that failed, in parts. Where something is asked
// for, it reads only the hours that have it.
func (s *Store) failedIn(ctx context.Context, asked oda.CallRange) iter.Seq2[[]oda.CallEntry, error] {
	where, args := "", []any(nil)
	var leads failedHour
	for what, value := range foundBy(asked.Block, asked.Device, asked.Error, asked.Function) {
		if leads.value == "" {
			leads = failedHour{what: what, value: value}
		}
		args = append(args, value)
		// With a plus, SQLite keeps to the order of the rows.
		where += fmt.Sprintf(" AND +%s = ?%d", failedBy[what], rangeArgs+len(args))
	}
	query := "SELECT " + failedColumns + " FROM failed_calls c WHERE " + inRange(asked.Backwards, where)
	rows := func(asked oda.CallRange) iter.Seq2[[]oda.CallEntry, error] {
		return rowsInRange(ctx, s, asked, query, args, func(stmt *sqlite.Stmt) oda.CallEntry { return failedCall(stmt, 0) }, (*oda.CallEntry).Place)
	}
	if leads.value == "" {
		return rows(asked)
	}
	return func(yield func([]oda.CallEntry, error) bool) {
		for hour, err := range s.hoursOf(ctx, asked, leads) {
			if err != nil {
				yield(nil, err)
				return
			}
			one := asked
			one.From, one.To = max(asked.From, hour*microsecondsOfHour), min(asked.To, (hour+1)*microsecondsOfHour)
			for calls, err := range rows(one) {
				if !yield(calls, err) || err != nil {
					return
				}
			}
		}
	}
}

// LongCalls implements oda.NotableCalls.
func (s *Store) LongCalls(ctx context.Context, asked oda.CallRange, received oda.Instant) iter.Seq2[oda.CallPlace, error] {
	query := "SELECT " + longColumns + " FROM long_calls c WHERE " + inRange(asked.Backwards, fmt.Sprintf(" AND received > ?%d", rangeArgs+1))
	return func(yield func(oda.CallPlace, error) bool) {
		row := func(stmt *sqlite.Stmt) oda.CallPlace { return longCall(stmt, 0) }
		for places, err := range rowsInRange(ctx, s, asked, query, []any{int64(received)}, row, func(p *oda.CallPlace) oda.CallPlace { return *p }) {
			if err != nil {
				yield(oda.CallPlace{}, storageError(err))
				return
			}
			for _, place := range places {
				if !yield(place, nil) {
					return
				}
			}
		}
	}
}

// rangeArgs is how many parameters inRange has.
const rangeArgs = 7

// inRange returns the condition and the order of a query for calls between two places.
func inRange(backwards bool, where string) string {
	order := "ASC"
	if backwards {
		order = "DESC"
	}
	return fmt.Sprintf("(at, identifier, sequence) > (?1, ?2, ?3) AND (at, identifier, sequence) < (?4, ?5, ?6)%s ORDER BY at %[2]s, identifier %[2]s, sequence %[2]s LIMIT ?7",
		where, order)
}

// rowsInRange yields the rows of a query in parts.
func rowsInRange[T any](ctx context.Context, s *Store, asked oda.CallRange, query string, args []any, row func(*sqlite.Stmt) T, place func(*T) oda.CallPlace) iter.Seq2[[]T, error] {
	return func(yield func([]T, error) bool) {
		// No block has an empty identifier, so these are before all calls of their instants.
		first, end := oda.CallPlace{At: asked.From}, oda.CallPlace{At: asked.To}
		goOn := func(behind oda.CallPlace) {
			if asked.Backwards && behind.Compare(end) < 0 {
				end = behind
			} else if !asked.Backwards && behind.Compare(first) > 0 {
				first = behind
			}
		}
		if asked.Behind != nil {
			goOn(*asked.Behind)
		}
		for {
			var part []T
			c, err := s.readers.take(ctx)
			if err == nil {
				err = c.query(query, func(stmt *sqlite.Stmt) error {
					part = append(part, row(stmt))
					return nil
				}, append([]any{int64(first.At), first.Block, first.Sequence, int64(end.At), end.Block, end.Sequence, int64(callsAtOnce)}, args...)...)
				s.readers.give(c)
			}
			if !yield(part, err) || err != nil || len(part) < callsAtOnce {
				return
			}
			goOn(place(&part[len(part)-1]))
		}
	}
}

// currentOf adds the records of the current versions of those blocks that are not known.
func (s *Store) currentOf(ctx context.Context, calls []oda.CallEntry, known map[string]engine.Runs) error {
	for i := range calls {
		block := calls[i].Block
		if _, ok := known[block]; ok {
			continue
		}
		of := engine.Version{Ref: oda.Ref{Kind: oda.ExecutionBlock, ID: block}}
		c, err := s.readers.take(ctx)
		if err != nil {
			return err
		}
		_, _, known[block], err = c.runsNow(&of)
		s.readers.give(c)
		if err != nil {
			return err
		}
	}
	return nil
}
