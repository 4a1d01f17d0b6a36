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
// others later, so adding one entity at a time is dear. What is new is therefore
// kept in memory at first, where a search looks too, and moved into the index
// many at a time: when nobody writes, or when there is much of it. The tables say
// what is not moved yet, so that it is known again after a crash.
// A move holds writers up, so it is bounded in entities and in bytes of terms.
const (
	unindexedMost  = 4096     // what is beyond it, or beyond so many bytes, is moved after each commit; from half of it on, some with each commit
	unindexedBytes = 64 << 20 // more than one request can bring
	movedAtOnce    = 512
	movedBytes     = 128 << 10
	movePause      = 250 * time.Millisecond // between moves otherwise
)

// unindexedRow is an entity that the index does not hold as it is.
type unindexedRow struct {
	entity int64
	kind   oda.Kind
	terms  string // each with a space before and behind it
	again  bool   // the index may hold it as it was
}

// unindexed are these entities, in the order of their changes; of one that stands
// there twice, the last holds. A row that was added stays as it is, so whoever
// has got the rows may go on reading them.
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

// over says that there are more than so many rows, or more bytes than may stay.
func (u *unindexed) over(most int) bool {
	u.mu.RLock()
	defer u.mu.RUnlock()
	return len(u.rows) > most || u.bytes > unindexedBytes
}

// due is how many of the rows a move takes.
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

// drop takes the first rows out.
func (u *unindexed) drop(n int) {
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

// readUnindexed reads at the start what was not moved before the end.
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
		if err != nil { // the archive opens all the same; searches that meet it say so
			s.log.Error("what searches know of an entity is damaged", "kind", ref.Kind.String(), "identifier", ref.ID, "error", err)
		}
		rows = append(rows, unindexedRow{
			entity: stmt.ColumnInt64(0), kind: ref.Kind, terms: termsText(ref, &summary), again: stmt.ColumnInt64(0) <= indexed,
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

// move puts the first of what is not indexed into the index, in a transaction of
// its own. If that fails, they stay where they are, and it is tried again later.
func (s *Store) move(last int64) error {
	tx, err := s.begin(last)
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

// notMoved tells that a move failed.
func (s *Store) notMoved(err error) {
	s.log.Error("the index of terms could not be brought up to date", "error", err)
	s.refused(err)
}

// moveBeside is a move as part of a transaction that has written something else.
// If it fails, the rest stays, unless SQLite has taken all of it back.
func (t *txn) moveBeside() {
	err := t.conn.exec("SAVEPOINT move")
	if err == nil {
		if err = t.move(); err != nil {
			t.moved, t.indexed = 0, t.store.indexed
			if t.conn.AutocommitEnabled() || t.conn.exec("ROLLBACK TO move") != nil {
				return // with the fault
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

// moveAll moves everything, so that the next start has nothing to read.
func (s *Store) moveAll(last int64) {
	for len(s.unindexed.get()) > 0 && s.move(last) == nil {
	}
}

// move puts the first rows into the index. Those that are there once more, or that
// this transaction has changed, are left to their last.
func (t *txn) move() error {
	rows, n := t.store.unindexed.get(), t.store.unindexed.due()
	lasts := make(map[int64]int) // of those that may be there twice
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

// question is a clause as it is asked of the rows that are not indexed.
type question struct {
	terms []string        // with a space before them, and behind them unless they are prefixes
	many  map[string]bool // of many exact ones, without spaces
	class string          // how all of these begin, with a space before it
}

// fewTerms is up to how many terms each is looked for by itself.
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

// matches tells whether all questions hold of the row.
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
