package postgres

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"oda"
	"oda/internal/engine"
)

const (
	// statusColumns lists the columns that a statusRow reads. The sequence number is 0 if
	// there is no status.
	statusColumns = `coalesce(e.kind, 0::smallint), coalesce(e.identifier, ''), coalesce(e.sequence, 0), coalesce(e.version, 0), coalesce(e.status, ''), e.class,
		coalesce(e.reason, ''), coalesce(e.at, 0), coalesce(e.previous, ''), coalesce(e.current, false), coalesce(e.said_by, ''), coalesce(e.said_on, 0),
		e.key, e.key_digest, e.digest`

	// standingColumns lists the columns that standingIn reads.
	standingColumns = `coalesce(s.status, ''), s.class, coalesce(s.sequence, 0), coalesce(s.at, 0), coalesce(s.last, 0)`

	// joinStanding joins what the status of each entity of h is, if it has one.
	joinStanding = ` LEFT JOIN LATERAL (SELECT * FROM standings WHERE kind = h.kind AND identifier = h.identifier OFFSET 0) s ON true`

	selectStatus = `SELECT h.version, ` + standingColumns + `, ` + statusColumns + ` FROM heads h` + joinStanding + `
		LEFT JOIN LATERAL (SELECT * FROM statuses WHERE kind = h.kind AND identifier = h.identifier AND sequence = s.sequence OFFSET 0) e ON true
		WHERE h.kind = $1 AND h.identifier = $2`

	// selectStatusesBefore has a row without a status if there is none before.
	selectStatusesBefore = `SELECT coalesce(s.last, 0), ` + statusColumns + ` FROM heads h` + joinStanding + `
		LEFT JOIN LATERAL (SELECT * FROM statuses WHERE kind = h.kind AND identifier = h.identifier AND sequence < $3 AND sequence <= s.last
			ORDER BY sequence DESC LIMIT $4) e ON true
		WHERE h.kind = $1 AND h.identifier = $2`

	// selectSaidSince reads the next $4 entities that follow $2 and $3 in order.
	selectSaidSince = `SELECT DISTINCT kind, identifier FROM statuses WHERE said_on >= $1 AND (kind, identifier) > ($2, $3)
		ORDER BY kind, identifier LIMIT $4`

	// selectSaid reads statuses: $1 has their kinds, $2 their identifiers, $3 their sequence
	// numbers.
	selectSaid = `SELECT w.nth - 1, ` + statusColumns + ` FROM unnest($1::smallint[], $2::text[], $3::bigint[]) WITH ORDINALITY AS w (kind, identifier, sequence, nth)
		CROSS JOIN LATERAL (SELECT * FROM statuses WHERE kind = w.kind AND identifier = w.identifier AND sequence = w.sequence OFFSET 0) e`
)

// class is a class of a status as it is scanned. One that there is not is none; what was
// stored is judged by its digest.
type class oda.Class

// ScanInt64 implements pgtype.Int64Scanner.
func (c *class) ScanInt64(n pgtype.Int8) error {
	if *c = 0; n.Int64 > 0 && n.Int64 <= math.MaxUint8 {
		*c = class(n.Int64)
	}
	return nil
}

// standingIn returns where to scan the columns of a standing.
func standingIn(s *oda.Standing) []any {
	return []any{&s.Text, (*class)(&s.Class), &s.Sequence, &s.At, &s.Last}
}

// statusRow is the row of a status as it is scanned.
type statusRow struct {
	oda.Status
	kind      int16
	key       *string
	keyDigest oda.Digest
	digest    oda.Digest
}

// columns returns where to scan the row.
func (r *statusRow) columns() []any {
	return []any{
		&r.kind, &r.ID, &r.Sequence, &r.Version, &r.Text, (*class)(&r.Class), &r.Reason, &r.At, &r.Previous, &r.Current, &r.By, &r.On,
		&r.key, (*digest)(&r.keyDigest), (*digest)(&r.digest),
	}
}

// row returns what was scanned.
func (r *statusRow) row() *engine.StatusRow {
	r.Kind = oda.Kind(r.kind)
	row := &engine.StatusRow{Place: versionPlace(r.kind, r.ID), Status: r.Status}
	if r.key != nil {
		row.Key = &oda.Key{Value: *r.key, Digest: r.keyDigest}
	}
	return row
}

// checked is row, for a row that must be what was stored.
func (r *statusRow) checked() (*engine.StatusRow, error) {
	row := r.row()
	return row, row.Check(r.digest[:])
}

// Status implements oda.Engine.
func (s *Store) Status(ctx context.Context, ref oda.Ref) (*oda.Status, error) {
	var version int64
	var now oda.Standing
	var r statusRow
	err := s.reading(ctx, func(ctx context.Context, conn *pgxpool.Conn) error {
		return conn.QueryRow(ctx, selectStatus, int16(ref.Kind), ref.ID).Scan(append(append([]any{&version}, standingIn(&now)...), r.columns()...)...)
	})
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, oda.Missing(ref)
	case err != nil:
		return nil, s.storageError(ctx, err)
	case now.Sequence == 0:
		return now.Status(ref, version), nil
	case r.Sequence == 0:
		return nil, oda.LostStatus(ref, now.Sequence)
	}
	row, err := r.checked()
	if err != nil {
		return nil, err
	}
	return &row.Status, nil
}

// saidAtOnce is how many entities SaidSince reads with one query.
const saidAtOnce = 10_000

// SaidSince implements oda.Mover. It reads the whole table in order: an export, which asks,
// reads much more.
func (s *Store) SaidSince(ctx context.Context, since oda.Instant, emit func(oda.Ref) error) error {
	var last oda.Ref
	for {
		var refs []oda.Ref
		err := s.reading(ctx, func(ctx context.Context, conn *pgxpool.Conn) error {
			rows, err := conn.Query(ctx, selectSaidSince, int64(since), int16(last.Kind), last.ID, saidAtOnce)
			if err == nil {
				refs, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (ref oda.Ref, err error) {
					var kind int16
					err = row.Scan(&kind, &ref.ID)
					ref.Kind = oda.Kind(kind)
					return ref, err
				})
			}
			return err
		})
		if err != nil {
			return s.storageError(ctx, err)
		}
		for _, ref := range refs {
			if err := emit(ref); err != nil {
				return err
			}
		}
		if len(refs) < saidAtOnce {
			return nil
		}
		last = refs[len(refs)-1]
	}
}

// StatusesBefore implements oda.Engine.
func (s *Store) StatusesBefore(ctx context.Context, ref oda.Ref, before int64, limit int) (entries []oda.Status, err error) {
	known, last := false, int64(0)
	err = s.reading(ctx, func(ctx context.Context, conn *pgxpool.Conn) error {
		entries = nil
		rows, err := conn.Query(ctx, selectStatusesBefore, int16(ref.Kind), ref.ID, before, limit)
		if err != nil {
			return err
		}
		var r statusRow
		_, err = pgx.ForEachRow(rows, append([]any{&last}, r.columns()...), func() error {
			if known = true; r.Sequence == 0 {
				return nil
			}
			row, err := r.checked()
			entries = append(entries, row.Status)
			return err
		})
		return err
	})
	switch {
	case err != nil:
		return nil, s.storageError(ctx, err)
	case !known:
		return nil, oda.Missing(ref)
	}
	// SQL promises no order of what is joined.
	slices.SortFunc(entries, func(a, b oda.Status) int { return cmp.Compare(b.Sequence, a.Sequence) })
	next := min(before, last+1)
	for i := range entries {
		if next--; entries[i].Sequence != next {
			return nil, oda.LostStatus(ref, next)
		}
	}
	if len(entries) < limit && next > 1 {
		return nil, oda.LostStatus(ref, next-1)
	}
	return entries, nil
}

// addSaid adds to the changes that are statuses what was said.
func (s *Store) addSaid(ctx context.Context, changes []change) error {
	var kinds []int16
	var ids []string
	var sequences []int64
	var said []*change
	for i := range changes {
		if c := &changes[i]; c.Said != nil {
			kinds, ids, sequences, said = append(kinds, int16(c.Kind)), append(ids, c.ID), append(sequences, c.Said.Sequence), append(said, c)
		}
	}
	if len(said) == 0 {
		return nil
	}
	err := s.reading(ctx, func(ctx context.Context, conn *pgxpool.Conn) error {
		rows, err := conn.Query(ctx, selectSaid, kinds, ids, sequences)
		if err != nil {
			return err
		}
		var nth int
		var r statusRow
		_, err = pgx.ForEachRow(rows, append([]any{&nth}, r.columns()...), func() (err error) {
			said[nth].status, err = r.checked()
			return err
		})
		return err
	})
	if err != nil {
		return err
	}
	for _, c := range said {
		switch row := c.status; {
		case row == nil:
			return oda.LostStatus(c.Ref, c.Said.Sequence)
		case row.By != c.By || row.On != c.On || row.Version != c.Version:
			return oda.DamagedStatus(c.Ref, c.Said.Sequence).Because(errors.New("the log of changes says something else about it"))
		default:
			c.Said = row.Change().Said
		}
	}
	return nil
}
