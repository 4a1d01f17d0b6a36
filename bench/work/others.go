package work

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"oda/bench/load"
	"oda/bench/measure"
	"oda/bench/peers"
)

// The peers that are not there everywhere. Where one cannot be had, its server
// is nil, its arms are left out, and the section says so.

// pocketBase starts PocketBase and stores the hot documents in it.
func (s *stage) pocketBase(ctx context.Context) (*peers.Server, error) {
	if !s.plan.others {
		return nil, nil
	}
	server, err := s.lab.PocketBase(ctx)
	if err := s.had(server, err, pocketBase); server == nil || err != nil {
		return nil, err
	}
	return server, s.storeHot(ctx, server, peers.PocketBase{}.Create)
}

// kinto starts Kinto on a database of its own and stores the hot documents.
func (s *stage) kinto(ctx context.Context) (*peers.Server, error) {
	if !s.plan.others {
		return nil, nil
	}
	dsn, err := s.database(ctx, s.name+"-kinto")
	if err != nil {
		return nil, err
	}
	server, err := s.lab.Kinto(ctx, dsn)
	if err := s.had(server, err, kinto); server == nil || err != nil {
		return nil, err
	}
	if err := s.storeHot(ctx, server, peers.Kinto{}.Create); err != nil {
		return nil, err
	}
	return server, accepted(ctx, server, peers.Kinto{}.Record("eb-first", peers.Record(0)))
}

// accepted sends one request that a peer has to take.
func accepted(ctx context.Context, server *peers.Server, request []byte) error {
	answer, err := load.Once(ctx, server.Addr, request)
	if err == nil && answer.Status/100 != 2 {
		err = fmt.Errorf("answered %d: %.300s", answer.Status, answer.Body)
	}
	if err != nil {
		return fmt.Errorf("storing in %s: %w", server.Name, err)
	}
	return nil
}

// rewriting starts the server that rewrites a block for each record.
func (s *stage) rewriting(ctx context.Context) (*peers.Server, error) {
	dsn, err := s.database(ctx, s.name+"-rewriting")
	if err != nil {
		return nil, err
	}
	server, err := s.lab.Rewriting(ctx, dsn)
	if err != nil {
		return nil, err
	}
	s.stopLater(server)
	return server, nil
}

// had notes it where a peer cannot be had, and ends it with the stage where it
// can.
func (s *stage) had(server *peers.Server, err error, arm string) error {
	switch {
	case errors.Is(err, peers.ErrUnavailable):
		s.say("  %s is left out: %v", arm, err)
		s.note("%s could not be had on this machine and is left out.", arm)
		return nil
	case err != nil:
		return err
	}
	s.stopLater(server)
	return nil
}

// stopLater ends a server with the stage, and removes its log, which has a line
// for each of millions of requests.
func (s *stage) stopLater(server *peers.Server) {
	s.later(func(ctx context.Context) error {
		if err := server.Stop(ctx); err != nil {
			return err
		}
		return os.Remove(server.Log)
	})
}

// storeHot stores the hot documents in a peer, one after the other: Kinto
// answers 409 when the first ones of a collection come at the same time.
func (s *stage) storeHot(ctx context.Context, server *peers.Server, create func(id string, document []byte) []byte) error {
	for i := range s.plan.hot {
		id := identifier("sbd-hot", int64(i))
		if err := accepted(ctx, server, create(id, peers.Document(s.plan.documentSize, id))); err != nil {
			return err
		}
	}
	return nil
}

// hotArm makes an arm that sends requests about the hot documents of a peer,
// any of them.
func (s *stage) hotArm(arm string, server *peers.Server, request func(id string, document []byte) []byte, first string) []measure.Arm {
	if server == nil {
		return nil
	}
	requests := make([][]byte, s.plan.hot)
	for i := range requests {
		id := identifier("sbd-hot", int64(i))
		requests[i] = request(id, peers.Document(s.plan.documentSize, id))
	}
	return []measure.Arm{closed(arm, server.Addr, s.plan.busy, func(i int) load.Worker {
		return newFixed(i, requests, expected{status: http.StatusOK, first: first})
	})}
}

// alone lets a request that needs no document stand where one is given.
func alone(request func(id string) []byte) func(string, []byte) []byte {
	return func(id string, _ []byte) []byte { return request(id) }
}

// connecting is what pgbench may take to connect. It counts that as part of the
// time that it is given, but not in its rate.
const connecting = time.Second

// pgbenchArm runs a script of pgbench on the database of an engine.
func (s *stage) pgbenchArm(ctx context.Context, dsn string, script peers.Script, connections int) (measure.Arm, error) {
	cluster, err := s.lab.Postgres(ctx)
	if err != nil {
		return measure.Arm{}, err
	}
	return measure.Arm{Name: pgbench, Run: func(ctx context.Context, length time.Duration) (measure.Sample, error) {
		return cluster.Pgbench(ctx, dsn, script, connections, length+connecting)
	}}, nil
}

// rawMost is how many requests oda commits together at most.
const rawMost = 512

// rawSQLite makes an archive for the statements of oda without oda. Its file
// goes with the stage.
func (s *stage) rawSQLite(ctx context.Context) (*peers.RawSQLite, error) {
	raw, err := s.lab.RawSQLite(ctx, s.plan.busy*perUpdater, s.plan.documentSize)
	if err != nil {
		return nil, err
	}
	s.later(func(context.Context) error {
		err := raw.Close()
		files, _ := filepath.Glob(filepath.Join(s.lab.Dir, "archive-raw-*")) // the pattern is a good one
		for _, file := range files {
			err = errors.Join(err, os.Remove(file))
		}
		return err
	})
	return raw, nil
}
