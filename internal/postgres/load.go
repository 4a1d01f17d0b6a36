package postgres

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"oda"
	"oda/internal/engine"
)

// loadTime is how long a load may take. The largest one has one huge version.
const loadTime = 10 * time.Minute

// loadPatience is how long a load waits for a lock.
const loadPatience = time.Minute

// Load implements oda.Mover. It is one transaction. Rows are copied, and numbers are
// taken in the order of the entries, so that the rounds give positions in that order.
// Its commit does not wait for the disk, so the next load may begin while it is written.
func (s *Store) Load(ctx context.Context, entries []oda.LogEntry) (answers []error, err error) {
	err = s.again(ctx, func(ctx context.Context) error {
		return s.writeWithin(ctx, loadTime, func(ctx context.Context, conn *pgxpool.Conn) error {
			return transact(ctx, conn, func(tx pgx.Tx) (err error) {
				answers, err = load(ctx, tx, entries)
				return err
			})
		})
	})
	if err != nil {
		return nil, s.writeError(ctx, err)
	}
	s.numbering.wrote()
	return answers, nil
}

// Sync implements oda.Mover. A commit that waits for the disk, and for the synchronous
// standby, has all commits before it there.
func (s *Store) Sync(ctx context.Context) error {
	return s.writeError(ctx, s.again(ctx, s.confirm))
}

func load(ctx context.Context, tx pgx.Tx, entries []oda.LogEntry) ([]error, error) {
	// Who imports can wait longer for others than a client can.
	if _, err := tx.Exec(ctx, setPatience, milliseconds(loadPatience)); err != nil {
		return nil, err
	}
	l := loading{heads: make(map[oda.Ref]*loadedHead), days: make(map[dayKey]int64), keys: make(usedKeys)}
	if err := l.readHeads(ctx, tx, entries); err != nil {
		return nil, err
	}
	if err := l.readKnown(ctx, tx, entries); err != nil {
		return nil, err
	}
	if err := l.readKeys(ctx, tx, entries); err != nil {
		return nil, err
	}
	if err := l.readStatuses(ctx, tx, entries); err != nil {
		return nil, err
	}
	answers := make([]error, len(entries))
	for i := range entries {
		answers[i] = l.add(&entries[i])
	}
	return answers, l.write(ctx, tx)
}

// loadedHead is the head of an entity while entries are loaded.
type loadedHead struct {
	oda.LogState
	isNew   bool
	changed bool
	now     oda.Standing        // what its status is
	moved   bool                // now has changed
	hash    int64               // of the summary
	entry   *oda.CatalogueEntry // of the last version that was added; nil: none
}

// state returns the state of the entity, nil if it is not stored.
func (h *loadedHead) state() *oda.LogState {
	if h == nil {
		return nil
	}
	return &h.LogState
}

// logRow is a row of the table changes.
type logRow struct {
	names  []string
	places []int64
	width  int64
}

type dayKey struct {
	id   string
	day  oda.Day
	part int64
}

// knownKey names a version, a record or a status that is stored already.
type knownKey struct {
	oda.Ref
	version, sequence int64 // one of them is 0
}

type known struct {
	by     string
	on     oda.Instant
	digest oda.Digest
	list   oda.Digest // of the digests of the records of a version, if the entry has it
}

// loading is what a load has read, and what it is going to write.
type loading struct {
	heads map[oda.Ref]*loadedHead
	known map[knownKey]known
	said  map[knownKey]*oda.Status
	used  map[knownKey]bool // keys of creation that exist; the identifier is the key
	keys  usedKeys          // of records that exist
	days  map[dayKey]int64
	order []oda.Ref // of new heads

	saidKeys usedKeys // of statuses that exist

	versions, records, creationKeys [][]any
	statuses                        [][]any
	failed, long                    [][]any
	log                             []logRow
}

// readHeads reads and locks the heads of the entities. In the same round trip it sets what
// holds for the transaction.
func (l *loading) readHeads(ctx context.Context, tx pgx.Tx, entries []oda.LogEntry) error {
	seen := make(map[oda.Ref]bool)
	for i := range entries {
		seen[entries[i].Ref] = true
	}
	refs := slices.SortedFunc(maps.Keys(seen), oda.Ref.Compare)
	kinds, ids := make([]int16, len(refs)), make([]string, len(refs))
	for i, ref := range refs {
		kinds[i], ids[i] = int16(ref.Kind), ref.ID
	}
	var batch pgx.Batch
	batch.Queue(unboundedTime)
	batch.Queue("SET LOCAL synchronous_commit = off")
	batch.Queue(`SELECT h.kind, h.identifier, h.version, h.created_by, h.created_on, h.last_modified_by, h.last_modified_on, h.last_sequence, h.summary_hash
		FROM unnest($1::smallint[], $2::text[]) AS w (kind, identifier) JOIN heads h ON h.kind = w.kind AND h.identifier = w.identifier FOR NO KEY UPDATE OF h`,
		kinds, ids).Query(func(rows pgx.Rows) error {
		var kind int16
		var ref oda.Ref
		var h loadedHead
		m := &h.Metadata
		_, err := pgx.ForEachRow(rows, []any{&kind, &ref.ID, &m.Version, &m.CreatedBy, &m.CreatedOn, &m.LastModifiedBy, &m.LastModifiedOn, &h.LastSequence, &h.hash}, func() error {
			ref.Kind = oda.Kind(kind)
			one := h
			l.heads[ref] = &one
			return nil
		})
		return err
	})
	l.queueStandings(&batch, kinds, ids)
	return tx.SendBatch(ctx, &batch).Close()
}

// readKnown reads what the archive has in the places of entries.
func (l *loading) readKnown(ctx context.Context, tx pgx.Tx, entries []oda.LogEntry) error {
	l.known = make(map[knownKey]known)
	for _, table := range []struct {
		query  string
		stored bool
	}{
		{`SELECT v.kind, v.identifier, v.version, 0::bigint, v.stored_by, v.stored_on, v.digest, CASE WHEN w.listed THEN
				(SELECT sha256(coalesce(string_agg(r.digest, '' ORDER BY i, r.sequence), '')) FROM generate_subscripts(v.runs, 1) i
				JOIN records r ON r.kind = v.kind AND r.identifier = v.identifier AND r.sequence BETWEEN v.runs[i] AND v.runs[i + 1] WHERE i % 2 = 1) END
			FROM unnest($1::smallint[], $2::text[], $3::bigint[], $4::boolean[]) AS w (kind, identifier, number, listed)
			JOIN versions v ON v.kind = w.kind AND v.identifier = w.identifier AND v.version = w.number`, true},
		{`SELECT r.kind, r.identifier, 0::bigint, r.sequence, r.recorded_by, r.recorded_on, r.digest, NULL::bytea
			FROM unnest($1::smallint[], $2::text[], $3::bigint[], $4::boolean[]) AS w (kind, identifier, number, listed)
			JOIN records r ON r.kind = w.kind AND r.identifier = w.identifier AND r.sequence = w.number`, false},
	} {
		var kinds []int16
		var ids []string
		var numbers []int64
		var listed []bool
		for i := range entries {
			e := &entries[i]
			if e.Stored() == table.stored && e.Said == nil && e.Known(l.heads[e.Ref].state()) {
				number := e.Version
				if !e.Stored() {
					number = e.Sequence
				}
				kinds, ids, numbers = append(kinds, int16(e.Kind)), append(ids, e.ID), append(numbers, number)
				listed = append(listed, e.List != nil)
			}
		}
		if len(ids) == 0 {
			continue
		}
		rows, err := tx.Query(ctx, table.query, kinds, ids, numbers, listed)
		if err != nil {
			return err
		}
		var kind int16
		var key knownKey
		var one known
		_, err = pgx.ForEachRow(rows, []any{&kind, &key.ID, &key.version, &key.sequence, &one.by, &one.on, (*digest)(&one.digest), (*digest)(&one.list)}, func() error {
			key.Kind = oda.Kind(kind)
			l.known[key] = one
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// readKeys reads which keys of the entries are used.
func (l *loading) readKeys(ctx context.Context, tx pgx.Tx, entries []oda.LogEntry) error {
	l.used = make(map[knownKey]bool)
	var kinds []int16
	var keys, blocks, recordKeys []string
	for i := range entries {
		switch e := &entries[i]; {
		case e.CreateKey != nil:
			kinds, keys = append(kinds, int16(e.Kind)), append(keys, e.CreateKey.Value)
		case e.Key != "" && e.Said == nil && !e.Known(l.heads[e.Ref].state()):
			blocks, recordKeys = append(blocks, e.ID), append(recordKeys, e.Key)
		}
	}
	if len(keys) > 0 {
		rows, err := tx.Query(ctx, `SELECT k.kind, k.key FROM unnest($1::smallint[], $2::text[]) AS w (kind, key)
			JOIN creation_keys k ON k.kind = w.kind AND k.key = w.key`, kinds, keys)
		if err != nil {
			return err
		}
		var kind int16
		var key string
		if _, err = pgx.ForEachRow(rows, []any{&kind, &key}, func() error {
			l.used[knownKey{Ref: oda.Ref{Kind: oda.Kind(kind), ID: key}}] = true
			return nil
		}); err != nil {
			return err
		}
	}
	if len(blocks) == 0 {
		return nil
	}
	rows, err := tx.Query(ctx, "SELECT k.identifier, k.key FROM unnest($1::text[], $2::text[]) AS k (identifier, key) CROSS JOIN LATERAL "+recordOfKey+" r", blocks, recordKeys)
	if err != nil {
		return err
	}
	var id, key string
	_, err = pgx.ForEachRow(rows, []any{&id, &key}, func() error {
		l.keys.note(oda.Ref{Kind: oda.ExecutionBlock, ID: id}, key)
		return nil
	})
	return err
}

// add adds an entry to what is going to be written, and returns the answer to it.
func (l *loading) add(e *oda.LogEntry) error {
	h := l.heads[e.Ref]
	if e.Said != nil {
		return l.addStatus(e, h)
	}
	key := knownKey{Ref: e.Ref, sequence: e.Sequence}
	if e.Stored() {
		key.version = e.Version
	}
	if e.Known(h.state()) {
		one, ok := l.known[key]
		if !ok {
			return oda.LostVersion(e.Ref, e.Version)
		}
		if err := e.Same(h.Metadata, one.by, one.on, one.digest); err != nil {
			return err
		}
		if e.List != nil {
			if err := e.SameRecords(one.list); err != nil {
				return err
			}
		}
		return oda.ErrPresent
	}
	if err := e.Follow(h.state()); err != nil {
		return err
	}
	if !e.Stored() {
		if e.Key != "" && l.keys.note(e.Ref, e.Key) {
			return engine.ErrKeyTwice
		}
		l.record(e, e.Sequence, e.Key, e.Body)
		l.recorded(e)
	} else {
		if key := e.CreateKey; key != nil {
			used := knownKey{Ref: oda.Ref{Kind: e.Kind, ID: key.Value}}
			if l.used[used] {
				return engine.ErrKeyTaken
			}
			l.used[used] = true
			seal := engine.SealOfKey(e.Ref, *key)
			l.creationKeys = append(l.creationKeys, []any{int16(e.Kind), key.Value, e.ID, key.Digest[:], seal[:]})
		}
		if h == nil {
			h = &loadedHead{isNew: true}
			l.heads[e.Ref] = h
			l.order = append(l.order, e.Ref)
		}
		for i, body := range e.Came {
			l.record(e, e.Before+1+int64(i), "", body)
		}
		l.stored(e)
		h.entry, h.Metadata.CreatedBy, h.Metadata.CreatedOn = e.Entry, e.CreatedBy, e.CreatedOn
		h.LastSequence = e.After
		h.standAs(e.Entry.Status)
	}
	one := known{by: e.By, on: e.On, digest: e.Body.Digest}
	if e.List != nil {
		one.list = *e.List
	}
	l.known[key] = one
	h.changed = true
	h.Metadata.Version, h.Metadata.LastModifiedBy, h.Metadata.LastModifiedOn = e.Version, e.By, e.On
	h.LastSequence = max(h.LastSequence, e.Sequence)
	return nil
}

// record adds the row of a record, and what its call is found by.
func (l *loading) record(e *oda.LogEntry, sequence int64, key string, body oda.Body) {
	row := engine.RecordRow{Place: []byte(e.ID), Sequence: sequence, Version: e.Version, By: e.By, On: e.On, Key: key, Digest: body.Digest}
	seal := row.Seal()
	var keyOrNull any
	if key != "" {
		keyOrNull = key
	}
	l.records = append(l.records, []any{int16(e.Kind), e.ID, sequence, e.Version, e.By, int64(e.On), keyOrNull, body.Digest[:], body.Text, seal[:]})
	keys := oda.KeysOfCall(body.Text)
	day := dayKey{e.ID, keys.Day.Or(e.On), engine.PartOf(sequence)}
	if _, known := l.days[day]; !known {
		l.days[day] = sequence
	}
	if keys.Notable == nil {
		return
	}
	call := keys.Notable.Recorded(e.ID, sequence, e.By, e.On)
	if call.Outcome == oda.CallFailed {
		l.failed = append(l.failed, failedValues(&call))
	}
	if call.IsLong() {
		l.long = append(l.long, longValues(&call))
	}
}

// stored adds the row of a version.
func (l *loading) stored(e *oda.LogEntry) {
	row := engine.VersionRow{
		Place: versionPlace(int16(e.Kind), e.ID), Version: e.Version, By: e.By, On: e.On,
		Before: e.Before, After: e.After, Runs: e.Runs, Slots: e.Body.Slots, Digest: e.Body.Digest,
	}
	row.OfEntity(e.Metadata())
	seal := row.Seal()
	var runs []int64
	if e.Runs != nil {
		runs = encodeRuns(e.Runs)
	}
	l.logRow(e.Positions()).add(e, int64(e.Kind), e.Before+1, e.After)
	l.versions = append(l.versions, []any{
		int16(e.Kind), e.ID, e.Version, e.By, int64(e.On), e.Before, e.After, runs, encodeSlots(e.Body.Slots), e.Body.Text, e.Body.Digest[:], seal[:],
	})
}

// recorded adds a record to the log.
func (l *loading) recorded(e *oda.LogEntry) {
	row := l.logRow(1)
	if i := len(row.names); i > 0 && row.names[i-2] == e.ID && row.names[i-1] == e.By {
		if last := row.places[len(row.places)-placesEach:]; last[0] == 0 && last[1] == e.Version && last[3] == e.Sequence-1 {
			last[3], last[4] = e.Sequence, int64(e.On)
			return
		}
	}
	row.add(e, 0, e.Sequence, e.Sequence)
}

// logRow returns the row that the next change goes into, which is that wide.
func (l *loading) logRow(width int64) *logRow {
	n := len(l.log)
	if n == 0 || l.log[n-1].width >= batchRecords {
		l.log = append(l.log, logRow{})
		n++
	}
	row := &l.log[n-1]
	row.width += width
	return row
}

// add adds a change: what is its kind, or 0 for records.
func (r *logRow) add(e *oda.LogEntry, what, first, last int64) {
	r.names = append(r.names, e.ID, e.By)
	r.places = append(r.places, what, e.Version, first, last, int64(e.On))
}

// said adds the change that a status is.
func (r *logRow) said(e *oda.Status) {
	r.names = append(r.names, e.ID, e.By)
	r.places = append(r.places, kindsSaid+int64(e.Kind), e.Version, e.Sequence, e.Sequence, int64(e.On))
}

// write writes everything. The heads come first: a number is taken only by a
// transaction that has changed a head.
func (l *loading) write(ctx context.Context, tx pgx.Tx) error {
	if len(l.log) == 0 {
		return nil
	}
	var batch pgx.Batch
	if err := l.writeNew(ctx, tx, &batch); err != nil {
		return err
	}
	l.writeChanged(&batch)
	l.writeStandings(&batch)
	for _, row := range l.log {
		batch.Queue(newChanges+"SELECT "+nextNumber+" AS number, $1::bigint AS width, $2::text[] AS names, $3::bigint[] AS places) c", row.width, row.names, row.places)
	}
	if err := tx.SendBatch(ctx, &batch).Close(); err != nil {
		return err
	}
	for _, table := range []struct {
		name    string
		columns []string
		rows    [][]any
	}{
		{"versions", []string{"kind", "identifier", "version", "stored_by", "stored_on", "sequence_before", "sequence_after", "runs", "slots", "text", "digest", "seal"}, l.versions},
		{"records", []string{"kind", "identifier", "sequence", "version", "recorded_by", "recorded_on", "key", "digest", "text", "seal"}, l.records},
		{"creation_keys", []string{"kind", "key", "identifier", "digest", "seal"}, l.creationKeys},
		{"statuses", statusNames, l.statuses},
		{"failed_calls", failedNames, l.failed},
		{"long_calls", longNames, l.long},
	} {
		if len(table.rows) == 0 {
			continue
		}
		if _, err := tx.CopyFrom(ctx, pgx.Identifier{table.name}, table.columns, pgx.CopyFromRows(table.rows)); err != nil {
			return err
		}
	}
	return l.writeDays(ctx, tx)
}

// writeNew writes the heads of new entities. What else goes with one, the batch does.
func (l *loading) writeNew(ctx context.Context, tx pgx.Tx, batch *pgx.Batch) error {
	if len(l.order) == 0 {
		return nil
	}
	var heads, creations, entries [][]any
	counts := make(map[oda.Kind]int64)
	for _, ref := range l.order {
		h, m := l.heads[ref], l.heads[ref].Metadata
		telescope := textOrNull(h.entry.Telescope)
		heads = append(heads, []any{
			int16(ref.Kind), ref.ID, m.Version, m.CreatedBy, int64(m.CreatedOn), m.LastModifiedBy, int64(m.LastModifiedOn),
			h.LastSequence, int64(m.LastModifiedOn), telescope, h.entry.Hash,
		})
		creations = append(creations, []any{int16(ref.Kind), ref.ID, m.CreatedBy, int64(m.CreatedOn), telescope})
		entries = append(entries, []any{int16(ref.Kind), ref.ID, h.entry.Summary, h.entry.Terms, int64(m.CreatedOn)})
		counts[ref.Kind]++
	}
	_, err := tx.CopyFrom(ctx, pgx.Identifier{"heads"}, []string{
		"kind", "identifier", "version", "created_by", "created_on", "last_modified_by", "last_modified_on",
		"last_sequence", "listed_on", "telescope", "summary_hash",
	}, pgx.CopyFromRows(heads))
	if err == nil {
		_, err = tx.CopyFrom(ctx, pgx.Identifier{"creations"}, []string{"kind", "identifier", "created_by", "created_on", "telescope"}, pgx.CopyFromRows(creations))
	}
	batch.Queue(`INSERT INTO catalogue (kind, identifier, summary, terms, created_on)
		SELECT kind, identifier, summary, array_to_tsvector(string_to_array(trim(terms), ' ')), created_on
		FROM unnest($1::smallint[], $2::text[], $3::bytea[], $4::text[], $5::bigint[]) AS u (kind, identifier, summary, terms, created_on)`,
		columnOf[int16](entries, 0), columnOf[string](entries, 1), columnOf[[]byte](entries, 2), columnOf[string](entries, 3), columnOf[int64](entries, 4))
	for _, kind := range oda.Kinds {
		if n := counts[kind]; n > 0 {
			batch.Queue("UPDATE counts SET n = n + $3 WHERE kind = $1 AND shard = $2", int16(kind), anyShard(), n)
		}
	}
	return err
}

// writeChanged writes the heads of entities that were there, and what search knows of
// them if that has changed.
func (l *loading) writeChanged(batch *pgx.Batch) {
	for ref, h := range l.heads {
		if h.isNew || !h.changed {
			continue
		}
		m := h.Metadata
		batch.Queue(`UPDATE heads SET version = $3, last_modified_by = $4, last_modified_on = $5, last_sequence = $6, listed_on = $5 WHERE kind = $1 AND identifier = $2`,
			int16(ref.Kind), ref.ID, m.Version, m.LastModifiedBy, int64(m.LastModifiedOn), h.LastSequence)
		if e := h.entry; e != nil && e.Hash != h.hash {
			telescope := textOrNull(e.Telescope)
			batch.Queue("UPDATE heads SET telescope = $3, summary_hash = $4 WHERE kind = $1 AND identifier = $2", int16(ref.Kind), ref.ID, telescope, e.Hash)
			batch.Queue("UPDATE creations SET telescope = $3 WHERE kind = $1 AND identifier = $2", int16(ref.Kind), ref.ID, telescope)
			batch.Queue("UPDATE catalogue SET summary = $3, terms = array_to_tsvector(string_to_array(trim($4), ' ')) WHERE kind = $1 AND identifier = $2",
				int16(ref.Kind), ref.ID, e.Summary, e.Terms)
		}
	}
}

// writeDays adds to the index of days.
func (l *loading) writeDays(ctx context.Context, tx pgx.Tx) error {
	if len(l.days) == 0 {
		return nil
	}
	var ids []string
	var days []int32
	var parts, firsts []int64
	for day, first := range l.days {
		ids, days, parts, firsts = append(ids, day.id), append(days, int32(day.day)), append(parts, day.part), append(firsts, first)
	}
	_, err := tx.Exec(ctx, `INSERT INTO call_days (kind, identifier, day, part, first)
		SELECT 3, identifier, day, part, first FROM unnest($1::text[], $2::integer[], $3::bigint[], $4::bigint[]) AS u (identifier, day, part, first)
		ON CONFLICT DO NOTHING`, ids, days, parts, firsts)
	return err
}

func textOrNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// columnOf returns one column of rows.
func columnOf[T any](rows [][]any, nth int) []T {
	column := make([]T, len(rows))
	for i, row := range rows {
		column[i] = row[nth].(T)
	}
	return column
}

// leaveTime is how long the sessions of a process that was killed may take to end.
const leaveTime = 3 * time.Second

// Alone returns an error if other processes of oda are connected to the database.
func (s *Store) Alone(ctx context.Context) error {
	for deadline := time.Now().Add(leaveTime); ; {
		others, err := s.others(ctx)
		switch {
		case err != nil:
			return s.storageError(ctx, err)
		case len(others) == 0:
			return nil
		case time.Now().After(deadline):
			slices.Sort(others)
			return fmt.Errorf("other processes have the database open: %s; stop them first", strings.Join(others, ", "))
		}
		select {
		case <-time.After(leaveTime / 30):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// others returns the other processes of oda that are connected.
func (s *Store) others(ctx context.Context) (others []string, err error) {
	err = s.with(ctx, func(ctx context.Context, conn *pgxpool.Conn) error {
		rows, err := conn.Query(ctx, `SELECT DISTINCT application_name FROM pg_stat_activity
			WHERE datname = current_database() AND application_name LIKE 'oda%' AND application_name <> current_setting('application_name')`)
		if err == nil {
			others, err = pgx.CollectRows(rows, pgx.RowTo[string])
		}
		return err
	})
	return others, err
}
