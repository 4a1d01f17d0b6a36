package feed

import (
	"context"
	"slices"
	"sync"
	"time"

	"oda"
)

// Bounds of the end of the log that is kept in memory, in changes. Followers that have not
// got that far read the log themselves.
const (
	tailMost  = 16_384
	chunkMost = 1000
)

// The pause between two reads of the log. After each read, all followers are written
// to, which takes processor time from those who write to the archive.
const (
	leastPause = 4 * time.Millisecond
	mostPause  = 40 * time.Millisecond
	perEach    = 120 * time.Microsecond // for each follower
)

// tail is the end of the log of changes. It is kept in memory while anyone follows.
type tail struct {
	hub *Hub
	ctx context.Context
	end context.CancelFunc

	mu          sync.Mutex
	begun       bool
	start, last oda.Position // the chunks have what comes after start, up to last
	chunks      []*chunk
	kept        int           // changes in the chunks
	moved       chan struct{} // closed when there are more changes
	err         error         // why there will be no more changes
}

// chunk holds consecutive changes.
type chunk struct {
	from, to oda.Position // it has what comes after from, up to to
	changes  []oda.Change
	frame    *frame // all changes, ready to be sent
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

// read reads new changes until the tail ends or the engine fails.
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
		<-pause.C // changes that come meanwhile are sent together
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
			chunks = append(chunks, &chunk{from: last, to: next, changes: changes, frame: shared(changesFrame(changes))})
			kept += len(changes)
			last = next
			if len(changes) < chunkMost {
				break // more may come all the time, and followers wait for what there is
			}
		}
		t.noteDelay(chunks)
		t.add(chunks)
	}
}

// noteDelay notes how old the first of some changes is, now that they are sent.
func (t *tail) noteDelay(chunks []*chunk) {
	if len(chunks) > 0 && len(chunks[0].changes) > 0 {
		t.hub.delay.Note(max(0, int64(time.Since(chunks[0].changes[0].On.Time()))))
	}
}

func (t *tail) begin(at oda.Position) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.start, t.last, t.begun = at, at, true
	t.wake()
}

// add appends chunks and drops the oldest.
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

// position returns the position up to which the log has been read.
func (t *tail) position() oda.Position {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.last
}

// after returns the chunk that has what comes after a position. At the end it
// returns a channel that is closed when there is more. If it returns neither, the
// position is before the first chunk, and the log must be read.
func (t *tail) after(at oda.Position) (*chunk, <-chan struct{}, error) {
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
