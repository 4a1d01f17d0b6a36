package sqlite

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"zombiezen.com/go/sqlite"

	"oda"
	"oda/internal/test/must"
	"oda/internal/test/suite"
)

// hold keeps the writer busy until release is called. Requests that are sent
// meanwhile wait and are committed together.
func hold(t *testing.T, s *Store) (release func()) {
	t.Helper()
	gate, busy := make(chan struct{}), make(chan struct{})
	begun := sync.OnceFunc(func() { close(busy) }) // the job may run again
	var group sync.WaitGroup
	group.Go(func() {
		err := s.submit(context.Background(), 0, func(*txn) error {
			begun()
			<-gate
			return nil
		})
		if err != nil {
			t.Errorf("the job that held the writer: %v", err)
		}
	})
	<-busy
	return sync.OnceFunc(func() {
		close(gate)
		group.Wait()
	})
}

// send puts a job in the queue.
func send(t *testing.T, s *Store, run func(*txn) error) *job {
	t.Helper()
	j := newJob(0, run)
	must.Do(t, s.queue.Put(context.Background(), j))
	return j
}

// recordWithin adds records in a transaction.
func recordWithin(tx *txn, add oda.Append) ([]oda.Receipt, error) {
	return tx.append(add, add.Digests(), add.Keys())
}

// storeJob stores a new ExecutionBlock.
func storeJob(ctx context.Context, p oda.Put) func(*txn) error {
	return func(tx *txn) error {
		_, err := tx.put(ctx, []oda.Put{p}, make([]recordList, 1), nil)
		return err
	}
}

// stored reports whether a block is in the file; it does not ask the cache.
func stored(t *testing.T, s *Store, id string) bool {
	t.Helper()
	r := must.Get(s.read(context.Background(), block(id)))(t)
	return r != nil
}

func TestWritesThatWaitAreCommittedTogether(t *testing.T) {
	s := fresh(t)
	mustPut(t, s, put(t, "b", `{}`, 1))
	release := hold(t, s)
	defer release()
	const n = 6 // with the job that holds the writer and the one that looks, as many as always go together
	var jobs []*job
	for range n {
		jobs = append(jobs, send(t, s, func(tx *txn) error {
			_, err := recordWithin(tx, oneRecord("b", `{"request":"r"}`))
			return err
		}))
	}
	var uncommitted int64
	jobs = append(jobs, send(t, s, func(tx *txn) error {
		c, err := s.readers.take(context.Background())
		if err != nil {
			return err
		}
		defer s.readers.give(c)
		return c.query("SELECT last_position FROM state", func(stmt *sqlite.Stmt) error {
			uncommitted = tx.position - stmt.ColumnInt64(0)
			return nil
		})
	}))
	release()
	for _, j := range jobs {
		must.Do(t, j.wait())
	}
	if uncommitted != n {
		t.Errorf("%d of %d records were in one transaction", uncommitted, n)
	}
}

func TestAFailingWriteDoesNotAffectOthersInItsBatch(t *testing.T) {
	ctx := context.Background()
	for name, poison := range map[string]func(t *testing.T) func(*txn) error{
		"the database refuses a statement": func(*testing.T) func(*txn) error {
			return func(tx *txn) error { return tx.exec("INSERT INTO state VALUES (2, 0, 0)") }
		},
		"after it has written": func(t *testing.T) func(*txn) error {
			p := put(t, "poison", `{"request_responses":[{"request":"one"}]}`, 1)
			return func(tx *txn) error {
				if err := storeJob(ctx, p)(tx); err != nil {
					return err
				}
				return tx.failed(errors.New("the disk is on fire"))
			}
		},
		"after SQLite has rolled back": func(t *testing.T) func(*txn) error {
			p := put(t, "poison", `{}`, 1)
			return func(tx *txn) error {
				if err := storeJob(ctx, p)(tx); err != nil {
					return err
				}
				if err := tx.conn.exec("ROLLBACK"); err != nil {
					return err
				}
				return tx.failed(errors.New("the disk is on fire"))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := fresh(t)
			mustPut(t, s, put(t, "b", `{}`, 1))
			release := hold(t, s)
			defer release()
			var good []*job
			var bad *job
			for i := range 20 {
				if i == 11 {
					bad = send(t, s, poison(t))
				}
				good = append(good, send(t, s, storeJob(ctx, put(t, fmt.Sprintf("good-%d", i), `{}`, 1))))
				good = append(good, send(t, s, func(tx *txn) error {
					_, err := recordWithin(tx, oneRecord("b", `{"request":"r"}`))
					return err
				}))
			}
			refused := send(t, s, storeJob(ctx, put(t, "good-0", `{}`, 1)))
			release()
			for _, j := range good {
				must.Do(t, j.wait())
			}
			if err := bad.wait(); oda.CodeOf(err) != oda.Internal {
				t.Errorf("the failing write got %v", err)
			}
			if err := refused.wait(); oda.CodeOf(err) != oda.MetadataMismatch {
				t.Errorf("a write that does not match got %v", err)
			}
			for i := range 20 {
				if !stored(t, s, fmt.Sprintf("good-%d", i)) {
					t.Errorf("good-%d was acknowledged but is not stored", i)
				}
			}
			if stored(t, s, "poison") {
				t.Error("the failing write is stored")
			}
			if r, err := record(s, "b", `{"request":"r"}`); err != nil || r.Sequence != 21 {
				t.Errorf("the next record got %+v, %v", r, err)
			}
			counts, err := s.Counts(ctx)
			if err != nil || counts[oda.ExecutionBlock] != 21 {
				t.Errorf("there are %v, %v", counts, err)
			}
			must.Do(t, s.Close())
			open(t, s.file.path) // checks that the log is complete
		})
	}
}

func TestABatchIsBounded(t *testing.T) {
	now := time.Now()
	for name, test := range map[string]struct {
		jobs, size int
		started    time.Time
		more       bool
	}{
		"few":                  {1, 100, now, true},
		"many":                 {batchJobs, 0, now, false},
		"large":                {1, batchBytes, now, false},
		"slow, looked at":      {15, 0, now.Add(-time.Second), false},
		"slow, not looked at":  {14, 0, now.Add(-time.Second), true},
		"almost all that fits": {batchJobs - 2, batchBytes - 1, now, true},
	} {
		waiting := make(chan *job, 1)
		waiting <- &job{}
		if got := next(waiting, test.jobs, test.size, test.started); (got != nil) != test.more {
			t.Errorf("%s: got %v", name, got)
		}
	}
	if next(nil, 0, 0, now) != nil || next(make(chan *job), 0, 0, now) != nil {
		t.Error("a job came from an empty queue")
	}
	closed := make(chan *job)
	close(closed)
	if next(closed, 0, 0, now) != nil {
		t.Error("a job came from a closed queue")
	}
}

func TestTheRecordsOfADocumentCountInItsBatch(t *testing.T) {
	s := fresh(t)
	release := hold(t, s)
	defer release()
	p := put(t, "b", `{"request_responses":[{"request":"0123456789"},{"request":"0123456789"}]}`, 1)
	var group sync.WaitGroup
	group.Go(func() {
		if _, err := s.Put(context.Background(), []oda.Put{p}); err != nil {
			t.Error(err)
		}
	})
	j := <-s.queue.Items() // what the writer would take
	if want := len(p.Body.Text) + len(p.Records[0]) + len(p.Records[1]); j.size != want {
		t.Errorf("the write counts as %d bytes, but has %d", j.size, want)
	}
	must.Do(t, s.queue.Put(t.Context(), j))
	release()
	group.Wait()
}

func TestAWriteStopsWaitingForTheQueueWhenItsCallerLeaves(t *testing.T) {
	s := fresh(t)
	release := hold(t, s)
	defer release()
	var jobs []*job
	for range queueLength {
		jobs = append(jobs, send(t, s, func(*txn) error { return nil }))
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	_, err := s.Put(ctx, []oda.Put{put(t, "late", `{}`, 1)})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	release()
	for _, j := range jobs {
		must.Do(t, j.wait())
	}
	if stored(t, s, "late") {
		t.Error("a refused write is stored")
	}
}

func TestClosingAnswersEveryWriteTruthfully(t *testing.T) {
	ctx := context.Background()
	for round := range 5 {
		path := archivePath(t)
		s := open(t, path)
		const writers = 8
		var acknowledged, refused [writers][]string
		var group sync.WaitGroup
		started := make(chan struct{}, writers)
		for w := range writers {
			body := suite.Document(t, oda.ExecutionBlock, `{}`)
			group.Go(func() {
				for i := 0; ; i++ {
					id := fmt.Sprintf("b-%d-%d", w, i)
					_, err := s.Put(ctx, []oda.Put{suite.Put(body, id, "anna", 1)})
					if i == 0 {
						started <- struct{}{}
					}
					if err != nil {
						if oda.CodeOf(err) != oda.Unavailable {
							t.Errorf("a write while closing got %v", err)
						}
						refused[w] = append(refused[w], id)
						return
					}
					acknowledged[w] = append(acknowledged[w], id)
				}
			})
		}
		for range writers {
			<-started
		}
		time.Sleep(time.Duration(round) * 3 * time.Millisecond) // so that closing comes at any moment
		must.Do(t, s.Close())
		group.Wait()
		s = open(t, path)
		for w := range writers {
			for _, id := range acknowledged[w] {
				if !stored(t, s, id) {
					t.Errorf("%s was acknowledged but is lost", id)
				}
			}
			for _, id := range refused[w] {
				if stored(t, s, id) {
					t.Errorf("%s was refused but is stored", id)
				}
			}
		}
	}
}

// TestClosingAnswersARecordTruthfully has one client, whose records are committed by
// itself.
func TestClosingAnswersARecordTruthfully(t *testing.T) {
	for round := range 10 {
		path := archivePath(t)
		s := open(t, path)
		mustPut(t, s, put(t, "b", `{}`, 1))
		var last int64
		started, ended := make(chan struct{}), make(chan error)
		go func() {
			for i := 0; ; i++ {
				r, err := record(s, "b", `{}`)
				if err != nil {
					ended <- err
					return
				}
				last = r.Sequence
				if i == 0 {
					close(started)
				}
			}
		}()
		<-started
		time.Sleep(time.Duration(round) * 300 * time.Microsecond) // so that closing comes at any moment
		must.Do(t, s.Close())
		if err := <-ended; oda.CodeOf(err) != oda.Unavailable {
			t.Errorf("a record while closing got %v", err)
		}
		page, err := open(t, path).Records(t.Context(), "b", 0, 1)
		if err != nil || page.Last != last {
			t.Errorf("%d records were acknowledged, but %d are stored, %v", last, page.Last, err)
		}
	}
}

func TestAPanicOfOneRecordDoesNotAffectTheNext(t *testing.T) {
	s := fresh(t)
	mustPut(t, s, put(t, "b", `{}`, 1))
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was lost")
			}
		}()
		fault := newJob(0, func(tx *txn) error {
			if _, err := recordWithin(tx, oneRecord("b", `{"lost":true}`)); err != nil {
				t.Error(err)
			}
			panic("a fault of the program")
		})
		for !s.commitNow(fault) { // the writer may still be busy after its answer
			runtime.Gosched()
		}
	}()
	r, err := record(s, "b", `{}`)
	if err != nil || r.Sequence != 1 {
		t.Errorf("the next record got %d, %v; want 1", r.Sequence, err)
	}
}
