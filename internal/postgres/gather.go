package postgres

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"oda"
)

// Records are gathered: what comes in while a transaction is under way goes
// into the next one, so under load many share a commit, and each head is
// touched once for all of them. One transaction at a time does that best. But a
// slow one (a head that somebody holds, a distant standby) must not keep those
// waiting who have nothing to do with it: after a while another is sent beside
// it, with other blocks. This process never waits for itself at a head. A block
// that somebody else holds is left out after a while and waited for by itself.
const (
	queueLength  = 512 // requests that wait to be gathered
	batchRecords = 256
	batchBytes   = 4 << 20
	batches      = 4                    // transactions under way at once
	slow         = 5 * time.Millisecond // until another one is sent
	blocksAlone  = 4                    // blocks under way by themselves, mostly since somebody holds them
	batchTime    = 20 * time.Second
)

// waiting is a request to record on its way: its records are added together or
// not at all.
type waiting struct {
	oda.Append
	digests  []oda.Digest // of the records
	days     []oda.Day    // of their calls
	size     int
	sent     time.Time // for the first time
	receipts []oda.Receipt
	answer   error
	settled  bool // the answer holds whatever becomes of the others, if a standby has it
	done     chan error
}

func newWaiting(add oda.Append) *waiting {
	return &waiting{Append: add, digests: add.Digests(), days: add.Days(), size: add.Size(), done: make(chan error, 1)}
}

// Append implements oda.Engine.
func (s *Store) Append(ctx context.Context, add oda.Append) ([]oda.Receipt, error) {
	w := newWaiting(add)
	if !s.gatherer.sendNow(w) {
		if err := s.queue.Put(ctx, w); err != nil {
			return nil, err
		}
	}
	// The records may be committed from here on, so their answer is waited for
	// even if the caller has gone. It comes in bounded time.
	if err := <-w.done; err != nil {
		return nil, err
	}
	return w.receipts, nil
}

// gatherer decides what is sent when.
type gatherer struct {
	queue   <-chan *waiting // before the gatherer
	send    func([]*waiting) (left []*waiting)
	sendOne func(block []*waiting)
	wake    chan struct{} // tells run to look again; has room for one

	mu       sync.Mutex // guards what follows
	closed   bool       // the queue is closed and empty
	pending  []*waiting
	apart    [][]*waiting    // by block: what is sent by itself
	busy     map[string]bool // blocks in a transaction under way, or set apart
	underWay int
	alone    int       // blocks under way by themselves
	sent     time.Time // when the last transaction was
	many     bool      // the last transaction had several requests
	deaf     bool      // run does not listen to the queue now
}

// outcome is what became of a transaction.
type outcome struct {
	batch []*waiting
	left  []*waiting // those of them that are still to be stored
	alone bool
}

// sendNow sends a request at once, on the goroutine of its caller, if there is
// nobody to share a transaction with: three goroutines fewer have to be woken
// for it. It says whether it did.
func (g *gatherer) sendNow(w *waiting) bool {
	if !g.begin(w) {
		return false
	}
	batch := []*waiting{w}
	var left []*waiting
	defer func() { // also if this panics
		g.mu.Lock()
		defer g.mu.Unlock()
		g.end(outcome{batch: batch, left: left})
		if g.deaf || g.closed || len(g.pending) > 0 || len(g.apart) > 0 {
			select {
			case g.wake <- struct{}{}:
			default: // it looks anyway
			}
		}
	}()
	left = g.send(batch)
	return true
}

// begin begins a transaction with one request, unless others may want to share
// it: those that wait, and those that will come if many came the last time.
func (g *gatherer) begin(w *waiting) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed || g.many || g.underWay > 0 || len(g.pending) > 0 || len(g.queue) > 0 || g.busy[w.Block] {
		return false
	}
	g.busy[w.Block] = true
	g.underWay++
	g.sent = time.Now()
	w.sent = g.sent
	return true
}

// run sends what comes in until the queue is closed and everything is answered.
func (g *gatherer) run() {
	ended := make(chan outcome, batches+blocksAlone)
	patience := time.NewTimer(slow)
	defer patience.Stop()
	g.mu.Lock()
	defer g.mu.Unlock()
	for !g.closed || len(g.pending) > 0 || len(g.apart) > 0 || g.underWay+g.alone > 0 {
		// Nobody is woken for a request that cannot be sent yet.
		var incoming <-chan *waiting
		if g.deaf = !g.ready() || g.closed; !g.deaf {
			incoming = g.queue
		}
		g.mu.Unlock()
		select {
		case w, open := <-incoming:
			g.mu.Lock()
			g.accept(w, open)
		case one := <-ended:
			g.mu.Lock()
			g.end(one)
		case <-patience.C:
			g.mu.Lock()
		case <-g.wake:
			g.mu.Lock()
		}
		g.sendApart(ended)
		if !g.ready() {
			patience.Reset(slow - time.Since(g.sent)) // who sends now has not told this
			continue
		}
		g.fill()
		if batch := g.take(); len(batch) > 0 {
			g.underWay++
			g.sent = time.Now()
			g.many = len(batch) > 1
			patience.Reset(slow)
			go func() { ended <- outcome{batch: batch, left: g.send(batch)} }()
		}
	}
}

// sendApart sends blocks that have been set apart.
func (g *gatherer) sendApart(ended chan<- outcome) {
	for len(g.apart) > 0 && g.alone < blocksAlone {
		block := g.apart[0]
		g.apart = g.apart[1:]
		g.alone++
		go func() {
			g.sendOne(block)
			ended <- outcome{batch: block, alone: true}
		}()
	}
}

// end takes note of what became of a transaction. Blocks that are set apart stay
// busy, so that nobody else waits for them.
func (g *gatherer) end(one outcome) {
	if one.alone {
		g.alone--
	} else {
		g.underWay--
	}
	for _, w := range one.batch {
		delete(g.busy, w.Block)
	}
	blocks := make(map[string][]*waiting)
	for _, w := range one.left {
		g.busy[w.Block] = true
		blocks[w.Block] = append(blocks[w.Block], w)
	}
	for _, block := range blocks {
		g.apart = append(g.apart, block)
	}
}

// ready says whether a transaction may be sent now.
func (g *gatherer) ready() bool {
	return g.underWay == 0 || g.underWay < batches && time.Since(g.sent) >= slow
}

// fill takes what is waiting in the queue.
func (g *gatherer) fill() {
	for !g.closed && len(g.pending) < queueLength {
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
		g.closed = true
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
		if records >= batchRecords || size >= batchBytes || g.busy[w.Block] {
			return false
		}
		for _, r := range w.Records {
			if keys[key{w.Block, r.Key}] {
				return false
			}
		}
		for _, r := range w.Records {
			if r.Key != "" {
				keys[key{w.Block, r.Key}] = true
			}
		}
		batch = append(batch, w)
		records, size = records+len(w.Records), size+w.size
		return true
	})
	for _, w := range batch {
		g.busy[w.Block] = true
		w.sent = time.Now()
	}
	return batch
}

// sendBatch stores the records and tells each request how it went. It gives
// those back that are not stored and must be sent again, each block by itself:
// those whose block somebody holds, and all of them if one has undone the
// transaction for another reason.
func (s *Store) sendBatch(ctx context.Context, batch []*waiting) (left []*waiting) {
	err := s.appendTogether(ctx, batch, togetherPatience)
	if isHeld(err) {
		batch, left = s.separate(ctx, batch)
		err = s.appendTogether(ctx, batch, togetherPatience)
	}
	if isHeld(err) || rolledBack(err) != nil && len(batch) > 1 {
		return append(left, batch...)
	}
	s.answer(batch, err)
	return left
}

// sendBlock stores the records of one block that could not be stored together
// with others.
func (s *Store) sendBlock(ctx context.Context, block []*waiting) {
	var err error = errHeld
	if time.Since(block[0].sent) < batchTime {
		err = s.appendTogether(ctx, block, alonePatience)
	}
	if len(block) > 1 && rolledBack(err) != nil && !isHeld(err) {
		for _, w := range block {
			s.answer([]*waiting{w}, s.appendTogether(ctx, []*waiting{w}, alonePatience))
		}
		return
	}
	s.answer(block, err)
}

// appendTogether stores the records in one transaction.
func (s *Store) appendTogether(ctx context.Context, batch []*waiting, patience time.Duration) error {
	if len(batch) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, batchTime)
	defer cancel()
	err := s.again(ctx, func(ctx context.Context) error {
		return s.write(ctx, func(ctx context.Context, conn *pgxpool.Conn) error {
			return s.appendAll(ctx, conn.Conn(), batch, patience)
		})
	})
	if err == nil {
		s.numbering.wrote()
	}
	return err
}

// separate tells requests whose block can be had now from those whose block is
// held. If that cannot be found out, all are taken for held.
func (s *Store) separate(ctx context.Context, batch []*waiting) (free, held []*waiting) {
	refs := make([]oda.Ref, len(batch))
	for i, w := range batch {
		refs[i] = oda.Ref{Kind: oda.ExecutionBlock, ID: w.Block}
	}
	notHeld, _ := s.notHeld(ctx, refs)
	for i, w := range batch {
		if notHeld[refs[i]] {
			free = append(free, w)
		} else {
			held = append(held, w)
		}
	}
	return free, held
}

// answer tells requests how it went.
func (s *Store) answer(batch []*waiting, err error) {
	for _, w := range batch {
		if err != nil && (!w.settled || errors.Is(err, errUnconfirmed)) {
			// Not with the batch's own time-out: it says nothing of the caller.
			w.answer = s.writeError(context.Background(), err)
		}
		w.done <- w.answer
	}
}
