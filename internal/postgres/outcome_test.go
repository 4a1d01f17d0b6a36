package postgres_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"oda"
	"oda/internal/postgres"
	"oda/internal/test/env"
	"oda/internal/test/fault"
	"oda/internal/test/suite"
)

// nothingStored reports whether an answer claims that nothing was stored.
func nothingStored(err error) bool {
	return strings.Contains(strings.ToLower(err.Error()), "nothing was stored")
}

// uncertain checks that an answer leaves open whether the write is stored.
func uncertain(t *testing.T, err error) {
	t.Helper()
	wantCode(t, err, oda.Unavailable)
	if !strings.Contains(err.Error(), "may or may not be stored") || nothingStored(err) {
		t.Errorf("the answer claims more than is known: %v", err)
	}
}

// The server may end a session just after a commit. Updates that were committed
// together are then not tried again, because the second try would be refused.
func TestUpdatesThatMayBeStoredAreNotTriedAgain(t *testing.T) {
	t.Parallel()
	dsn := env.Postgres(t)
	proxy := env.NewProxy(t, address(t, dsn))
	s, watch := open(t, proxy.DSN(dsn)), connect(t, dsn)
	const held, free = postgres.StoresAtOnce, 4 // as many as run at once, and some that wait for them
	var stored [held + free]oda.Metadata
	for i := range stored {
		stored[i] = mustPut(t, s, write(t, sbd(fmt.Sprint("s", i)), `{}`)).Metadata
	}
	letGo := pause(t, dsn, "s%", "versions")
	var errs [held + free]error
	var group sync.WaitGroup
	start := func(i int, members ...string) {
		group.Go(func() {
			_, errs[i] = s.Put(context.Background(), []oda.Put{next(t, sbd(fmt.Sprint("s", i)), stored[i], members...)})
		})
	}
	for i := range held {
		start(i)
	}
	await(t, "as many updates run as may", patience, func() bool { return paused(t, watch) == held })
	for i := range free {
		start(held+i, `"a":"marked"`)
	}
	await(t, "the others wait for them", patience, func() bool { return s.UpdatesWaiting() == free })
	var cut atomic.Bool
	proxy.OnClientMessage(func(message []byte) fault.Cut {
		if statement(message) && cut.CompareAndSwap(false, true) {
			return fault.CutByServer
		}
		return fault.NoCut
	})
	letGo()
	group.Wait()
	if !cut.Load() {
		t.Fatal("nothing was cut")
	}
	for i, err := range errs {
		if err != nil {
			uncertain(t, err)
		}
		if v := mustGet(t, s, sbd(fmt.Sprint("s", i))).Metadata.Version; v != 2 {
			t.Errorf("s%d has the version %d, want 2", i, v)
		}
	}
}

// bomb is a context that panics when it is used.
type bomb struct{ context.Context }

func (bomb) Value(any) any { panic("bomb") }

func TestAPanickingUpdateFreesItsPlace(t *testing.T) {
	t.Parallel()
	s := open(t, env.Postgres(t))
	m := mustPut(t, s, write(t, sbd("a"), `{}`)).Metadata
	for range 20 { // more than may run at once
		func() {
			defer func() {
				if recover() == nil {
					t.Error("nothing panicked")
				}
			}()
			_, _ = s.Put(bomb{t.Context()}, []oda.Put{next(t, sbd("a"), m)})
		}()
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, err := s.Put(ctx, []oda.Put{next(t, sbd("a"), m)}); err != nil {
		t.Errorf("an update after them: %v", err)
	}
}

// The records of the answer are read before the commit, so it needs no connection
// afterwards.
func TestAStoredPutIsAnsweredWithoutAnotherConnection(t *testing.T) {
	t.Parallel()
	dsn := env.Postgres(t)
	s, watch := open(t, with(t, dsn, "pool_max_conns", "1")), connect(t, dsn)
	other := mustPut(t, s, write(t, sbd("other"), `{}`)).Metadata
	mustPut(t, s, write(t, block("b"), `{}`))
	m := mustRecord(t, s, "b", "one").Metadata
	letBlock, letOther := hold(t, dsn, block("b")), hold(t, dsn, sbd("other"))
	var stored []*oda.Entity
	var storedErr, otherErr error
	var first, second sync.WaitGroup
	first.Go(func() { stored, storedErr = s.Put(context.Background(), []oda.Put{keep(t, block("b"), m)}) })
	await(t, "the write has the connection", patience, func() bool { return waiting(t, watch) == 1 })
	second.Go(func() { _, otherErr = s.Put(context.Background(), []oda.Put{next(t, sbd("other"), other)}) })
	letBlock()
	first.Wait()
	await(t, "the other one has the connection", patience, func() bool { return waiting(t, watch) == 1 })
	if storedErr != nil {
		t.Fatal(storedErr)
	}
	answer := suite.Render(t, stored[0])
	letOther()
	second.Wait()
	if otherErr != nil {
		t.Error(otherErr)
	}
	if text := suite.Render(t, mustGet(t, s, block("b"))); text != answer {
		t.Errorf("%s is stored, but the answer is %s", text, answer)
	}
}
