package postgres

import (
	"math/rand/v2"
	"strings"
	"unicode/utf8"

	"oda"
	"oda/internal/engine"
)

// The statements repeat rules of package oda: Judge, Metadata.Tag, Put.Next and
// Put.Admit. If a statement writes nothing, Judge says why.
//
// storeAny does whatever a put may ask for. It creates an entity, or updates it:
//
//	$1 kind          $2 identifier     $3 creator        $4 modifier      $5 now
//	$6 version       $7 created_by     $8 created_on     $9 last_modified_by, $10 last_modified_on, as expected
//	$11 compare the last two           $12 last sequence as expected, or null
//	$13 tags one of which must match, or null            $14 tags none of which may match, or null
//	$15 new records  $16 runs, or null $17 slots         $18 text         $19 shard of the count
//	$20 a stored entity may be updated $21 a new one may be created       $22 telescopes it must be of, or null
//	$23 telescope, or null             $24 hash of the summary            $25 summary       $26 its terms
//	$27 digest of the text             $28 digests of the new records
//	$29 to $31 days of the new records, as spans: the places of the first and the last one, and the day, or null for that of the store
//	$32 status of the document, or null                  $33 the same, folded                      $34 its class
//
// A statement sees what was committed when it began, but the head as it is after the wait
// for its lock. What follows from the version that it replaces, such as that its status no
// longer counts, needs the rows of that version. So the head matches only if the statement
// sees that version. If not, it writes nothing and is sent again. The status of a document
// counts as long as nobody has said one.
const (
	storeAny       = storeAnyWrites + storeAnyAnswer
	storeAnyWrites = storeHead + headReturns + ")" + storeRest + `$16::bigint[] AS runs FROM head) h)`
	storeAnyAnswer = `
	SELECT head.*, NULL::bigint[] FROM head`

	// An entity is created only if nothing is stored, so a statement that sees it will
	// find it.
	storeHead = `WITH head AS (INSERT INTO heads AS h (kind, identifier, version, created_by, created_on, last_modified_by, last_modified_on,
			last_sequence, listed_on, telescope, summary_hash)
		SELECT $1, $2, 1, $3, $5, $3, $5, cardinality($15::bytea[]), $5, $23, $24
		WHERE $21::boolean OR EXISTS (SELECT FROM heads WHERE kind = $1 AND identifier = $2)
		ON CONFLICT (kind, identifier) DO UPDATE SET version = h.version + 1, last_modified_by = $4, last_modified_on = greatest($5, h.last_modified_on + 1),
			last_sequence = h.last_sequence + cardinality($15::bytea[]), listed_on = greatest($5, h.last_modified_on + 1),
			telescope = $23, summary_hash = $24
		WHERE $20::boolean AND h.version = $6 AND h.created_by = $7 AND h.created_on = $8
			AND (NOT $11::boolean OR h.last_modified_by = $9 AND h.last_modified_on = $10)
			AND ($12::bigint IS NULL OR h.last_sequence = $12)
			AND ($13::text[] IS NULL OR h.version || '-' || h.last_modified_on = ANY ($13))
			AND ($14::text[] IS NULL OR h.version || '-' || h.last_modified_on <> ALL ($14))
			AND ($22::text[] IS NULL OR h.telescope IS NULL AND h.kind IN (4, 5) OR h.telescope = ANY ($22))
			AND EXISTS (SELECT FROM heads s WHERE s.kind = h.kind AND s.identifier = h.identifier AND s.version = h.version)`
	headReturns = ` RETURNING h.version, h.created_by, h.created_on, h.last_modified_by, h.last_modified_on, h.last_sequence`

	// The rest of a store follows from the head, and happens only with it.
	storeRest = `,
	creation AS (INSERT INTO creations (kind, identifier, created_by, created_on, telescope)
		SELECT $1, $2, created_by, created_on, $23 FROM head WHERE version = 1),
	entry AS (INSERT INTO catalogue (kind, identifier, summary, terms, created_on)
		SELECT $1, $2, $25, array_to_tsvector(string_to_array(trim($26), ' ')), created_on FROM head WHERE version = 1),
	restated AS (UPDATE catalogue c SET summary = $25, terms = array_to_tsvector(string_to_array(trim($26), ' ')) FROM head
		WHERE head.version > 1 AND c.kind = $1 AND c.identifier = $2 AND c.summary <> $25),
	moved AS (UPDATE creations c SET telescope = $23 FROM head
		WHERE head.version > 1 AND c.kind = $1 AND c.identifier = $2 AND c.telescope IS DISTINCT FROM $23),
	stood AS (` + newStanding + `SELECT $1, $2, created_on, $32, $33, $34::smallint, 0, 0, 0 FROM head WHERE $32::text IS NOT NULL` +
		standAs + ` WHERE s.last = 0 AND s.status <> excluded.status),
	fell AS (DELETE FROM standings s USING head WHERE head.version > 1 AND $32 IS NULL AND s.kind = $1 AND s.identifier = $2 AND s.last = 0),
	counted AS (UPDATE counts SET n = n + 1 WHERE kind = $1 AND shard = $19 AND EXISTS (SELECT FROM head WHERE version = 1)),
	noted AS (INSERT INTO call_days (kind, identifier, day, part, first)
		SELECT $1, $2, coalesce(d.day, (head.last_modified_on` + dayOf + `), part,
			greatest(head.last_sequence - cardinality($15::bytea[]) + d.first, (part - 1) * 4096 + 1)
		FROM head, unnest($29::integer[], $30::integer[], $31::integer[]) AS d (first, last, day)
		CROSS JOIN LATERAL generate_series((head.last_sequence - cardinality($15::bytea[]) + d.first - 1) / 4096 + 1,
			(head.last_sequence - cardinality($15::bytea[]) + d.last - 1) / 4096 + 1) AS part
		ON CONFLICT DO NOTHING),
	recorded AS (INSERT INTO records (kind, identifier, sequence, version, recorded_by, recorded_on, text, digest, seal)
		SELECT $1, $2, r.sequence, head.version, head.last_modified_by, head.last_modified_on, r.text, r.digest,
			archive_seal_of_record($2, r.sequence, head.version, head.last_modified_by, head.last_modified_on, NULL, r.digest)
		FROM head CROSS JOIN LATERAL (SELECT head.last_sequence - cardinality($15::bytea[]) + nth AS sequence, text, digest
			FROM unnest($15::bytea[], $28::bytea[]) WITH ORDINALITY AS u (text, digest, nth)) r),
	logged AS (` + newChanges + `SELECT ` + nextNumber + ` AS number, cardinality($15::bytea[]) + 1 AS width, ARRAY[$2, last_modified_by] AS names,
			ARRAY[$1, version, last_sequence - cardinality($15::bytea[]) + 1, last_sequence, last_modified_on] AS places FROM head) c),
	body AS (` + newBody + `
		SELECT $1, $2, version, last_modified_by, last_modified_on, last_sequence - cardinality($15::bytea[]), last_sequence, runs, $17, $18, $27,
			archive_seal_of_version($1, $2, version, last_modified_by, last_modified_on, last_sequence - cardinality($15::bytea[]), last_sequence, runs, $17, $27)
		FROM (SELECT head.*, `

	// storeKeeping is storeAny for a put that keeps the records. It reads the body of the
	// previous version, so the head matches only if the statement sees that. Records that
	// came later belong to the previous version, as Version.Current in internal/engine
	// says.
	storeKeeping       = storeKeepingWrites + storeKeepingAnswer
	storeKeepingWrites = storeHead + ` AND EXISTS (SELECT FROM versions v WHERE v.kind = h.kind AND v.identifier = h.identifier AND v.version = h.version
		AND v.sequence_after BETWEEN 0 AND h.last_sequence)` + headReturns + `),
	before AS (SELECT CASE WHEN head.last_sequence = v.sequence_after THEN v.runs
			WHEN v.runs[cardinality(v.runs)] = v.sequence_after THEN v.runs[:cardinality(v.runs) - 1] || head.last_sequence
			ELSE coalesce(v.runs, '{}') || ARRAY[v.sequence_after + 1, head.last_sequence] END AS runs,
			v.runs IS NOT NULL OR head.last_sequence > v.sequence_after AS listed
		FROM head CROSS JOIN LATERAL (SELECT * FROM versions
			WHERE kind = $1 AND identifier = $2 AND version = head.version - 1 OFFSET 0) v)` + storeRest +
		`CASE WHEN version > 1 THEN (SELECT runs FROM before WHERE listed) ELSE $16::bigint[] END AS runs FROM head) h)`
	storeKeepingAnswer = `
	SELECT head.*, (SELECT runs FROM before WHERE listed) FROM head`

	newBody = `INSERT INTO versions (kind, identifier, version, stored_by, stored_on, sequence_before, sequence_after, runs, slots, text, digest, seal) `
)

// These are the same where some of the new records are notable calls (notable.go).
var (
	storeAnyNotable     = storeAnyWrites + withNotable(storeNotable, 35) + storeAnyAnswer
	storeKeepingNotable = storeKeepingWrites + withNotable(storeNotable, 35) + storeKeepingAnswer
)

// updateOnly stores the next version of an entity that brings no new records and
// whose summary stays the same. It does what storeAny would do in that case, but
// PostgreSQL has half as many tables and indexes to open for it. updateSeveral is
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
//	$16 digest of the text             $17 telescopes it must be of, or null; only of updateOnly
const (
	updateOnly = updateHeads + `(SELECT $2::text AS identifier, $3::text AS by, $4::bigint AS at, $5::bigint AS version, $6::text AS created_by,
			$7::bigint AS created_on, $8::text AS last_modified_by, $9::bigint AS last_modified_on, $10::boolean AS compare, $11::bigint AS last_sequence,
			$12::text AS runs, $13::text AS slots, $15::bigint AS hash, $16::bytea AS digest) p
		WHERE ($17::text[] IS NULL OR h.telescope IS NULL AND h.kind IN (4, 5) OR h.telescope = ANY ($17)) AND` +
		updateMatches + updateBody + "$14" + updateSeal + `
	SELECT version, created_by, created_on, last_modified_by, last_modified_on, last_sequence, NULL::bigint[] FROM head`
	updateSeveral = updateHeads + `(SELECT * FROM unnest($2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::text[], $7::bigint[], $8::text[], $9::bigint[],
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
	logged AS (` + newChanges + `SELECT ` + nextNumber + ` AS number, count(*) AS width, array_agg(ARRAY[identifier, last_modified_by]) AS names,
			array_agg(ARRAY[$1, version, last_sequence + 1, last_sequence, last_modified_on]) AS places FROM head HAVING count(*) > 0) c),
	body AS (` + newBody + `SELECT $1, identifier, version, last_modified_by, last_modified_on, last_sequence, last_sequence, runs, slots, `
	updateSeal = `, digest,
			archive_seal_of_version($1, identifier, version, last_modified_by, last_modified_on, last_sequence, last_sequence, runs, slots, digest) FROM head)`
)

// newOnly stores the first version of an entity that comes without records, or
// nothing if the entity exists. It does what storeAny would do in that case, but
// is much shorter. newSeveral is newOnly for several entities of one kind; all
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
	entry AS (` + newEntry + `SELECT $1, $2, $13, array_to_tsvector(string_to_array(trim($14), ' ')), $4 FROM head),
	counted AS (UPDATE counts SET n = n + 1 WHERE kind = $1 AND shard = $5 AND EXISTS (SELECT FROM head)),
	logged AS (` + newChanges + `SELECT ` + nextNumber + ` AS number, 1 AS width, ARRAY[$2, $3] AS names, ARRAY[$1, 1, 1, 0, $4] AS places FROM head) c),
	body AS (` + newBody + `SELECT $1, $2, 1, $3, $4, 0, 0, CASE WHEN $6::boolean THEN '{}'::bigint[] END, $7::text::integer[], $8, $9, $10 FROM head)
	SELECT nth FROM head`

	newSeveral = `WITH put AS (
		SELECT * FROM unnest($2::text[], $3::text[], $4::bigint[], $6::boolean[], $7::text[], $8::bytea[], $9::bytea[], $10::bytea[],
			$11::text[], $12::bigint[], $13::bytea[], $14::text[])
			WITH ORDINALITY AS u (identifier, by, at, listed, slots, text, digest, seal, telescope, hash, summary, terms, nth)),
	head AS (` + newHead + `SELECT $1, identifier, 1, by, at, by, at, 0, at, telescope, hash FROM put ON CONFLICT DO NOTHING RETURNING identifier),
	new AS (SELECT put.* FROM head JOIN put USING (identifier)),
	creation AS (` + newCreation + `SELECT $1, identifier, by, at, telescope FROM new),
	entry AS (` + newEntry + `SELECT $1, identifier, summary, array_to_tsvector(string_to_array(trim(terms), ' ')), at FROM new),
	counted AS (UPDATE counts SET n = n + (SELECT count(*) FROM head) WHERE kind = $1 AND shard = $5),
	logged AS (` + newChanges + `SELECT ` + nextNumber + ` AS number, count(*) AS width, array_agg(ARRAY[identifier, by]) AS names,
			array_agg(ARRAY[$1, 1, 1, 0, at]) AS places FROM new HAVING count(*) > 0) c),
	body AS (` + newBody + `SELECT $1, identifier, 1, by, at, 0, 0, CASE WHEN listed THEN '{}'::bigint[] END, slots::integer[], text, digest, seal FROM new)
	SELECT nth - 1 FROM new`

	newHead = `INSERT INTO heads (kind, identifier, version, created_by, created_on, last_modified_by, last_modified_on,
			last_sequence, listed_on, telescope, summary_hash) `
	newCreation = `INSERT INTO creations (kind, identifier, created_by, created_on, telescope) `
	newEntry    = `INSERT INTO catalogue (kind, identifier, summary, terms, created_on) `
)

// store is the statement for one entity, and its result.
type store struct {
	sql    string
	args   []any
	put    *oda.Put
	entity *stored
	answer error
}

// statement returns the statement that carries out a put. It returns nil if the put cannot
// match anything. A put with all metadata is almost always an update that leaves the
// summary as it is, so that is what the first try assumes.
func statement(p *oda.Put, shared sharing, shard int16, again bool) *store {
	expected, matchable := p.Expected.Matchable(p.Compare)
	create := p.Condition.Match == nil
	update := matchable && p.MayUpdate() && (p.Condition.NoneMatch == nil || !p.Condition.NoneMatch.Any)
	if !create && !update {
		return nil
	}
	var match, noneMatch, telescopes []string
	if m := p.Condition.Match; m != nil && !m.Any {
		match = possibleTexts(m.List)
	}
	if n := p.Condition.NoneMatch; n != nil {
		noneMatch = possibleTexts(n.List)
	}
	if p.Telescopes != nil {
		telescopes = p.Telescopes.Names()
	}
	runs, texts, digests := shared.number(p)
	slots := encodeSlots(p.Body.Slots)
	if update && !again && p.Condition == (oda.Condition{}) && len(texts) == 0 && !p.KeepRecords {
		return &store{sql: updateOnly, put: p, args: []any{
			int16(p.Kind), p.ID, p.Modifier, int64(p.At),
			expected.Version, expected.CreatedBy, int64(expected.CreatedOn), expected.LastModifiedBy, int64(expected.LastModifiedOn),
			p.Compare&oda.FieldLastModifiedOn != 0, shared.lastSequence, arrayText(runs), arrayText(slots), p.Body.Text, p.Extract.Hash(), p.Body.Digest[:],
			telescopes,
		}}
	}
	e := p.Extract.Entry(p.Ref)
	if create && !update && len(p.Records) == 0 && e.Status == "" {
		first := engine.VersionRow{
			Place: versionPlace(int16(p.Kind), p.ID), Version: 1, By: p.Creator, On: p.At, Slots: p.Body.Slots, Digest: p.Body.Digest,
		}
		if p.Listed {
			first.Runs = engine.Runs{}
		}
		seal := first.Seal()
		return &store{sql: newOnly, put: p, args: []any{
			int16(p.Kind), p.ID, p.Creator, int64(p.At), shard, p.Listed, *arrayText(slots), p.Body.Text, p.Body.Digest[:], seal[:],
			textOrNull(e.Telescope), e.Hash, e.Summary, e.Terms,
		}}
	}
	var days spans
	var calls notable
	keys := oda.KeysOfCalls(texts)
	days.add(0, keys, func(i int) int { return i + 1 })
	for i, key := range keys {
		if key.Notable != nil {
			calls.add(0, len(keys)-1-i, "", key.Notable)
		}
	}
	st := &store{sql: storeAny, put: p, args: []any{
		int16(p.Kind), p.ID, p.Creator, p.Modifier, int64(p.At),
		expected.Version, expected.CreatedBy, int64(expected.CreatedOn), expected.LastModifiedBy, int64(expected.LastModifiedOn),
		p.Compare&oda.FieldLastModifiedOn != 0, shared.lastSequence, match, noneMatch,
		texts, runs, slots, p.Body.Text, shard, update, create, telescopes,
		textOrNull(e.Telescope), e.Hash, e.Summary, e.Terms, p.Body.Digest[:], digests, days.first, days.last, days.day,
		textOrNull(e.Status), oda.FoldStatus(e.Status), int16(oda.ClassOf(e.Status)),
	}}
	withNotable := storeAnyNotable
	if p.KeepRecords {
		st.sql, withNotable = storeKeeping, storeKeepingNotable
	}
	if len(calls.block) > 0 {
		st.sql, st.args = withNotable, append(st.args, calls.args()...)
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
