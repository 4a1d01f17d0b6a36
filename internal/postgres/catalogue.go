package postgres

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"

	"github.com/jackc/pgx/v5"

	"oda"
	"oda/internal/engine/migrate"
)

// entry is what the catalogue holds about an entity.
type entry struct {
	telescope *string
	summary   []byte
	terms     string // separated by spaces
}

func entryOf(ref oda.Ref, x *oda.Extract) entry {
	s := x.Summary()
	e := entry{summary: s.Pack(), terms: strings.TrimSpace(s.TermList(ref))}
	if s.Telescope != "" {
		e.telescope = &s.Telescope
	}
	return e
}

// catalogueStep fills the catalogue with the stored entities.
func catalogueStep(rows int, log *slog.Logger) step {
	return step{
		Number: 6, Name: "fill the catalogue", Checksum: "fill the catalogue 1",
		Work: func(ctx context.Context, tx pgx.Tx, at string) (migrate.Part, error) {
			return fillCatalogue(ctx, tx, at, min(rows, enteredAtOnce), log)
		},
	}
}

// Bounds of one part of the step.
const (
	enteredAtOnce = 1000     // entities
	enteredBytes  = 16 << 20 // of their texts; the last text may exceed it
)

// damagedDocument is logged if a document cannot be read. One damaged document must
// not keep the archive from being opened.
const damagedDocument = "a stored document is damaged and is not in the catalogue; run oda verify"

const (
	// nextBodies reads the bodies after a head ($1, $2): at most $3 of them, and no
	// more after $4 bytes.
	nextBodies = `SELECT kind, identifier, slots, text FROM (
			SELECT h.kind, h.identifier, v.slots, v.text,
				sum(octet_length(v.text)) OVER (ORDER BY h.kind, h.identifier) - octet_length(v.text) AS before
			FROM heads h JOIN versions v USING (kind, identifier, version)
			WHERE (h.kind, h.identifier) > ($1, $2) ORDER BY h.kind, h.identifier LIMIT $3) part
		WHERE before < $4 ORDER BY kind, identifier`

	enterEntity = `WITH head AS (UPDATE heads SET telescope = $3, summary_hash = $4 WHERE kind = $1 AND identifier = $2),
			creation AS (UPDATE creations SET telescope = $3 WHERE kind = $1 AND identifier = $2 AND $3 IS NOT NULL)
		INSERT INTO catalogue (kind, identifier, summary, terms) VALUES ($1, $2, $5, array_to_tsvector(string_to_array($6, ' ')))`

	useCatalogue = `CREATE INDEX creations_telescope ON creations (kind, telescope, created_on, identifier) WHERE telescope IS NOT NULL;
		CREATE INDEX catalogue_terms ON catalogue USING gin (terms) WITH (fastupdate = on, gin_pending_list_limit = 512)`
)

// fillCatalogue does a part of the step: it enters the next entities, or makes the
// indexes once all are entered.
func fillCatalogue(ctx context.Context, tx pgx.Tx, at string, most int, log *slog.Logger) (migrate.Part, error) {
	var f filling
	var err error
	if at != "" {
		err = json.Unmarshal([]byte(at), &f)
	} else {
		err = tx.QueryRow(ctx, "SELECT sum(n)::bigint FROM counts").Scan(&f.Total)
	}
	if err != nil {
		return migrate.Part{}, err
	}
	if f.Filled {
		return migrate.Part{Done: f.Done, Total: f.Total, End: true}, script(ctx, tx, useCatalogue)
	}
	if err := enterNext(ctx, tx, &f, most, log); err != nil {
		return migrate.Part{}, err
	}
	text, err := json.Marshal(f)
	return migrate.Part{At: string(text), Done: f.Done, Total: f.Total}, err
}

// enterNext enters the next entities into the catalogue.
func enterNext(ctx context.Context, tx pgx.Tx, f *filling, most int, log *slog.Logger) error {
	rows, err := tx.Query(ctx, nextBodies, f.Kind, f.Identifier, most, enteredBytes)
	if err != nil {
		return err
	}
	var batch pgx.Batch
	var kind int16
	var id string
	var slots []int32
	var text []byte
	_, err = pgx.ForEachRow(rows, []any{&kind, &id, &slots, &text}, func() error {
		ref := oda.Ref{Kind: oda.Kind(kind), ID: id}
		var x *oda.Extract
		places, err := decodeSlots(slots, len(text))
		if err == nil {
			x, err = oda.ExtractOf(ref.Kind, oda.Body{Text: text, Slots: places})
		}
		if err != nil {
			log.Error(damagedDocument, "kind", ref.Kind.Collection(), "identifier", ref.ID, "error", err)
			x = oda.NoExtract(ref.Kind)
		}
		e := entryOf(ref, x)
		batch.Queue(enterEntity, kind, id, e.telescope, x.Hash(), e.summary, e.terms)
		return nil
	})
	if err != nil {
		return err
	}
	if f.Filled = batch.Len() == 0; f.Filled {
		return nil
	}
	f.Done += int64(batch.Len())
	f.Kind, f.Identifier = kind, id
	return tx.SendBatch(ctx, &batch).Close()
}
