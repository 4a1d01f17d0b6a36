package postgres_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"oda"
	"oda/internal/postgres"
	"oda/internal/test/env"
	"oda/internal/test/must"
)

// saying returns a status to be said.
func saying(ref oda.Ref, text string) oda.NewStatus {
	return oda.NewStatus{Ref: ref, Text: text, By: "anna", Now: now()}
}

func mustSay(tb testing.TB, s oda.Engine, say oda.NewStatus) *oda.Status {
	tb.Helper()
	return must.Get(s.Say(context.Background(), say))(tb)
}

// standing returns what search knows of the status of an entity.
func standing(tb testing.TB, s oda.Engine, ref oda.Ref) oda.Standing {
	tb.Helper()
	return must.Get(s.Look(context.Background(), []oda.Ref{ref}))(tb)[0].Standing
}

// The second one waits for the head that the first one holds. What a statement sees is
// older than what it waits for.
func TestAStatusFollowsFromTheOneItWaitedFor(t *testing.T) {
	t.Parallel()
	dsn := env.Postgres(t)
	first, second, watch := open(t, dsn), open(t, dsn), connect(t, dsn)
	for name, one := range map[string]struct {
		said, then func(ref oda.Ref) error
		table      string // into which the first one inserts
		want       oda.Code
		text       string // the status in the end
		last       int64
	}{
		"after a status": {
			func(ref oda.Ref) error { _, err := first.Say(t.Context(), saying(ref, "Executing")); return err },
			func(ref oda.Ref) error {
				say := saying(ref, "Observed")
				say.Guarded, say.Previous = true, "executing"
				_, err := second.Say(t.Context(), say)
				return err
			}, "statuses", "", "Observed", 2,
		},
		"with a key that became known": {
			func(ref oda.Ref) error {
				say := saying(ref, "Executing")
				say.Key = &oda.Key{Value: "key"}
				_, err := first.Say(t.Context(), say)
				return err
			},
			func(ref oda.Ref) error {
				say := saying(ref, "Executing")
				say.Key = &oda.Key{Value: "key"}
				said, err := second.Say(t.Context(), say)
				if err == nil && said.Sequence != 1 {
					err = fmt.Errorf("it was said as %d", said.Sequence)
				}
				return err
			}, "statuses", "", "Executing", 1,
		},
		"after a version with a status": {
			func(ref oda.Ref) error { return update(t, first, ref, 1, `"status":"Ready"`) },
			func(ref oda.Ref) error {
				say := saying(ref, "Observed")
				say.Guarded, say.Previous = true, "Draft"
				_, err := second.Say(t.Context(), say)
				return err
			}, "versions", oda.StatusMismatch, "Ready", 0,
		},
		"a version without a status after a status": {
			func(ref oda.Ref) error { _, err := first.Say(t.Context(), saying(ref, "Executing")); return err },
			func(ref oda.Ref) error { return update(t, second, ref, 1) }, "statuses", "", "Executing", 1,
		},
		"a version with another status after a status": {
			func(ref oda.Ref) error { _, err := first.Say(t.Context(), saying(ref, "Executing")); return err },
			func(ref oda.Ref) error { return update(t, second, ref, 1, `"status":"Ready"`) }, "statuses", "", "Executing", 1,
		},
		"a version without a status after the first with one": {
			func(ref oda.Ref) error { return update(t, first, ref, 1, `"status":"Ready"`) },
			func(ref oda.Ref) error { return update(t, second, ref, 2) }, "versions", "", "", 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			ref := sbd(strings.ReplaceAll(name, " ", "-"))
			put := blank(t, ref)
			if !strings.Contains(name, "the first with one") {
				put = write(t, ref, `{"status":"Draft"}`)
				put.At = 1
			}
			mustPut(t, first, put)
			letGo := pauseOne(t, dsn, ref.ID, one.table)
			var firstErr, err error
			var group sync.WaitGroup
			group.Go(func() { firstErr = one.said(ref) })
			await(t, "the first one is stopped", patience, func() bool { return paused(t, watch) == 1 })
			group.Go(func() { err = one.then(ref) })
			await(t, "the second one waits", patience, func() bool { return waiting(t, watch) == 1 })
			letGo()
			group.Wait()
			must.Do(t, firstErr)
			if oda.CodeOf(err) != one.want || one.want == "" && err != nil {
				t.Errorf("the second one is answered %v, want the code %q", err, one.want)
			}
			if now := standing(t, first, ref); now.Text != one.text || now.Last != one.last {
				t.Errorf("the status is %+v", now)
			}
		})
	}
	wantWhole(t, dsn)
}

// pauseOne is pause for a test that has others after it.
func pauseOne(t *testing.T, dsn, id, table string) func() {
	t.Helper()
	letGo := pause(t, dsn, id, table)
	conn := connect(t, dsn)
	return func() {
		letGo()
		do(t, conn, "DROP FUNCTION pause CASCADE")
	}
}

// update stores the next version of an entity that was created at the instant 1, of which
// the caller knows, or has guessed, only the version. With the condition, the statement
// waits for a head that has another one.
func update(t *testing.T, s oda.Engine, ref oda.Ref, version int64, members ...string) error {
	put := next(t, ref, oda.Metadata{Version: version, CreatedBy: "anna", CreatedOn: 1, LastModifiedBy: "anna", LastModifiedOn: 1}, members...)
	put.Compare, put.Condition.NoneMatch = oda.KeptFields, &oda.Tags{List: []string{"none"}}
	_, err := s.Put(t.Context(), []oda.Put{put})
	return err
}

// Several processes say what came of the same entities, while others store them. Each
// has one connection.
func TestProcessesSayStatusesOfTheSameEntities(t *testing.T) {
	t.Parallel()
	dsn := env.Postgres(t)
	const processes, sayers, each = 3, 4, 12
	stores := make([]*postgres.Store, processes)
	for i := range stores {
		stores[i] = open(t, with(t, dsn, "pool_max_conns", "1"))
	}
	refs := []oda.Ref{sbd("a"), block("a"), sbd("b")}
	for _, ref := range refs {
		mustPut(t, stores[0], write(t, ref, `{"status":"Draft"}`))
	}
	begin := now()
	var mu sync.Mutex
	told := map[oda.Ref][]oda.Status{}
	var group sync.WaitGroup
	for i := range processes * sayers {
		s := stores[i%processes]
		group.Go(func() {
			for n := range each {
				say := saying(refs[(i+n)%len(refs)], fmt.Sprintf("said %d-%d", i, n))
				at := begin - oda.Instant((i*7+n*5)%11) // many are for the same instant
				say.At, say.Key = &at, &oda.Key{Value: fmt.Sprintf("key-%d-%d", i, n)}
				var said *oda.Status
				for range 2 { // a retry says it once
					var err error
					if said, err = s.Say(t.Context(), say); err != nil {
						t.Errorf("%s: %v", say.Text, err)
						return
					}
				}
				mu.Lock()
				told[say.Ref] = append(told[say.Ref], *said)
				mu.Unlock()
			}
		})
	}
	group.Go(func() { // an entity that changes all the time
		for n := range 20 {
			e := mustGet(t, stores[0], sbd("b"))
			if _, err := stores[0].Put(t.Context(), []oda.Put{next(t, sbd("b"), e.Metadata, fmt.Sprintf(`"status":"version %d"`, n%3))}); err != nil {
				t.Error(err)
			}
		}
	})
	group.Wait()
	for _, ref := range refs {
		slices.SortFunc(told[ref], func(a, b oda.Status) int { return int(b.Sequence - a.Sequence) })
		got := must.Get(stores[1].StatusesBefore(t.Context(), ref, math.MaxInt64, 1000))(t)
		if !slices.Equal(got, told[ref]) {
			t.Errorf("%s: %d statuses are stored, and %d were answered, or they differ", ref, len(got), len(told[ref]))
		}
		var last oda.Status
		for _, one := range slices.Backward(got) {
			if last.Text != "" && one.Previous != last.Text {
				t.Errorf("status %d follows %q, but says that it follows %q", one.Sequence, last.Text, one.Previous)
			}
			if last.Text == "" || one.At >= last.At {
				last = one
			}
		}
		for _, s := range stores {
			if now := must.Get(s.Status(t.Context(), ref))(t); *now != last {
				t.Errorf("%s: the status is %+v, want %+v", ref, now, last)
			}
		}
	}
	wantWhole(t, dsn)
}

// More statuses come than transactions run at once. Those that wait go together, and the
// one whose entity another session holds waits alone.
func TestAHeldEntityDoesNotDelayTheStatusesOfOthers(t *testing.T) {
	t.Parallel()
	s, watch, dsn := fresh(t)
	const n = 20
	for i := range n {
		mustPut(t, s, write(t, block(fmt.Sprint("b", i)), `{}`))
	}
	letGo := hold(t, dsn, block("b3"))
	errs := make(chan error, n)
	for i := range n {
		go func() { _, err := s.Say(t.Context(), saying(block(fmt.Sprint("b", i)), "Observed")); errs <- err }()
	}
	for range n - 1 {
		must.Do(t, <-errs)
	}
	await(t, "the last one waits", patience, func() bool { return waiting(t, watch) == 1 })
	letGo()
	must.Do(t, <-errs)
	wantWhole(t, dsn)
}

func TestAStatusOfAnEntityThatStaysHeldIsRefused(t *testing.T) {
	t.Parallel()
	s, _, dsn := fresh(t)
	mustPut(t, s, write(t, block("b"), `{}`))
	letGo := hold(t, dsn, block("b"))
	_, err := s.Say(t.Context(), saying(block("b"), "Observed"))
	wantCode(t, err, oda.Overloaded)
	if !nothingStored(err) {
		t.Errorf("the answer does not say what is certain: %v", err)
	}
	letGo()
	if said := mustSay(t, s, saying(block("b"), "Observed")); said.Sequence != 1 {
		t.Errorf("the refused status is stored: the next one is %d", said.Sequence)
	}
}

// One that is refused or cannot be stored does not fail the others of its transaction.
func TestStatusesOfATransactionAreJudgedOneByOne(t *testing.T) {
	t.Parallel()
	s, conn, dsn := fresh(t)
	for _, id := range []string{"a", "b"} {
		mustPut(t, s, write(t, sbd(id), `{"telescope":"ska_mid"}`))
	}
	bound, guarded := saying(sbd("b"), "Observed"), saying(sbd("a"), "Observed")
	bound.Telescopes = oda.NewTelescopes("recorder", []string{"ska_low"})
	errs := s.SayTogether(t.Context(), []oda.NewStatus{bound, saying(sbd("missing"), "Observed"), guarded})
	wantCode(t, errs[0], oda.Forbidden)
	wantCode(t, errs[1], oda.NotFound)
	must.Do(t, errs[2])
	if n := query[int](t, conn, "SELECT count(*) FROM statuses"); n != 1 {
		t.Errorf("%d statuses are stored, want 1", n)
	}
	wantWhole(t, dsn)
}

// What somebody changed in the tables is not answered.
func TestADamagedStatusIsNotAnswered(t *testing.T) {
	t.Parallel()
	s, conn, dsn := fresh(t)
	mustPut(t, s, write(t, sbd("a"), `{}`))
	key := &oda.Key{Value: "key"}
	for _, text := range []string{"Ready", "Executing", "Observed"} {
		say := saying(sbd("a"), text)
		if text == "Executing" {
			say.Key = key
		}
		mustSay(t, s, say)
	}
	begin := must.Get(s.End(t.Context()))(t) - 3
	page := func() error { _, err := s.StatusesBefore(t.Context(), sbd("a"), math.MaxInt64, 10); return err }
	current := func() error { _, err := s.Status(t.Context(), sbd("a")); return err }
	follow := func() error { _, _, err := s.Changes(t.Context(), begin, 100); return err }
	export := func() error {
		return s.Entries(t.Context(), begin+3, func(oda.Ref) bool { return true }, func(*oda.LogEntry) error { return nil })
	}
	again := func() error {
		say := saying(sbd("a"), "Executing")
		say.Key = key
		_, err := s.Say(t.Context(), say)
		return err
	}
	for _, check := range []func() error{page, current, follow, export, again} {
		must.Do(t, check())
	}
	for _, one := range []struct {
		change string
		not    []func() error
		still  []func() error
	}{
		{"UPDATE statuses SET reason = 'rain' WHERE sequence = 2", []func() error{page, follow, export, again}, []func() error{current}},
		{"UPDATE statuses SET current = false WHERE sequence = 3", []func() error{page, current, follow, export}, []func() error{again}},
		{"UPDATE statuses SET key = 'other' WHERE sequence = 2", []func() error{page, follow, export}, []func() error{current}},
		{"DELETE FROM statuses WHERE sequence = 1", []func() error{page, follow, export}, []func() error{current, again}},
		{"DELETE FROM statuses WHERE sequence = 3", []func() error{page, current, follow, export}, []func() error{again}},
	} {
		do(t, conn, "CREATE TABLE before AS TABLE statuses", one.change)
		for i, check := range one.not {
			if err := check(); oda.CodeOf(err) != oda.DamagedText {
				t.Errorf("%s: read %d is answered %v", one.change, i, err)
			}
		}
		for i, check := range one.still {
			if err := check(); err != nil {
				t.Errorf("%s: read %d is answered %v", one.change, i, err)
			}
		}
		do(t, conn, "DELETE FROM statuses", "INSERT INTO statuses TABLE before", "DROP TABLE before")
	}
	wantWhole(t, dsn)
}

func TestTheViewShowsStatuses(t *testing.T) {
	t.Parallel()
	s, conn, _ := fresh(t)
	mustPut(t, s, write(t, block("b"), `{}`))
	say := saying(block("b"), "Failed")
	say.Reason, say.Now = "wind", oda.InstantOf(time.Date(2026, 3, 1, 1, 2, 3, 0, time.UTC))
	mustSay(t, s, say)
	got := query[string](t, conn, "SELECT concat_ws(' ', kind, identifier, sequence, version, status, class, reason, at AT TIME ZONE 'UTC', current, said_by) FROM said_statuses")
	if want := "ExecutionBlock b 1 1 Failed failed wind 2026-03-01 01:02:03 t anna"; got != want {
		t.Errorf("the view shows %q, want %q", got, want)
	}
}
