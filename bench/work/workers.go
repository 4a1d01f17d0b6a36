package work

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync/atomic"

	"oda/bench/load"
	"oda/bench/peers"
)

const api = "/api/v1"

// expected looks at answers: every status, and the content of the first one.
type expected struct {
	status int
	first  string // in the body of the first answer
	looked bool
}

func (e *expected) check(a *load.Answer) error {
	if a.Status != e.status {
		return fmt.Errorf("answered %d, expected %d: %.300s", a.Status, e.status, a.Body)
	}
	if !e.looked {
		e.looked = true
		if !bytes.Contains(a.Body, []byte(e.first)) {
			return fmt.Errorf("the answer has no %q: %.300s", e.first, a.Body)
		}
	}
	return nil
}

// fixed sends requests that were made before, one of them at random each time.
type fixed struct {
	expected
	requests [][]byte
	random   *rand.Rand
}

// newFixed makes the worker of one connection; no two choose alike.
func newFixed(connection int, requests [][]byte, want expected) *fixed {
	return &fixed{expected: want, requests: requests, random: rand.New(rand.NewPCG(5, uint64(connection)))}
}

func (w *fixed) Next(buf []byte) []byte {
	return append(buf, w.requests[w.random.IntN(len(w.requests))]...)
}

func (w *fixed) Answered(a *load.Answer) error { return w.check(a) }

// reader reads entities at random from an archive of many.
type reader struct {
	expected
	random *rand.Rand
	prefix string
	count  int64
}

func newReader(connection int, prefix string, count int, first string) *reader {
	return &reader{
		expected: expected{status: http.StatusOK, first: first},
		random:   rand.New(rand.NewPCG(6, uint64(connection))),
		prefix:   prefix, count: int64(count),
	}
}

func (w *reader) Next(buf []byte) []byte {
	id := identifier(w.prefix, w.random.Int64N(w.count))
	return load.Request(buf, "GET", api+"/sbds/"+id, nil, nil)
}

func (w *reader) Answered(a *load.Answer) error { return w.check(a) }

// creator stores new documents: a whole request is the form. The number is
// shared by all creators of an archive, so that no identifier comes twice.
type creator struct {
	expected
	request *form
	prefix  string
	number  *atomic.Int64
}

func newCreator(request []byte, prefix string, number *atomic.Int64, status int) *creator {
	return &creator{expected: expected{status: status}, request: newForm(request, 1), prefix: prefix, number: number}
}

// createRequest stores the SBDefinition blank(0) in oda.
func createRequest(size int) []byte {
	return load.Request(nil, "PUT", api+"/sbds/"+blank(0), jsonBody(), peers.Document(size, blank(0)))
}

func (w *creator) Next(buf []byte) []byte {
	w.request.set(0, identifier(w.prefix, w.number.Add(1)))
	return append(buf, w.request.body...)
}

func (w *creator) Answered(a *load.Answer) error { return w.check(a) }

// updater stores a few entities in turn, each as it was answered the last time,
// as a client does that reads, changes and stores.
type updater struct {
	expected
	entities []entity
	turn     int
}

// entity is a document as the archive last answered it.
type entity struct {
	path string
	body []byte
}

func newUpdater(entities []entity) *updater {
	return &updater{expected: expected{status: http.StatusOK}, entities: entities}
}

func (w *updater) Next(buf []byte) []byte {
	w.turn = (w.turn + 1) % len(w.entities)
	e := &w.entities[w.turn]
	return load.Request(buf, "PUT", e.path, jsonBody(), e.body)
}

func (w *updater) Answered(a *load.Answer) error {
	if err := w.check(a); err != nil {
		return err
	}
	e := &w.entities[w.turn]
	e.body = append(e.body[:0], a.Body...)
	return nil
}

// batcher sends batches of records to a block. The keys are new every time:
// the number is shared by all batchers.
type batcher struct {
	expected
	path   string
	form   *form
	size   int
	number *atomic.Int64
}

func newBatcher(block string, size int, number *atomic.Int64) *batcher {
	return &batcher{
		expected: expected{status: http.StatusOK, first: `"sequence":`},
		path:     api + "/ebs/" + block + "/request_responses",
		form:     batchForm(size), size: size, number: number,
	}
}

func (w *batcher) Next(buf []byte) []byte {
	last := w.number.Add(int64(w.size))
	for i := range w.size {
		w.form.set(i, identifier("key-rec", last-int64(i)))
	}
	return load.Request(buf, "POST", w.path, jsonBody(), w.form.body)
}

func (w *batcher) Answered(a *load.Answer) error { return w.check(a) }

// storer stores several new SBDefinitions at once.
type storer struct {
	expected
	form   *form
	count  int
	number *atomic.Int64
}

func newStorer(count, size int, number *atomic.Int64) *storer {
	return &storer{
		expected: expected{status: http.StatusOK, first: `"sbds":`},
		form:     severalForm(count, size), count: count, number: number,
	}
}

func (w *storer) Next(buf []byte) []byte {
	last := w.number.Add(int64(w.count))
	for i := range w.count {
		w.form.set(i, identifier("sbd-sev", last-int64(i)))
	}
	return load.Request(buf, "PUT", api+"/", jsonBody(), w.form.body)
}

func (w *storer) Answered(a *load.Answer) error { return w.check(a) }

// jsonBody says what the body is, as every client does.
func jsonBody() []string { return []string{"Content-Type", "application/json"} }

// get is the request that reads an entity.
func get(path string) []byte { return load.Request(nil, "GET", path, nil, nil) }

// records are a few requests that record into a block; which of them is sent
// makes no difference to the server, so they are made once.
func records(block string) [][]byte {
	requests := make([][]byte, 16)
	for i := range requests {
		requests[i] = load.Request(nil, "POST", api+"/ebs/"+block+"/request_response", jsonBody(), peers.Record(i))
	}
	return requests
}

// newRecorder records into one block.
func newRecorder(connection int, block string) *fixed {
	return newFixed(connection, records(block), expected{status: http.StatusOK, first: `"sequence":`})
}
