package work

import (
	"context"
	"fmt"
	"time"

	"oda/bench/load"
	"oda/bench/measure"
)

// perUpdater is the number of entities that a connection updates in turn.
const perUpdater = 16

// updated is how many entities so many connections update together. It is a
// multiple of a hundred, so that they can be stored in parts of that size.
func updated(connections int) int { return (connections*perUpdater + 99) / 100 * 100 }

// hotPaths are the entities that are read and updated, in a small archive.
func hotPaths(count int) []string {
	paths := make([]string, count)
	for i := range paths {
		paths[i] = api + "/sbds/" + identifier("sbd-hot", int64(i))
	}
	return paths
}

// hotReads are the requests that read the hot entities.
func hotReads(count int) [][]byte {
	requests := make([][]byte, count)
	for i, path := range hotPaths(count) {
		requests[i] = get(path)
	}
	return requests
}

// read reads entities as they are stored now.
func read(ctx context.Context, addr string, paths []string) ([]entity, error) {
	entities := make([]entity, len(paths))
	err := inParallel(ctx, 4, len(paths), func(ctx context.Context, _, i int) error {
		body, err := send(ctx, addr, get(paths[i]))
		// The answer's bytes are its own, but a longer version of the
		// document will be written over them.
		entities[i] = entity{path: paths[i], body: append(make([]byte, 0, len(body)+64), body...)}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading %d entities: %w", len(paths), err)
	}
	return entities, nil
}

// updating is a closed load of updates; every connection has entities of its
// own. They are read before the clock starts, since each update must begin
// with what is stored.
func updating(addrs []string, connections int, paths []string) func(context.Context, time.Duration) (measure.Sample, error) {
	return func(ctx context.Context, length time.Duration) (measure.Sample, error) {
		each := min(perUpdater, len(paths)/connections)
		entities, err := read(ctx, addrs[0], paths[:each*connections])
		if err != nil {
			return measure.Sample{}, err
		}
		return load.Closed(ctx, load.Target{
			Addr: addrs[0], Also: addrs[1:], Connections: connections,
			New: func(i int) load.Worker { return newUpdater(entities[i*each : (i+1)*each]) },
		}, length)
	}
}
