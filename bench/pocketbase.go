package main

import (
	"context"
	"fmt"
	"path/filepath"
)

// startPocketBase starts a PocketBase with empty collections, and builds it the
// first time. It answers all requests with 200.
func (s *stage) startPocketBase(ctx context.Context) (*server, error) {
	if s.pocket == "" {
		s.say("building PocketBase")
		program := filepath.Join(s.lab.dir, "bin", "pocketbase")
		if err := build(ctx, "pocketbase", ".", program); err != nil {
			return nil, err
		}
		s.pocket = program
	}
	return s.start(ctx, &server{
		name: pocketBase, ready: "/api/health",
		command: []string{s.pocket, "serve", "--http", "{addr}", "--dir", s.file(".pocketbase")},
	})
}

const (
	pocketEntities = "/api/collections/sbds/records"
	pocketRecords  = "/api/collections/records/records"
)

// pocketEntity is a row whose JSON field is the document.
func pocketEntity(id string) []byte {
	return fmt.Appendf(nil, `{"id":%q,"document":%s}`, id, documentOf(id))
}

func pocketStore(ctx context.Context, srv *server, count int) error {
	return parallel(ctx, count, func(ctx context.Context, i int) error {
		_, err := srv.do(ctx, "POST", pocketEntities, pocketEntity(identifier("sbd-hot", i)))
		return err
	})
}

func pocketRead(ctx context.Context, srv *server, connections int) ([]worker, error) {
	requests := make([]request, hot)
	for i := range requests {
		requests[i] = get(pocketEntities + "/" + identifier("sbd-hot", i))
	}
	return shuffled(connections, requests...), pocketStore(ctx, srv, hot)
}

func pocketCreate(_ context.Context, _ *server, connections int) ([]worker, error) {
	return numbered(connections, func(n int) request {
		return request{"POST", pocketEntities, pocketEntity(identifier("sbd-new", n))}
	}), nil
}

// pocketUpdate stores documents again. The earlier ones are lost: PocketBase
// keeps no versions and compares nothing.
func pocketUpdate(ctx context.Context, srv *server, connections int) ([]worker, error) {
	requests := make([]request, hot)
	for i := range requests {
		id := identifier("sbd-hot", i)
		requests[i] = request{"PATCH", pocketEntities + "/" + id, fmt.Appendf(nil, `{"document":%s}`, documentOf(id))}
	}
	return shuffled(connections, requests...), pocketStore(ctx, srv, hot)
}

// pocketRecord adds a row that names its block.
func pocketRecord(_ context.Context, _ *server, connections int) ([]worker, error) {
	return workers(connections, func(i int) worker {
		requests := make([]request, 16)
		for n, text := range records(len(requests)) {
			requests[n] = request{"POST", pocketRecords, fmt.Appendf(nil, `{"eb_id":%q,"document":%s}`, identifier("eb-rec", i), text)}
		}
		return anyOf(i, requests)
	}), nil
}
