package sqlite

import (
	"zombiezen.com/go/sqlite"

	"oda"
	"oda/internal/engine"
)

// head is the row of an entity while a transaction works with it.
type head struct {
	entity       int64
	metadata     oda.Metadata
	lastSequence int64
	position     int64 // of the current version's body
	summaryHash  int64
	seen         seen // in the index of days
	inserted     bool // by this transaction
	dirty        bool // changed, but not yet written
}

// headsKept is how many heads are kept from one transaction to the next. A client
// that records into a block usually does so again and again.
const headsKept = 4096

// txn is a transaction of the writer. It writes each head once: the heads that it
// has read stay in memory, and the changed ones are written just before the commit.
// Nobody else writes, so the heads are still valid after the commit and are kept for
// the next transaction.
type txn struct {
	store    *Store
	conn     *conn
	position int64 // the last one that was used
	changes  []oda.Change
	created  [len(oda.Kinds) + 1]int64
	heads    map[oda.Ref]*head
	said     bool  // a status was added
	fault    error // of the database; the transaction must be rolled back

	unindexed []unindexedRow // that it adds
	indexed   int64          // the last entity in the index of terms
	moved     int            // how many rows were moved into the index
}

func (s *Store) begin() (*txn, error) {
	if err := s.look(); err != nil {
		return nil, err
	}
	if err := s.endDoubt(); err != nil {
		return nil, err
	}
	if err := s.writer.exec("BEGIN IMMEDIATE"); err != nil {
		return nil, err
	}
	if len(s.heads) > headsKept {
		clear(s.heads)
	}
	return &txn{store: s, conn: s.writer, position: s.last, changes: s.changed[:0], heads: make(map[oda.Ref]*head), indexed: s.indexed}, nil
}

// next returns the next position of the log.
func (t *txn) next() int64 {
	t.position++
	return t.position
}

// failed notes a fault of the database and returns it.
func (t *txn) failed(err error) error {
	if err != nil && t.fault == nil {
		t.fault = err
	}
	return err
}

func (t *txn) exec(query string, args ...any) error { return t.failed(t.conn.exec(query, args...)) }

func (t *txn) query(query string, row func(*sqlite.Stmt) error, args ...any) error {
	return t.failed(t.conn.query(query, row, args...))
}

// head returns the head of an entity, nil if the entity is not stored.
func (t *txn) head(ref oda.Ref) (*head, error) {
	if h, ok := t.heads[ref]; ok {
		return h, nil
	}
	if h, ok := t.store.heads[ref]; ok {
		t.heads[ref] = h
		return h, nil
	}
	var h *head
	err := t.query(`SELECT entity, version, created_by, created_on, last_modified_by, last_modified_on, last_sequence, position, summary_hash
		FROM heads WHERE kind = ? AND identifier = ?`, func(stmt *sqlite.Stmt) error {
		h = &head{
			entity:       stmt.ColumnInt64(0),
			metadata:     metadataOf(stmt, 1),
			lastSequence: stmt.ColumnInt64(6),
			position:     stmt.ColumnInt64(7),
			summaryHash:  stmt.ColumnInt64(8),
		}
		return nil
	}, int64(ref.Kind), ref.ID)
	if err != nil {
		return nil, err
	}
	if h != nil {
		t.heads[ref] = h
	}
	return h, nil
}

// admit asks a rule whether a caller who is bound to telescopes may write to an
// entity. The head does not have the telescope, since few callers are bound.
func (t *txn) admit(h *head, bound bool, rule func(stored string) error) error {
	if !bound {
		return nil
	}
	var telescope string
	err := t.query("SELECT telescope FROM heads WHERE entity = ?", func(stmt *sqlite.Stmt) error {
		telescope = stmt.ColumnText(0)
		return nil
	}, h.entity)
	if err != nil {
		return err
	}
	return rule(telescope)
}

// metadataOf reads the five columns of the managed fields, beginning with column.
func metadataOf(stmt *sqlite.Stmt, column int) oda.Metadata {
	return oda.Metadata{
		Version:        stmt.ColumnInt64(column),
		CreatedBy:      stmt.ColumnText(column + 1),
		CreatedOn:      oda.Instant(stmt.ColumnInt64(column + 2)),
		LastModifiedBy: stmt.ColumnText(column + 3),
		LastModifiedOn: oda.Instant(stmt.ColumnInt64(column + 4)),
	}
}

// insertHead writes the head of a new entity, and its entry in the catalogue. The
// head has all that it needs if the first version is written next, without
// records before it. If the identifier is taken, nothing is written, and the
// error is ErrTaken.
func (t *txn) insertHead(ref oda.Ref, m oda.Metadata, key *oda.Key, e *oda.CatalogueEntry) (*head, error) {
	var keyValue, digest, keySeal any
	if key != nil {
		seal := engine.SealOfKey(ref, *key)
		keyValue, digest, keySeal = key.Value, key.Digest[:], seal[:]
	}
	err := t.exec(`INSERT INTO heads (kind, identifier, version, created_by, created_on, last_modified_by, last_modified_on,
		last_sequence, position, create_key, create_digest, create_seal, telescope, summary_hash) VALUES (?, ?, ?, ?, ?, ?, ?, 0, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (kind, identifier) DO NOTHING`,
		int64(ref.Kind), ref.ID, m.Version, m.CreatedBy, int64(m.CreatedOn), m.LastModifiedBy, int64(m.LastModifiedOn), t.position+1, keyValue, digest, keySeal,
		textOrNull(e.Telescope), e.Hash)
	if err != nil {
		return nil, err
	}
	if t.conn.Changes() == 0 {
		return nil, oda.ErrTaken
	}
	h := &head{entity: t.conn.LastInsertRowID(), metadata: m, summaryHash: e.Hash, inserted: true}
	t.heads[ref] = h
	t.created[ref.Kind]++
	return h, t.enter(ref, h, e)
}

// commit writes the changed heads and the state, and commits. Nobody may see the
// old state in the cache after anyone has seen the new one. So the changed entities
// leave the cache before the commit, and stay out of it until the commit is done.
func (t *txn) commit() error {
	changed := make([]oda.Ref, 0, len(t.heads))
	for ref, h := range t.heads {
		if h.dirty || h.inserted {
			changed = append(changed, ref)
		}
		if !h.dirty {
			continue
		}
		m := h.metadata
		err := t.exec(`UPDATE heads SET version = ?, last_modified_by = ?, last_modified_on = ?, last_sequence = ?, position = ?
			WHERE entity = ?`, m.Version, m.LastModifiedBy, int64(m.LastModifiedOn), h.lastSequence, h.position, h.entity)
		if err != nil {
			t.rollback()
			return err
		}
	}
	if len(changed) == 0 && t.moved == 0 && !t.said {
		return t.conn.exec("ROLLBACK") // nothing was written
	}
	s := t.store
	counts := s.counts // the writer alone changes them
	for k, n := range t.created {
		if counts[k] += n; n == 0 {
			continue
		}
		if err := t.exec("INSERT INTO counts VALUES (?, ?) ON CONFLICT (kind) DO UPDATE SET n = excluded.n", int64(k), counts[k]); err != nil {
			t.rollback()
			return err
		}
	}
	if err := t.exec("UPDATE state SET last_position = ?, indexed_entity = ?", t.position, t.indexed); err != nil {
		t.rollback()
		return err
	}
	s.cache.leave(changed)
	defer s.cache.readmit(changed)
	if err := t.failed(s.committed()); err != nil {
		// If there was no room, the log lacks the end of the transaction, so a crash
		// cannot bring it back.
		if sqlite.ErrCode(err) != sqlite.ResultFull {
			s.doubt.Store(&doubt{changed})
		}
		t.rollback()
		return err
	}
	s.last = t.position
	for ref, h := range t.heads {
		h.dirty, h.inserted = false, false
		s.heads[ref] = h
	}
	s.recent.add(t.changes)
	s.changed = t.changes
	s.tail.Move(oda.Position(t.position))
	s.indexed = t.indexed
	s.unindexed.drop(t.moved)
	s.unindexed.add(t.unindexed)
	s.mu.Lock()
	s.counts = counts
	s.mu.Unlock()
	return nil
}

// rollback undoes the transaction. It also drops the kept heads and hours, which
// may be those of the transaction.
func (t *txn) rollback() {
	clear(t.store.heads)
	clear(t.store.failedHours)
	if t.conn.AutocommitEnabled() {
		return // SQLite has rolled back already
	}
	if err := t.conn.exec("ROLLBACK"); err != nil {
		t.store.log.Error("a rollback failed", "error", err)
	}
}
