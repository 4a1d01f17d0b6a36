package postgres_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"oda"
	"oda/internal/test/env"
)

// When many updates come at once, those that have to wait share transactions.
// Each is judged by itself: one that does not match, one whose caller has gone
// and one that the database cannot store leave the others alone.
func TestUpdatesThatHaveToWaitGoTogether(t *testing.T) {
	t.Parallel()
	dsn := env.Postgres(t)
	s, watch := open(t, dsn), connect(t, dsn)
	const running, held, free = 8, 32, 40 // as many as run at once, and more
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
				t.Errorf("%s was stored though its caller had gone", id)
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
	if n := query[int](t, watch, "SELECT count(DISTINCT transaction) FROM versions WHERE version = 2"); n > stores*3/4 {
		t.Errorf("%d updates took %d transactions", stores, n)
	}
}
