package postgres

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"unicode/utf8"

	"oda"
	"oda/internal/engine"
)

// The statements repeat rules of package oda: Judge, Metadata.Tag, and Put.Next. If
// a statement writes nothing, Judge says why.
//
// The parameters of a store are the same for all its forms:
//
//	$1 kind          $2 identifier     $3 creator        $4 modifier      $5 now
//	$6 version       $7 created_by     $8 created_on     $9 last_modified_by, $10 last_modified_on, as expected
//	$11 compare the last two           $12 last sequence as expected, or null
//	$13 tags one of which must match, or null            $14 tags none of which may match, or null
//	$15 new records  $16 runs, or null $17 slots         $18 text         $19 shard of the count
//	$20 a stored entity may be updated
//	$21 telescope, or null             $22 hash of the summary            $23 summary       $24 its terms
//	$25 digest of the text             $26 digests of the new records
const (
	insertHead = `INSERT INTO heads AS h (kind, identifier, version, created_by, created_on, last_modified_by, last_modified_on, last_sequence, listed_on,
			telescope, summary_hash)
		VALUES ($1, $2, 1, $3, $5, $3, $5, cardinality($15::bytea[]), $5, $21, $22)`
	updateHead = `SET version = h.version + 1, last_modified_by = $4, last_modified_on = greatest($5, h.last_modified_on + 1),
			last_sequence = h.last_sequence + cardinality($15::bytea[]), listed_on = greatest($5, h.last_modified_on + 1),
			telescope = $21, summary_hash = $22`
	headMatches = `$20::boolean AND h.version = $6 AND h.created_by = $7 AND h.created_on = $8
			AND (NOT $11::boolean OR h.last_modified_by = $9 AND h.last_modified_on = $10)
			AND ($12::bigint IS NULL OR h.last_sequence = $12)
			AND ($13::text[] IS NULL OR h.version || '-' || h.last_modified_on = ANY ($13))
			AND ($14::text[] IS NULL OR h.version || '-' || h.last_modified_on <> ALL ($14))`
	headReturns = ` RETURNING h.version, h.created_by, h.created_on, h.last_modified_by, h.last_modified_on, h.last_sequence`

	// The rest of a store follows from the head, and happens only with it.
	storeRest = `,
	creation AS (INSERT INTO creations (kind, identifier, created_by, created_on, telescope)
		SELECT $1, $2, created_by, created_on, $21 FROM head WHERE version = 1),
	entry AS (INSERT INTO catalogue (kind, identifier, summary, terms, created_on)
		SELECT $1, $2, $23, array_to_tsvector(string_to_array($24, ' ')), created_on FROM head WHERE version = 1),
	restated AS (UPDATE catalogue c SET summary = $23, terms = array_to_tsvector(string_to_array($24, ' ')) FROM head
		WHERE head.version > 1 AND c.kind = $1 AND c.identifier = $2 AND c.summary <> $23),
	moved AS (UPDATE creations c SET telescope = $21 FROM head
		WHERE head.version > 1 AND c.kind = $1 AND c.identifier = $2 AND c.telescope IS DISTINCT FROM $21),
	counted AS (UPDATE counts SET n = n + 1 WHERE kind = $1 AND shard = $19 AND EXISTS (SELECT FROM head WHERE version = 1)),
	recorded AS (INSERT INTO records (kind, identifier, sequence, version, recorded_by, recorded_on, text, digest, seal)
		SELECT $1, $2, r.sequence, head.version, head.last_modified_by, head.last_modified_on, r.text, r.digest,
			archive_seal_of_record($2, r.sequence, head.version, head.last_modified_by, head.last_modified_on, NULL, r.digest)
		FROM head CROSS JOIN LATERAL (SELECT head.last_sequence - cardinality($15::bytea[]) + nth AS sequence, text, digest
			FROM unnest($15::bytea[], $26::bytea[]) WITH ORDINALITY AS u (text, digest, nth)) r),
	body AS (INSERT INTO versions (kind, identifier, version, number, stored_by, stored_on, sequence_before, sequence_after, runs, slots, text, digest, seal)
		SELECT $1, $2, version, ` + nextNumber + `, last_modified_by, last_modified_on, last_sequence - cardinality($15::bytea[]), last_sequence, runs, $17, $18, $25,
			archive_seal_of_version($1, $2, version, last_modified_by, last_modified_on, last_sequence - cardinality($15::bytea[]), last_sequence, runs, $17, $25)
		FROM (SELECT head.*, `
	storeBody = storeRest + `$16::bigint[] AS runs FROM head) h)
	SELECT head.*, NULL::bigint[] FROM head`

	// A store that keeps the records reads the body of the previous version. The
	// statement sees the bodies that were committed when it began, but the head as it
	// is after the wait for its lock. So the head matches only if the statement sees
	// its body. If not, it writes nothing and is sent again. Records that came later
	// belong to the previous version, as Version.Current in internal/engine says.
	bodySeen = ` AND EXISTS (SELECT FROM versions v WHERE v.kind = h.kind AND v.identifier = h.identifier AND v.version = h.version
		AND v.sequence_after BETWEEN 0 AND h.last_sequence)`
	keepBody = `),
	before AS (SELECT CASE WHEN head.last_sequence = v.sequence_after THEN v.runs
			WHEN v.runs[cardinality(v.runs)] = v.sequence_after THEN v.runs[:cardinality(v.runs) - 1] || head.last_sequence
			ELSE coalesce(v.runs, '{}') || ARRAY[v.sequence_after + 1, head.last_sequence] END AS runs,
			v.runs IS NOT NULL OR head.last_sequence > v.sequence_after AS listed
		FROM head CROSS JOIN LATERAL (SELECT * FROM versions
			WHERE kind = $1 AND identifier = $2 AND version = head.version - 1 OFFSET 0) v)` + storeRest +
		`CASE WHEN version > 1 THEN (SELECT runs FROM before WHERE listed) ELSE $16::bigint[] END AS runs FROM head) h)
	SELECT head.*, (SELECT runs FROM before WHERE listed) FROM head`

	either = "WITH head AS (" + insertHead + " ON CONFLICT (kind, identifier) DO UPDATE " + updateHead + " WHERE " + headMatches
	next   = "WITH head AS (UPDATE heads h " + updateHead + " WHERE h.kind = $1 AND h.identifier = $2 AND $3::text IS NOT NULL AND " + headMatches

	// Records that come with a store are added to the index of days. $27 to $29 are
	// spans of them, one for each day: the places of the first and the last record,
	// and the day, or null for the day of the store.
	storeDays = `,
	noted AS (INSERT INTO call_days (kind, identifier, day, part, first)
		SELECT $1, $2, coalesce(d.day, (head.last_modified_on` + dayOf + `), part,
			greatest(head.last_sequence - cardinality($15::bytea[]) + d.first, (part - 1) * 4096 + 1)
		FROM head, unnest($27::integer[], $28::integer[], $29::integer[]) AS d (first, last, day)
		CROSS JOIN LATERAL generate_series((head.last_sequence - cardinality($15::bytea[]) + d.first - 1) / 4096 + 1,
			(head.last_sequence - cardinality($15::bytea[]) + d.last - 1) / 4096 + 1) AS part
		ON CONFLICT DO NOTHING)`

	// If the caller's role is bound to telescopes, the stored entity must be of one of
	// them, or be a Project that has none. This is the rule of Put.Admit; the number of
	// the parameter follows.
	headAdmits = ` AND (h.telescope IS NULL AND h.kind = 4 OR h.telescope = ANY (`

	storeEither     = either + headReturns + ")" + storeBody
	storeNext       = next + headReturns + ")" + storeBody
	storeEitherDays = either + headReturns + ")" + storeDays + storeBody
	storeNextDays   = next + headReturns + ")" + storeDays + storeBody
	keepEither      = either + bodySeen + headReturns + keepBody
	keepNext        = next + bodySeen + headReturns + keepBody
)

// boundStores are the statements for callers who are bound to telescopes, which are
// their last parameter.
var boundStores = map[string]string{
	storeEither:     bound(storeEither, headMatches, 27),
	storeNext:       bound(storeNext, headMatches, 27),
	storeEitherDays: bound(storeEitherDays, headMatches, 30),
	storeNextDays:   bound(storeNextDays, headMatches, 30),
	keepEither:      bound(keepEither, headMatches, 27),
	keepNext:        bound(keepNext, headMatches, 27),
	updateOnly:      updateOnlyBound,
	newOnly:         newOnly, // nothing is stored
}

// updateOnlyBound is updateOnly for such callers.
var updateOnlyBound = bound(updateOnly, "h.summary_hash = p.hash", 17)

// bound adds the rule about telescopes to a condition in a statement. They are the
// given parameter.
func bound(sql, condition string, parameter int) string {
	return strings.Replace(sql, condition, condition+headAdmits+"$"+strconv.Itoa(parameter)+"::text[]))", 1)
}

// updateOnly stores the next version of an entity that brings no new records and
// whose summary stays the same. It does what storeNext would do in that case, but
// PostgreSQL has half as many tables and indexes to open for it. updateTogether is
// updateOnly for several entities of one kind, which are the rows of p; all
// parameters except the kind are arrays. It looks each head up before it joins it by its
// place, and its limit says that there are few. Otherwise PostgreSQL may read all heads of
// the kind instead, if it knows little of them. The text of a single update, which may be
// long, is kept out of head: PostgreSQL would write what that returns to a temporary file.
//
//	$1 kind          $2 identifier     $3 modifier       $4 now
//	$5 version       $6 created_by     $7 created_on     $8 last_modified_by, $9 last_modified_on, as expected
//	$10 compare the last two           $11 last sequence as expected, or null
//	$12 runs, or null                  $13 slots         $14 text         $15 hash of the summary
//	$16 digest of the text
const (
	updateOnly = updateHeads + `(SELECT $2::text AS identifier, $3::text AS by, $4::bigint AS at, $5::bigint AS version, $6::text AS created_by,
			$7::bigint AS created_on, $8::text AS last_modified_by, $9::bigint AS last_modified_on, $10::boolean AS compare, $11::bigint AS last_sequence,
			$12::text AS runs, $13::text AS slots, $15::bigint AS hash, $16::bytea AS digest) p WHERE` + updateMatches + updateBody + "$14" + updateSeal + `
	SELECT version, created_by, created_on, last_modified_by, last_modified_on, last_sequence, NULL::bigint[] FROM head`
	updateTogether = updateHeads + `(SELECT * FROM unnest($2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::text[], $7::bigint[], $8::text[], $9::bigint[],
			$10::boolean[], $11::bigint[], $12::text[], $13::text[], $14::bytea[], $15::bigint[], $16::bytea[]) WITH ORDINALITY AS p (identifier, by, at,
			version, created_by, created_on, last_modified_by, last_modified_on, compare, last_sequence, runs, slots, text, hash, digest, nth)
			LIMIT cardinality($2::text[])) p
		CROSS JOIN LATERAL (SELECT ctid FROM heads WHERE kind = $1 AND identifier = p.identifier OFFSET 0) found` +
		" WHERE h.ctid = found.ctid AND" + updateMatches + ", p.text, p.nth" + updateBody + "text" + updateSeal + `
	SELECT nth - 1, version, created_by, created_on, last_modified_by, last_modified_on FROM head`

	updateHeads = `WITH head AS (UPDATE heads h
		SET version = h.version + 1, last_modified_by = p.by, last_modified_on = greatest(p.at, h.last_modified_on + 1),
			listed_on = greatest(p.at, h.last_modified_on + 1)
		FROM `
	updateMatches = `
			h.kind = $1 AND h.identifier = p.identifier AND h.version = p.version AND h.created_by = p.created_by AND h.created_on = p.created_on
			AND (NOT p.compare OR h.last_modified_by = p.last_modified_by AND h.last_modified_on = p.last_modified_on)
			AND (p.last_sequence IS NULL OR h.last_sequence = p.last_sequence) AND h.summary_hash = p.hash
		RETURNING h.*, p.runs::bigint[] AS runs, p.slots::integer[] AS slots, p.digest`
	updateBody = `),
	body AS (` + newBody + `SELECT $1, identifier, version, ` + nextNumber + `, last_modified_by, last_modified_on, last_sequence, last_sequence, runs, slots, `
	updateSeal = `, digest,
			archive_seal_of_version($1, identifier, version, last_modified_by, last_modified_on, last_sequence, last_sequence, runs, slots, digest) FROM head)`
)

// newOnly stores the first version of an entity that comes without records, or
// nothing if the entity exists. It does what storeEither would do in that case, but
// is much shorter. newTogether is newOnly for several entities of one kind; all
// parameters except the kind and the shard are arrays. Everything is known
// beforehand, so they only answer what was stored. The counts come after all heads,
// as in count.
//
//	$1 kind          $2 identifier     $3 creator        $4 now           $5 shard of the count
//	$6 it has a list of records        $7 slots          $8 text          $9 digest of the text    $10 seal
//	$11 telescope, or null             $12 hash of the summary            $13 summary              $14 its terms
const (
	newOnly = `WITH head AS (` + newHead + `VALUES ($1, $2, 1, $3, $4, $3, $4, 0, $4, $11, $12) ON CONFLICT DO NOTHING RETURNING 0::bigint AS nth),
	creation AS (` + newCreation + `SELECT $1, $2, $3, $4, $11 FROM head),
	entry AS (` + newEntry + `SELECT $1, $2, $13, array_to_tsvector(string_to_array($14, ' ')), $4 FROM head),
	counted AS (UPDATE counts SET n = n + 1 WHERE kind = $1 AND shard = $5 AND EXISTS (SELECT FROM head)),
	body AS (` + newBody + `SELECT $1, $2, 1, ` + nextNumber + `, $3, $4, 0, 0, CASE WHEN $6::boolean THEN '{}'::bigint[] END, $7::text::integer[], $8, $9, $10 FROM head)
	SELECT nth FROM head`

	newTogether = `WITH put AS (
		SELECT * FROM unnest($2::text[], $3::text[], $4::bigint[], $6::boolean[], $7::text[], $8::bytea[], $9::bytea[], $10::bytea[],
			$11::text[], $12::bigint[], $13::bytea[], $14::text[])
			WITH ORDINALITY AS u (identifier, by, at, listed, slots, text, digest, seal, telescope, hash, summary, terms, nth)),
	head AS (` + newHead + `SELECT $1, identifier, 1, by, at, by, at, 0, at, telescope, hash FROM put ON CONFLICT DO NOTHING RETURNING identifier),
	new AS (SELECT put.* FROM head JOIN put USING (identifier)),
	creation AS (` + newCreation + `SELECT $1, identifier, by, at, telescope FROM new),
	entry AS (` + newEntry + `SELECT $1, identifier, summary, array_to_tsvector(string_to_array(terms, ' ')), at FROM new),
	counted AS (UPDATE counts SET n = n + (SELECT count(*) FROM head) WHERE kind = $1 AND shard = $5),
	body AS (` + newBody + `SELECT $1, identifier, 1, ` + nextNumber + `, by, at, 0, 0, CASE WHEN listed THEN '{}'::bigint[] END, slots::integer[], text, digest, seal FROM new)
	SELECT nth - 1 FROM new`

	newHead = `INSERT INTO heads (kind, identifier, version, created_by, created_on, last_modified_by, last_modified_on,
			last_sequence, listed_on, telescope, summary_hash) `
	newCreation = `INSERT INTO creations (kind, identifier, created_by, created_on, telescope) `
	newEntry    = `INSERT INTO catalogue (kind, identifier, summary, terms, created_on) `
	newBody     = `INSERT INTO versions (kind, identifier, version, number, stored_by, stored_on, sequence_before, sequence_after, runs, slots, text, digest, seal) `
)

// store is the statement for one entity, and its result.
type store struct {
	sql    string
	args   []any
	put    *oda.Put
	entity *stored
	answer error
}

// statement returns the statement that carries out a put: one that creates or
// updates, or one that does only one of these. It returns nil if the put cannot
// match anything. A put with all metadata is almost always an update that leaves the
// summary as it is, so that is what the first try assumes.
func statement(p *oda.Put, shared sharing, shard int16, again bool) *store {
	st := unbound(p, shared, shard, again)
	if st != nil && p.Telescopes != nil {
		if st.sql != newOnly {
			st.args = append(st.args, p.Telescopes.Names())
		}
		st.sql = boundStores[st.sql]
	}
	return st
}

// unbound is statement for a caller who may write for all telescopes.
func unbound(p *oda.Put, shared sharing, shard int16, again bool) *store {
	expected, matchable := p.Expected.Matchable(p.Compare)
	create := p.Condition.Match == nil
	update := matchable && p.MayUpdate() && (p.Condition.NoneMatch == nil || !p.Condition.NoneMatch.Any)
	var match, noneMatch []string
	if m := p.Condition.Match; m != nil && !m.Any {
		match = possibleTexts(m.List)
	}
	if n := p.Condition.NoneMatch; n != nil {
		noneMatch = possibleTexts(n.List)
	}
	runs, texts, digests := shared.place(p)
	slots := encodeSlots(p.Body.Slots)
	if update && !again && p.Condition == (oda.Condition{}) && len(texts) == 0 && !p.KeepRecords {
		return &store{sql: updateOnly, put: p, args: []any{
			int16(p.Kind), p.ID, p.Modifier, int64(p.At),
			expected.Version, expected.CreatedBy, int64(expected.CreatedOn), expected.LastModifiedBy, int64(expected.LastModifiedOn),
			p.Compare&oda.FieldLastModifiedOn != 0, shared.lastSequence, arrayText(runs), arrayText(slots), p.Body.Text, p.Extract.Hash(), p.Body.Digest[:],
		}}
	}
	e := entryOf(p.Ref, p.Extract)
	if create && !update && len(p.Records) == 0 {
		first := engine.VersionRow{
			Place: versionPlace(int16(p.Kind), p.ID), Version: 1, By: p.Creator, On: p.At, Slots: p.Body.Slots, Digest: p.Body.Digest,
		}
		if p.Listed {
			first.Runs = engine.Runs{}
		}
		seal := first.Seal()
		return &store{sql: newOnly, put: p, args: []any{
			int16(p.Kind), p.ID, p.Creator, int64(p.At), shard, p.Listed, *arrayText(slots), p.Body.Text, p.Body.Digest[:], seal[:],
			e.telescope, p.Extract.Hash(), e.summary, e.terms,
		}}
	}
	args := []any{
		int16(p.Kind), p.ID, p.Creator, p.Modifier, int64(p.At),
		expected.Version, expected.CreatedBy, int64(expected.CreatedOn), expected.LastModifiedBy, int64(expected.LastModifiedOn),
		p.Compare&oda.FieldLastModifiedOn != 0, shared.lastSequence, match, noneMatch,
		texts, runs, slots, p.Body.Text, shard, update,
		e.telescope, p.Extract.Hash(), e.summary, e.terms, p.Body.Digest[:], digests,
	}
	st := &store{put: p, args: args}
	if len(texts) > 0 {
		var s spans
		s.add(0, oda.CallDays(texts), func(i int) int { return i + 1 })
		st.args = append(st.args, s.first, s.last, s.day)
	}
	switch {
	case create && p.KeepRecords:
		st.sql = keepEither
	case create && len(texts) > 0:
		st.sql = storeEitherDays
	case create:
		st.sql = storeEither
	case update && p.KeepRecords:
		st.sql = keepNext
	case update && len(texts) > 0:
		st.sql = storeNextDays
	case update:
		st.sql = storeNext
	default:
		return nil
	}
	return st
}

// possibleTexts returns the strings that can be a text in PostgreSQL. The others
// equal nothing that is stored.
func possibleTexts(all []string) []string {
	possible := make([]string, 0, len(all))
	for _, one := range all {
		if isText(one) {
			possible = append(possible, one)
		}
	}
	return possible
}

// isText reports whether PostgreSQL accepts a string as a text.
func isText(s string) bool { return utf8.ValidString(s) && !strings.Contains(s, "\x00") }

// countShards is the number of rows over which the count of a kind is spread.
const countShards = 16

// notCounted is the shard of a statement that does not count its entity.
const notCounted int16 = -1

func anyShard() int16 {
	return int16(rand.IntN(countShards)) // #nosec G404 -- spreads load
}
