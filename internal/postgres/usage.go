package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"oda"
	"oda/internal/engine"
)

// Usage implements oda.Engine. A database does not say how much room its disk has.
func (s *Store) Usage(ctx context.Context) (oda.Usage, error) {
	var u oda.Usage
	err := s.with(ctx, func(ctx context.Context, conn *pgxpool.Conn) error {
		return conn.QueryRow(ctx, "SELECT pg_database_size(current_database())").Scan(&u.Bytes)
	})
	return u, err
}

// selectStorage also reports how well PostgreSQL's own cache works, and whether the
// role may see the write-ahead log, which belongs to the whole cluster.
const selectStorage = `SELECT pg_database_size(current_database()), coalesce(blks_hit, 0), coalesce(blks_read, 0),
		has_function_privilege('pg_catalog.pg_ls_waldir()', 'EXECUTE')
	FROM pg_stat_database WHERE datname = current_database()`

// Storage tells how large the database is. The role of the archive may see the
// write-ahead log only if it is a member of pg_monitor.
func (s *Store) Storage(ctx context.Context) (engine.Storage, error) {
	found := engine.Storage{Cache: &engine.Cache{Name: "shared_buffers"}}
	err := s.with(ctx, func(ctx context.Context, conn *pgxpool.Conn) error {
		var seesLog bool
		err := conn.QueryRow(ctx, selectStorage).Scan(&found.Bytes, &found.Cache.Hits, &found.Cache.Misses, &seesLog)
		if err != nil || !seesLog {
			return err
		}
		return conn.QueryRow(ctx, "SELECT coalesce(sum(size), 0)::bigint FROM pg_ls_waldir()").Scan(&found.Log)
	})
	if err != nil {
		return engine.Storage{}, s.storageError(ctx, err)
	}
	return found, nil
}

// Stats tells about the work of the engine.
func (s *Store) Stats() engine.Stats {
	records := s.queue.Level("records")
	s.gatherer.mu.Lock()
	records.Used += int64(len(s.gatherer.pending))
	s.gatherer.mu.Unlock()
	records.Room += queueLength // pending
	pool := s.pool.Stat()
	found := engine.Stats{
		End:    s.numbering.tail.End(),
		Queues: []engine.Level{records, s.updates.level("updates"), s.creations.level("creations"), s.statuses.level("statuses")},
		Pools: []engine.Pool{{
			Level: engine.Level{Name: "connections", Used: int64(pool.AcquiredConns()), Room: int64(pool.MaxConns())},
			Waits: pool.EmptyAcquireCount(), Waited: pool.EmptyAcquireWaitTime(),
		}},
	}
	s.commits.Tell(&found)
	return found
}

// level tells how many stores wait.
func (t *together[T]) level(name string) engine.Level {
	t.mu.Lock()
	defer t.mu.Unlock()
	return engine.Level{Name: name, Used: int64(len(t.waiting)), Room: storesWaiting}
}

// committed counts a transaction that stored requests. One that stored none and has not
// failed does not count: it was refused, or is tried again because somebody else holds
// what it needs.
func (s *Store) committed(stored int, began time.Time, err error) {
	switch {
	case err == nil && stored > 0:
	case err == nil, isAnswer(err), isHeld(err), errors.Is(err, errRefused), errors.Is(err, errKeyUsed), errors.Is(err, context.Canceled):
		return
	}
	s.commits.Note(stored, began, err)
}
