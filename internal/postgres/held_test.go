package postgres_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"oda"
	"oda/internal/postgres"
	"oda/internal/test/env"
	"oda/internal/test/must"
)

// Records of many blocks share a transaction. Another session holds one of the
// blocks longer than anyone waits. Its record is refused, and the others are stored.
func TestAHeldBlockDoesNotFailOthersInItsTransaction(t *testing.T) {
	t.Parallel()
	dsn := env.Postgres(t)
	s := open(t, dsn)
	const blocks = 8
	for i := range blocks {
		mustPut(t, s, write(t, block(fmt.Sprint("b", i)), `{}`))
	}
	letGo := hold(t, dsn, block("b3"))
	var adds []oda.Append
	for i := range blocks {
		adds = append(adds, adding(fmt.Sprint("b", i), "one", ""))
	}
	adds = append(adds, adding("missing", "one", ""))
	recorded, errs := s.AppendTogether(t.Context(), adds)
	for i, add := range adds {
		switch add.Block {
		case "b3":
			wantCode(t, errs[i], oda.Overloaded)
			if !nothingStored(errs[i]) {
				t.Errorf("the answer does not say what is certain: %v", errs[i])
			}
		case "missing":
			wantCode(t, errs[i], oda.NotFound)
		default:
			if errs[i] != nil || recorded[i].Sequence != 1 {
				t.Errorf("%s: %+v, %v", add.Block, recorded[i], errs[i])
			}
		}
	}
	letGo()
	if r := mustRecord(t, s, "b3", "two"); r.Sequence != 1 {
		t.Errorf("the refused record is stored: the next one is %d", r.Sequence)
	}
}

// One record cannot be stored. Only this record is refused, and one that was stored
// before gets the same answer as the first time.
func TestARecordThatCannotBeStoredDoesNotFailOthers(t *testing.T) {
	t.Parallel()
	s, conn, _ := fresh(t)
	for _, id := range []string{"a", "b", "c"} {
		mustPut(t, s, write(t, block(id), `{}`))
	}
	repeated := adding("b", "repeated", "key")
	first := must.Get(one(t.Context(), s, repeated))(t)
	do(t, conn, `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'not this one'; END $$`,
		`CREATE TRIGGER refuse BEFORE INSERT ON records FOR EACH ROW WHEN (NEW.recorded_by = 'mallory') EXECUTE FUNCTION refuse()`)
	bad := adding("b", "bad", "")
	bad.By = "mallory"
	recorded, errs := s.AppendTogether(t.Context(), []oda.Append{
		adding("a", "x", ""), adding("b", "x", "other"), bad, repeated, adding("c", "x", ""),
	})
	for i, err := range errs {
		if i == 2 {
			wantCode(t, err, oda.Internal)
		} else if err != nil {
			t.Errorf("record %d: %v", i, err)
		}
	}
	if recorded[3] != first {
		t.Errorf("the retry is answered %+v, the first time it was %+v", recorded[3], first)
	}
	if n := query[int](t, conn, "SELECT count(*) FROM records"); n != 4 {
		t.Errorf("%d records are stored, want 4", n)
	}
}

// More blocks are held than transactions run at once. Records into other blocks are
// stored at once, and those into the held ones as soon as these are free.
func TestHeldBlocksDoNotDelayOthers(t *testing.T) {
	t.Parallel()
	s, watch, dsn := fresh(t)
	const held = 6
	for i := range held {
		mustPut(t, s, write(t, block(fmt.Sprint("held", i)), `{}`))
	}
	mustPut(t, s, write(t, block("free"), `{}`))
	holder := connect(t, dsn)
	do(t, holder, "BEGIN", "SELECT FROM heads WHERE identifier LIKE 'held%' FOR UPDATE")
	errs := make([]error, held)
	var group sync.WaitGroup
	for i := range held {
		group.Go(func() { _, errs[i] = one(context.Background(), s, adding(fmt.Sprint("held", i), "x", "")) })
	}
	await(t, "records wait for held blocks", patience, func() bool { return waiting(t, watch) > 0 })
	// After a moment, the held blocks are waited for separately.
	await(t, "records of another block are stored quickly", patience, func() bool {
		began := time.Now()
		for range 20 {
			mustRecord(t, s, "free", "x")
		}
		return time.Since(began) < env.AtMost(time.Second) && waiting(t, watch) > 0
	})
	do(t, holder, "ROLLBACK")
	group.Wait()
	for i, err := range errs {
		if err != nil {
			t.Errorf("held%d: %v", i, err)
		}
	}
}

// Updates that wait for others share transactions too.
func TestAHeldEntityDoesNotFailOtherUpdates(t *testing.T) {
	t.Parallel()
	s, watch, dsn := fresh(t)
	const running, together = postgres.StoresAtOnce, 6 // those that run at once, and some that wait for them
	var stored [running + together]oda.Metadata
	for i := range stored {
		stored[i] = mustPut(t, s, write(t, sbd(fmt.Sprint("s", i)), `{}`)).Metadata
	}
	long := fmt.Sprint("s", running+2)
	letRun, letGo := pause(t, dsn, "s%", "versions"), hold(t, dsn, sbd(long))
	var errs [running + together]error
	var group sync.WaitGroup
	for i := range stored {
		if i == running {
			await(t, "as many updates run as may", patience, func() bool { return paused(t, watch) == running })
		}
		group.Go(func() {
			_, errs[i] = s.Put(context.Background(), []oda.Put{next(t, sbd(fmt.Sprint("s", i)), stored[i])})
		})
	}
	await(t, "the others wait for them", patience, func() bool { return s.UpdatesWaiting() == together })
	letRun()
	group.Wait()
	letGo()
	for i, err := range errs {
		id := fmt.Sprint("s", i)
		want := int64(2)
		if id == long {
			want = 1
			wantCode(t, err, oda.Overloaded)
		} else if err != nil {
			t.Errorf("%s: %v", id, err)
		}
		if v := mustGet(t, s, sbd(id)).Metadata.Version; v != want {
			t.Errorf("%s has the version %d, want %d", id, v, want)
		}
	}
}

// Another session holds most of the blocks. Writes to the others are stored soon.
// Writes that wait in vain get the answer that nothing was stored.
func TestHeldEntitiesTakeNoConnectionsFromOthers(t *testing.T) {
	t.Parallel()
	dsn := env.Postgres(t)
	s := open(t, dsn)
	const blocks, held, rounds = 20, 14, 3
	var stored [blocks]oda.Metadata
	name := func(i int) string { return fmt.Sprintf("b%02d", i) }
	for i := range stored {
		stored[i] = mustPut(t, s, write(t, block(name(i)), `{}`)).Metadata
	}
	holder := connect(t, dsn)
	do(t, holder, "BEGIN", "SELECT FROM heads WHERE identifier < '"+name(held)+"' FOR UPDATE")

	var group sync.WaitGroup
	try := func(i int, what string, send func() error) {
		group.Go(func() {
			began := time.Now()
			err := send()
			took := time.Since(began)
			switch {
			case i >= held && err != nil:
				t.Errorf("%s to %s, which is free: %v (after %v)", what, name(i), err, took)
			case i >= held && took > env.AtMost(5*time.Second):
				t.Errorf("%s to %s, which is free, took %v", what, name(i), took)
			case i < held && (oda.CodeOf(err) != oda.Overloaded || !nothingStored(err)):
				t.Errorf("%s to %s, which is held: %v (after %v)", what, name(i), err, took)
			}
		})
	}
	put := func(puts ...oda.Put) func() error {
		return func() error { _, err := s.Put(context.Background(), puts); return err }
	}
	for i := range stored {
		try(i, "a write that keeps the records", put(keep(t, block(name(i)), stored[i])))
		if i < held {
			try(i, "another", put(keep(t, block(name(i)), stored[i])))
			try(i, "an update", put(next(t, block(name(i)), stored[i])))
			try(i, "a write of several", put(next(t, block(name(i)), stored[i]), write(t, sbd(name(i)), `{}`)))
			continue
		}
		try(i, "a creation", put(write(t, sbd("new-"+name(i)), `{}`)))
	}
	var records sync.WaitGroup // that wait for held blocks
	for i := range stored {
		for range rounds {
			record := func() error {
				_, err := one(context.Background(), s, adding(name(i), "x", ""))
				return err
			}
			if i >= held {
				try(i, "a record", record)
				continue
			}
			records.Go(func() {
				if err := record(); err != nil && !nothingStored(err) {
					t.Errorf("a record to %s, which is held: %v", name(i), err)
				}
			})
		}
	}
	for i := held; i < blocks; i++ {
		try(i, "reading", func() error { _, err := s.Get(context.Background(), block(name(i))); return err })
	}
	group.Wait()
	do(t, holder, "ROLLBACK")
	records.Wait()
	for i := range held {
		if v := mustGet(t, s, block(name(i))).Metadata.Version; v != 1 {
			t.Errorf("%s, which was held, has the version %d", name(i), v)
		}
	}
}

// Another session holds an entity for a while. A write waits for it and is stored,
// although others wait in vain for entities that are held longer.
func TestAWriteIsStoredWhenItsEntityBecomesFree(t *testing.T) {
	t.Parallel()
	s, watch, dsn := fresh(t)
	const others = 6 // more than wait at the database at once
	stored := mustPut(t, s, write(t, sbd("a"), `{}`)).Metadata
	letGo := hold(t, dsn, sbd("a"))
	var group sync.WaitGroup
	for i := range others {
		ref := sbd(fmt.Sprint("other", i))
		m := mustPut(t, s, write(t, ref, `{}`)).Metadata
		letOther := hold(t, dsn, ref)
		defer letOther()
		group.Go(func() {
			_, err := s.Put(context.Background(), []oda.Put{next(t, ref, m)})
			if oda.CodeOf(err) != oda.Overloaded || !nothingStored(err) {
				t.Errorf("%s: %v", ref.ID, err)
			}
		})
	}
	var err error
	group.Go(func() { _, err = s.Put(context.Background(), []oda.Put{next(t, sbd("a"), stored)}) })
	await(t, "the writes have met the held entities", patience, func() bool { return waiting(t, watch) == 4 })
	letGo()
	group.Wait()
	if err != nil {
		t.Errorf("the write whose entity became free: %v", err)
	}
}

// If several sessions wait for one row, PostgreSQL now and then calls the end of a wait a
// cancellation by a user. A write that this happens to is tried again like any other.
func TestAWriteWhoseWaitIsCanceledIsStored(t *testing.T) {
	t.Parallel()
	s, watch, dsn := fresh(t)
	stored := mustPut(t, s, write(t, sbd("a"), `{}`)).Metadata
	mustPut(t, s, write(t, block("b"), `{}`))
	letStore, letRecord := hold(t, dsn, sbd("a")), hold(t, dsn, block("b"))
	errs := make([]error, 2)
	var group sync.WaitGroup
	group.Go(func() { _, errs[0] = s.Put(context.Background(), []oda.Put{next(t, sbd("a"), stored)}) })
	group.Go(func() { _, errs[1] = one(context.Background(), s, adding("b", "x", "")) })
	await(t, "both wait", patience, func() bool { return waiting(t, watch) == 2 })
	do(t, watch, cancelWaiting)
	letStore()
	letRecord()
	group.Wait()
	for i, err := range errs {
		if err != nil {
			t.Errorf("write %d: %v", i, err)
		}
	}
}

// cancelWaiting cancels the statements that wait for a lock.
const cancelWaiting = `SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`

// Somebody may cancel again and again. The write then gets the answer of one that waits in
// vain.
func TestAWriteThatIsCanceledAgainAndAgain(t *testing.T) {
	t.Parallel()
	s, watch, dsn := fresh(t)
	stored := mustPut(t, s, write(t, sbd("a"), `{}`)).Metadata
	defer hold(t, dsn, sbd("a"))()
	answered := make(chan error, 1)
	go func() {
		_, err := s.Put(context.Background(), []oda.Put{next(t, sbd("a"), stored)})
		answered <- err
	}()
	for {
		select {
		case err := <-answered:
			if wantCode(t, err, oda.Overloaded); !nothingStored(err) {
				t.Errorf("the answer is %v", err)
			}
			return
		case <-time.After(5 * time.Millisecond):
			do(t, watch, cancelWaiting)
		}
	}
}

// Several processes wait in vain for an entity that another session holds. The second one waits
// for the first to give up and then for the session, each time for as long as PostgreSQL lets
// it wait for one lock. All get the answer that nothing was stored, and nothing works on for them.
func TestProcessesThatWaitInVainKnowThatNothingWasStored(t *testing.T) {
	t.Parallel()
	s, watch, dsn := fresh(t)
	stores := []*postgres.Store{s, open(t, dsn), open(t, dsn)}
	mustPut(t, s, write(t, block("held"), `{}`))
	letGo := hold(t, dsn, block("held"))
	errs, took := make([]error, len(stores)), make([]time.Duration, len(stores))
	var group sync.WaitGroup
	for i, s := range stores {
		group.Go(func() {
			began := time.Now()
			_, errs[i] = one(t.Context(), s, adding("held", "x", "key"))
			took[i] = time.Since(began)
		})
		time.Sleep(500 * time.Millisecond)
	}
	group.Wait()
	await(t, "the server has stopped working for them", 5*time.Second, func() bool { return waiting(t, watch) == 0 })
	letGo()
	wantCode(t, errs[0], oda.Overloaded)
	if took[0] > env.AtMost(15*time.Second) {
		t.Errorf("the first answer took %v", took[0])
	}
	for i, err := range errs {
		if err == nil || !nothingStored(err) {
			t.Errorf("record %d: the answer does not say what is certain: %v", i, err)
		}
	}
	if r, err := one(t.Context(), s, adding("held", "x", "key")); err != nil || r.Sequence != 1 {
		t.Errorf("the retry got %+v, %v", r, err)
	}
}

// If each record of a block takes long, they have no longer together than one may take.
func TestTheRecordsOfABlockShareTheirTime(t *testing.T) {
	t.Parallel()
	dsn := env.Postgres(t)
	s := open(t, with(t, dsn, "statement_timeout", "200"))
	mustPut(t, s, write(t, block("held"), `{}`))
	letGo := hold(t, dsn, block("held"))
	defer letGo()
	adds := make([]oda.Append, 40)
	for i := range adds {
		adds[i] = adding("held", fmt.Sprint(i), "")
	}
	began := time.Now()
	_, errs := s.AppendSince(t.Context(), began.Add(time.Second-postgres.BatchTime), adds)
	if took := time.Since(began); took > env.AtMost(6*time.Second) { // each alone would be 8
		t.Errorf("the answers took %v", took)
	}
	for i, err := range errs {
		if err == nil || !nothingStored(err) {
			t.Errorf("record %d: %v", i, err)
		}
	}
}
