package feed

import (
	"context"
	"slices"
	"sync"
	"time"

	"oda"
)

// Bounds of what is kept of the end of the log, in changes. Who is further behind
// reads the log.
const (
	tailMost  = 16_384
	chunkMost = 1000
)

// The log is read at most so often: each time all followers are written to, which
// takes time from those who write to the archive.
const (
	leastPause = 4 * time.Millisecond
	mostPause  = 40 * time.Millisecond
	perEach    = 100 * time.Microsecond // and follower
)

// tail is the end of the log of changes, kept in memory as long as somebody
// follows.
type tail struct {
	hub *Hub
	ctx context.Context
	end context.CancelFunc

	mu          sync.Mutex
	begun       bool
	start, last oda.Position // the chunks are what lies behind start, up to last
	chunks      []*chunk
	kept        int           // changes in them
	moved       chan struct{} // closed when there is more
	err         error         // why there will never be more
}

// chunk is consecutive changes.
type chunk struct {
	from, to oda.Position // behind from, up to to
	changes  []oda.Change
	frame    []byte // all of them, ready to be sent
}

// newTail begins to read the log.
func (h *Hub) newTail() *tail {
	t := &tail{hub: h, moved: make(chan struct{})}
	t.ctx, t.end = context.WithCancel(h.stop)
	go func() { t.fail(t.read()) }()
	return t
}

func (t *tail) fail(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.hub.stop.Err() != nil {
		err = errStopping()
	}
	t.err = err
	t.end()
	close(t.moved)
}

func (t *tail) failed() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err != nil
}

// read reads what is new until the tail ends, or an error of the engine.
func (t *tail) read() error {
	log := t.hub.archive.Log()
	last, err := log.End(t.ctx)
	if err != nil {
		return err
	}
	t.begin(last)
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		<-pause.C // what comes meanwhile is sent together
		if err := log.Await(t.ctx, last); err != nil {
			return err
		}
		pause.Reset(min(leastPause+time.Duration(t.hub.Followers())*perEach, mostPause))
		var chunks []*chunk
		for kept := 0; kept < tailMost; {
			changes, next, err := log.Changes(t.ctx, last, chunkMost)
			if err != nil {
				return err
			}
			if next == last {
				break
			}
			chunks = append(chunks, &chunk{from: last, to: next, changes: changes, frame: changesFrame(changes)})
			kept += len(changes)
			last = next
		}
		t.add(chunks)
	}
}

func (t *tail) begin(at oda.Position) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.start, t.last, t.begun = at, at, true
	t.wake()
}

// add appends chunks and lets go of the oldest.
func (t *tail) add(chunks []*chunk) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range chunks {
		t.chunks = append(t.chunks, c)
		t.kept += len(c.changes)
		t.last = c.to
	}
	for t.kept > tailMost && len(t.chunks) > 1 {
		t.kept -= len(t.chunks[0].changes)
		t.start = t.chunks[0].to
		t.chunks[0] = nil
		t.chunks = t.chunks[1:]
	}
	t.wake()
}

func (t *tail) wake() {
	close(t.moved)
	t.moved = make(chan struct{})
}

// position is up to where the log has been read.
func (t *tail) position() oda.Position {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.last
}

// behind gives the chunk that holds what comes behind a position. At the end it
// gives what tells that there is more. Where it gives neither, the position is
// before what is kept, and the log must be read.
func (t *tail) behind(at oda.Position) (*chunk, <-chan struct{}, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.err != nil:
		return nil, nil, t.err
	case !t.begun || at >= t.last:
		return nil, t.moved, nil
	case at < t.start:
		return nil, nil, nil
	}
	i, _ := slices.BinarySearchFunc(t.chunks, at, func(c *chunk, at oda.Position) int {
		if c.to <= at {
			return -1
		}
		return 1
	})
	return t.chunks[i], nil, nil
}
