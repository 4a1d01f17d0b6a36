package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// with runs work on a connection of the pool. Both the wait for the connection
// and the work take a bounded time.
func (s *Store) with(ctx context.Context, work func(context.Context, *pgxpool.Conn) error) error {
	return s.within(ctx, answerTime, work)
}

// within is with, for work that may take as long as limit.
func (s *Store) within(ctx context.Context, limit time.Duration, work func(context.Context, *pgxpool.Conn) error) error {
	return s.unbounded(ctx, func(ctx context.Context, conn *pgxpool.Conn) error {
		bounded, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		err := work(bounded, conn)
		if err != nil && bounded.Err() != nil && ctx.Err() == nil {
			s.suspect(conn)
		}
		return err
	})
}

// suspect handles a connection on which no answer came in time. If it is lost, the
// others may lead to the same silent server, and new ones may find another.
func (s *Store) suspect(conn *pgxpool.Conn) {
	if conn.Conn().IsClosed() {
		s.reconnect()
	}
}

// reconnect drops all connections. New ones may find another server.
func (s *Store) reconnect() {
	s.hosts.forget()
	s.pool.Reset()
}

// unbounded is with, for work that bounds its time itself.
func (s *Store) unbounded(ctx context.Context, work func(context.Context, *pgxpool.Conn) error) error {
	waiting, cancel := context.WithTimeout(ctx, acquireTime)
	room := func() bool { return true }
	if s.listings.Running() > 0 {
		room = time.AfterFunc(listingGrace, s.makeRoom).Stop
	}
	conn, err := s.pool.Acquire(waiting)
	room()
	expired := waiting.Err() != nil
	cancel()
	if err != nil {
		if expired && ctx.Err() == nil && s.exhausted() {
			return errPool
		}
		s.hosts.forget()
		return fmt.Errorf("%w: %w", errNoConnection, err)
	}
	defer conn.Release()
	return work(ctx, conn)
}

// exhausted reports whether all connections of the pool are in use.
func (s *Store) exhausted() bool {
	return s.pool.Stat().AcquiredConns() >= s.pool.Config().MaxConns
}

// makeRoom ends a listing if all connections are in use. In a small pool even a
// single listing may be in the way of others.
func (s *Store) makeRoom() {
	if s.exhausted() {
		s.listings.EndOne()
	}
}

// transact runs work in a transaction.
func transact(ctx context.Context, conn *pgxpool.Conn, work func(pgx.Tx) error) error {
	tx, err := conn.Begin(ctx)
	if err != nil {
		return fmt.Errorf("%w: %w", errNotBegun, err)
	}
	if err := work(tx); err != nil {
		_ = tx.Rollback(ctx) // the pool drops a connection that is still in a transaction
		return fmt.Errorf("%w: %w", errNotCommitted, err)
	}
	return tx.Commit(ctx)
}

// progress ends a context when nothing has happened for answerTime.
type progress struct {
	timer  *time.Timer
	cancel context.CancelFunc
}

func startProgress(ctx context.Context) (context.Context, *progress) {
	ctx, cancel := context.WithCancel(ctx)
	return ctx, &progress{time.AfterFunc(answerTime, cancel), cancel}
}

// pause stops the time while the caller is at work.
func (p *progress) pause()  { p.timer.Stop() }
func (p *progress) resume() { p.timer.Reset(answerTime) }

func (p *progress) end() {
	p.timer.Stop()
	p.cancel()
}
