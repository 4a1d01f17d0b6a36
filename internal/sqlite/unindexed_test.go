package sqlite

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"zombiezen.com/go/sqlite"

	"oda"
	"oda/internal/test/must"
	"oda/internal/test/suite"
	"oda/provenance"
)

// candidates returns how many entities the index has for a term.
func candidates(t *testing.T, s *Store, term string) int {
	t.Helper()
	q := oda.Question{Kind: oda.SBDefinition, Clauses: []oda.Clause{{Any: []string{term}}}, Most: 10_000}
	places, complete, err := s.Candidates(t.Context(), q)
	if err != nil || !complete {
		t.Fatalf("candidates for %s: %v, complete: %t", term, err, complete)
	}
	return len(places)
}

// several stores n SBDefinitions at once, all with one word.
func several(t *testing.T, s *Store, n int, word string) []*oda.Entity {
	t.Helper()
	puts := make([]oda.Put, n)
	for i := range puts {
		puts[i] = suite.Put(suite.Document(t, oda.SBDefinition, `{"name":"`+word+`"}`), fmt.Sprint(word, "-", i), "anna", 1)
	}
	entities := must.Get(s.Put(t.Context(), puts))(t)
	return entities
}

// awaitIndexed waits until everything is in the index.
func awaitIndexed(t *testing.T, s *Store) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); len(s.unindexed.get()) > 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d entities are not yet in the index", len(s.unindexed.get()))
		}
	}
}

func TestNewTermsAreMovedIntoTheIndex(t *testing.T) {
	s := fresh(t)
	const n = 2*movedAtOnce + 7
	entities := several(t, s, n, "word")
	if got := candidates(t, s, "1wword"); got != n {
		t.Errorf("of %d entities that were just stored, %d are found", n, got)
	}
	awaitIndexed(t, s)
	if got := candidates(t, s, "1wword"); got != n {
		t.Errorf("of %d entities in the index, %d are found", n, got)
	}
	// One changes twice before it is moved again, and one does not change.
	for _, name := range []string{"other", "another"} {
		e := entities[3]
		text := `{"metadata":` + string(e.Metadata.AppendJSON(nil)) + `,"name":"` + name + `"}`
		entities[3] = mustPut(t, s, suite.Put(suite.Document(t, oda.SBDefinition, text), e.ID, "anna", 2))
		if got := candidates(t, s, "1w"+name); got != 1 {
			t.Errorf("the entity that was changed to %s is found %d times", name, got)
		}
	}
	awaitIndexed(t, s)
	must.Do(t, s.Close())
	c := must.Get(openConn(s.file.path, sqlite.OpenReadWrite))(t)
	t.Cleanup(func() { must.Do(t, c.close()) })
	for query, want := range map[string]int64{
		"SELECT count(*) FROM terms WHERE terms MATCH '\"1wword\"'":    n, // also as a word of the identifier
		"SELECT count(*) FROM terms WHERE terms MATCH '\"1wanother\"'": 1,
		"SELECT count(*) FROM terms WHERE terms MATCH '\"1wother\"'":   0,
		"SELECT count(*) FROM unindexed":                               0,
		"SELECT indexed_entity FROM state":                             n,
	} {
		if got, err := c.number(query); err != nil || got != want {
			t.Errorf("%s: %d, %v, want %d", query, got, err, want)
		}
	}
	if err := c.script("INSERT INTO terms (terms) VALUES ('integrity-check'); PRAGMA integrity_check"); err != nil {
		t.Error(err)
	}
}

// After a crash, some terms are in no index. The next start must find them.
func TestUnmovedTermsAreKnownAfterACrash(t *testing.T) {
	path, crashed := archivePath(t), filepath.Join(t.TempDir(), "archive.db")
	s := open(t, path)
	e := several(t, s, 10, "moved")[0]
	awaitIndexed(t, s)
	left := 0
	for isLeft := false; !isLeft; {
		text := fmt.Sprintf(`{"metadata":%s,"name":"changed %d"}`, e.Metadata.AppendJSON(nil), left)
		e = mustPut(t, s, suite.Put(suite.Document(t, oda.SBDefinition, text), e.ID, "anna", 2))
		several(t, s, 10, fmt.Sprint("left-", left))
		if left += 10; left > 1000 {
			t.Fatal("again and again, all were moved before the crash")
		}
		// A crash leaves what the files hold now. Nothing is moved while the
		// writer does this.
		err := s.submit(t.Context(), 0, func(*txn) error {
			if isLeft = len(s.unindexed.get()) > 10; !isLeft {
				return nil
			}
			for _, suffix := range []string{"", "-wal"} {
				content, err := os.ReadFile(path + suffix)
				if err != nil {
					return err
				}
				if err := os.WriteFile(crashed+suffix, content, 0o600); err != nil {
					return err
				}
			}
			return nil
		})
		must.Do(t, err)
	}
	again := open(t, crashed)
	for term, want := range map[string]int{"1wleft": left, "1wchanged": 1, "1wmoved": 10} {
		if got := candidates(t, again, term); got != want {
			t.Errorf("%s finds %d after the crash, want %d", term, got, want)
		}
	}
	awaitIndexed(t, again)
	for term, want := range map[string]int{"1wleft": left, "1wchanged": 1, "1wmoved": 10} {
		if got := candidates(t, again, term); got != want {
			t.Errorf("%s finds %d once all are moved, want %d", term, got, want)
		}
	}
}

// A move may be part of a transaction that changes what it moves. The new terms are
// then left to the next move, even after a crash.
func TestAMoveLeavesAConcurrentChangeToTheNext(t *testing.T) {
	s := fresh(t)
	e := several(t, s, 1, "first")[0]
	awaitIndexed(t, s)
	change := func(name string) oda.Put {
		return suite.Put(suite.Document(t, oda.SBDefinition, `{"metadata":`+string(e.Metadata.AppendJSON(nil))+`,"name":"`+name+`"}`), e.ID, "anna", 2)
	}
	e = mustPut(t, s, change("second"))
	puts, marked := []oda.Put{change("third")}, int64(0)
	err := s.submit(t.Context(), 0, func(tx *txn) error {
		_, err := tx.put(t.Context(), puts, make([]recordList, 1), nil)
		tx.moveBeside()
		if err == nil {
			marked, err = tx.conn.number("SELECT count(*) FROM unindexed")
		}
		return err
	})
	if err != nil || marked != 1 {
		t.Fatalf("%d entities are marked to be moved, %v", marked, err)
	}
	for range 2 {
		if got := candidates(t, s, "1wthird"); got != 1 {
			t.Errorf("the new word gives %d", got)
		}
		awaitIndexed(t, s)
	}
}

// A move that fails takes nothing back that others have written.
func TestAMoveThatFailsLeavesTheRest(t *testing.T) {
	s := fresh(t)
	several(t, s, 1, "first")
	puts := []oda.Put{suite.Put(suite.Document(t, oda.SBDefinition, `{}`), "second", "anna", 2)}
	err := s.submit(t.Context(), 0, func(tx *txn) error {
		s.unindexed.add([]unindexedRow{{entity: 1 << 62, kind: oda.SBDefinition, terms: " 1wx "}}) // there is something to move
		if err := tx.exec("DROP TABLE terms_data"); err != nil {
			return err
		}
		_, err := tx.put(t.Context(), puts, make([]recordList, 1), nil)
		if tx.moveBeside(); tx.moved > 0 || tx.fault != nil {
			t.Errorf("%d were moved into an index that is not there; %v", tx.moved, tx.fault)
		}
		return err
	})
	must.Do(t, err)
	if _, err := s.Get(t.Context(), oda.Ref{Kind: oda.SBDefinition, ID: "second"}); err != nil {
		t.Error(err)
	}
}

// A disk that is full or a file that is locked may stay so for hours. The log of the server
// does not fill with moves that are tried all the time.
func TestAMoveThatFailsIsNotTriedAllTheTime(t *testing.T) {
	t.Parallel()
	var lines errorLines
	s := must.Get(Open(t.Context(), archivePath(t), slog.New(&lines)))(t)
	defer s.Close()
	several(t, s, 1, "word")
	must.Do(t, os.Rename(s.file.path, s.file.path+".away"))
	time.Sleep(8 * movePause)
	if n := lines.Load(); n < 1 || n > 2 { // the move, and that writing fails
		t.Errorf("there are %d errors in the log", n)
	}
}

// errorLines counts the errors in a log.
type errorLines struct{ atomic.Int64 }

func (e *errorLines) Enabled(_ context.Context, level slog.Level) bool {
	return level >= slog.LevelError
}
func (e *errorLines) Handle(context.Context, slog.Record) error { e.Add(1); return nil }
func (e *errorLines) WithAttrs([]slog.Attr) slog.Handler        { return e }
func (e *errorLines) WithGroup(string) slog.Handler             { return e }

// However fast entities are stored, only a few may be outside the index of terms,
// because every search looks through these.
func TestTheIndexOfTermsKeepsUpUnderLoad(t *testing.T) {
	s := fresh(t)
	for part := range 6 {
		several(t, s, 2500, fmt.Sprint("loaded", part))
	}
	// The writer runs this after it has moved what the last store left.
	err := s.submit(t.Context(), 0, func(*txn) error {
		if n := len(s.unindexed.get()); n > unindexedMost {
			return fmt.Errorf("%d entities are not indexed", n)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// Writers wait during a move, so a move takes few entities if they have many words.
func TestAMoveIntoTheIndexIsBoundedInBytes(t *testing.T) {
	terms := strings.Repeat(" 1wsomething", movedBytes/4/len(" 1wsomething")) + " "
	rows := make([]unindexedRow, 40)
	for i := range rows {
		rows[i] = unindexedRow{entity: int64(i + 1), kind: oda.SBDefinition, terms: terms}
	}
	var u unindexed
	u.add(rows)
	for left := len(rows); left > 0; {
		n := u.due()
		if n < 1 || n > 5 {
			t.Fatalf("of %d entities with a quarter of the bytes each, %d are moved at once", left, n)
		}
		u.drop(n)
		left -= n
	}
	if u.bytes != 0 {
		t.Errorf("nothing is left, but %d bytes are counted", u.bytes)
	}
}

// There may be thousands of rows, and every commit asks for those that it moved to be
// removed.
func TestACommitThatMovesNothingCopiesNothing(t *testing.T) {
	var u unindexed
	u.add(make([]unindexedRow, unindexedMost))
	if n := testing.AllocsPerRun(10, func() { u.drop(0) }); n != 0 {
		t.Errorf("%v copies are made", n)
	}
}

// FTS5 does not distinguish upper from lower case. Provenance does, however many
// identifiers differ only in case.
func TestIdentifiersThatDifferOnlyInCaseAreDistinct(t *testing.T) {
	s := fresh(t)
	puts := []oda.Put{suite.Put(suite.Document(t, oda.SBDefinition, `{}`), "hub-x", "anna", 1)}
	for i := range 2100 {
		puts = append(puts, suite.Put(suite.Document(t, oda.SBInstance, `{"sbd_ref":"HUB-X"}`), fmt.Sprint("sbi-", i), "anna", 1))
	}
	puts = append(puts, suite.Put(suite.Document(t, oda.SBInstance, `{"sbd_ref":"hub-x"}`), "real", "anna", 1))
	must.Get(s.Put(t.Context(), puts))(t)
	awaitIndexed(t, s)
	p, err := provenance.New(s).Graph(t.Context(), oda.Ref{Kind: oda.SBDefinition, ID: "hub-x"})
	if err != nil || len(p.Nodes) != 2 || p.Truncated {
		t.Errorf("%d nodes, truncated: %t, %v", len(p.Nodes), p.Truncated, err)
	}
}
