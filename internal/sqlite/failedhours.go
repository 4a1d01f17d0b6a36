package sqlite

import (
	"context"
	"iter"

	"zombiezen.com/go/sqlite"

	"oda"
)

// The calls that failed are in the order of their times, and have no other index: each of
// block, device, error and function would make a call that failed cost a tenth more. The
// table failed_hours says in which hours each of these occurs. Most calls that fail are
// not the first of their kind in an hour, and do not touch it.

const microsecondsOfHour = 60 * 60 * 1_000_000

// failedBy are the columns of failed_calls whose hours are known, by their numbers in
// failed_hours.
var failedBy = [...]string{1: "identifier", 2: "device", 3: "error", 4: "function"}

// foundBy yields what is given of what failed calls are found by.
func foundBy(block, device, problem, function string) iter.Seq2[int64, string] {
	return func(yield func(int64, string) bool) {
		for i, value := range [...]string{block, device, problem, function} {
			if value != "" && !yield(int64(i+1), value) {
				return
			}
		}
	}
}

// failedHour is a row of failed_hours.
type failedHour struct {
	what  int64
	value string
	hour  oda.Instant // since 1970
}

// keptHours is how many rows the writer remembers, so that it need not look for them.
const keptHours = 4096

const insertHour = "INSERT INTO failed_hours (what, value, hour) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"

// noteHours says of a call that failed in which hour it was.
func (t *txn) noteHours(e *oda.CallEntry) error {
	text := func(s *string) string {
		if s == nil {
			return ""
		}
		return *s
	}
	problem := ""
	if e.Error != nil {
		problem = text(e.Error.Type)
	}
	for what, value := range foundBy(e.Block, text(e.Device), problem, oda.Function(e.Request)) {
		row := failedHour{what, value, hourOf(e.At)}
		if t.store.failedHours[row] {
			continue
		}
		if err := t.exec(insertHour, row.what, row.value, int64(row.hour)); err != nil {
			return err
		}
		if t.store.failedHours == nil || len(t.store.failedHours) >= keptHours {
			t.store.failedHours = make(map[failedHour]bool)
		}
		t.store.failedHours[row] = true
	}
	return nil
}

func hourOf(at oda.Instant) oda.Instant {
	hour := at / microsecondsOfHour
	if at%microsecondsOfHour < 0 {
		hour--
	}
	return hour
}

const (
	hoursForwards  = "SELECT hour FROM failed_hours WHERE what = ? AND value = ? AND hour BETWEEN ? AND ? ORDER BY hour LIMIT ?"
	hoursBackwards = "SELECT hour FROM failed_hours WHERE what = ? AND value = ? AND hour BETWEEN ? AND ? ORDER BY hour DESC LIMIT ?"
)

// hoursOf yields the hours of a range in which there may be what leads, in order.
func (s *Store) hoursOf(ctx context.Context, asked oda.CallRange, leads failedHour) iter.Seq2[oda.Instant, error] {
	first, last, query := hourOf(asked.From), hourOf(asked.To), hoursForwards
	if behind := asked.Behind; behind != nil && asked.Backwards {
		last = min(last, hourOf(behind.At))
	} else if behind != nil {
		first = max(first, hourOf(behind.At))
	}
	if asked.Backwards {
		query = hoursBackwards
	}
	return func(yield func(oda.Instant, error) bool) {
		for {
			var part []oda.Instant
			c, err := s.readers.take(ctx)
			if err == nil {
				err = c.query(query, func(stmt *sqlite.Stmt) error {
					part = append(part, oda.Instant(stmt.ColumnInt64(0)))
					return nil
				}, leads.what, leads.value, int64(first), int64(last), int64(callsAtOnce))
				s.readers.give(c)
			}
			if err != nil {
				yield(0, err)
				return
			}
			for _, hour := range part {
				if !yield(hour, nil) {
					return
				}
			}
			if len(part) < callsAtOnce {
				return
			}
			if asked.Backwards {
				last = part[len(part)-1] - 1
			} else {
				first = part[len(part)-1] + 1
			}
		}
	}
}
