package postgres_test

import (
	"context"
	"sync"
	"testing"

	"oda"
	"oda/internal/test/env"
	"oda/internal/test/suite"
)

// keep returns a Put that carries the stored records over.
func keep(tb suite.TB, ref oda.Ref, m oda.Metadata) oda.Put {
	tb.Helper()
	put := next(tb, ref, m)
	put.KeepRecords, put.Compare = true, oda.KeptFields
	return put
}

// Two processes write to a block. The second write keeps the records, and is sent
// before the first is committed. It must see what the first has stored.
func TestRecordsAreKeptWhateverRacesWithThePut(t *testing.T) {
	t.Parallel()
	const one, two, three = `{"request":"one"}`, `{"request":"two"}`, `{"request":"three"}`
	put := func(s oda.Engine, puts ...oda.Put) error {
		_, err := s.Put(context.Background(), puts)
		return err
	}
	record := func(s oda.Engine, add oda.Append, more ...oda.NewRecord) error {
		add.Records = append(add.Records, more...)
		_, err := s.Append(context.Background(), add)
		return err
	}
	for name, race := range map[string]struct {
		first   func(s oda.Engine, m oda.Metadata) error
		version int64 // after the first write
		want    string
	}{
		"another that keeps them": {func(s oda.Engine, m oda.Metadata) error {
			return put(s, keep(t, block("b"), m))
		}, 2, one + "," + two},
		"an ordinary one": {func(s oda.Engine, m oda.Metadata) error {
			return put(s, next(t, block("b"), m, `"request_responses":[`+two+","+three+`]`))
		}, 2, two + "," + three},
		"an ordinary one that shares them": {func(s oda.Engine, m oda.Metadata) error {
			return put(s, next(t, block("b"), m, `"request_responses":[`+two+","+one+`]`))
		}, 2, two + "," + one},
		"several at once": {func(s oda.Engine, m oda.Metadata) error {
			return put(s, write(t, sbd("a"), `{}`), next(t, block("b"), m, `"request_responses":[`+three+`]`), write(t, sbd("c"), `{}`))
		}, 2, three},
		"a record": {func(s oda.Engine, _ oda.Metadata) error {
			return record(s, adding("b", "three", ""))
		}, 1, one + "," + two + "," + three},
		"a record with a key": {func(s oda.Engine, _ oda.Metadata) error {
			return record(s, adding("b", "three", "key"))
		}, 1, one + "," + two + "," + three},
		"several records": {func(s oda.Engine, _ oda.Metadata) error {
			return record(s, adding("b", "three", "key"), oda.NewRecord{Text: []byte(one)})
		}, 1, one + "," + two + "," + three + "," + one},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := env.Postgres(t)
			s, other, watch := open(t, dsn), open(t, dsn), connect(t, dsn)
			mustPut(t, s, write(t, block("b"), `{"request_responses":[`+one+`]}`))
			m := mustRecord(t, s, "b", "two").Metadata
			letGo := pause(t, dsn, "b", "versions", "records")
			var firstErr, secondErr error
			var group sync.WaitGroup
			group.Go(func() { firstErr = race.first(s, m) })
			await(t, "the first one has the head", patience, func() bool { return paused(t, watch) == 1 })
			expected := m
			expected.Version = race.version
			var answer []*oda.Entity
			group.Go(func() { answer, secondErr = other.Put(context.Background(), []oda.Put{keep(t, block("b"), expected)}) })
			await(t, "the second one waits for it", patience, func() bool { return waiting(t, watch) == 1 })
			letGo()
			group.Wait()
			if firstErr != nil || secondErr != nil {
				t.Fatalf("the answers are %v and %v", firstErr, secondErr)
			}
			got := mustGet(t, s, block("b"))
			if got.Metadata.Version != race.version+1 {
				t.Errorf("the version is %d, want %d", got.Metadata.Version, race.version+1)
			}
			text := suite.Render(t, got)
			want := `{"eb_id":"b","metadata":` + string(got.Metadata.AppendJSON(nil)) + `,"request_responses":[` + race.want + `]}`
			if text != want {
				t.Errorf("%s is stored, want %s", text, want)
			}
			if answered := suite.Render(t, answer[0]); answered != text {
				t.Errorf("the answer is %s, but %s is stored", answered, text)
			}
		})
	}
}

// A block is stored for the first time while a write waits for that. The write then
// sees the head, and must also see its body.
func TestRecordsThatCameWithTheFirstStoreAreKept(t *testing.T) {
	t.Parallel()
	dsn := env.Postgres(t)
	s, other, watch := open(t, dsn), open(t, dsn), connect(t, dsn)
	letGo := pause(t, dsn, "b", "creations")
	first := write(t, block("b"), `{"request_responses":[{"request":"one"}]}`)
	second := keep(t, block("b"), first.First())
	var group sync.WaitGroup
	var errs [2]error
	group.Go(func() { _, errs[0] = s.Put(context.Background(), []oda.Put{first}) })
	await(t, "the first store is under way", patience, func() bool { return paused(t, watch) == 1 })
	group.Go(func() { _, errs[1] = other.Put(context.Background(), []oda.Put{second}) })
	await(t, "the write waits for it", patience, func() bool { return waiting(t, watch) == 1 })
	letGo()
	group.Wait()
	if errs != [2]error{} {
		t.Fatal(errs)
	}
	got := mustGet(t, s, block("b"))
	want := `{"eb_id":"b","metadata":` + string(got.Metadata.AppendJSON(nil)) + `,"request_responses":[{"request":"one"}]}`
	if text := suite.Render(t, got); text != want || got.Metadata.Version != 2 {
		t.Errorf("%s is stored, want %s", text, want)
	}
}

// A keep joins what was recorded since to the records before it, if it continues them.
// Otherwise each keep would make the list of the next version longer.
func TestAKeepDoesNotMakeTheListOfRecordsLonger(t *testing.T) {
	t.Parallel()
	s, conn, dsn := fresh(t)
	for id, test := range map[string]struct {
		members []string // of the first version, and of those that follow it
		want    string
	}{
		"none":      {[]string{``}, "{1,3}"},
		"empty":     {[]string{`"request_responses":[]`}, "{1,3}"},
		"some":      {[]string{`"request_responses":[{"request":"a"},{"request":"b"}]`}, "{1,5}"},
		"reordered": {[]string{`"request_responses":[{"request":"a"},{"request":"b"}]`, `"request_responses":[{"request":"b"},{"request":"a"}]`}, "{2,2,1,1,3,5}"},
		"shortened": {[]string{`"request_responses":[{"request":"a"},{"request":"b"}]`, `"request_responses":[{"request":"a"}]`}, "{1,1,3,5}"},
	} {
		m := mustPut(t, s, write(t, block(id), "{"+test.members[0]+"}")).Metadata
		for _, members := range test.members[1:] {
			m = mustPut(t, s, next(t, block(id), m, members)).Metadata
		}
		for _, request := range []string{"x", "y", "z"} {
			kept := mustPut(t, s, keep(t, block(id), mustRecord(t, s, id, request).Metadata)).Metadata
			mustPut(t, s, keep(t, block(id), kept))
		}
		if got := query[string](t, conn, "SELECT runs::text FROM versions WHERE identifier = $1 ORDER BY version DESC LIMIT 1", id); got != test.want {
			t.Errorf("%s: the last version holds the records %s, want %s", id, got, test.want)
		}
	}
	wantWhole(t, dsn)
}
