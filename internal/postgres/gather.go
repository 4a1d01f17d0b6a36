package postgres

import (
	"context"
	"errors"
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
	if err := s.queue.Put(ctx, w); err != nil {
		return nil, err
	}
	// The records may be committed from here on, so their answer is waited for
	// even if the caller has gone. It comes in bounded time.
	if err := <-w.done; err != nil {
		return nil, err
	}
	return w.receipts, nil
}

// gatherer decides what is sent when. Only its run touches it.
type gatherer struct {
	queue    <-chan *waiting // nil when it is closed and empty
	send     func([]*waiting) (left []*waiting)
	sendOne  func(block []*waiting)
	pending  []*waiting
	apart    [][]*waiting    // by block: what is sent by itself
	busy     map[string]bool // blocks in a transaction under way, or set apart
	underWay int
	alone    int       // blocks under way by themselves
	sent     time.Time // when the last transaction was
}

// outcome is what became of a transaction.
type outcome struct {
	batch []*waiting
	left  []*waiting // those of them that are still to be stored
	alone bool
}

// run sends what comes in until the queue is closed and everything is answered.
func (g *gatherer) run() {
	ended := make(chan outcome, batches+blocksAlone)
	patience := time.NewTimer(slow)
	defer patience.Stop()
	for g.queue != nil || len(g.pending) > 0 || len(g.apart) > 0 || g.underWay+g.alone > 0 {
		// Nobody is woken for a request that cannot be sent yet.
		var incoming <-chan *waiting
		if g.ready() {
			incoming = g.queue
		}
		select {
		case w, open := <-incoming:
			g.accept(w, open)
		case one := <-ended:
			g.end(one)
		case <-patience.C:
		}
		g.sendApart(ended)
		if !g.ready() {
			continue
		}
		g.fill()
		if batch := g.take(); len(batch) > 0 {
			g.underWay++
			g.sent = time.Now()
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
	return s.again(ctx, func(ctx context.Context) error {
		return s.write(ctx, func(ctx context.Context, conn *pgxpool.Conn) error {
			return s.appendAll(ctx, conn.Conn(), batch, patience)
		})
	})
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
