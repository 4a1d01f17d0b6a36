package postgres_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"oda"
	"oda/internal/postgres"
	"oda/internal/test/env"
	"oda/internal/test/must"
)

func begun(key string) oda.Begun {
	return oda.Begun{Block: "b", Key: key, Request: "scan", Lease: time.Minute, By: "anna"}
}

// keysRunning returns the keys of the calls that are running.
func keysRunning(t *testing.T, s *postgres.Store) string {
	t.Helper()
	var keys []string
	for _, c := range must.Get(s.Running(t.Context(), ""))(t) {
		keys = append(keys, c.Key)
	}
	return strings.Join(keys, " ")
}

func TestAllProcessesSeeWhatIsRunningAndARestartForgetsNothing(t *testing.T) {
	t.Parallel()
	dsn := env.Postgres(t)
	first, second := open(t, dsn), open(t, dsn)
	mustPut(t, first, write(t, block("b"), `{}`))
	for _, key := range []string{"1", "2", "3"} {
		must.Do(t, first.Begin(t.Context(), begun(key)))
	}
	before := must.Get(first.Running(t.Context(), "b"))(t)
	must.Do(t, second.Withdraw(t.Context(), begun("1")))
	must.Get(one(t.Context(), second, adding("b", "scan", "2")))(t)
	must.Do(t, first.Close())
	third := open(t, dsn)
	must.Do(t, second.Begin(t.Context(), begun("3")))
	for _, s := range []*postgres.Store{second, third} {
		calls := must.Get(s.Running(t.Context(), ""))(t)
		if len(calls) != 1 || calls[0].Key != "3" || calls[0].Since != before[2].Since || calls[0].RenewedOn <= before[2].RenewedOn {
			t.Errorf("%+v is running, and was %+v", calls, before[2])
		}
	}
}

// A dump has the rows, but they say nothing of the database into which it is restored.
func TestRowsThatWereCopiedAreNotRunning(t *testing.T) {
	t.Parallel()
	s, conn, _ := fresh(t)
	mustPut(t, s, write(t, block("b"), `{}`))
	for i := range 20 {
		must.Do(t, s.Begin(t.Context(), begun(fmt.Sprint("old-", i))))
	}
	since := must.Get(s.Running(t.Context(), ""))(t)[7].Since
	do(t, conn, "CREATE TABLE copy AS SELECT * FROM running", "DELETE FROM running", "INSERT INTO running SELECT * FROM copy")
	if got := keysRunning(t, s); got != "" {
		t.Errorf("%s are running", got)
	}
	b := begun("old-15") // it comes after old-0, old-1, and old-10 to old-14
	must.Do(t, s.Begin(t.Context(), b))
	if calls := must.Get(s.Running(t.Context(), ""))(t); len(calls) != 1 || calls[0].Key != b.Key || calls[0].Since <= since {
		t.Errorf("%+v is running, and the copied rows are from %v", calls, since)
	}
	if rows := query[int](t, conn, "SELECT count(*) FROM running"); rows != 1 {
		t.Errorf("%d rows are left", rows)
	}
}

func TestWhatHasEndedIsRemovedLater(t *testing.T) {
	t.Parallel()
	s, conn, _ := fresh(t)
	mustPut(t, s, write(t, block("b"), `{}`))
	const calls = 130 // more than two portions
	for i := range calls {
		must.Do(t, s.Begin(t.Context(), begun(fmt.Sprint("old-", i))))
	}
	for i := range calls {
		if i%10 > 0 {
			must.Get(one(t.Context(), s, adding("b", "scan", fmt.Sprint("old-", i))))(t)
		}
	}
	rows := func() int { return query[int](t, conn, "SELECT count(*) FROM running") }
	if got := rows(); got != calls {
		t.Fatalf("recording has left %d rows", got)
	}
	for range 3 {
		must.Do(t, s.Begin(t.Context(), begun("old-0"))) // a renewal removes nothing
	}
	before := rows()
	for i := range 4 {
		must.Do(t, s.Begin(t.Context(), begun(fmt.Sprint("new-", i))))
		if now := rows(); now < before-50+1 {
			t.Errorf("one call has removed %d rows", before-now+1)
		} else {
			before = now
		}
	}
	if want := calls/10 + 4; before != want || len(must.Get(s.Running(t.Context(), ""))(t)) != want {
		t.Errorf("%d rows are left, want %d; running is %s", before, want, keysRunning(t, s))
	}
}

// Nobody waits for the disk, or for a standby, to say what is running.
func TestARunningCallDoesNotWaitForAStandby(t *testing.T) {
	t.Parallel()
	primary, standby := pair(t)
	dsn := either(primary.Addr(), standby.Addr())
	s := open(t, dsn)
	mustPut(t, s, write(t, block("b"), `{}`))
	standby.Kill()
	must.Do(t, s.Begin(t.Context(), begun("1")))
	must.Do(t, s.Begin(t.Context(), begun("2")))
	must.Do(t, s.Withdraw(t.Context(), begun("2")))
	if got := keysRunning(t, s); got != "1" {
		t.Errorf("%q is running", got)
	}
}

func TestAfterAFailoverNothingIsRunningUntilItIsSaidAgain(t *testing.T) {
	t.Parallel()
	primary, standby := pair(t)
	s := open(t, either(primary.Addr(), standby.Addr()))
	mustPut(t, s, write(t, block("b"), `{}`))
	must.Do(t, s.Begin(t.Context(), begun("1")))
	must.Get(one(t.Context(), s, adding("b", "scan", "2")))(t)
	onStandby := connect(t, standby.DSN("postgres"))
	if _, err := onStandby.Exec(t.Context(), "SELECT FROM running"); err == nil || !strings.Contains(err.Error(), "0A000") {
		t.Errorf("a standby answers %v", err)
	}
	primary.Kill()
	standby.Promote()
	env.Await(t, "the new primary answers", func() bool {
		_, err := s.Running(t.Context(), "")
		return err == nil
	})
	if got := keysRunning(t, s); got != "" {
		t.Errorf("%q is running", got)
	}
	must.Do(t, s.Begin(t.Context(), begun("1")))
	must.Do(t, s.Begin(t.Context(), begun("2"))) // it has ended
	if got := keysRunning(t, s); got != "1" {
		t.Errorf("%q is running", got)
	}
}
