package postgres

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"oda"
)

// addRecords moves the head of each block once, by as many records as come for
// it, and adds the records behind it. It is the whole transaction. The blocks
// come in the order of their identifiers and are taken in it. A block that is
// not there gets nothing. Within a block, each record has an instant of its own
// that is later than the one before, whatever the clocks say: the rule of
// Metadata.Touched. The index of heads follows ten times a second at most.
//
// If one of the keys is known, nothing happens. A key that becomes known while
// this waits for the head at which all who use it meet breaks the unique index,
// which undoes everything. The LIMIT keeps PostgreSQL from turning the search
// round, which would read all keys of the archive for each record.
//
// The last record of each block comes with the block; those before it come by
// themselves, with how many places they are ahead of it. So where each block has
// one record, there is nothing to join.
const addRecords = `WITH known AS (
		SELECT FROM unnest($14::text[], $15::text[]) AS k (identifier, key)
		CROSS JOIN LATERAL (SELECT FROM records WHERE kind = 3 AND identifier = k.identifier AND key = k.key LIMIT 1) r
	), moved AS (
		UPDATE heads h SET last_sequence = h.last_sequence + b.records, last_modified_by = b.by,
			last_modified_on = greatest(h.last_modified_on, b.at) + b.records,
			listed_on = CASE WHEN greatest(h.last_modified_on, b.at) + b.records < h.listed_on + 100000 THEN h.listed_on
				ELSE greatest(h.last_modified_on, b.at) + b.records END
		FROM unnest($1::text[], $2::integer[], $3::bigint[], $4::text[], $5::text[], $6::bytea[], $7::bytea[])
			WITH ORDINALITY AS b (identifier, records, at, by, key, digest, text, nth)
		WHERE h.kind = 3 AND h.identifier = b.identifier AND NOT EXISTS (SELECT FROM known)
		RETURNING b.nth, h.identifier, h.version, h.created_by, h.created_on, h.last_modified_by, h.last_modified_on, h.last_sequence,
			b.key, b.digest, b.text
	), added AS (
		INSERT INTO records (kind, identifier, sequence, version, recorded_by, recorded_on, key, digest, text)
		SELECT 3, identifier, last_sequence, version, last_modified_by, last_modified_on, key, digest, text FROM moved
		UNION ALL
		SELECT 3, m.identifier, m.last_sequence - r.ahead, m.version, r.by, m.last_modified_on - r.ahead, r.key, r.digest, r.text
		FROM unnest($8::integer[], $9::integer[], $10::text[], $11::text[], $12::bytea[], $13::bytea[])
			AS r (block, ahead, by, key, digest, text) JOIN moved m ON m.nth = r.block
	)
	SELECT nth - 1, last_sequence, version, created_by, created_on, last_modified_on FROM moved`

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
	*waiting
	nth int // within its request
}

// key is the key of the record, nil where it came without one.
func (f fresh) key() *oda.Key { return f.keys.Of(f.nth) }

// appendAll stores the records of the requests, in one round trip where no key
// is known. It waits no longer than that for a head that somebody holds.
func appendAll(ctx context.Context, conn *pgx.Conn, requests []*waiting, patience time.Duration) error {
	var records []fresh
	for _, w := range requests {
		if w.settled {
			continue
		}
		w.receipts = make([]oda.Receipt, len(w.Records))
		w.answer = oda.Missing(oda.Ref{Kind: oda.ExecutionBlock, ID: w.Block})
		for i := range w.Records {
			records = append(records, fresh{w, i})
		}
	}
	slices.SortStableFunc(records, func(a, b fresh) int { return strings.Compare(a.Block, b.Block) })
	// Between the two statements somebody may store one of the keys.
	for range tries {
		added, err := add(ctx, conn, records, patience)
		if added || err != nil && !keyKnown(err) {
			return err
		}
		before := len(records)
		records, err = find(ctx, conn, records, patience)
		if err != nil || len(records) == 0 || len(records) == before {
			return err
		}
	}
	return oda.Errorf(oda.Overloaded, "Several clients are sending the same records at once. Nothing was stored by this request. Try again shortly.")
}

// keyKnown says that a transaction was undone because of a key. Nothing else can
// come twice. The index is not named: that of a partition has another name.
func keyKnown(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && e.Code == codeUnique
}

// rows are parameters of addRecords: one element for each row.
type rows struct {
	by      []string
	keys    []*string
	digests [][]byte
	texts   [][]byte
}

func (r *rows) add(f fresh) {
	var key *string
	var digest []byte
	if k := f.key(); k != nil {
		key, digest = &k.Value, k.Digest[:]
	}
	r.by, r.keys, r.digests, r.texts = append(r.by, f.By), append(r.keys, key), append(r.digests, digest), append(r.texts, f.Records[f.nth].Text)
}

// add stores records, which are in the order of their blocks. It says whether
// any were: none are if a key is known, or if no block is there.
func add(ctx context.Context, conn *pgx.Conn, records []fresh, patience time.Duration) (added bool, err error) {
	var (
		blocks        [][]fresh
		ids           []string
		counts        []int32
		at            []int64
		last, others  rows
		block, ahead  []int32
		keyed, keysOf []string
	)
	for begin, end := 0, 0; begin < len(records); begin = end {
		instant := int64(0)
		for end = begin; end < len(records) && records[end].Block == records[begin].Block; end++ {
			r := records[end]
			instant = max(instant, int64(r.At)-int64(end-begin)-1)
			if k := r.key(); k != nil {
				keyed, keysOf = append(keyed, r.Block), append(keysOf, k.Value)
			}
		}
		blocks, ids = append(blocks, records[begin:end]), append(ids, records[begin].Block)
		counts, at = append(counts, int32(end-begin)), append(at, instant)
		for i := begin; i < end-1; i++ {
			others.add(records[i])
			block, ahead = append(block, int32(len(ids))), append(ahead, int32(end-1-i))
		}
		last.add(records[end-1])
	}
	var b int
	var newest oda.Receipt
	m := &newest.Metadata
	err = patiently(ctx, conn, patience, addRecords, []any{
		ids, counts, at, last.by, last.keys, last.digests, last.texts,
		block, ahead, others.by, others.keys, others.digests, others.texts, keyed, keysOf,
	}, []any{&b, &newest.Sequence, &m.Version, &m.CreatedBy, &m.CreatedOn, &m.LastModifiedOn}, func() error {
		added = true
		for i, r := range blocks[b] {
			ahead := len(blocks[b]) - 1 - i
			receipt := newest
			receipt.Sequence -= int64(ahead)
			receipt.Metadata.LastModifiedBy = r.By
			receipt.Metadata.LastModifiedOn -= oda.Instant(ahead)
			r.receipts[r.nth], r.answer = receipt, nil
		}
		return nil
	})
	return added && err == nil, err
}

// find answers the records whose key is known, and gives the others. A request
// with a known key that came with another body adds nothing. One of which
// nothing is left to store has its answer.
func find(ctx context.Context, conn *pgx.Conn, records []fresh, patience time.Duration) ([]fresh, error) {
	ids, keys := make([]string, len(records)), make([]*string, len(records))
	for i, r := range records {
		ids[i] = r.Block
		if k := r.key(); k != nil {
			keys[i] = &k.Value
		}
	}
	known, refused := make([]bool, len(records)), make(map[*waiting]bool)
	var i int
	var first oda.Receipt
	var digest []byte
	m := &first.Metadata
	row := []any{&i, &first.Sequence, &m.Version, &m.CreatedBy, &m.CreatedOn, &m.LastModifiedBy, &m.LastModifiedOn, &digest}
	err := patiently(ctx, conn, patience, findRecords, []any{ids, keys}, row, func() error {
		r := records[i]
		known[i] = true
		if err := r.key().Check(digest); err != nil {
			refused[r.waiting], r.answer = true, err
		} else if !refused[r.waiting] {
			r.receipts[r.nth], r.answer = first, nil
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, r := range records {
		r.settled = true
	}
	var left []fresh
	for i, r := range records {
		if !known[i] && !refused[r.waiting] {
			left = append(left, r)
			r.settled = false
		}
	}
	return left, nil
}
