package sqlite

import (
	"context"
	"sync/atomic"
	"time"

	"zombiezen.com/go/sqlite"

	"oda"
	"oda/internal/engine"
)

// poolWait is how long a read waits for a connection.
const poolWait = 5 * time.Second

// pool holds connections for reading.
type pool struct {
	size   int
	last   chan *conn // the one that was used last, if it is free: SQLite has most of what it needs in memory
	free   chan *conn // the others
	closed chan struct{}

	waits, waited atomic.Int64 // how often, and for how many nanoseconds, somebody had to wait
}

func (p *pool) fill(path string, size int, settings string) error {
	p.last, p.free, p.closed = make(chan *conn, 1), make(chan *conn, size), make(chan struct{})
	for range size {
		c, err := openConn(path, sqlite.OpenReadWrite)
		if err != nil {
			return err
		}
		p.size++
		p.free <- c
		if err := c.script(settings); err != nil {
			return err
		}
	}
	return nil
}

// take returns a connection. The caller must give it back.
func (p *pool) take(ctx context.Context) (*conn, error) {
	select {
	case c := <-p.last:
		return c, nil
	default:
	}
	select {
	case c := <-p.free:
		return c, nil
	default:
	}
	defer func(began time.Time) {
		p.waits.Add(1)
		p.waited.Add(int64(time.Since(began)))
	}(time.Now())
	timer := time.NewTimer(poolWait)
	defer timer.Stop()
	select {
	case c := <-p.last:
		return c, nil
	case c := <-p.free:
		return c, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-p.closed:
		return nil, oda.Errorf(oda.Unavailable, "The archive is stopping. Try again shortly.")
	case <-timer.C:
		return nil, oda.Errorf(oda.Overloaded, "Too many requests are reading at once. Try again shortly.")
	}
}

func (p *pool) give(c *conn) {
	select {
	case p.last <- c:
	default:
		p.free <- c
	}
}

func (p *pool) stats(name string) engine.Pool {
	return engine.Pool{
		Level: engine.Level{Name: name, Used: int64(p.size - len(p.last) - len(p.free)), Room: int64(p.size)},
		Waits: p.waits.Load(), Waited: time.Duration(p.waited.Load()),
	}
}

// close waits for the connections in use and closes all. It reports whether all
// have come back in time.
func (p *pool) close() bool {
	if p.closed == nil {
		return true // never filled
	}
	close(p.closed)
	expired := time.After(poolWait)
	for range p.size {
		select {
		case c := <-p.last:
			_ = c.close() // nothing was written on it
		case c := <-p.free:
			_ = c.close()
		case <-expired:
			return false
		}
	}
	return true
}
