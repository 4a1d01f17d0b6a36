package main

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// A direct write by a client shows when the database accepts writes again; any
// time beyond that is oda's own.
const (
	makeOwnTable = "CREATE TABLE drill (written_on timestamptz NOT NULL)"
	writeOwn     = "INSERT INTO drill VALUES (now())"
	tryPause     = 50 * time.Millisecond
)

// takesWrites waits until one of the nodes other than the given one has
// committed a write, and returns the time since an instant, or 0 if the context
// ended first.
func (c *cluster) takesWrites(ctx context.Context, except *node, since time.Time) time.Duration {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	taken := make(chan time.Duration, nodeCount)
	for _, n := range c.nodes {
		if n == except {
			continue
		}
		go func() {
			for ctx.Err() == nil && !n.write(ctx) {
				pause(ctx, tryPause)
			}
			if ctx.Err() == nil {
				taken <- time.Since(since)
			}
		}()
	}
	select {
	case d := <-taken:
		return d
	case <-ctx.Done():
		return 0
	}
}

// write commits one small write at a node. The commit waits for a synchronous
// standby, however long that takes.
func (n *node) write(ctx context.Context) bool {
	conn, err := pgx.Connect(ctx, n.dsn("oda")+"&target_session_attrs=read-write")
	if err != nil {
		return false
	}
	defer conn.Close(context.WithoutCancel(ctx))
	_, err = conn.Exec(ctx, writeOwn)
	return err == nil
}

// pause waits, and returns false if there is no time left.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
