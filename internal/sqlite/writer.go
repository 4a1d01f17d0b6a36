package sqlite

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"time"

	"zombiezen.com/go/sqlite"

	"oda"
	"oda/internal/engine"
)

// Bounds of the queue of the writer, and of what it commits together.
const (
	queueLength = 1024
	batchJobs   = 512
	batchBytes  = 8 << 20
	batchTime   = 10 * time.Millisecond
	gatherTurns = 16
)

// job is one request to write. Run judges it and writes it within the transaction.
// It may be called again if the transaction fails, so it must set all its results
// each time. An error of run refuses the request without affecting the others.
type job struct {
	run    func(*txn) error
	size   int
	answer error          // valid once it is done
	done   sync.WaitGroup // committed or refused
}

func newJob(size int, run func(*txn) error) *job {
	j := &job{run: run, size: size}
	j.done.Add(1)
	return j
}

// wait returns the answer once there is one. A job that was handed over may be committed,
// so it waits even if the caller has gone.
func (j *job) wait() error {
	j.done.Wait()
	return j.answer
}

// end answers the job.
func (j *job) end(err error) {
	j.answer = err
	j.done.Done()
}

// submit hands a job to the writer and waits until it is committed or refused.
func (s *Store) submit(ctx context.Context, size int, run func(*txn) error) error {
	j := newJob(size, run)
	if err := s.queue.Put(ctx, j); err != nil {
		return err
	}
	return j.wait()
}

// commitNow runs a job on the goroutine of its caller, if there is nobody to share a
// commit with. That wakes two goroutines fewer. It reports whether it did.
func (s *Store) commitNow(j *job) bool {
	if len(s.queue.Items()) > 0 || !s.writing.TryLock() {
		return false
	}
	defer s.writing.Unlock()
	if s.ended || s.answered > 1 {
		return false
	}
	defer func() {
		if p := recover(); p != nil { // it fails this request only, so the next ones need a clean state
			(&txn{store: s, conn: s.writer}).rollback()
			panic(p)
		}
	}()
	s.commit(j, nil, false)
	s.watchLog()
	return true
}

// write is the writer. It commits the waiting jobs together. In between, and at the
// end, it moves new entities into the index of terms. While
// requests keep coming, that is part of their commits, since another commit would
// wait for the disk once more.
func (s *Store) write() {
	var pause <-chan time.Time // until the next move; nil while there is nothing to move
	isDue := false             // the next commit moves something
	rest := movePause
	for {
		if pause == nil && len(s.unindexed.get()) > 0 {
			pause = time.After(rest)
		}
		var do func()
		select {
		case first, open := <-s.queue.Items():
			do = func() {
				if s.ended = !open; s.ended {
					s.moveAll()
					return
				}
				s.gather()
				s.commit(first, s.queue.Items(), isDue || s.unindexed.over(unindexedMost/2))
				isDue = false
				s.watchLog()
				if s.unindexed.over(unindexedMost) {
					_ = s.move() // it logs its error and will be tried again
				}
			}
		case <-pause:
			do = func() {
				rest = movePause
				if isDue = len(s.queue.Items()) > 0; !isDue && s.move() != nil {
					rest = moveRest
				}
			}
			pause = nil
		case answer := <-s.probes:
			do = func() { answer <- s.touch() }
		case do = <-s.pauses:
		}
		s.writing.Lock()
		do()
		s.writing.Unlock()
		if s.ended {
			return
		}
	}
}

// gather lets requests join that are about to arrive, as long as more keep coming and
// the next transaction has room for them, because a commit costs about the same for many
// as for one. It only yields to goroutines that are ready to run, so it never waits for a
// request that may not come.
func (s *Store) gather() {
	for range gatherTurns {
		before := len(s.queue.Items())
		if 1+before >= engine.Half(1+before, s.answered) {
			return
		}
		runtime.Gosched()
		if len(s.queue.Items()) == before {
			return
		}
	}
}

// commit runs the first job and those that are waiting in one transaction, and
// answers each. It may move something into the index of terms, too.
func (s *Store) commit(first *job, waiting <-chan *job, move bool) {
	before := s.last
	tx, err := s.begin()
	if err != nil {
		s.log.Error("a transaction could not begin", "error", err)
		s.commits.Note(1, time.Time{}, err)
		s.refused(err)
		first.end(notStored(err))
		return
	}
	most := engine.Half(1+len(waiting), s.answered)
	jobs := make([]*job, 0, min(most, 1+len(waiting)))
	started := time.Now()
	size := 0
	for j := first; j != nil; j = next(waiting, len(jobs), size, started) {
		j.answer = j.run(tx)
		jobs = append(jobs, j)
		if tx.fault != nil {
			tx.rollback()
			s.retry(jobs, tx.fault)
			return
		}
		if size += j.size; len(jobs) == most {
			break
		}
	}
	if move {
		if tx.moveBeside(); tx.fault != nil {
			tx.rollback()
			s.retry(jobs, tx.fault)
			return
		}
	}
	s.answered = len(jobs)
	err = tx.commit()
	if err != nil || tx.position > before { // else everything was refused
		s.commits.Note(len(jobs), started, err)
	}
	if err != nil {
		s.log.Error("a commit failed", "error", err, "requests", len(jobs))
		s.refused(err)
	}
	uncertain := s.endDoubt() != nil
	for _, j := range jobs {
		switch {
		case err == nil:
		case uncertain && j.answer == nil:
			j.answer = oda.Uncertain(err)
		default:
			// This is also the answer to refused jobs: the reason may have been what
			// another job of this transaction had written.
			j.answer = notStored(err)
		}
		j.end(j.answer)
	}
}

// next returns a job that is waiting, or nil if there is none or the batch is full.
func next(waiting <-chan *job, jobs, size int, started time.Time) *job {
	if waiting == nil || jobs >= batchJobs || size >= batchBytes || jobs%16 == 15 && time.Since(started) > batchTime {
		return nil
	}
	select {
	case j := <-waiting: // nil once the queue is closed
		return j
	default:
		return nil
	}
}

// retry runs the jobs of a failed transaction again, each in a transaction of its
// own, so that only the culprit fails.
func (s *Store) retry(jobs []*job, fault error) {
	if len(jobs) == 1 {
		s.log.Error("a write failed", "error", fault)
		s.commits.Note(1, time.Time{}, fault)
		s.refused(fault)
		jobs[0].end(notStored(fault))
		return
	}
	for _, j := range jobs {
		s.commit(j, nil, false)
	}
}

// notStored turns an error of a write into one for the caller. The write must have
// changed nothing.
func notStored(err error) error {
	return problem(oda.NothingStored(err), " Nothing was stored by this request.")
}

// storageError turns an error of a read into one for the caller.
func storageError(err error) error { return problem(err, "") }

// readError is storageError for a read of one entity.
func readError(ref oda.Ref, err error) error {
	if sqlite.ErrCode(err).ToPrimary() == sqlite.ResultCorrupt && oda.CodeOf(err) == oda.Internal {
		return oda.Unreadable(ref).Because(err)
	}
	return storageError(err)
}

// problem returns an error for the caller that says what is wrong with the storage.
// Outcome says what that means for the request.
func problem(err error, outcome string) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*oda.Error](err); ok || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	code := sqlite.ErrCode(err).ToPrimary()
	if errors.Is(err, errMoved) {
		code = sqlite.ResultCantOpen
	}
	switch code {
	case sqlite.ResultFull:
		return oda.Errorf(oda.Unavailable, "The disk of the archive is full.%s Try again later; if this persists, tell the operator.", outcome).Because(err)
	case sqlite.ResultIOErr, sqlite.ResultBusy, sqlite.ResultCantOpen, sqlite.ResultReadOnly, sqlite.ResultNoMem:
		return oda.Errorf(oda.Unavailable, "The archive's storage is unavailable.%s "+
			"Try again later; if this persists, tell the operator.", outcome).Because(err)
	case sqlite.ResultTooBig:
		return oda.Errorf(oda.BodyTooLarge, "The document is larger than the storage can take.%s Divide it into several.", outcome).Because(err)
	}
	return oda.Errorf(oda.Internal, "Internal error.%s Give the request ID to the operator.", outcome).Because(err)
}
