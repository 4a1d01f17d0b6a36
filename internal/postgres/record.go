package postgres

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"oda"
)

// addRecords moves the head of each block once, by as many records as come for
// it, and adds the records behind it. It is the whole transaction. The blocks
// come in the order of their identifiers and are taken in it. A block that is
// not there gets nothing. Within a block, each record has an instant of its own
// that is later than the one before, whatever the clocks say. The index of
// heads follows ten times a second at most.
//
// If one of the keys is known, nothing happens. A key that becomes known while
// this waits for the head at which all who use it meet breaks the unique index,
// which undoes everything. The LIMIT keeps PostgreSQL from turning the search
// round, which would read all keys of the archive for each record.
const addRecords = `WITH known AS (
		SELECT FROM unnest($11::text[], $12::text[]) AS k (identifier, key)
		CROSS JOIN LATERAL (SELECT FROM records WHERE kind = 3 AND identifier = k.identifier AND key = k.key LIMIT 1) r
	), moved AS (
		UPDATE heads h SET last_sequence = h.last_sequence + b.records, last_modified_by = b.by,
			last_modified_on = greatest(h.last_modified_on, b.at) + b.records,
			listed_on = CASE WHEN greatest(h.last_modified_on, b.at) + b.records < h.listed_on + 100000 THEN h.listed_on
				ELSE greatest(h.last_modified_on, b.at) + b.records END
		FROM unnest($1::text[], $2::integer[], $3::text[], $4::bigint[]) WITH ORDINALITY AS b (identifier, records, by, at, nth)
		WHERE h.kind = 3 AND h.identifier = b.identifier AND NOT EXISTS (SELECT FROM known)
		RETURNING b.nth, h.identifier, h.last_sequence - b.records AS sequence, h.version, h.created_by, h.created_on,
			h.last_modified_on - b.records AS at
	), added AS (
		INSERT INTO records (kind, identifier, sequence, version, recorded_by, recorded_on, key, digest, text)
		SELECT 3, m.identifier, m.sequence + r.place, m.version, r.by, m.at + r.place, r.key, r.digest, r.text
		FROM unnest($5::integer[], $6::integer[], $7::text[], $8::text[], $9::bytea[], $10::bytea[])
			AS r (block, place, by, key, digest, text) JOIN moved m ON m.nth = r.block
	)
	SELECT nth - 1, sequence, version, created_by, created_on, at FROM moved`

// findRecords finds the records that are stored with a key, one row for each
// key that is known. It takes the heads, which says nothing new, but makes a
// commit of it that waits for the synchronous standby: what is answered again
// is there as well, also if the first answer was lost together with the wait
// for it.
const findRecords = `SELECT i.nth - 1, r.sequence, r.version, h.created_by, h.created_on, r.recorded_by, r.recorded_on, r.digest
	FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS i (identifier, key, nth)
	CROSS JOIN LATERAL (
		SELECT sequence, version, recorded_by, recorded_on, digest
		FROM records WHERE kind = 3 AND identifier = i.identifier AND key = i.key LIMIT 1
	) r
	JOIN heads h ON h.kind = 3 AND h.identifier = i.identifier
	FOR NO KEY UPDATE OF h`

// fresh is a record that is still to be stored, and where its answer goes.
type fresh struct {
	*oda.Addition
	request, record int
}

// recordAll stores the records of the requests, in one round trip where no key
// is known.
func recordAll(ctx context.Context, conn *pgx.Conn, requests []*waiting, answered []error) error {
	var records []fresh
	for i, w := range requests {
		for j := range w.adds {
			records = append(records, fresh{&w.adds[j], i, j})
		}
	}
	slices.SortStableFunc(records, func(a, b fresh) int { return strings.Compare(a.Block, b.Block) })
	// Between the two statements somebody may store one of the keys.
	for range tries {
		added, err := add(ctx, conn, records, requests, answered)
		if added || err != nil && !keyKnown(err) {
			return err
		}
		before := len(records)
		records, err = find(ctx, conn, records, requests, answered)
		if err != nil || len(records) == 0 || len(records) == before {
			return err
		}
	}
	return oda.Errorf(oda.Overloaded, "The same records are being sent by several at once. Nothing was stored. Try again shortly.")
}

// keyKnown says that a transaction was undone because of a key.
func keyKnown(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && e.Code == codeUnique && e.ConstraintName == "records_key"
}

// add stores records, which are in the order of their blocks. It says whether
// any were: none are if a key is known, or if no block is there.
func add(ctx context.Context, conn *pgx.Conn, records []fresh, requests []*waiting, answered []error) (added bool, err error) {
	var (
		ids, blockBy []string
		counts       []int32
		at           []int64
		starts       []int // of the blocks, in records

		blocks, places = make([]int32, len(records)), make([]int32, len(records))
		by             = make([]string, len(records))
		keys           = make([]*string, len(records))
		digests, texts = make([][]byte, len(records)), make([][]byte, len(records))

		keyIDs, onlyKeys = []string{}, []string{}
	)
	for i, r := range records {
		if i == 0 || records[i-1].Block != r.Block {
			ids, blockBy, counts, at = append(ids, r.Block), append(blockBy, ""), append(counts, 0), append(at, 0)
			starts = append(starts, i)
		}
		b := len(ids) - 1
		counts[b]++
		blockBy[b] = r.By
		at[b] = max(at[b], int64(r.At)-int64(counts[b]))
		blocks[i], places[i], by[i], texts[i] = int32(len(ids)), counts[b], r.By, r.Record
		if r.Key != nil {
			keys[i], digests[i] = &r.Key.Value, r.Key.Digest[:]
			keyIDs, onlyKeys = append(keyIDs, r.Block), append(onlyKeys, r.Key.Value)
		}
	}
	rows, err := conn.Query(ctx, addRecords, ids, counts, blockBy, at, blocks, places, by, keys, digests, texts, keyIDs, onlyKeys)
	if err != nil {
		return false, err
	}
	var b int
	var before oda.Recorded
	m := &before.Metadata
	_, err = pgx.ForEachRow(rows, []any{&b, &before.Sequence, &m.Version, &m.CreatedBy, &m.CreatedOn, &m.LastModifiedOn}, func() error {
		added = true
		for i, r := range records[starts[b] : starts[b]+int(counts[b])] {
			recorded := before
			recorded.Sequence += int64(i) + 1
			recorded.Metadata.LastModifiedBy = r.By
			recorded.Metadata.LastModifiedOn += oda.Instant(i) + 1
			requests[r.request].recorded[r.record], answered[r.request] = recorded, nil
		}
		return nil
	})
	return added && err == nil, err
}

// find answers the records whose key is known, and gives the others. A request
// with a known key that came with another body adds nothing.
func find(ctx context.Context, conn *pgx.Conn, records []fresh, requests []*waiting, answered []error) ([]fresh, error) {
	ids, keys := make([]string, len(records)), make([]*string, len(records))
	for i, r := range records {
		ids[i] = r.Block
		if r.Key != nil {
			keys[i] = &r.Key.Value
		}
	}
	rows, err := conn.Query(ctx, findRecords, ids, keys)
	if err != nil {
		return nil, err
	}
	known, refused := make([]bool, len(records)), make([]bool, len(requests))
	var i int
	var first oda.Recorded
	var digest []byte
	m := &first.Metadata
	_, err = pgx.ForEachRow(rows, []any{&i, &first.Sequence, &m.Version, &m.CreatedBy, &m.CreatedOn, &m.LastModifiedBy, &m.LastModifiedOn, &digest}, func() error {
		r := records[i]
		known[i] = true
		if err := r.Key.Check(digest); err != nil {
			refused[r.request], answered[r.request] = true, err
		} else if !refused[r.request] {
			requests[r.request].recorded[r.record], answered[r.request] = first, nil
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	var left []fresh
	for i, r := range records {
		if !known[i] && !refused[r.request] {
			left = append(left, r)
		}
	}
	return left, nil
}
