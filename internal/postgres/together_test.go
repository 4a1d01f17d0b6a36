package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"oda"
	"oda/internal/postgres"
	"oda/internal/test/env"
	"oda/internal/test/must"
	"oda/internal/test/suite"
)

// If many updates come at once, those that have to wait share transactions. Each is
// judged on its own: one that does not match, one whose caller has gone and one that
// the database cannot store do not affect the others.
func TestUpdatesThatHaveToWaitGoTogether(t *testing.T) {
	t.Parallel()
	s, watch, dsn := fresh(t)
	const running, held, free = postgres.StoresAtOnce, 32, 40 // as many as run at once, and more
	stored := map[string]oda.Metadata{}
	for i := range held + free {
		id := fmt.Sprintf("held-%02d", i)
		if i >= held {
			id = fmt.Sprintf("free-%02d", i-held)
		}
		stored[id] = mustPut(t, s, write(t, sbd(id), `{}`)).Metadata
	}
	do(t, watch, `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'not this one'; END $$`,
		`CREATE TRIGGER refuse BEFORE INSERT ON versions FOR EACH ROW WHEN (NEW.identifier = 'free-07') EXECUTE FUNCTION refuse()`)
	letGo := pause(t, dsn, "%", "versions")

	update := func(ctx context.Context, id string, m oda.Metadata) error {
		_, err := s.Put(ctx, []oda.Put{next(t, sbd(id), m)})
		return err
	}
	var group sync.WaitGroup
	errs := map[string]error{}
	var mu sync.Mutex
	start := func(ctx context.Context, id string, m oda.Metadata) {
		group.Go(func() {
			err := update(ctx, id, m)
			mu.Lock()
			errs[id] = err
			mu.Unlock()
		})
	}
	for i := range held {
		id := fmt.Sprintf("held-%02d", i)
		start(context.Background(), id, stored[id])
	}
	await(t, "as many updates run as may, and others wait for them", patience, func() bool {
		return paused(t, watch) == running && s.UpdatesWaiting() == held-running
	})
	gone, leave := context.WithCancel(context.Background())
	for i := range free {
		id := fmt.Sprintf("free-%02d", i)
		m, ctx := stored[id], context.Background()
		switch i {
		case 3:
			m.LastModifiedOn--
		case 5:
			ctx = gone
		}
		start(ctx, id, m)
	}
	await(t, "all are waiting", patience, func() bool { return s.UpdatesWaiting() == held-running+free })
	leave()
	letGo()
	group.Wait()

	for id, err := range errs {
		switch id {
		case "free-03":
			wantCode(t, err, oda.MetadataMismatch)
		case "free-05":
			if err == nil {
				t.Errorf("%s was stored although its caller had gone", id)
			}
		case "free-07":
			wantCode(t, err, oda.Internal)
		default:
			if err != nil {
				t.Errorf("%s: %v", id, err)
			}
		}
		want := int64(2)
		if id == "free-03" || id == "free-05" || id == "free-07" {
			want = 1
		}
		if got := mustGet(t, s, sbd(id)).Metadata.Version; got != want {
			t.Errorf("%s has the version %d, want %d", id, got, want)
		}
	}
	stores := query[int](t, watch, "SELECT count(*) FROM versions WHERE version = 2")
	if n := query[int](t, watch, "SELECT count(DISTINCT xmin::text) FROM versions WHERE version = 2"); n > stores*3/4 {
		t.Errorf("%d updates took %d transactions", stores, n)
	}
}

// They share not only a transaction but a statement, and are stored as they would be
// alone.
func TestUpdatesInOneStatement(t *testing.T) {
	t.Parallel()
	dsn := env.Postgres(t)
	s := open(t, dsn)
	const calls = `"request_responses":[{"request":"a"},{"request":"b"}]`
	stored := map[string]oda.Metadata{}
	for id, text := range map[string]string{
		"calls": "{" + calls + "}", "first call": "{" + calls + "}", "no calls": `{"request_responses":[]}`, "no list": `{}`,
		"other time": `{}`, "other telescope": `{}`, "other user": `{}`,
	} {
		stored[id] = mustPut(t, s, write(t, block(id), text)).Metadata
	}
	mustRecord(t, s, "first call", "c")
	stored["first call"] = mustGet(t, s, block("first call")).Metadata
	other := func(id string, change func(m *oda.Metadata)) oda.Metadata {
		m := stored[id]
		change(&m)
		return m
	}
	puts := []oda.Put{
		next(t, block("no list"), stored["no list"], `"n":1`),
		next(t, block("no calls"), stored["no calls"], `"n":2`, `"request_responses":[]`),
		next(t, block("calls"), stored["calls"], `"n":3`, calls),
		next(t, block("first call"), stored["first call"], `"n":4`, `"request_responses":[{"request":"a"},{"request":"c"}]`),
		next(t, block("other time"), other("other time", func(m *oda.Metadata) { m.LastModifiedOn++ })),
		next(t, block("other user"), other("other user", func(m *oda.Metadata) { m.LastModifiedBy = "bert" })),
		next(t, block("other telescope"), stored["other telescope"], `"telescope":"ska_low"`),
		next(t, block("missing"), stored["no list"]),
	}
	entities := must.Get(s.UpdateTogether(t.Context(), puts))(t)
	for i, e := range entities {
		id := puts[i].ID
		if (e != nil) != (i < 4) {
			t.Errorf("%s: stored is %t", id, e != nil)
		}
		if e == nil {
			continue
		}
		if got, want := suite.Render(t, e), suite.Render(t, mustGet(t, s, block(id))); got != want || e.Metadata.Version != 2 || !strings.Contains(want, fmt.Sprintf(`"n":%d`, i+1)) {
			t.Errorf("%s: answered is %s, stored %s", id, got, want)
		}
	}
	wantWhole(t, dsn)
}

// What PostgreSQL needs for an update, however long its text is, it has in memory.
func TestALongUpdateNeedsNoTemporaryFile(t *testing.T) {
	t.Parallel()
	s := open(t, with(t, env.Postgres(t), "temp_file_limit", "0"))
	m := mustPut(t, s, write(t, sbd("long"), `{}`)).Metadata
	mustPut(t, s, next(t, sbd("long"), m, `"text":"`+strings.Repeat("x", 8<<20)+`"`))
}

// The same holds for new entities. Those of another kind have their own. If a session has inserted an
// identifier and not yet committed it, only a request for that identifier waits.
func TestNewEntitiesThatHaveToWaitGoTogether(t *testing.T) {
	t.Parallel()
	dsn := env.Postgres(t)
	s, watch, holder := open(t, dsn), connect(t, dsn), connect(t, dsn)
	const running, waiting = postgres.StoresAtOnce, 48 // as many as run at once, and more
	mustPut(t, s, write(t, sbd("new-13"), `{"name":"is there"}`))
	do(t, watch, `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'not this one'; END $$`,
		`CREATE TRIGGER refuse BEFORE INSERT ON versions FOR EACH ROW WHEN (NEW.identifier = 'new-27') EXECUTE FUNCTION refuse()`)
	letGo := pause(t, dsn, "%", "versions")

	var group sync.WaitGroup
	errs := make([]error, running+waiting)
	start := func(ctx context.Context, i int) {
		ref := sbd(fmt.Sprintf("new-%02d", i))
		if i%8 == 6 {
			ref.Kind = oda.Project
		}
		put := write(t, ref, fmt.Sprintf(`{"name":"number %d"}`, i))
		group.Go(func() {
			if i%2 == 0 {
				_, errs[i] = s.Put(ctx, []oda.Put{put})
			} else {
				_, errs[i] = s.Create(ctx, put, nil)
			}
		})
	}
	for i := range running {
		start(t.Context(), i)
	}
	await(t, "as many run as may", patience, func() bool { return paused(t, watch) == running })
	gone, leave := context.WithCancel(t.Context())
	for i := running; i < running+waiting; i++ {
		ctx := t.Context()
		if i == 20 {
			ctx = gone
		}
		start(ctx, i)
	}
	await(t, "all others wait", patience, func() bool { return s.CreationsWaiting() == waiting })
	do(t, holder, "BEGIN", `INSERT INTO heads (kind, identifier, version, created_by, created_on, last_modified_by, last_modified_on,
		last_sequence, listed_on, summary_hash) VALUES (1, 'new-40', 1, 'x', 1, 'x', 1, 0, 1, 0)`)
	leave()
	letGo()
	await(t, "all are stored but those that cannot be", patience, func() bool {
		return query[int](t, watch, "SELECT count(*) FROM heads") == running+waiting-3
	})
	do(t, holder, "ROLLBACK")
	group.Wait()

	for i, err := range errs {
		switch i {
		case 13:
			if !errors.Is(err, oda.ErrTaken) {
				t.Errorf("an identifier that is taken: %v", err)
			}
		case 20:
			if err == nil {
				t.Error("an entity was stored although its caller had gone")
			}
		case 27:
			wantCode(t, err, oda.Internal)
		default:
			if err != nil {
				t.Errorf("new-%02d: %v", i, err)
			}
		}
	}
	if e := mustGet(t, s, sbd("new-24")); suite.Render(t, e) != suite.Render(t, mustGet(t, open(t, dsn), sbd("new-24"))) || e.Metadata.Version != 1 {
		t.Error("what is read is not what was stored")
	}
	const stored = running + waiting - 2
	for table, want := range map[string]string{"heads": "count(*)", "versions": "count(*)", "creations": "count(*)", "catalogue": "count(*)", "counts": "sum(n) FILTER (WHERE kind > 0)"} {
		if n := query[int](t, watch, "SELECT "+want+" FROM "+table); n != stored {
			t.Errorf("%s: %d, want %d", table, n, stored)
		}
	}
	if n := query[int](t, watch, "SELECT count(DISTINCT xmin::text) FROM versions"); n > stored*9/10 {
		t.Errorf("%d new entities took %d transactions", stored, n)
	}
	wantWhole(t, dsn)
}
