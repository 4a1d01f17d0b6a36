package history

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"oda"
)

// The checker is tested with histories that are short enough to decide by hand.
// Times are integers; entity 0 is a block.
func TestAHistoryIsLinearizableIfSomeOrderExplainsIt(t *testing.T) {
	m1 := meta(1, "a", 10, "a", 10)
	created := ok(0, 1, puts("a", "x", put{}), doc(m1, "x"))
	updated := ok(2, 3, puts("b", "y", put{Claim: &m1}), doc(meta(2, "a", 10, "b", 20), "y"))
	for about, test := range map[string]struct {
		history []operation
		legal   bool
	}{
		"a store and a read of it": {ops(created, ok(2, 3, get("b"), doc(m1, "x"))), true},
		"a read that misses an acknowledged store": {
			ops(created, no(2, 3, get("b"), missing)), false,
		},
		"a read that misses a concurrent store": {
			ops(created, no(0, 3, get("b"), missing)), true,
		},
		"a read of an older version, after the answer to the update": {
			ops(created, updated, ok(4, 5, get("c"), doc(m1, "x"))), false,
		},
		"a read of an older version, during the update": {
			ops(created, updated, ok(2, 5, get("c"), doc(m1, "x"))), true,
		},
		"two reads that go back in time, during the update": {
			ops(
				created, ok(2, 9, puts("b", "y", put{Claim: &m1}), doc(meta(2, "a", 10, "b", 20), "y")),
				ok(3, 4, get("c"), doc(meta(2, "a", 10, "b", 20), "y")), ok(5, 6, get("c"), doc(m1, "x")),
			), false,
		},
		"two updates of one version": {
			ops(created, updated, ok(2, 3, puts("c", "z", put{Claim: &m1}), doc(meta(2, "a", 10, "c", 21), "z"))), false,
		},
		"an update that overwrites another unseen": {
			ops(created, updated, ok(4, 5, puts("c", "z", put{Claim: &m1}), doc(meta(3, "a", 10, "c", 30), "z"))), false,
		},
		"a refusal that names the stored values": {
			ops(created, updated, refuse(4, 5, puts("c", "z", put{Claim: &m1}),
				told{version: "2", lastModifiedBy: `"b"`, lastModifiedOn: oda.Instant(20).String()})), true,
		},
		"a refusal that names wrong values": {
			ops(created, updated, refuse(4, 5, puts("c", "z", put{Claim: &m1}),
				told{version: "3", lastModifiedBy: `"b"`, lastModifiedOn: oda.Instant(20).String()})), false,
		},
		"a refusal without a reason": {
			ops(created, refuse(2, 3, puts("c", "z", put{Claim: &m1}), told{})), false,
		},
		"a precondition that does not hold": {
			ops(created, no(2, 3, puts("c", "z", put{CreateOnly: true}), condition)), true,
		},
		"a precondition that holds, but is said to fail": {
			ops(created, no(2, 3, puts("c", "z", put{Claim: &m1, Match: m1.Tag()}), condition)), false,
		},
		"time that stands still": {
			ops(created, ok(2, 3, puts("b", "y", put{Claim: &m1}), doc(meta(2, "a", 10, "b", 10), "y"))), false,
		},
		"a change that is shown with another user": {
			ops(created, ok(2, 3, puts("b", "y", put{Claim: &m1}), doc(meta(2, "a", 10, "c", 20), "y"))), false,
		},
		"a read between two entities that are stored together": {
			ops(
				operation{Call: 0, Return: 9, Request: puts("a", "x", put{}, put{Entity: 1}), Response: response{Outcome: done, Documents: []document{doc(m1, "x"), doc(m1, "x")}}},
				ok(1, 2, get("b"), doc(m1, "x")),
				no(3, 4, request{Action: read, Entity: 1, User: "b"}, missing),
			), false,
		},
	} {
		t.Run(about, func(t *testing.T) { judged(t, test.history, test.legal) })
	}
}

func TestEveryRecordAppearsOnceAndInOrder(t *testing.T) {
	m1 := meta(1, "a", 10, "a", 10)
	m2, m3 := meta(1, "a", 10, "b", 20), meta(1, "a", 10, "c", 30)
	created := ok(0, 1, puts("a", "x", put{}), doc(m1, "x"))
	first := noted(2, 3, "b", "r1", 1, m2)
	again := request{Action: repeat, User: "b", Marker: "r1", First: &recorded{1, m2}}
	for about, test := range map[string]struct {
		history []operation
		legal   bool
	}{
		"two records": {ops(created, first, noted(4, 5, "c", "r2", 2, m3), ok(6, 7, get("d"), doc(m3, "x", "r1", "r2"))), true},
		"a missing record": {
			ops(created, first, noted(4, 5, "c", "r2", 2, m3), ok(6, 7, get("d"), doc(m3, "x", "r1"))), false,
		},
		"a duplicate record": {ops(created, first, ok(6, 7, get("d"), doc(m2, "x", "r1", "r1"))), false},
		"records in the wrong order": {
			ops(created, first, noted(4, 5, "c", "r2", 2, m3), ok(6, 7, get("d"), doc(m3, "x", "r2", "r1"))), false,
		},
		"a number that is used twice": {ops(created, first, noted(4, 5, "c", "r2", 1, m3)), false},
		"a record in a missing block": {ops(noted(0, 1, "c", "r1", 1, m3)), false},
		"a repeated key":              {ops(created, first, operation{Call: 4, Return: 5, Request: again, Response: first.Response}), true},
		"a repeated key, forgotten":   {ops(created, first, operation{Call: 4, Return: 5, Request: again, Response: noted(0, 0, "b", "r1", 2, m3).Response}), false},
		"an update that drops an unseen record": {
			ops(created, first, ok(4, 5, puts("c", "y", put{Claim: &m1, Listed: true}), listed(doc(meta(2, "a", 10, "c", 30), "y")))), false,
		},
		"an update that keeps an unseen record": {
			ops(created, first, ok(4, 5, puts("c", "y", put{Claim: &m1, Keep: true}), doc(meta(2, "a", 10, "c", 30), "y", "r1"))), true,
		},
		"an update that drops a record, whose number is not used again": {
			ops(
				created, first, ok(4, 5, puts("c", "y", put{Claim: &m2, Listed: true}), listed(doc(meta(2, "a", 10, "c", 30), "y"))),
				noted(6, 7, "c", "r2", 2, meta(2, "a", 10, "c", 40)),
			), true,
		},
	} {
		t.Run(about, func(t *testing.T) { judged(t, test.history, test.legal) })
	}
}

func TestAnUnansweredWriteMayOrMayNotTakeEffect(t *testing.T) {
	m1, m2 := meta(1, "a", 10, "a", 10), meta(2, "a", 10, "b", 20)
	created := ok(0, 1, puts("a", "x", put{}), doc(m1, "x"))
	lost := no(2, 3, puts("b", "y", put{Claim: &m1}), unclear)
	lostRecord := no(2, 3, request{Action: record, User: "b", Marker: "r1"}, unclear)
	lostBoth := no(2, 3, puts("b", "y", put{Claim: &m1}, put{Entity: 1}), unclear)
	for about, test := range map[string]struct {
		history []operation
		legal   bool
	}{
		"it did not":         {ops(created, lost, ok(4, 5, get("c"), doc(m1, "x"))), true},
		"it did":             {ops(created, lost, ok(4, 5, get("c"), doc(m2, "y"))), true},
		"it did, later":      {ops(created, lost, ok(4, 5, get("c"), doc(m1, "x")), ok(6, 7, get("c"), doc(m2, "y"))), true},
		"it did and did not": {ops(created, lost, ok(4, 5, get("c"), doc(m2, "y")), ok(6, 7, get("c"), doc(m1, "x"))), false},
		"it did, although its claim was wrong": {
			ops(
				created, ok(2, 3, puts("c", "z", put{Claim: &m1}), doc(meta(2, "a", 10, "c", 15), "z")),
				no(4, 5, puts("b", "y", put{Claim: &m1}), unclear), ok(6, 7, get("c"), doc(meta(3, "a", 10, "b", 20), "y")),
			), false,
		},
		"a refusal reveals it first": {
			ops(created, lost, refuse(4, 5, puts("c", "z", put{Claim: &m1}),
				told{version: "2", lastModifiedBy: `"b"`, lastModifiedOn: oda.Instant(20).String()}), ok(6, 7, get("c"), doc(m2, "y"))), true,
		},
		"a refusal and a read show different times": {
			ops(created, lost, refuse(4, 5, puts("c", "z", put{Claim: &m1}),
				told{version: "2", lastModifiedBy: `"b"`, lastModifiedOn: oda.Instant(19).String()}), ok(6, 7, get("c"), doc(m2, "y"))), false,
		},
		"a record did":         {ops(created, lostRecord, ok(4, 5, get("c"), doc(meta(1, "a", 10, "b", 20), "x", "r1"))), true},
		"a record did, twice":  {ops(created, lostRecord, ok(4, 5, get("c"), doc(meta(1, "a", 10, "b", 20), "x", "r1", "r1"))), false},
		"a record did not":     {ops(created, lostRecord, ok(4, 5, get("c"), doc(m1, "x"))), true},
		"both of two entities": {ops(created, lostBoth, ok(4, 5, get("c"), doc(m2, "y")), ok(6, 7, get1("c"), doc(meta(1, "b", 20, "b", 20), "y"))), true},
		"one of two entities":  {ops(created, lostBoth, ok(4, 5, get("c"), doc(m2, "y")), no(6, 7, get1("c"), missing)), false},
	} {
		t.Run(about, func(t *testing.T) { judged(t, test.history, test.legal) })
	}
}

// judged checks a history, and that an illegal one is saved and drawn.
func judged(t *testing.T, history []operation, legal bool) {
	t.Helper()
	dir := t.TempDir()
	err := check(history, 2, dir)
	if legal {
		if err != nil {
			t.Error(err)
		}
		return
	}
	if !errors.Is(err, ErrNotLinearizable) {
		t.Fatalf("got %v, want %v", err, ErrNotLinearizable)
	}
	for _, name := range []string{"history.json", "history.html"} {
		kept, globErr := filepath.Glob(filepath.Join(dir, "*", name))
		if globErr != nil || len(kept) != 1 || !strings.Contains(err.Error(), kept[0]) {
			t.Fatalf("%s is in %v, but the error says\n%v", name, kept, err)
		}
		if info, err := os.Stat(kept[0]); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
}

func ops(list ...operation) []operation {
	for i := range list {
		list[i].Client = i
	}
	return list
}

func ok(call, end int64, in request, d document) operation {
	return operation{Call: call, Return: end, Request: in, Response: response{Outcome: done, Documents: []document{d}}}
}

func no(call, end int64, in request, o outcome) operation {
	return operation{Call: call, Return: end, Request: in, Response: response{Outcome: o}}
}

func refuse(call, end int64, in request, faults told) operation {
	return operation{Call: call, Return: end, Request: in, Response: response{Outcome: mismatch, Faults: []told{faults}}}
}

func noted(call, end int64, user, marker string, sequence int64, m oda.Metadata) operation {
	return operation{
		Call: call, Return: end, Request: request{Action: record, User: user, Marker: marker},
		Response: response{Outcome: done, Recorded: &recorded{sequence, m}},
	}
}

func get(user string) request  { return request{Action: read, User: user} }
func get1(user string) request { return request{Action: read, User: user, Entity: 1} }

func puts(user, marker string, list ...put) request {
	return request{Action: store, User: user, Marker: marker, Puts: list}
}

func meta(v int64, creator string, created oda.Instant, user string, modified oda.Instant) oda.Metadata {
	return oda.Metadata{Version: v, CreatedBy: creator, CreatedOn: created, LastModifiedBy: user, LastModifiedOn: modified}
}

// doc returns a document, with a list of records if any are given.
func doc(m oda.Metadata, value string, records ...string) document {
	return document{Metadata: m, Value: value, Records: records, Listed: len(records) > 0}
}

func listed(d document) document {
	d.Listed = true
	return d
}
