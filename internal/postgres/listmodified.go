package postgres

import (
	"container/heap"
	"context"
	"errors"
	"math"
	"time"

	"oda"
)

// The index by modification lags behind: it has a head under listed_on, which is
// less than lag earlier than its last_modified_on (schema). A listing walks
// along the index, holds back heads that come too early, and emits them in turn.
const lag = oda.Instant(100 * time.Millisecond / time.Microsecond)

// selectModified reads a part of the index, after ($5, $6).
const selectModified = `SELECT identifier, last_modified_on, listed_on FROM heads
	WHERE kind = $1 AND (listed_on, identifier) > ($5, $6) AND listed_on <= $4
		AND (last_modified_on, identifier) > ($2, $3) AND last_modified_on <= $4
	ORDER BY listed_on, identifier LIMIT $7`

// spare is how many more rows than its limit a page reads at once, for those that
// are held back.
const spare = 100

// errFull says that a page is full.
var errFull = errors.New("the page is full")

// listModified lists entities in the order of their modification. A page may take
// several statements if many are held back. Entities that change meanwhile move
// behind the places that were read.
func (s *Store) listModified(ctx context.Context, q oda.Query, emit func(id string, at oda.Instant) error) error {
	from, behind, to := q.Range()
	kept := &keptBack{limit: q.Limit, emit: emit}
	start := oda.Place{At: max(from, math.MinInt64+lag) - lag}
	var part *int
	if q.Limit > 0 {
		part = new(int)
		*part = q.Limit + spare
	}
	for {
		var row, listed oda.Place
		rows, err := s.stream(ctx, selectModified, []any{int16(q.Kind), int64(from), behind, int64(to), int64(start.At), start.ID, part},
			[]any{&row.ID, &row.At, &listed.At}, func() error {
				listed.ID = row.ID
				start = listed
				return kept.add(row, listed)
			})
		switch {
		case errors.Is(err, errFull):
			return nil
		case err != nil:
			return err
		case part == nil || rows < *part:
			if err := kept.flush(); !errors.Is(err, errFull) {
				return err
			}
			return nil
		}
	}
}

// keptBack holds places that came too early in the index. It is a heap with the
// first place on top.
type keptBack struct {
	places []oda.Place
	limit  int // of places to emit; 0 is no limit
	given  int
	emit   func(id string, at oda.Instant) error
}

// add adds the next place of the index. It emits the places that were held back and
// come before it, since nothing that follows can come before those.
func (k *keptBack) add(p, listed oda.Place) error {
	for len(k.places) > 0 && k.places[0].Compare(listed) < 0 {
		if err := k.give(heap.Pop(k).(oda.Place)); err != nil {
			return err
		}
	}
	if p == listed {
		return k.give(p)
	}
	heap.Push(k, p)
	return nil
}

// flush emits the remaining places at the end of the index.
func (k *keptBack) flush() error {
	for len(k.places) > 0 {
		if err := k.give(heap.Pop(k).(oda.Place)); err != nil {
			return err
		}
	}
	return nil
}

func (k *keptBack) give(p oda.Place) error {
	if err := k.emit(p.ID, p.At); err != nil {
		return err
	}
	if k.given++; k.given == k.limit {
		return errFull
	}
	return nil
}

// The methods of heap.Interface.

func (k *keptBack) Len() int           { return len(k.places) }
func (k *keptBack) Less(i, j int) bool { return k.places[i].Compare(k.places[j]) < 0 }
func (k *keptBack) Swap(i, j int)      { k.places[i], k.places[j] = k.places[j], k.places[i] }
func (k *keptBack) Push(p any)         { k.places = append(k.places, p.(oda.Place)) }

func (k *keptBack) Pop() any {
	last := k.places[len(k.places)-1]
	k.places = k.places[:len(k.places)-1]
	return last
}
