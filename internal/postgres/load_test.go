package postgres_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"oda"
	"oda/internal/test/suite"
)

// load writes to archives all the time, as scripts and tools do that retry, and
// notes what was acknowledged. In the end every acknowledged write must be stored
// exactly once.
type load struct {
	ctx    context.Context
	cancel context.CancelFunc
	stores []oda.Engine
	group  sync.WaitGroup

	mu       sync.Mutex
	acks     int
	refusals map[oda.Code]int
	last     time.Time
	longest  time.Duration         // between two acknowledged writes
	faults   []string              // answers that must not occur
	records  map[string][]string   // by block, the request at each sequence
	versions map[oda.Ref][]string  // the document of each version, "" if unknown
	created  map[string]oda.Entity // by key
}

// loadWriters is the number of writers of each kind.
const loadWriters = 3

// startLoad begins to write to the stores. It ends with the test at the latest.
func startLoad(t *testing.T, stores ...oda.Engine) *load {
	t.Helper()
	l := &load{
		stores: stores, refusals: map[oda.Code]int{}, records: map[string][]string{},
		versions: map[oda.Ref][]string{}, created: map[string]oda.Entity{},
	}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	for i := range loadWriters {
		mustPut(t, stores[0], write(t, block(fmt.Sprintf("load-%d", i)), `{}`))
	}
	l.last = time.Now()
	for i := range loadWriters {
		l.group.Go(func() { l.record(i) })
		l.group.Go(func() { l.update(t, stores[i%len(stores)], sbd(fmt.Sprintf("load-%d", i))) })
		l.group.Go(func() {
			l.update(t, stores[i%len(stores)], sbd(fmt.Sprintf("pair-%d-a", i)), sbd(fmt.Sprintf("pair-%d-b", i)))
		})
		l.group.Go(func() { l.create(t, i) })
	}
	t.Cleanup(l.stop)
	return l
}

// stop ends the writing.
func (l *load) stop() {
	l.cancel()
	l.group.Wait()
}

// attempt tries one write until it is acknowledged. The write gets the number of
// tries before. It returns false if the test ends first.
func (l *load) attempt(write func(ctx context.Context, tried int) error) bool {
	for tried := 0; l.ctx.Err() == nil; tried++ {
		// A writer waits for its answer even if the test ends.
		ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
		err := write(ctx, tried)
		cancel()
		l.mu.Lock()
		switch code := oda.CodeOf(err); code {
		case "":
			l.acks++
			at := time.Now()
			l.longest, l.last = max(l.longest, at.Sub(l.last)), at
		case oda.Unavailable, oda.Overloaded:
			l.refusals[code]++
		default:
			l.faults = append(l.faults, err.Error())
		}
		l.mu.Unlock()
		if err == nil {
			return true
		}
		time.Sleep(10 * time.Millisecond)
	}
	return false
}

// record records into one block with keys.
func (l *load) record(i int) {
	id := fmt.Sprintf("load-%d", i)
	for n := 0; l.ctx.Err() == nil; n++ {
		request := fmt.Sprintf("%d-%d", i, n)
		add := adding(id, request, request)
		l.attempt(func(ctx context.Context, tried int) error {
			r, err := one(ctx, l.stores[(n+tried)%len(l.stores)], add)
			if err != nil {
				return err
			}
			l.mu.Lock()
			defer l.mu.Unlock()
			for int64(len(l.records[id])) < r.Sequence {
				l.records[id] = append(l.records[id], "")
			}
			l.records[id][r.Sequence-1] += request
			return nil
		})
	}
}

// update stores version after version of some entities together.
func (l *load) update(t *testing.T, store oda.Engine, refs ...oda.Ref) {
	current := make([]oda.Metadata, len(refs))
	for n := 0; l.ctx.Err() == nil; n++ {
		var uncertain bool // an attempt may have been stored
		l.attempt(func(ctx context.Context, _ int) error {
			member := fmt.Sprintf(`"n":%d`, n)
			if uncertain {
				stored, err := l.stored(ctx, store, refs, member, current)
				if stored || err != nil {
					return err
				}
			}
			puts := make([]oda.Put, len(refs))
			for i, ref := range refs {
				puts[i] = write(t, ref, "{"+member+"}")
				if current[i].Version > 0 {
					puts[i] = next(t, ref, current[i], member)
				}
			}
			entities, err := store.Put(ctx, puts)
			if err != nil {
				uncertain = true
				return err
			}
			for i, e := range entities {
				current[i] = e.Metadata
				l.stands(refs[i], e.Metadata.Version, member)
			}
			return nil
		})
	}
}

// stored reports whether a write that was not acknowledged is stored. Either all of
// its entities have the member or none.
func (l *load) stored(ctx context.Context, store oda.Engine, refs []oda.Ref, member string, current []oda.Metadata) (bool, error) {
	found := 0
	for i, ref := range refs {
		e, err := store.Get(ctx, ref)
		if oda.CodeOf(err) == oda.NotFound {
			continue
		}
		if err != nil {
			return false, err
		}
		if err := e.Render(1 << 20); err != nil {
			return false, err
		}
		if holds(string(e.Rendered()), member) {
			found++
			current[i] = e.Metadata
			l.stands(ref, e.Metadata.Version, member)
		}
	}
	if found != 0 && found != len(refs) {
		return false, fmt.Errorf("%d of %d entities of one write are stored", found, len(refs))
	}
	return found > 0, nil
}

// holds reports whether a document has that member.
func holds(text, member string) bool {
	return strings.Contains(text, member+",") || strings.Contains(text, member+"}")
}

// stands notes the document of a version.
func (l *load) stands(ref oda.Ref, version int64, member string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for int64(len(l.versions[ref])) < version {
		l.versions[ref] = append(l.versions[ref], "")
	}
	l.versions[ref][version-1] = member
}

// create creates blocks with keys.
func (l *load) create(t *testing.T, i int) {
	for n := 0; l.ctx.Err() == nil; n++ {
		text := fmt.Sprintf(`{"n":"%d-%d"}`, i, n)
		key := oda.Key{Value: fmt.Sprintf("%d-%d", i, n), Digest: sha256.Sum256([]byte(text))}
		l.attempt(func(ctx context.Context, tried int) error {
			// Each attempt has a new identifier, as on a server.
			put := write(t, block(fmt.Sprintf("new-%d-%d-%d", i, n, tried)), text)
			e, err := l.stores[(n+tried)%len(l.stores)].Create(ctx, put, &key)
			if err != nil {
				return err
			}
			l.mu.Lock()
			defer l.mu.Unlock()
			l.created[key.Value] = *e
			return nil
		})
	}
}

// acknowledged returns the number of acknowledged writes so far.
func (l *load) acknowledged() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.acks
}

// refused returns the number of answers with that code so far.
func (l *load) refused(code oda.Code) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.refusals[code]
}

// goesOn waits until several more writes of each writer are acknowledged.
func (l *load) goesOn(t *testing.T) {
	t.Helper()
	before := l.acknowledged()
	await(t, "writes are acknowledged", patience, func() bool { return l.acknowledged() >= before+100 })
}

// verify ends the load and checks that the store, in the database of that DSN, has
// every acknowledged write once.
func (l *load) verify(t *testing.T, store oda.Engine, dsn string) {
	t.Helper()
	l.stop()
	if len(l.faults) > 0 {
		t.Errorf("%d writers got answers that they must not get, the first: %s", len(l.faults), l.faults[0])
	}
	conn := connect(t, dsn)
	for id, requests := range l.records {
		text := suite.Render(t, mustGet(t, store, block(id)))
		for i, request := range requests {
			if request != "" && strings.Count(text, `{"request":"`+request+`"}`) != 1 {
				t.Errorf("the record %s of %s was acknowledged but is not stored once", request, id)
			}
			stored := query[string](t, conn, "SELECT coalesce((SELECT record ->> 'request' FROM record_documents WHERE eb_id = $1 AND sequence = $2), '')", id, i+1)
			if request != "" && stored != request {
				t.Errorf("record %d of %s is %q, but %q was acknowledged", i+1, id, stored, request)
			}
		}
	}
	for ref, members := range l.versions {
		stored := query[[]string](t, conn, `SELECT array_agg(convert_from(text, 'UTF8') ORDER BY version) FROM versions
			WHERE kind = $1 AND identifier = $2`, int16(ref.Kind), ref.ID)
		for i, member := range members {
			if i >= len(stored) || !holds(stored[i], member) {
				t.Errorf("version %d of %s was acknowledged with %s but is not stored", i+1, ref.ID, member)
			}
		}
		slices.Sort(stored)
		if len(slices.Compact(slices.Clone(stored))) != len(stored) {
			t.Errorf("%s has the same write in two versions", ref.ID)
		}
	}
	for key, e := range l.created {
		if got := query[string](t, conn, "SELECT identifier FROM creation_keys WHERE kind = 3 AND key = $1", key); got != e.ID {
			t.Errorf("key %s created %s, but %s was acknowledged", key, got, e.ID)
		}
		mustGet(t, store, e.Ref)
	}
	if query[int](t, conn, "SELECT count(*) FROM heads WHERE identifier LIKE 'new-%'") != query[int](t, conn, "SELECT count(*) FROM creation_keys") {
		t.Error("a key created more than one entity")
	}
	for _, check := range []string{
		"SELECT count(*) FROM heads h LEFT JOIN creations b USING (kind, identifier) WHERE b.kind IS NULL",
		"SELECT count(*) FROM heads h WHERE version <> (SELECT count(*) FROM versions v WHERE v.kind = h.kind AND v.identifier = h.identifier)",
		"SELECT count(*) FROM heads h WHERE last_sequence <> (SELECT count(*) FROM records r WHERE r.kind = h.kind AND r.identifier = h.identifier)",
		"SELECT (SELECT sum(n) FROM counts WHERE kind > 0)::bigint - (SELECT count(*) FROM heads)",
		"SELECT (SELECT count(*) FROM creations) - (SELECT count(*) FROM heads)",
	} {
		if n := query[int64](t, conn, check); n != 0 {
			t.Errorf("the tables contradict each other: %s returns %d", check, n)
		}
	}
	t.Logf("%d writes acknowledged, %v refused, longest time without one %v", l.acks, l.refusals, l.longest.Round(time.Millisecond))
}
