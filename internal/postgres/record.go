package postgres

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"oda"
)

// addRecords updates the head of each block once, for all of its records, and adds
// the records. It is the whole transaction. The blocks are in the order of their
// identifiers and are locked in that order. A block that does not exist gets
// nothing. Within a block, each record has a later instant than the one before,
// whatever the clocks say; that is the rule of Metadata.Touched. The index of heads
// is updated at most ten times a second.
//
// If one of the keys is known, nothing happens. All requests with the same key meet
// at the same head. If a key becomes known while the statement waits for that head,
// the unique index is violated, and everything is rolled back. The LIMIT keeps
// PostgreSQL from reversing the search, which would read all keys of the archive for
// each record.
//
// The last record of each block is part of the block's parameters. Earlier ones are
// separate, with how many places they are ahead of it. So if each block has one
// record, there is nothing to join.
//
// The records of each block must be on one day, and the head must say that the index
// of days has that day up to their sequence numbers. A block for which that does not
// hold gets nothing here. Records that do not say when their call was made are on the
// day of their recording, so that must be before the end of the day ($17).
//
// The statement itself bounds the wait for locks ($18), before it takes one. A
// separate statement would be one more for each record.
//
// The row for the log of changes takes its number once all heads are updated
// (numbering.go). The last records of a block that one user sent ($19 says how many)
// are part of the block's parameters; if other users sent some before them, these are
// separate ($20 to $23). The first part of the statement runs last, and so does this
// one, so a record that is refused takes no number.
//
// If the callers are bound to telescopes ($24), a block that has another one gets nothing.
// This is the rule of Append.Admit. It is judged on the head as it is once it is locked.
const addRecords = recordsBegin + recordsFrom + recordsOnDay + recordsAdded + recordsAnswer

// addRecordsOnDays is addRecords for records of any days. It adds them to the
// index of days: $25 to $28 are spans of records, one for each day.
const addRecordsOnDays = recordsBegin + recordsNewDay + recordsFrom + recordsAdded + recordsOnDays + recordsAnswer

// These are the same where some of the records are notable calls (notable.go).
var (
	addRecordsNotable       = recordsBegin + recordsFrom + recordsOnDay + recordsAdded + withNotable(recordsNotable, 25) + recordsAnswer
	addRecordsOnDaysNotable = recordsBegin + recordsNewDay + recordsFrom + recordsAdded + recordsOnDays + withNotable(recordsNotable, 29) + recordsAnswer
)

// recordOfKey is the record of the block k.identifier with the key k.key, if there is
// one. It does not ask for the kind: only the index of keys begins with the identifier.
const recordOfKey = "(SELECT * FROM records WHERE identifier = k.identifier AND key = k.key LIMIT 1)"

// isBlock is a condition on heads. PostgreSQL plans it without knowing the value. If it
// knew, and its statistics were from a time when there were few blocks, it would look for
// an identifier in the index by modification, and read the entries of all blocks.
const isBlock = "h.kind = (SELECT 3::smallint)"

const (
	recordsBegin = `WITH known AS (
		SELECT FROM unnest($14::text[], $15::text[]) AS k (identifier, key) CROSS JOIN LATERAL ` + recordOfKey + ` r
	), moved AS (
		UPDATE heads h SET last_sequence = h.last_sequence + b.records, last_modified_by = b.by,
			last_modified_on = greatest(h.last_modified_on, b.at) + b.records,
			listed_on = CASE WHEN greatest(h.last_modified_on, b.at) + b.records < h.listed_on + 100000 THEN h.listed_on
				ELSE greatest(h.last_modified_on, b.at) + b.records END`
	recordsFrom = `
		FROM unnest($1::text[], $2::integer[], $3::bigint[], $4::text[], $5::text[], $6::bytea[], $7::bytea[], $16::integer[], $17::bigint[], $19::integer[])
			WITH ORDINALITY AS b (identifier, records, at, by, key, digest, text, day, until, same, nth)
		WHERE ` + isBlock + ` AND h.identifier = b.identifier AND NOT EXISTS (SELECT FROM known)
			AND ($24::text[] IS NULL OR h.telescope IS NULL OR h.telescope = ANY ($24))
			AND (SELECT set_config('lock_timeout', $18, true)) <> ''`
	recordsOnDay = ` AND h.call_day = b.day AND h.last_sequence + b.records <= h.calls_to
			AND greatest(h.last_modified_on, b.at) + b.records < b.until`
	recordsNewDay = `, call_day = coalesce(b.day, ((greatest(h.last_modified_on, b.at) + b.records` + dayOf + `)::integer),
			calls_to = ((h.last_sequence + b.records - 1) / 4096 + 1) * 4096`
	recordsAdded = `
		RETURNING b.nth, h.identifier, h.version, h.created_by, h.created_on, h.last_modified_by, h.last_modified_on, h.last_sequence,
			b.key, b.digest, b.text, b.same
	), logged AS (
		` + newChanges + `SELECT ` + nextNumber + ` AS number, sum((last - first + 1)::integer) AS width,
			array_agg(ARRAY[identifier, by]) AS names, array_agg(ARRAY[0, version, first, last, recorded_on]) AS places
		FROM (SELECT m.identifier, u.by, m.version, m.last_sequence - u.first AS first, m.last_sequence - u.last AS last,
				m.last_modified_on - u.last AS recorded_on
			FROM unnest($20::integer[], $21::integer[], $22::integer[], $23::text[]) AS u (block, first, last, by) JOIN moved m ON m.nth = u.block
			UNION ALL
			SELECT identifier, last_modified_by, version, last_sequence - same + 1, last_sequence, last_modified_on FROM moved) u
		HAVING count(*) > 0) c
	), added AS (
		INSERT INTO records (kind, identifier, sequence, version, recorded_by, recorded_on, key, digest, text, seal)
		SELECT 3, identifier, last_sequence, version, last_modified_by, last_modified_on, key, digest, text,
			archive_seal_of_record(identifier, last_sequence, version, last_modified_by, last_modified_on, key, digest) FROM moved
		UNION ALL
		SELECT 3, m.identifier, m.last_sequence - r.ahead, m.version, r.by, m.last_modified_on - r.ahead, r.key, r.digest, r.text,
			archive_seal_of_record(m.identifier, m.last_sequence - r.ahead, m.version, r.by, m.last_modified_on - r.ahead, r.key, r.digest)
		FROM unnest($8::integer[], $9::integer[], $10::text[], $11::text[], $12::bytea[], $13::bytea[])
			AS r (block, ahead, by, key, digest, text) JOIN moved m ON m.nth = r.block
	)`
	recordsOnDays = `, noted AS (
		INSERT INTO call_days (kind, identifier, day, part, first)
		SELECT 3, m.identifier, on_day, part, greatest(m.last_sequence - d.first, (part - 1) * 4096 + 1)
		FROM unnest($25::integer[], $26::integer[], $27::integer[], $28::integer[]) AS d (block, first, last, day) JOIN moved m ON m.nth = d.block
		CROSS JOIN LATERAL generate_series((m.last_sequence - d.first - 1) / 4096 + 1, (m.last_sequence - d.last - 1) / 4096 + 1) AS part
		CROSS JOIN LATERAL generate_series(coalesce(d.day, (m.last_modified_on - d.first` + dayOf + `),
			coalesce(d.day, (m.last_modified_on - d.last` + dayOf + `)) AS on_day
		ON CONFLICT DO NOTHING
	)`
	recordsAnswer = `
	SELECT nth - 1, last_sequence, version, created_by, created_on, last_modified_on FROM moved`
)

// findRecords finds the records that are stored with a key. It has a row for each
// known key. It locks the heads, which makes it a write whose commit waits for the
// synchronous standby. So the standby has the records when a retry is answered, even
// if the first request did not wait for it.
const findRecords = `SELECT k.nth - 1, r.sequence, r.version, h.created_by, h.created_on, r.recorded_by, r.recorded_on, r.digest
	FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS k (identifier, key, nth) CROSS JOIN LATERAL ` + recordOfKey + ` r
	JOIN heads h ON ` + isBlock + ` AND h.identifier = k.identifier AND ($3::text[] IS NULL OR h.telescope IS NULL OR h.telescope = ANY ($3))
	FOR NO KEY UPDATE OF h`

// fresh is a record that is not yet stored, with the request that gets its answer.
type fresh struct {
	*waiting
	nth int // within its request
}

// key returns the key of the record, empty if it was sent without one.
func (f fresh) key() string { return f.Records[f.nth].Key }

// day returns the day of the call.
func (f fresh) day() oda.Day { return f.keys[f.nth].Day }

// appendAll stores the records of the requests, in one round trip if no key is known
// and the index of days already has their days. It waits no longer than patience for
// a head that another session holds. Requests that are bound to telescopes come after
// the others, those with the same telescopes together.
func (s *Store) appendAll(ctx context.Context, conn *pgx.Conn, requests []*waiting, patience time.Duration) error {
	bound := slices.IndexFunc(requests, func(w *waiting) bool { return w.Telescopes != nil })
	if bound < 0 {
		return s.appendFor(ctx, conn, nil, requests, patience)
	}
	for _, alike := range byTelescopes(requests) {
		var err error
		if t := alike[0].Telescopes; t == nil {
			err = s.appendFor(ctx, conn, nil, alike, patience)
		} else {
			err = s.appendBound(ctx, conn, t.Names(), alike, patience)
		}
		if err != nil {
			return err
		}
		noteStored(alike)
	}
	return nil
}

// noteStored notes which requests are stored, whatever happens to the others.
func noteStored(requests []*waiting) {
	for _, w := range requests {
		w.final = w.final || w.answer == nil
	}
}

// appendFor is appendAll for requests with the same telescopes, nil if they are not
// bound to any.
func (s *Store) appendFor(ctx context.Context, conn *pgx.Conn, telescopes []string, requests []*waiting, patience time.Duration) error {
	var records []fresh
	for _, w := range requests {
		if w.final {
			continue
		}
		w.receipts = make([]oda.Receipt, len(w.Records))
		w.answer = missing(w)
		for i := range w.Records {
			records = append(records, fresh{w, i})
		}
	}
	slices.SortStableFunc(records, func(a, b fresh) int { return strings.Compare(a.Block, b.Block) })
	if len(records) == 1 {
		if added, err := s.appendOne(ctx, conn, telescopes, records[0], patience); added || err != nil && !keyKnown(err) {
			return err
		}
	} else if b := batchOf(records); b.expectedBy(&s.hints) {
		_, err := b.add(ctx, conn, addRecords, telescopes, patience, &s.hints)
		if err != nil && !keyKnown(err) {
			return err
		}
		if err == nil {
			records = markFinal(records)
		}
	}
	if len(records) == 0 {
		return nil
	}
	// Another request may store one of the keys between the two statements.
	for range tries {
		added, err := batchOf(records).add(ctx, conn, addRecordsOnDays, telescopes, patience, &s.hints)
		if added || err != nil && !keyKnown(err) {
			return err
		}
		before := len(records)
		records, err = find(ctx, conn, telescopes, records, patience)
		if err != nil || len(records) == 0 || len(records) == before {
			return err
		}
	}
	return oda.Errorf(oda.Overloaded, "Several clients are sending the same records at once. Nothing was stored by this request. Try again shortly.")
}

// addRecord is addRecords for a single record, which is the usual case while few
// clients record. Without arrays it takes a fifth less time (docs/storage.md), and
// another tenth less if it need not look for a key. There is a longer one of each for a
// notable call (notable.go).
//
//	$1 block   $2 now   $3 user   $4 day   $5 until   $6 key, or null   $7 digest   $8 text   $9 patience
//	$10 telescopes, or null
const (
	addRecord             = addRecordBegin + addRecordRest + addRecordAnswer
	addKeyedRecord        = addRecordBegin + addRecordKey + addRecordRest + addRecordAnswer
	addNotableRecord      = addRecordBegin + addRecordRest + recordNotable + addRecordAnswer
	addKeyedNotableRecord = addRecordBegin + addRecordKey + addRecordRest + recordNotable + addRecordAnswer
)

const addRecordBegin = `WITH moved AS (
		UPDATE heads h SET last_sequence = h.last_sequence + 1, last_modified_by = $3, last_modified_on = greatest(h.last_modified_on + 1, $2),
			listed_on = CASE WHEN greatest(h.last_modified_on + 1, $2) < h.listed_on + 100000 THEN h.listed_on
				ELSE greatest(h.last_modified_on + 1, $2) END
		WHERE ` + isBlock + ` AND h.identifier = $1 AND h.call_day = $4 AND h.last_sequence < h.calls_to AND greatest(h.last_modified_on + 1, $2) < $5
			AND ($10::text[] IS NULL OR h.telescope IS NULL OR h.telescope = ANY ($10)) AND set_config('lock_timeout', $9, true) <> ''`

const addRecordKey = ` AND NOT EXISTS (SELECT FROM (VALUES ($1::text, $6::text)) AS k (identifier, key) CROSS JOIN LATERAL ` + recordOfKey + ` r)`

const addRecordRest = `
		RETURNING h.version, h.created_by, h.created_on, h.last_modified_on, h.last_sequence
	), logged AS (
		` + newChanges + `SELECT ` + nextNumber + ` AS number, 1 AS width, ARRAY[$1, $3] AS names,
			ARRAY[0, version, last_sequence, last_sequence, last_modified_on] AS places FROM moved) c
	), added AS (
		INSERT INTO records (kind, identifier, sequence, version, recorded_by, recorded_on, key, digest, text, seal)
		SELECT 3, $1, last_sequence, version, $3, last_modified_on, $6, $7, $8,
			archive_seal_of_record($1, last_sequence, version, $3, last_modified_on, $6, $7) FROM moved
	)`

const addRecordAnswer = `
	SELECT last_sequence, version, created_by, created_on, last_modified_on FROM moved`

// appendOne stores one record if the index of days should have its day. It reports
// whether the record is stored.
func (s *Store) appendOne(ctx context.Context, conn *pgx.Conn, telescopes []string, r fresh, patience time.Duration) (added bool, err error) {
	day, until := r.day().Or(r.At), int64(math.MaxInt64)
	if !s.hints.has(r.Block, day) {
		return false, nil
	}
	if r.day() == oda.DayOfRecording {
		until = int64((day + 1).Begin())
	}
	record, receipt := &r.Records[r.nth], &r.receipts[r.nth]
	m := &receipt.Metadata
	sql, keyed := addRecord, addKeyedRecord
	args := []any{
		r.Block, int64(r.At), r.By, int32(day), until, keyOrNull(record.Key), r.digests[r.nth][:], record.Text, milliseconds(patience), telescopes,
	}
	if call := r.keys[r.nth].Notable; call != nil {
		sql, keyed = addNotableRecord, addKeyedNotableRecord
		args = append(args, notableArgs(call)...)
	}
	if record.Key != "" {
		sql = keyed
	}
	err = conn.QueryRow(ctx, sql, args...).Scan(&receipt.Sequence, &m.Version, &m.CreatedBy, &m.CreatedOn, &m.LastModifiedOn)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	if err == nil {
		m.LastModifiedBy = r.By
		r.answer = nil
	}
	return err == nil, err
}

// keyKnown reports whether a transaction was rolled back because of a known key. No
// other unique index can be violated, except those of numbers. The name of the index is
// not compared, since that of a partition differs.
func keyKnown(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && e.Code == codeUnique && !isOldNumber(e)
}

// rows holds parameters of addRecords, with one element for each row.
type rows struct {
	by      []string
	keys    []*string
	digests [][]byte
	texts   [][]byte
}

func (r *rows) add(f fresh) {
	record := &f.Records[f.nth]
	r.by, r.keys = append(r.by, f.By), append(r.keys, keyOrNull(record.Key))
	r.digests, r.texts = append(r.digests, f.digests[f.nth][:]), append(r.texts, record.Text)
}

// keyOrNull returns a key as it is stored.
func keyOrNull(key string) *string {
	if key == "" {
		return nil
	}
	return &key
}

// batch holds records to be added, by block, as parameters of addRecords.
type batch struct {
	blocks        [][]fresh
	ids           []string
	counts        []int32
	at            []int64
	last, others  rows
	block, ahead  []int32
	keyed, keysOf []string
	day           []int32 // of the calls of a block, as far as it is known
	until         []int64 // the end of that day, if it depends on the time of recording
	mixed         bool    // a block has calls of several days
	same          []int32 // how many records at the end of a block one user sent
	before        senders // of the records before them
	notable       notable
}

// senders holds parameters of addRecords: sequences of records that one user sent,
// with how many places their ends are ahead of the last record of the block.
type senders struct {
	block, first, last []int32
	by                 []string
}

// batchOf returns a batch of records, which must be in the order of their blocks.
func batchOf(records []fresh) *batch {
	b := &batch{}
	for begin, end := 0, 0; begin < len(records); begin = end {
		for end = begin; end < len(records) && records[end].Block == records[begin].Block; end++ {
		}
		b.addBlock(records[begin:end])
	}
	return b
}

func (b *batch) addBlock(records []fresh) {
	b.blocks, b.ids, b.counts = append(b.blocks, records), append(b.ids, records[0].Block), append(b.counts, int32(len(records)))
	instant, until := int64(math.MinInt64), int64(math.MaxInt64)
	day := records[0].day().Or(records[0].At)
	for i, r := range records {
		instant = max(instant, int64(r.At)-int64(i)-1)
		if key := r.key(); key != "" {
			b.keyed, b.keysOf = append(b.keyed, r.Block), append(b.keysOf, key)
		}
		if r.day() == oda.DayOfRecording {
			until = int64((day + 1).Begin())
		}
		b.mixed = b.mixed || r.day().Or(r.At) != day
		ahead := len(records) - 1 - i
		if call := r.keys[r.nth].Notable; call != nil {
			b.notable.add(len(b.ids), ahead, r.By, call)
		}
		if ahead > 0 {
			b.others.add(r)
			b.block, b.ahead = append(b.block, int32(len(b.ids))), append(b.ahead, int32(ahead))
		} else {
			b.last.add(r)
		}
	}
	b.at, b.day, b.until = append(b.at, instant), append(b.day, int32(day)), append(b.until, until)
	b.addSenders(records)
}

// addSenders notes who sent the records of a block.
func (b *batch) addSenders(records []fresh) {
	for begin, end := 0, 0; begin < len(records); begin = end {
		for end = begin; end < len(records) && records[end].By == records[begin].By; end++ {
		}
		if end == len(records) {
			b.same = append(b.same, int32(end-begin))
			return
		}
		s := &b.before
		s.block, s.by = append(s.block, int32(len(b.ids))), append(s.by, records[begin].By)
		s.first, s.last = append(s.first, int32(len(records)-1-begin)), append(s.last, int32(len(records)-end))
	}
}

// expectedBy reports whether the index of days should have what addRecords needs.
func (b *batch) expectedBy(h *hints) bool {
	if b.mixed {
		return false
	}
	for i, block := range b.ids {
		if !h.has(block, oda.Day(b.day[i])) {
			return false
		}
	}
	return true
}

// add stores the records. It reports whether any were stored: none are if a key is
// known or no block exists.
func (b *batch) add(ctx context.Context, conn *pgx.Conn, sql string, telescopes []string, patience time.Duration, h *hints) (added bool, err error) {
	args := []any{
		b.ids, b.counts, b.at, b.last.by, b.last.keys, b.last.digests, b.last.texts,
		b.block, b.ahead, b.others.by, b.others.keys, b.others.digests, b.others.texts, b.keyed, b.keysOf,
		b.day, b.until, milliseconds(patience), b.same, b.before.block, b.before.first, b.before.last, b.before.by, telescopes,
	}
	withNotable := addRecordsNotable
	if sql == addRecordsOnDays {
		withNotable = addRecordsOnDaysNotable
		last, all := b.onDays()
		args[15] = last
		args = append(args, all.block, all.first, all.last, all.day)
	}
	if len(b.notable.block) > 0 {
		sql, args = withNotable, append(args, b.notable.args()...)
	}
	var i int
	var newest oda.Receipt
	m := &newest.Metadata
	row := []any{&i, &newest.Sequence, &m.Version, &m.CreatedBy, &m.CreatedOn, &m.LastModifiedOn}
	answer, err := conn.Query(ctx, sql, args...)
	if err != nil {
		return false, err
	}
	_, err = pgx.ForEachRow(answer, row, func() error {
		added = true
		for nth, r := range b.blocks[i] {
			ahead := len(b.blocks[i]) - 1 - nth
			receipt := newest
			receipt.Sequence -= int64(ahead)
			receipt.Metadata.LastModifiedBy = r.By
			receipt.Metadata.LastModifiedOn -= oda.Instant(ahead)
			r.receipts[r.nth], r.answer = receipt, nil
			if ahead == 0 {
				h.note(r.Block, r.day().Or(m.LastModifiedOn))
			}
		}
		return nil
	})
	return added && err == nil, err
}

// onDays returns the further parameters of addRecordsOnDays: the day of the last
// record of each block, and the spans of all days.
func (b *batch) onDays() (last []*int32, all spans) {
	last = make([]*int32, len(b.blocks))
	for i, block := range b.blocks {
		keys := make([]oda.CallKeys, len(block))
		for nth, r := range block {
			keys[nth].Day = r.day()
		}
		last[i] = dayOrNull(keys[len(keys)-1].Day)
		all.add(i+1, keys, func(nth int) int { return len(keys) - 1 - nth })
	}
	return last, all
}

// markFinal marks the answers of stored records as final, whatever happens to the rest.
// It returns the rest.
func markFinal(records []fresh) (rest []fresh) {
	for _, r := range records {
		if r.answer == nil {
			r.final = true
		} else {
			rest = append(rest, r)
		}
	}
	return rest
}

// find answers the records whose key is known, and returns the others. If a known
// key came with another body, nothing of that request is added. A request with
// nothing left to store is answered.
func find(ctx context.Context, conn *pgx.Conn, telescopes []string, records []fresh, patience time.Duration) ([]fresh, error) {
	ids, keys := make([]string, len(records)), make([]*string, len(records))
	for i, r := range records {
		ids[i], keys[i] = r.Block, keyOrNull(r.key())
	}
	known, refused := make([]bool, len(records)), make(map[*waiting]int) // refused for the first key that is wrong
	var i int
	var first oda.Receipt
	var digest []byte
	m := &first.Metadata
	row := []any{&i, &first.Sequence, &m.Version, &m.CreatedBy, &m.CreatedOn, &m.LastModifiedBy, &m.LastModifiedOn, &digest}
	err := patiently(ctx, conn, patience, findRecords, []any{ids, keys, telescopes}, row, func() error {
		r := records[i]
		known[i] = true
		nth, wrong := refused[r.waiting]
		if err := r.CheckKey(r.nth, r.digests[r.nth], digest); err != nil && (!wrong || r.nth < nth) {
			refused[r.waiting], r.answer = r.nth, err
		} else if err == nil && !wrong {
			r.receipts[r.nth], r.answer = first, nil
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, r := range records {
		r.final = true
	}
	var left []fresh
	for i, r := range records {
		if _, wrong := refused[r.waiting]; !known[i] && !wrong {
			left = append(left, r)
			r.final, r.answer = false, missing(r.waiting)
		}
	}
	return left, nil
}
