package postgres

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"oda"
	"oda/internal/engine"
)

// Bounds of reading the log.
const (
	roundsRead  = 1000 // rounds at a time
	numbersRead = 256  // numbers at first; twice as many each time after that
	numbersMost = 4096
)

const (
	// selectRounds reads rounds after a position ($1), up to another ($2).
	selectRounds = `SELECT after, last, runs FROM rounds
		WHERE after >= coalesce((SELECT max(after) FROM rounds WHERE after <= $1), 0) AND last > $1 AND last <= $2
		ORDER BY after LIMIT $3`

	// selectWritten reads what was written with the numbers of runs; $1 has their first
	// numbers, $2 their last ones.
	selectWritten = `SELECT c.* FROM unnest($1::bigint[], $2::bigint[]) AS run (first, last) CROSS JOIN LATERAL (
			SELECT number, width, names, places, seal FROM changes WHERE number BETWEEN run.first AND run.last) c`
)

// Changes implements oda.Log.
func (s *Store) Changes(ctx context.Context, after oda.Position, limit int) ([]oda.Change, oda.Position, error) {
	if limit < 1 {
		return nil, after, nil
	}
	if s.numbering.tail.End()-after < oda.Position(limit) {
		if err := s.numbering.catchUp(ctx); err != nil {
			return nil, 0, s.storageError(ctx, err)
		}
	}
	end := s.numbering.tail.End()
	if end < after {
		// The database was restored to an older state. Whoever has read on must not wait
		// for the log to get there again.
		return nil, 0, oda.LogEndsBefore(end, after)
	}
	r := changesReading{limit: limit, read: after}
	for r.read < end && !r.full {
		before := r.read
		err := s.readRounds(ctx, &r, end)
		if err == nil && r.read == before {
			err = oda.LostChange(before)
		}
		// Return what comes before the damage. The next call reports it.
		if err != nil && len(r.changes) == 0 {
			return nil, 0, s.storageError(ctx, err)
		}
		if err != nil {
			break
		}
	}
	return r.changes, r.read, nil
}

// End implements oda.Log.
func (s *Store) End(ctx context.Context) (oda.Position, error) {
	err := s.numbering.catchUp(ctx)
	return s.numbering.tail.End(), s.storageError(ctx, err)
}

// Await implements oda.Log.
func (s *Store) Await(ctx context.Context, after oda.Position) error {
	return s.numbering.await(ctx, after)
}

// changesReading is what one call has read from the log.
type changesReading struct {
	limit   int
	changes []oda.Change
	read    oda.Position // the last one that was read
	full    bool
}

// add adds the next change. If the read began in the middle of it, add adds the
// rest.
func (r *changesReading) add(c oda.Change) {
	if c.Position <= r.read || r.full {
		return
	}
	c = c.Behind(r.read)
	n := len(r.changes)
	switch {
	case n > 0 && r.changes[n-1].Join(c):
	case n == r.limit:
		r.full = true
		return
	default:
		r.changes = append(r.changes, c)
	}
	r.read = c.Position
}

// run is a range of numbers of a round.
type run struct {
	first, last int64
	end         oda.Position // with which the round ends; 0 if this is not its last run
}

// readRounds reads the changes of some rounds, until there are as many as asked for.
func (s *Store) readRounds(ctx context.Context, r *changesReading, end oda.Position) error {
	position, runs, err := s.rounds(ctx, r.read, end, min(roundsRead, r.limit-len(r.changes)+1))
	if err != nil {
		return err
	}
	begin := position
	var whole []oda.Change // of the current round, which is served only if nothing is missing
	for size := int64(numbersRead); len(runs) > 0 && !r.full; size = min(2*size, numbersMost) {
		var part []run
		part, runs = take(runs, size)
		all, err := s.written(ctx, part)
		if err == nil {
			err = s.addSaid(ctx, all)
		}
		if err != nil {
			return err
		}
		for _, one := range part {
			for _, c := range within(all, one) {
				position += c.width
				c.Position = position
				whole = append(whole, c.Change)
			}
			if one.end == 0 {
				continue
			}
			if one.end != position {
				return oda.LostChange(begin)
			}
			for _, c := range whole {
				r.add(c)
			}
			begin, whole = position, whole[:0]
		}
	}
	return nil
}

// rounds returns the numbers of rounds after a position, and the position after which
// they begin.
func (s *Store) rounds(ctx context.Context, after, end oda.Position, most int) (begin oda.Position, runs []run, err error) {
	err = s.reading(ctx, func(ctx context.Context, conn *pgxpool.Conn) error {
		rows, err := conn.Query(ctx, selectRounds, int64(after), int64(end), most)
		if err != nil {
			return err
		}
		runs = nil
		var first, last, reached oda.Position
		var numbers []int64
		_, err = pgx.ForEachRow(rows, []any{&first, &last, &numbers}, func() error {
			switch {
			case runs == nil && first <= after:
				begin = first
			case first != reached || len(runs) == 0:
				return oda.LostChange(max(reached, after))
			}
			if len(numbers) == 0 || len(numbers)%2 != 0 {
				return oda.LostChange(first)
			}
			for i := 0; i < len(numbers); i += 2 {
				runs = append(runs, run{first: numbers[i], last: numbers[i+1]})
			}
			runs[len(runs)-1].end = last
			reached = last
			return nil
		})
		return err
	})
	return begin, runs, err
}

// take cuts runs with size numbers off the front.
func take(runs []run, size int64) (part, rest []run) {
	for i, one := range runs {
		length := one.last - one.first + 1
		if length > size {
			rest = slices.Clone(runs[i:])
			rest[0].first += size
			if size > 0 {
				part = append(part, run{first: one.first, last: one.first + size - 1})
			}
			return part, rest
		}
		part = append(part, one)
		size -= length
	}
	return part, nil
}

// change is a change of the log that has no position yet.
type change struct {
	oda.Change
	number  int64
	width   oda.Position      // how many positions it takes
	records engine.Run        // that were recorded, or that came with the version; empty for a status
	status  *engine.StatusRow // that was said
}

// within returns the changes whose numbers are in the run. All changes are in the
// order of their numbers.
func within(all []change, one run) []change {
	place := func(number int64) int {
		i, _ := slices.BinarySearchFunc(all, number, func(c change, number int64) int { return cmp.Compare(c.number, number) })
		return i
	}
	return all[place(one.first):max(place(one.first), place(one.last+1))]
}

// written reads what was written with the numbers, in the order of the numbers.
func (s *Store) written(ctx context.Context, runs []run) (all []change, err error) {
	firsts, lasts := make([]int64, len(runs)), make([]int64, len(runs))
	for i, one := range runs {
		firsts[i], lasts[i] = one.first, one.last
	}
	err = s.reading(ctx, func(ctx context.Context, conn *pgxpool.Conn) error {
		all = nil
		rows, err := conn.Query(ctx, selectWritten, firsts, lasts)
		if err != nil {
			return err
		}
		var number, width int64
		var names pgtype.FlatArray[string]
		var places pgtype.FlatArray[int64]
		var seal []byte
		_, err = pgx.ForEachRow(rows, []any{&number, &width, &names, &places, &seal}, func() (err error) {
			if !sealOfChange(number, width, names, places).Fits(seal) {
				return errChanges
			}
			all, err = appendWritten(all, number, names, places)
			return err
		})
		return err
	})
	slices.SortStableFunc(all, func(a, b change) int { return cmp.Compare(a.number, b.number) })
	return all, err
}

// sealOfChange returns the seal of a row of the table changes.
func sealOfChange(number, width int64, names []string, places []int64) engine.Seal {
	var room [512]byte
	b := strconv.AppendInt(append(room[:0], "change\n"...), number, 10)
	b = append(strconv.AppendInt(append(b, '\n'), width, 10), '\n')
	b = append(b, strings.Join(names, "\n")...)
	for _, place := range places {
		b = strconv.AppendInt(append(b, '\n'), place, 10)
	}
	return engine.SealOf(b)
}

const (
	// placesEach is how many places of a row of the table changes a change takes.
	placesEach = 5

	// kindsSaid is what is added there to the kind of an entity whose status was said.
	kindsSaid = 16
)

// appendWritten appends the changes in a row of the table changes.
func appendWritten(all []change, number int64, names []string, places []int64) ([]change, error) {
	if len(names)%2 != 0 || len(places)*2 != len(names)*placesEach {
		return nil, errChanges
	}
	for ; len(names) > 0; names, places = names[2:], places[placesEach:] {
		c := change{number: number, records: engine.Run{First: places[2], Last: places[3]}}
		c.Ref, c.By = oda.Ref{Kind: oda.Kind(places[0]), ID: names[0]}, names[1]
		c.Version, c.On = places[1], oda.Instant(places[4])
		c.width = oda.Position(c.records.Last - c.records.First + 1)
		switch {
		case c.Kind == 0:
			c.Kind, c.FirstSequence, c.LastSequence = oda.ExecutionBlock, c.records.First, c.records.Last
		case c.Kind > kindsSaid:
			c.Kind, c.Said, c.records = c.Kind-kindsSaid, &oda.Said{Sequence: c.records.Last}, engine.Run{First: 1}
		default:
			c.width++ // for the version itself, which comes after its records
		}
		all = append(all, c)
	}
	return all, nil
}

var errChanges = oda.Errorf(oda.DamagedText, "A row of the table changes is damaged in the archive's database. "+oda.FindDamage)
