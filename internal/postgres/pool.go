package postgres

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"
)

// with runs work on a connection of the pool, for which it waits a bounded
// time.
func (s *Store) with(ctx context.Context, work func(context.Context, *pgxpool.Conn) error) error {
	waiting, cancel := context.WithTimeout(ctx, acquireTime)
	conn, err := s.pool.Acquire(waiting)
	expired := waiting.Err() != nil
	cancel()
	if err != nil {
		if expired && ctx.Err() == nil && s.pool.Stat().AcquiredConns() >= s.pool.Config().MaxConns {
			return errPool
		}
		return err
	}
	defer conn.Release()
	return work(ctx, conn)
}

// Ping implements oda.Store.
func (s *Store) Ping(ctx context.Context) error {
	err := s.with(ctx, func(ctx context.Context, conn *pgxpool.Conn) error { return conn.Ping(ctx) })
	return s.storageError(ctx, err)
}
