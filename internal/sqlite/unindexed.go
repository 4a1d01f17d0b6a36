package sqlite

import (
	"slices"
	"strings"
	"sync"
	"time"

	"zombiezen.com/go/sqlite"

	"oda"
)

// Each transaction that adds to FTS5 leaves a segment that must be merged with
// others later, so adding one entity at a time is expensive. New entities are
// therefore kept in memory first, where searches look too, and moved into the index
// many at a time: when nobody writes, or when there are many. The tables say what
// has not been moved, so that it is known after a crash. Writers wait during a move,
// so it is bounded in entities and in bytes of terms.
//
// If there are more than unindexedMost entities or unindexedBytes, some are moved
// after each commit. From half of unindexedMost on, some are moved with each commit.
const (
	unindexedMost  = 4096
	unindexedBytes = 64 << 20 // more than one request can bring
	movedAtOnce    = 512
	movedBytes     = 128 << 10
	movePause      = 250 * time.Millisecond // between other moves
	moveRest       = 5 * time.Second        // after one that failed, which may go on for hours and has a line in the log each time
)

// unindexedRow is an entity that the index does not have in its current state.
type unindexedRow struct {
	entity int64
	kind   oda.Kind
	terms  string // each with a space before and after it
	again  bool   // the index may have an earlier state
}

// unindexed holds these entities in the order of their changes. If an entity occurs
// twice, the last row counts. Rows never change once they are added, so a reader may
// keep using the slice that it got.
type unindexed struct {
	mu    sync.RWMutex
	rows  []unindexedRow
	bytes int // of their terms
}

func (u *unindexed) get() []unindexedRow {
	u.mu.RLock()
	defer u.mu.RUnlock()
	return u.rows
}

func (u *unindexed) add(rows []unindexedRow) {
	if len(rows) == 0 {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.rows = append(u.rows, rows...)
	for _, r := range rows {
		u.bytes += len(r.terms)
	}
}

// over reports whether there are more rows than most, or more bytes than may stay.
func (u *unindexed) over(most int) bool {
	u.mu.RLock()
	defer u.mu.RUnlock()
	return len(u.rows) > most || u.bytes > unindexedBytes
}

// due returns how many rows the next move takes.
func (u *unindexed) due() int {
	u.mu.RLock()
	defer u.mu.RUnlock()
	n, size := 0, 0
	for n < len(u.rows) && (n < movedAtOnce && size < movedBytes || n < len(u.rows)-unindexedMost || size < u.bytes-unindexedBytes) {
		size += len(u.rows[n].terms)
		n++
	}
	return n
}

// drop removes the first n rows.
func (u *unindexed) drop(n int) {
	if n == 0 {
		return // after most commits; the rows need not be copied
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, r := range u.rows[:n] {
		u.bytes -= len(r.terms)
	}
	u.rows = slices.Clone(u.rows[n:])
}

const (
	insertTerms = "INSERT INTO terms (rowid, list) VALUES (?, ?)"
	deleteTerms = "DELETE FROM terms WHERE rowid = ?"
)

// readUnindexed reads the entities that the last process did not move.
func (s *Store) readUnindexed() error {
	indexed, err := s.writer.number("SELECT indexed_entity FROM state")
	if err != nil {
		return err
	}
	s.indexed = indexed
	var rows []unindexedRow
	read := func(stmt *sqlite.Stmt) error {
		ref := oda.Ref{Kind: oda.Kind(stmt.ColumnInt(1)), ID: stmt.ColumnText(2)}
		summary, err := oda.UnpackSummary(bytesOf(stmt, 3))
		if err != nil { // searches that meet it report it; the archive opens anyway
			s.log.Error("what searches know of an entity is damaged", "kind", ref.Kind.String(), "identifier", ref.ID, "error", err)
		}
		rows = append(rows, unindexedRow{
			entity: stmt.ColumnInt64(0), kind: ref.Kind, terms: summary.TermList(ref), again: stmt.ColumnInt64(0) <= indexed,
		})
		return nil
	}
	err = s.writer.query(`SELECT h.entity, h.kind, h.identifier, c.summary FROM unindexed u
		JOIN heads h ON h.entity = u.entity JOIN catalogue c ON c.entity = u.entity WHERE u.entity <= ? ORDER BY u.entity`, read, indexed)
	if err == nil {
		err = s.writer.query(`SELECT h.entity, h.kind, h.identifier, c.summary FROM heads h JOIN catalogue c ON c.entity = h.entity
			WHERE h.entity > ? ORDER BY h.entity`, read, indexed)
	}
	s.unindexed.add(rows)
	return err
}

// move moves the first rows into the index, in a transaction of its own. If that
// fails, they stay where they are, and a later call tries again.
func (s *Store) move() error {
	tx, err := s.begin()
	if err == nil {
		if err = tx.move(); err != nil {
			tx.rollback()
		} else {
			err = tx.commit()
		}
	}
	if err != nil {
		s.notMoved(err)
	}
	return err
}

// notMoved reports that a move failed.
func (s *Store) notMoved(err error) {
	s.log.Error("the index of terms could not be brought up to date", "error", err)
	s.refused(err)
}

// moveBeside makes a move part of a transaction that has written something else. If
// the move fails, the rest of the transaction stays, unless SQLite has rolled all of
// it back.
func (t *txn) moveBeside() {
	err := t.conn.exec("SAVEPOINT move")
	if err == nil {
		if err = t.move(); err != nil {
			t.moved, t.indexed = 0, t.store.indexed
			if t.conn.AutocommitEnabled() || t.conn.exec("ROLLBACK TO move") != nil {
				return // the transaction has failed
			}
			t.fault = nil
		}
		if t.exec("RELEASE move") != nil {
			return
		}
	}
	if err != nil {
		t.store.notMoved(err)
	}
}

// moveAll moves all rows, so that the next start has nothing to read.
func (s *Store) moveAll() {
	for len(s.unindexed.get()) > 0 && s.move() == nil {
	}
}

// move moves the first rows into the index. It skips a row if a later one has the
// same entity, or if this transaction has changed the entity.
func (t *txn) move() error {
	rows, n := t.store.unindexed.get(), t.store.unindexed.due()
	lasts := make(map[int64]int) // of the entities that may occur twice
	for i, r := range rows {
		if r.again {
			lasts[r.entity] = i
		}
	}
	for _, r := range t.unindexed {
		lasts[r.entity] = len(rows)
	}
	for i, r := range rows[:n] {
		if !r.again {
			t.indexed = max(t.indexed, r.entity)
		}
		if last, ok := lasts[r.entity]; ok && last != i {
			continue
		}
		if r.again {
			if err := t.exec(deleteTerms, r.entity); err != nil {
				return err
			}
			if err := t.exec("DELETE FROM unindexed WHERE entity = ?", r.entity); err != nil {
				return err
			}
		}
		if err := t.exec(insertTerms, r.entity, r.terms); err != nil {
			return err
		}
	}
	t.moved = n
	return nil
}

// question is a clause in a form for the rows that are not indexed.
type question struct {
	terms []string        // with a space before and, unless they are prefixes, after them
	many  map[string]bool // instead of terms if there are many; without spaces
	class string          // the beginning of all terms in many, with a space before it
}

// fewTerms is the largest number of terms that are looked for one by one.
const fewTerms = 8

func questionsOf(clauses []oda.Clause) []question {
	questions := make([]question, len(clauses))
	for i, c := range clauses {
		q := &questions[i]
		if len(c.Any) > fewTerms && !c.Prefix {
			q.many, q.class = make(map[string]bool, len(c.Any)), " "+c.Any[0][:2]
			for _, term := range c.Any {
				q.many[term] = true
			}
			continue
		}
		for _, term := range c.Any {
			if term = " " + term; !c.Prefix {
				term += " "
			}
			q.terms = append(q.terms, term)
		}
	}
	return questions
}

// matches reports whether the row answers all questions.
func (r *unindexedRow) matches(questions []question) bool {
	return !slices.ContainsFunc(questions, func(q question) bool { return !q.holds(r.terms) })
}

func (q *question) holds(terms string) bool {
	if q.many == nil {
		return slices.ContainsFunc(q.terms, func(term string) bool { return strings.Contains(terms, term) })
	}
	for at := strings.Index(terms, q.class); at >= 0; at = strings.Index(terms, q.class) {
		term, _, _ := strings.Cut(terms[at+1:], " ")
		if q.many[term] {
			return true
		}
		terms = terms[at+1+len(term):]
	}
	return false
}
