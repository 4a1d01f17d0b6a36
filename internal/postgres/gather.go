package postgres

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"oda"
)

// Records are gathered: what comes in while a transaction is under way goes
// into the next one, so under load many share a commit, and each head is
// touched once for all of them. One transaction at a time does that best. But a
// slow one (a head that somebody holds, a distant standby) must not keep those
// waiting who have nothing to do with it: after a while another is sent beside
// it, with other blocks. This process never waits for itself at a head.
const (
	queueLength  = 512 // requests that wait to be gathered
	batchRecords = 256
	batchBytes   = 4 << 20
	batches      = 4                    // transactions under way at once
	slow         = 5 * time.Millisecond // until another one is sent
	batchTime    = 20 * time.Second
	enqueueWait  = 5 * time.Second
)

// waiting is a request to record on its way: its records are added together or
// not at all.
type waiting struct {
	adds     []oda.Addition // of one block
	size     int
	recorded []oda.Recorded
	done     chan error
}

// Record implements oda.Store.
func (s *Store) Record(ctx context.Context, adds []oda.Addition) ([]oda.Recorded, error) {
	w := &waiting{adds: adds, done: make(chan error, 1)}
	for _, add := range adds {
		w.size += len(add.Record)
	}
	if err := s.enqueue(ctx, w); err != nil {
		return nil, err
	}
	// The records may be committed from here on, so their answer is waited for
	// even if the caller has gone. It comes in bounded time.
	if err := <-w.done; err != nil {
		return nil, err
	}
	return w.recorded, nil
}

func (s *Store) enqueue(ctx context.Context, w *waiting) error {
	s.gate.RLock()
	defer s.gate.RUnlock()
	if s.closed {
		return oda.Errorf(oda.Unavailable, "The archive is stopping. Nothing was stored. Try again shortly.")
	}
	select {
	case s.queue <- w:
		return nil
	default:
	}
	timer := time.NewTimer(enqueueWait)
	defer timer.Stop()
	select {
	case s.queue <- w:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return oda.Errorf(oda.Overloaded, "Too many records are waiting. Nothing was stored. Try again shortly.")
	}
}

// gatherer decides what is sent when. Only its run touches it.
type gatherer struct {
	queue    <-chan *waiting // nil when it is closed and empty
	send     func([]*waiting)
	pending  []*waiting
	busy     map[string]bool // blocks in a transaction under way
	underWay int
	sent     time.Time // when the last one was
}

// run sends what comes in until the queue is closed and everything is answered.
func (g *gatherer) run() {
	ended := make(chan []*waiting, batches)
	patience := time.NewTimer(slow)
	defer patience.Stop()
	for g.queue != nil || len(g.pending) > 0 || g.underWay > 0 {
		// Nobody is woken for a request that cannot be sent yet.
		var incoming <-chan *waiting
		if g.ready() {
			incoming = g.queue
		}
		select {
		case w, open := <-incoming:
			g.accept(w, open)
		case batch := <-ended:
			g.underWay--
			for _, w := range batch {
				delete(g.busy, w.adds[0].Block)
			}
		case <-patience.C:
		}
		if !g.ready() {
			continue
		}
		g.fill()
		if batch := g.take(); len(batch) > 0 {
			g.underWay++
			g.sent = time.Now()
			patience.Reset(slow)
			go func() {
				g.send(batch)
				ended <- batch
			}()
		}
	}
}

// ready says whether a transaction may be sent now.
func (g *gatherer) ready() bool {
	return g.underWay == 0 || g.underWay < batches && time.Since(g.sent) >= slow
}

// fill takes what is waiting in the queue.
func (g *gatherer) fill() {
	for g.queue != nil && len(g.pending) < queueLength {
		select {
		case w, open := <-g.queue:
			g.accept(w, open)
		default:
			return
		}
	}
}

func (g *gatherer) accept(w *waiting, open bool) {
	if !open {
		g.queue = nil
		return
	}
	g.pending = append(g.pending, w)
}

// take removes from what is pending as much as fits into one transaction, the
// oldest first, and none for a block that is busy. A key stands in a
// transaction once: who comes with it again must find its record stored.
func (g *gatherer) take() []*waiting {
	type key struct{ block, key string }
	keys := make(map[key]bool)
	var batch []*waiting
	records, size := 0, 0
	g.pending = slices.DeleteFunc(g.pending, func(w *waiting) bool {
		if records >= batchRecords || size >= batchBytes || g.busy[w.adds[0].Block] {
			return false
		}
		for _, add := range w.adds {
			if add.Key != nil && keys[key{add.Block, add.Key.Value}] {
				return false
			}
		}
		for _, add := range w.adds {
			if add.Key != nil {
				keys[key{add.Block, add.Key.Value}] = true
			}
		}
		batch = append(batch, w)
		records, size = records+len(w.adds), size+w.size
		return true
	})
	for _, w := range batch {
		g.busy[w.adds[0].Block] = true
	}
	return batch
}

// sendBatch stores the records and tells each request how it went.
func (s *Store) sendBatch(ctx context.Context, batch []*waiting) {
	ctx, cancel := context.WithTimeout(ctx, batchTime)
	defer cancel()
	answered := make([]error, len(batch))
	err := s.again(ctx, func(ctx context.Context) error {
		for i, w := range batch {
			w.recorded = make([]oda.Recorded, len(w.adds))
			answered[i] = oda.Missing(oda.Ref{Kind: oda.ExecutionBlock, ID: w.adds[0].Block})
		}
		return s.write(ctx, func(ctx context.Context, conn *pgxpool.Conn) error {
			return recordAll(ctx, conn.Conn(), batch, answered)
		})
	})
	for i, w := range batch {
		if err != nil {
			// Not with the batch's own time-out: it says nothing of the caller.
			answered[i] = s.writeError(context.Background(), err)
		}
		w.done <- answered[i]
	}
}
