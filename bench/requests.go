package main

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

const (
	api     = "/api/v1"
	hot     = 100 // entities that are read repeatedly
	own     = 16  // entities that a connection updates in turn
	several = 100 // entities in a PUT of several
	fillers = 8   // connections that fill an archive
)

// work prepares an archive, and returns a worker for each connection. It also
// works with the bare server, which accepts everything.
type work func(ctx context.Context, srv *server, connections int) ([]worker, error)

// workers returns a worker for each connection.
func workers(connections int, one func(i int) worker) []worker {
	all := make([]worker, connections)
	for i := range all {
		all[i] = one(i)
	}
	return all
}

// anyOf sends one of the requests at random each time.
func anyOf(connection int, requests []request) worker {
	random := rand.New(rand.NewPCG(5, uint64(connection)))
	return worker{next: func() request { return requests[random.IntN(len(requests))] }}
}

// shuffled sends the same requests over all connections, at random.
func shuffled(connections int, requests ...request) []worker {
	return workers(connections, func(i int) worker { return anyOf(i, requests) })
}

// numbered sends the requests 1, 2, ..., each over the next free connection.
func numbered(connections int, nth func(n int) request) []worker {
	var last atomic.Int64
	next := func() request { return nth(int(last.Add(1))) }
	return workers(connections, func(int) worker { return worker{next: next} })
}

func identifier(prefix string, n int) string { return fmt.Sprintf("%s-%09d", prefix, n) }

// template renders documents, which differ only in the identifier. Building
// each one again would cost the generator more than storing it costs the
// archive.
var (
	blank    = identifier("sbd-~~~", 0)
	template = document(blank)
)

func documentOf(id string) []byte { return bytes.ReplaceAll(template, []byte(blank), []byte(id)) }

// parallel calls do for 0 to count-1 over several connections.
func parallel(ctx context.Context, count int, do func(ctx context.Context, i int) error) error {
	all, ctx := errgroup.WithContext(ctx)
	all.SetLimit(fillers)
	for i := 0; i < count && ctx.Err() == nil; i++ {
		all.Go(func() error { return do(ctx, i) })
	}
	return all.Wait()
}

// putSeveral returns the body of a PUT of the documents first, first+1, ...
func putSeveral(list string, first, count int, nth func(n int) []byte) []byte {
	documents := make([][]byte, count)
	for i := range documents {
		documents[i] = nth(first + i)
	}
	return slices.Concat([]byte(`{"`+list+`":[`), bytes.Join(documents, []byte(",")), []byte(`]}`))
}

// storeSeveral stores documents, several in a request.
func (srv *server) storeSeveral(ctx context.Context, list string, count int, nth func(n int) []byte) error {
	return parallel(ctx, (count+several-1)/several, func(ctx context.Context, i int) error {
		first := i * several
		_, err := srv.do(ctx, "PUT", api+"/", putSeveral(list, first, min(several, count-first), nth))
		return err
	})
}

// entitiesOf returns what renders the entities prefix-000000000, prefix-000000001, ...
func entitiesOf(prefix string) func(n int) []byte {
	return func(n int) []byte { return documentOf(identifier(prefix, n)) }
}

func (srv *server) storeEntities(ctx context.Context, prefix string, count int) error {
	return srv.storeSeveral(ctx, "sbds", count, entitiesOf(prefix))
}

// storeBlocks stores empty blocks and returns their identifiers.
func (srv *server) storeBlocks(ctx context.Context, prefix string, count int) ([]string, error) {
	ids := make([]string, count)
	err := parallel(ctx, count, func(ctx context.Context, i int) error {
		ids[i] = identifier(prefix, i)
		_, err := srv.do(ctx, "PUT", api+"/ebs/"+ids[i], block(ids[i]))
		return err
	})
	return ids, err
}

// keys counts the idempotency keys of batches.
var keys atomic.Int64

// batch returns the body of a batch of records, each with its own key.
func batch(records [][]byte) []byte {
	body := []byte(`{"records":[`)
	for i, text := range records {
		if i > 0 {
			body = append(body, ',')
		}
		body = fmt.Appendf(body, `{"key":"key-%012d","record":`, keys.Add(1))
		body = append(append(body, text...), '}')
	}
	return append(body, `]}`...)
}

// records returns the first records of a block.
func records(count int) [][]byte {
	all := make([][]byte, count)
	for i := range all {
		all[i] = record(i)
	}
	return all
}

// lengthen adds this many records to a block, in batches.
func (srv *server) lengthen(ctx context.Context, id string, length int) error {
	for done := 0; done < length; {
		some := records(min(5000, length-done)) // the archive's limit per request
		if _, err := srv.do(ctx, "POST", api+"/ebs/"+id+"/request_responses", batch(some)); err != nil {
			return err
		}
		done += len(some)
	}
	return nil
}

func readEntities(ctx context.Context, srv *server, connections int) ([]worker, error) {
	requests := make([]request, hot)
	for i := range requests {
		requests[i] = get(api + "/sbds/" + identifier("sbd-hot", i))
	}
	return shuffled(connections, requests...), srv.storeEntities(ctx, "sbd-hot", hot)
}

func createEntities(_ context.Context, _ *server, connections int) ([]worker, error) {
	return numbered(connections, func(n int) request {
		id := identifier("sbd-new", n)
		return request{"PUT", api + "/sbds/" + id, documentOf(id)}
	}), nil
}

func createSeveral(_ context.Context, _ *server, connections int) ([]worker, error) {
	return numbered(connections, func(n int) request {
		return request{"PUT", api + "/", putSeveral("sbds", n*several, several, entitiesOf("sbd-sev"))}
	}), nil
}

// updateEntities lets every connection store a few entities in turn, each as
// last returned, like a client that reads, changes and stores.
func updateEntities(ctx context.Context, srv *server, connections int) ([]worker, error) {
	count := own * connections
	if err := srv.storeEntities(ctx, "sbd-own", count); err != nil {
		return nil, err
	}
	requests := make([]request, count)
	err := parallel(ctx, count, func(ctx context.Context, i int) (err error) {
		requests[i] = request{method: "PUT", path: api + "/sbds/" + identifier("sbd-own", i)}
		requests[i].body, err = srv.do(ctx, "GET", requests[i].path, nil)
		return err
	})
	return workers(connections, func(i int) worker {
		turn := 0
		mine := requests[own*i : own*(i+1)]
		return worker{
			next: func() request {
				turn = (turn + 1) % own
				return mine[turn]
			},
			answered: func(body []byte) { mine[turn].body = append(mine[turn].body[:0], body...) },
		}
	}), err
}

// sayStatuses says one status after the other of entities, without keys.
func sayStatuses(ctx context.Context, srv *server, connections int) ([]worker, error) {
	count := own * connections
	if err := srv.storeEntities(ctx, "sbd-said", count); err != nil {
		return nil, err
	}
	bodies := [][]byte{[]byte(`{"status":"Executing"}`), []byte(`{"status":"Observed","reason":"all scans are done"}`)}
	return workers(connections, func(i int) worker {
		turn := 0
		return worker{next: func() request {
			turn++
			id := identifier("sbd-said", own*i+turn%own)
			return request{method: "POST", path: api + "/sbds/" + id + "/status", body: bodies[turn/own%len(bodies)]}
		}}
	}), nil
}

func recordEach(ctx context.Context, srv *server, connections int) ([]worker, error) {
	return recordInto(ctx, srv, connections, connections)
}

// recordCalls records calls into blocks, each a second after the one before.
func recordCalls(prefix string, text func(i int) []byte) work {
	return func(ctx context.Context, srv *server, connections int) ([]worker, error) {
		ids, err := srv.storeBlocks(ctx, prefix, connections)
		return numbered(connections, func(n int) request {
			return request{"POST", api + "/ebs/" + ids[n%connections] + "/request_response", text(n)}
		}), err
	}
}

func recordTogether(ctx context.Context, srv *server, connections int) ([]worker, error) {
	return recordInto(ctx, srv, connections, 1)
}

// recordInto records into this many blocks.
func recordInto(ctx context.Context, srv *server, connections, blocks int) ([]worker, error) {
	ids, err := srv.storeBlocks(ctx, "eb-rec", blocks)
	return workers(connections, func(i int) worker { return anyOf(i, recordings(ids[i%blocks])) }), err
}

// recordings returns requests that record into a block. They are all the same
// to the server.
func recordings(id string) []request {
	requests := make([]request, 16)
	for i, text := range records(len(requests)) {
		requests[i] = request{"POST", api + "/ebs/" + id + "/request_response", text}
	}
	return requests
}

const batchSize = 20

func recordBatches(ctx context.Context, srv *server, connections int) ([]worker, error) {
	ids, err := srv.storeBlocks(ctx, "eb-batch", connections)
	some := records(batchSize)
	return workers(connections, func(i int) worker {
		return worker{next: func() request {
			return request{"POST", api + "/ebs/" + ids[i] + "/request_responses", batch(some)}
		}}
	}), err
}

// recordAt records into blocks of about this many records. When one has twice
// as many, another replaces it.
func recordAt(length, blocks int) work {
	return func(ctx context.Context, srv *server, connections int) ([]worker, error) {
		ids, err := srv.storeBlocks(ctx, fmt.Sprintf("eb-%d", length), blocks)
		if err == nil {
			err = parallel(ctx, blocks, func(ctx context.Context, i int) error { return srv.lengthen(ctx, ids[i], length) })
		}
		some := records(16)
		return numbered(connections, func(n int) request {
			return request{"POST", api + "/ebs/" + ids[n/length%blocks] + "/request_response", some[n%len(some)]}
		}), err
	}
}

// readBlock reads a block with this many records.
func readBlock(ctx context.Context, srv *server, connections int) ([]worker, error) {
	ids, err := srv.storeBlocks(ctx, "eb-long", 1)
	if err == nil {
		err = srv.lengthen(ctx, ids[0], srv.stage.plan.longBlock)
	}
	return shuffled(connections, get(api+"/ebs/"+ids[0])), err
}

// reportNight asks for the night of all records of some blocks.
func reportNight(ctx context.Context, srv *server, connections int) ([]worker, error) {
	plan := srv.stage.plan
	ids, err := srv.storeBlocks(ctx, "eb-night", plan.nightBlocks)
	if err == nil {
		err = parallel(ctx, len(ids), func(ctx context.Context, i int) error { return srv.lengthen(ctx, ids[i], plan.nightRecords) })
	}
	return shuffled(connections, get(api+"/night?date=2026-02-28")), err
}

// observe is the load of an archive while a telescope observes: 95 % record, 3
// % read an entity, 2 % update one.
func observe(ctx context.Context, srv *server, connections int) ([]worker, error) {
	var parts [3][]worker
	for i, part := range []work{recordEach, readEntities, updateEntities} {
		var err error
		if parts[i], err = part(ctx, srv, connections); err != nil {
			return nil, err
		}
	}
	return workers(connections, func(i int) worker {
		random := rand.New(rand.NewPCG(7, uint64(i)))
		var now worker
		return worker{
			next: func() request {
				switch n := random.IntN(100); {
				case n < 95:
					now = parts[0][i]
				case n < 98:
					now = parts[1][i]
				default:
					now = parts[2][i]
				}
				return now.next()
			},
			answered: func(body []byte) {
				if now.answered != nil {
					now.answered(body)
				}
			},
		}
	}), nil
}
