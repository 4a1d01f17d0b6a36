package postgres

import (
	"context"
	"encoding/json"

	"github.com/jackc/pgx/v5"

	"oda"
	"oda/internal/engine"
	"oda/internal/engine/migrate"
)

// creationsStep seals first versions again whose entities were created by somebody else, or
// earlier, as some that were imported: the seal did not cover that. A row that does not fit
// its seal keeps it.
func creationsStep(rows int) step {
	return step{
		Number: 14, Name: "seals of creations", Checksum: "seals of creations 1", Beside: true,
		Work: func(ctx context.Context, tx pgx.Tx, at string) (migrate.Part, error) {
			var after oda.Ref
			if at != "" {
				if err := json.Unmarshal([]byte(at), &after); err != nil {
					return migrate.Part{}, err
				}
			}
			return sealCreations(ctx, tx, after, rows)
		},
	}
}

// sealCreations seals the next versions behind an entity.
func sealCreations(ctx context.Context, tx pgx.Tx, after oda.Ref, rows int) (migrate.Part, error) {
	found, err := tx.Query(ctx, `SELECT v.kind, v.identifier, v.stored_by, v.stored_on, v.sequence_before, v.sequence_after, v.runs, v.slots, length(v.text), v.digest, v.seal,
			h.created_by, h.created_on
		FROM heads h JOIN versions v ON v.kind = h.kind AND v.identifier = h.identifier AND v.version = 1
		WHERE (h.kind, h.identifier) > ($1, $2) AND (h.created_by <> v.stored_by OR h.created_on <> v.stored_on) ORDER BY h.kind, h.identifier LIMIT $3`,
		int16(after.Kind), after.ID, rows)
	if err != nil {
		return migrate.Part{}, err
	}
	var (
		batch  pgx.Batch
		n      int
		kind   int16
		length int
		runs   []int64
		slots  []int32
		seal   []byte
		m      oda.Metadata
		row    engine.VersionRow
	)
	_, err = pgx.ForEachRow(found, []any{
		&kind, &after.ID, &row.By, &row.On, &row.Before, &row.After, &runs, &slots, &length, (*digest)(&row.Digest), &seal, &m.CreatedBy, &m.CreatedOn,
	}, func() error {
		n++
		after.Kind = oda.Kind(kind)
		var damage, damaged error
		one := engine.VersionRow{Place: versionPlace(kind, after.ID), Version: 1, By: row.By, On: row.On, Before: row.Before, After: row.After, Digest: row.Digest}
		one.Runs, damage = decodeRuns(runs)
		one.Slots, damaged = decodeSlots(slots, length)
		if damage != nil || damaged != nil || !one.Seal().Fits(seal) {
			return nil
		}
		one.OfEntity(m)
		again := one.Seal()
		batch.Queue("UPDATE versions SET seal = $3 WHERE kind = $1 AND identifier = $2 AND version = 1", kind, after.ID, again[:])
		return nil
	})
	if err == nil {
		err = tx.SendBatch(ctx, &batch).Close()
	}
	if err != nil {
		return migrate.Part{}, err
	}
	at, err := json.Marshal(after)
	return migrate.Part{At: string(at), End: n < rows}, err
}
