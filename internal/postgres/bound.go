package postgres

import (
	"context"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"oda"
)

// byTelescopes returns the requests in groups with the same telescopes, in the order
// in which they came.
func byTelescopes(requests []*waiting) [][]*waiting {
	var groups [][]*waiting
	place := make(map[string]int)
	for _, w := range requests {
		names := "" // of all telescopes
		if w.Telescopes != nil {
			names = "bound\n" + strings.Join(w.Telescopes.Names(), "\n")
		}
		at, known := place[names]
		if !known {
			at = len(groups)
			place[names] = at
			groups = append(groups, nil)
		}
		groups[at] = append(groups[at], w)
	}
	return groups
}

// appendBound stores the records of requests that are bound to the same telescopes.
// A block that gets nothing is not stored, or is of another telescope.
func (s *Store) appendBound(ctx context.Context, conn *pgx.Conn, telescopes []string, requests []*waiting, patience time.Duration) error {
	for range judgeTries {
		if err := s.appendFor(ctx, conn, telescopes, requests, patience); err != nil {
			return err
		}
		noteStored(requests)
		var err error
		if requests, err = explain(ctx, conn, requests); err != nil || len(requests) == 0 {
			return err
		}
	}
	for _, w := range requests {
		w.answer = oda.Errorf(oda.Overloaded, "The block is changing too quickly. Nothing was stored. Try again shortly.")
	}
	return nil
}

// explain says why records were not added: the caller may not record into their
// block, or it is not stored. It returns the requests for which neither holds any
// more, because the block has changed since.
func explain(ctx context.Context, conn *pgx.Conn, requests []*waiting) (again []*waiting, err error) {
	var blocks []string
	for _, w := range requests {
		if oda.CodeOf(w.answer) == oda.NotFound {
			blocks = append(blocks, w.Block)
		}
	}
	if blocks == nil {
		return nil, nil
	}
	rows, err := conn.Query(ctx, "SELECT identifier, coalesce(telescope, '') FROM heads h WHERE "+isBlock+" AND identifier = ANY ($1)", blocks)
	if err != nil {
		return nil, err
	}
	var block, telescope string
	_, err = pgx.ForEachRow(rows, []any{&block, &telescope}, func() error {
		for _, w := range requests {
			if w.Block != block || oda.CodeOf(w.answer) != oda.NotFound {
				continue
			}
			if refusal := w.Admit(telescope); refusal != nil {
				w.answer = refusal
			} else {
				again = append(again, w)
			}
		}
		return nil
	})
	return again, err
}
