package engine

import (
	"sync/atomic"
	"time"

	"oda"
	"oda/internal/measure"
)

// Stats is what an engine tells about its work, without asking its database.
type Stats struct {
	End           oda.Position // of the log of changes
	Took, Shared  measure.Counts
	FailedCommits int64
	Queues        []Level
	Pools         []Pool
	Caches        []Cache
}

// Level is how full something is.
type Level struct {
	Name       string
	Used, Room int64
}

// Pool is a pool of connections to the database.
type Pool struct {
	Level
	Waits  int64         // how often somebody had to wait for one
	Waited time.Duration // in all
}

// Cache is what is kept in memory so that the disk need not be read.
type Cache struct {
	Name         string
	Hits, Misses int64
	Bytes        int64 // that it takes of the memory of this process
}

// Storage is what an engine learns about its storage from the database and the
// operating system. What it cannot find out is nil.
type Storage struct {
	Bytes int64  // of the database, without the write-ahead log
	Log   *int64 // of the write-ahead log
	Free  *int64 // of the disk
	Cache *Cache // of the database itself
}

// Commits counts the transactions in which an engine stores what requests ask for.
type Commits struct {
	took   *measure.Histogram // in nanoseconds
	shared *measure.Histogram // requests in one
	failed atomic.Int64
}

// NewCommits returns a Commits that has counted nothing.
func NewCommits() *Commits {
	return &Commits{took: measure.NewHistogram(measure.Durations...), shared: measure.NewHistogram(1, 2, 4, 8, 16, 32, 64, 128, 256, 512)}
}

// Note counts a transaction that has ended. Requests is how many it stored.
func (c *Commits) Note(requests int, began time.Time, err error) {
	if err != nil {
		c.failed.Add(1)
		return
	}
	c.took.Note(int64(time.Since(began)))
	c.shared.Note(int64(requests))
}

// Tell adds the counts to the stats of the engine.
func (c *Commits) Tell(s *Stats) {
	s.Took, s.Shared, s.FailedCommits = c.took.Read(), c.shared.Read(), c.failed.Load()
}
