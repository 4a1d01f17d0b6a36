package postgres_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"oda"
	"oda/internal/postgres"
	"oda/internal/test/env"
	"oda/internal/test/must"
	"oda/internal/test/suite"
)

// deadlocks returns the number of deadlocks in the database so far.
func deadlocks(t *testing.T, conn *pgx.Conn) int {
	t.Helper()
	return query[int](t, conn, "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")
}

func TestRecordingIntoManyBlocksAndIntoOneFromTwoStores(t *testing.T) {
	t.Parallel()
	for name, blocks := range map[string]int{"one block": 1, "many blocks": 16} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := env.Postgres(t)
			stores := []oda.Engine{open(t, dsn), open(t, dsn)}
			for i := range blocks {
				mustPut(t, stores[0], write(t, block(fmt.Sprint("b", i)), `{}`))
			}
			const callers, each = 32, 20
			var mu sync.Mutex
			stood := map[string]map[int64]string{}
			var group sync.WaitGroup
			for c := range callers {
				group.Go(func() {
					id := fmt.Sprint("b", c%blocks)
					before := int64(0)
					for n := range each {
						request := fmt.Sprintf("%d-%d", c, n)
						r, err := one(context.Background(), stores[(c+n)%2], adding(id, request, ""))
						if err != nil || r.Sequence <= before {
							t.Errorf("%s got the sequence %d after %d, %v", request, r.Sequence, before, err)
							return
						}
						before = r.Sequence
						mu.Lock()
						if stood[id] == nil {
							stood[id] = map[int64]string{}
						}
						stood[id][r.Sequence] = request
						mu.Unlock()
					}
				})
			}
			group.Wait()
			for id, requests := range stood {
				var want []string
				for i := range len(requests) {
					want = append(want, `{"request":"`+requests[int64(i+1)]+`"}`)
				}
				if text := suite.Render(t, mustGet(t, stores[0], block(id))); !strings.Contains(text, "["+strings.Join(want, ",")+"]") {
					t.Errorf("%s does not hold the %d records in the order of their answers", id, len(want))
				}
			}
			if n := deadlocks(t, connect(t, dsn)); n != 0 {
				t.Errorf("there were %d deadlocks", n)
			}
		})
	}
}

// While another session holds the head of a block, records for it are gathered.
func TestGatheredRecordsAreAnsweredOneByOne(t *testing.T) {
	t.Parallel()
	s, watch, dsn := fresh(t)
	m := mustPut(t, s, write(t, block("b"), `{}`)).Metadata
	mustPut(t, s, write(t, block("other"), `{}`))
	letGo := hold(t, dsn, block("b"))

	adds := []oda.Append{adding("b", "first", "")}
	for i := range 8 { // a key eight times, once with another body
		adds = append(adds, adding("b", fmt.Sprint("plain ", i), ""), adding("b", "again", "key"))
		if i == 4 {
			adds[len(adds)-1] = adding("b", "not the same", "key")
		}
	}
	for i := range 32 { // these are gathered with those of b
		adds = append(adds, adding(fmt.Sprint("unknown-", i), "x", ""))
	}
	adds = append(adds, adding("other", "x", ""))
	for i := range adds { // the clock goes back all the time
		adds[i].At = m.CreatedOn - oda.Instant(i)
	}
	recorded, errs := make([]oda.Receipt, len(adds)), make([]error, len(adds))
	var group sync.WaitGroup
	for i, add := range adds {
		group.Go(func() { recorded[i], errs[i] = one(context.Background(), s, add) })
		if i == 0 {
			await(t, "the first waits", patience, func() bool { return waiting(t, watch) > 0 })
		}
	}
	time.Sleep(50 * time.Millisecond) // all are on their way
	letGo()
	group.Wait()

	sequences := map[int64]int{}
	var keyed []oda.Receipt
	for i, add := range adds {
		switch {
		case strings.HasPrefix(add.Block, "unknown"):
			wantCode(t, errs[i], oda.NotFound)
		case add.Records[0].Key != "" && errs[i] != nil:
			wantCode(t, errs[i], oda.KeyReused)
		case errs[i] != nil:
			t.Errorf("%s %s: %v", add.Block, add.Records[0].Text, errs[i])
		case add.Records[0].Key != "":
			keyed = append(keyed, recorded[i])
		case add.Block == "b":
			sequences[recorded[i].Sequence]++
		}
	}
	for _, r := range keyed {
		if r != keyed[0] {
			t.Errorf("one key got %+v and %+v", r, keyed[0])
		}
	}
	if len(keyed) == 0 {
		t.Fatal("nothing was stored with the key")
	}
	sequences[keyed[0].Sequence]++
	for n := range int64(10) { // first, eight plain ones, one with the key
		if sequences[n+1] != 1 {
			t.Errorf("sequence %d was given %d times", n+1, sequences[n+1])
		}
	}
	instants := query[[]int64](t, watch, "SELECT array_agg(recorded_on ORDER BY sequence) FROM records WHERE identifier = 'b'")
	before := int64(m.LastModifiedOn)
	for i, at := range instants {
		if at <= before {
			t.Errorf("record %d has the instant %d, after %d", i+1, at, before)
		}
		before = at
	}
	if got := mustGet(t, s, block("b")).Metadata.LastModifiedOn; int64(got) != before {
		t.Errorf("the block was modified at %d, its last record came at %d", got, before)
	}
}

// Another session holds a block for long. Only records into that block wait.
func TestAHeldBlockDoesNotDelayOthers(t *testing.T) {
	t.Parallel()
	s, watch, dsn := fresh(t)
	for _, id := range []string{"held", "a", "z"} {
		mustPut(t, s, write(t, block(id), `{}`))
	}
	letGo := hold(t, dsn, block("held"))
	var group sync.WaitGroup
	for i := range 50 {
		group.Go(func() {
			if _, err := one(context.Background(), s, adding("held", fmt.Sprint(i), "")); err != nil {
				t.Errorf("record into the held block: %v", err)
			}
		})
	}
	await(t, "records wait for the block", patience, func() bool { return waiting(t, watch) > 0 })
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for i := range 50 {
		for _, id := range []string{"a", "z"} {
			if r, err := one(ctx, s, adding(id, fmt.Sprint(i), "")); err != nil || r.Sequence != int64(i+1) {
				t.Fatalf("record %d into %s: %+v, %v", i, id, r, err)
			}
		}
	}
	// Between a lock time-out and the next attempt, none waits.
	if n := waiting(t, watch); n > 1 {
		t.Errorf("%d transactions wait for the block, want at most 1, since its records are gathered", n)
	}
	letGo()
	group.Wait()
	if got := mustGet(t, s, block("held")).Metadata; got.Version != 1 {
		t.Errorf("the block has %+v", got)
	}
	if n := query[int](t, watch, "SELECT max(sequence) FROM records WHERE identifier = 'held'"); n != 50 {
		t.Errorf("the block has %d records, want 50", n)
	}
}

// tracer calls before each statement that begins so.
type tracer struct {
	begin  string
	before func()
}

func (tr *tracer) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	if strings.HasPrefix(data.SQL, tr.begin) {
		tr.before()
	}
	return ctx
}

func (*tracer) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// A caller who is bound to a telescope records into a block that appears just then, and
// is held. What was stored with it before is not stored again.
func TestWhatIsStoredBesideAHeldBlockIsStoredOnce(t *testing.T) {
	t.Parallel()
	dsn := env.Postgres(t)
	other := open(t, dsn)
	mustPut(t, other, write(t, block("a"), `{"telescope":"mid"}`))
	letGo := func() {}
	appear := sync.OnceFunc(func() {
		mustPut(t, other, write(t, block("b"), `{"telescope":"mid"}`))
		letGo = hold(t, dsn, block("b"))
	})
	s, err := postgres.OpenWith(t.Context(), dsn, slog.New(slog.DiscardHandler), func(config *pgxpool.Config) {
		config.ConnConfig.Tracer = &tracer{"SELECT identifier, coalesce(telescope", appear}
	})
	must.Do(t, err)
	defer s.Close()
	adds := []oda.Append{adding("a", "x", ""), adding("b", "x", "")}
	for i := range adds {
		adds[i].Telescopes = oda.NewTelescopes("recorder", []string{"mid"})
	}
	_, errs := s.AppendTogether(t.Context(), adds)
	letGo()
	if errs[0] != nil {
		t.Errorf("a: %v", errs[0])
	}
	wantCode(t, errs[1], oda.Overloaded)
	for id, want := range map[string]int{"a": 1, "b": 0} {
		if page, err := s.Records(t.Context(), id, 0, 10); err != nil || len(page.Records) != want {
			t.Errorf("%s has %d records, want %d (%v)", id, len(page.Records), want, err)
		}
	}
}

// While a batch waits for the head of one block, another of its blocks may appear.
// That did not exist when the batch began, so the batch does not touch it.
func TestABlockThatAppearsWhileABatchWaitsIsNotTouched(t *testing.T) {
	t.Parallel()
	dsn := env.Postgres(t)
	s, other, watch := open(t, dsn), open(t, dsn), connect(t, dsn)
	mustPut(t, s, write(t, block("a"), `{}`))
	letGoA := hold(t, dsn, block("a"))
	recorded, errs := make([]oda.Receipt, 2), make([]error, 2)
	var group sync.WaitGroup
	var answered atomic.Bool
	group.Go(func() {
		defer answered.Store(true)
		recorded, errs = s.AppendTogether(context.Background(), []oda.Append{adding("a", "x", ""), adding("b", "x", "")})
	})
	await(t, "the batch waits", patience, func() bool { return waiting(t, watch) > 0 })
	m := mustPut(t, other, write(t, block("b"), `{}`)).Metadata
	// A change of b is committed while the batch runs.
	changer := connect(t, dsn)
	do(t, changer, "BEGIN", fmt.Sprintf("UPDATE heads SET last_modified_on = %[1]d, listed_on = %[1]d WHERE identifier = 'b'", m.LastModifiedOn+oda.Instant(time.Hour/time.Microsecond)))
	letGoA()
	await(t, "the batch is done, or waits for the change", patience, func() bool { return answered.Load() || waiting(t, watch) > 0 })
	do(t, changer, "COMMIT")
	group.Wait()
	if errs[0] != nil || recorded[0].Sequence != 1 {
		t.Errorf("a got %+v, %v", recorded[0], errs[0])
	}
	after := mustGet(t, s, block("b")).Metadata
	if after.LastModifiedOn < m.LastModifiedOn+oda.Instant(time.Hour/time.Microsecond) {
		t.Errorf("the time of b went back to %v", after.LastModifiedOn)
	}
	wantCode(t, errs[1], oda.NotFound)
}

func TestStoringSeveralAndRecordingOverTheSameBlocksNeverDeadlocks(t *testing.T) {
	t.Parallel()
	dsn := env.Postgres(t)
	stores := []oda.Engine{open(t, dsn), open(t, dsn)}
	ids := []string{"e", "a", "D", "b", "C"}
	for _, id := range ids {
		mustPut(t, stores[0], write(t, block(id), `{}`))
	}
	ctx, stop := context.WithCancel(context.Background())
	var group sync.WaitGroup
	for c := range 12 {
		group.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				if _, err := one(context.Background(), stores[c%2], adding(ids[(c+n)%len(ids)], "x", "")); err != nil {
					t.Errorf("record: %v", err)
					return
				}
			}
		})
	}
	stored := make([]int, 4)
	for c := range stored {
		group.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				var puts []oda.Put
				for i := range ids { // in another order each time, with new entities among them
					id := ids[(i*(1+c%2*3)+n)%len(ids)]
					e, err := stores[c%2].Get(context.Background(), block(id))
					if err != nil {
						t.Errorf("get: %v", err)
						return
					}
					put := next(t, block(id), e.Metadata)
					put.KeepRecords, put.Compare = true, oda.KeptFields
					puts = append(puts, put, write(t, sbd(fmt.Sprintf("%s-%d-%d", id, c, n)), `{}`))
				}
				_, err := stores[c%2].Put(context.Background(), puts)
				switch oda.CodeOf(err) {
				case "":
					stored[c]++
				case oda.MetadataMismatch:
				default:
					t.Errorf("store several: %v", err)
					return
				}
			}
		})
	}
	time.Sleep(2 * time.Second)
	stop()
	group.Wait()
	conn := connect(t, dsn)
	if n := deadlocks(t, conn); n != 0 {
		t.Errorf("there were %d deadlocks", n)
	}
	if n := query[int](t, conn, "SELECT (sum(n) - (SELECT count(*) FROM heads))::int FROM counts WHERE kind > 0"); n != 0 {
		t.Errorf("the counts are wrong by %d", n)
	}
	if stored[0]+stored[1]+stored[2]+stored[3] == 0 {
		t.Error("nothing was stored")
	}
}

// Keys that others are adding do not slow down the search for a key: it ends where its
// own would be.
func TestKeysThatOthersAddAreNotRead(t *testing.T) {
	t.Parallel()
	dsn := env.Postgres(t)
	s := open(t, dsn)
	mustPut(t, s, write(t, block("a"), `{}`))
	conn := connect(t, dsn)
	do(t, conn, "BEGIN", `INSERT INTO records (kind, identifier, sequence, version, recorded_by, recorded_on, key, digest, text, seal)
		SELECT 3, 'b', n, 1, 'anna', n, 'k' || n, sha256(''), '{}', '\x0000000000000000' FROM generate_series(1, 60000) AS n`)
	add := adding("a", "f", "")
	add.Records = nil
	for i := range 1000 {
		add.Records = append(add.Records, oda.NewRecord{Key: fmt.Sprintf("k%d", i), Text: []byte(`{"request":"f"}`)})
	}
	began := time.Now()
	receipts, err := s.Append(t.Context(), add)
	if err != nil || len(receipts) != 1000 {
		t.Fatalf("%d receipts, %v", len(receipts), err)
	}
	if took := time.Since(began); took > env.AtMost(3*time.Second) { // it read 60 million rows
		t.Errorf("1,000 records took %s", took)
	}
	do(t, conn, "ROLLBACK")
}
