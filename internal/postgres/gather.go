package postgres

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"oda"
	"oda/internal/engine"
)

// Records are gathered: those that arrive during a transaction go into the next
// one. So under load many records share a commit, and each head is written once for
// all of them. That works best with one transaction at a time. But a slow one, which
// waits for a head or a distant standby, must not delay requests for other blocks:
// after a while another transaction is sent in parallel, with other blocks. This
// process never waits for itself at a head. A block that another session holds is
// left out after a while, and waited for separately.
const (
	queueLength    = 512 // requests that wait to be gathered
	batchRecords   = 256
	batchBytes     = 4 << 20
	batches        = 4                    // transactions at once
	slow           = 5 * time.Millisecond // until another one is sent
	blocksSeparate = 4                    // blocks that are sent separately at once, mostly because they are held
	batchTime      = 20 * time.Second
)

// waiting is a request to record that is waiting for its answer. Its records are
// added all or none.
type waiting struct {
	oda.Append
	digests  []oda.Digest // of the records
	keys     []oda.CallKeys
	size     int
	sent     time.Time // for the first time
	receipts []oda.Receipt
	answer   error
	final    bool // the answer is final, whatever happens to the others, if a standby has it
	done     chan error
}

func newWaiting(add oda.Append) *waiting {
	return &waiting{Append: add, digests: add.Digests(), keys: add.Keys(), size: add.Size(), done: make(chan error, 1)}
}

// missing returns the answer to a request whose block is not stored.
func missing(w *waiting) error { return oda.Missing(oda.Ref{Kind: oda.ExecutionBlock, ID: w.Block}) }

// Append implements oda.Engine.
func (s *Store) Append(ctx context.Context, add oda.Append) ([]oda.Receipt, error) {
	w := newWaiting(add)
	if !s.gatherer.sendNow(w) {
		if err := s.queue.Put(ctx, w); err != nil {
			return nil, err
		}
	}
	// From here on the records may be committed, so Append waits for the answer even
	// if the caller has gone. The answer comes in bounded time.
	if err := <-w.done; err != nil {
		return nil, err
	}
	return w.receipts, nil
}

// gatherer decides what is sent when.
type gatherer struct {
	queue   <-chan *waiting
	send    func([]*waiting) (left []*waiting)
	sendOne func(block []*waiting)
	wake    chan struct{} // tells run to look again; has room for one

	mu         sync.Mutex // guards what follows
	closed     bool       // the queue is closed and empty
	pending    []*waiting
	leftover   [][]*waiting    // blocks that are to be sent separately
	busy       map[string]bool // blocks in a running transaction, or in leftover
	underWay   int             // running transactions
	separate   int             // blocks that are being sent separately
	sent       time.Time       // when the last transaction was sent
	answered   int             // requests of the last transaction that ended
	notReading bool            // run does not read the queue now
}

// outcome is the result of a transaction.
type outcome struct {
	batch    []*waiting
	left     []*waiting // requests of the batch that are not yet stored
	separate bool
}

// sendNow sends a request at once, on the goroutine of its caller, if there is
// nobody to share a transaction with. That wakes three goroutines fewer. It reports
// whether it has sent the request.
func (g *gatherer) sendNow(w *waiting) bool {
	if !g.begin(w) {
		return false
	}
	batch := []*waiting{w}
	var left []*waiting
	defer func() { // even if this panics
		g.mu.Lock()
		defer g.mu.Unlock()
		g.end(outcome{batch: batch, left: left})
		if g.notReading || g.closed || len(g.pending) > 0 || len(g.leftover) > 0 {
			select {
			case g.wake <- struct{}{}:
			default: // it is already told
			}
		}
	}()
	left = g.send(batch)
	return true
}

// begin begins a transaction with one request, unless others may share it: requests
// that wait, or that will probably come because the last transaction had several.
func (g *gatherer) begin(w *waiting) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed || g.answered > 1 || g.underWay > 0 || len(g.pending) > 0 || len(g.queue) > 0 || g.busy[w.Block] {
		return false
	}
	g.busy[w.Block] = true
	g.underWay++
	g.sent = time.Now()
	w.sent = g.sent
	return true
}

// run sends requests until the queue is closed and everything is answered.
func (g *gatherer) run() {
	ended := make(chan outcome, batches+blocksSeparate)
	patience := time.NewTimer(slow)
	defer patience.Stop()
	g.mu.Lock()
	defer g.mu.Unlock()
	for !g.closed || len(g.pending) > 0 || len(g.leftover) > 0 || g.underWay+g.separate > 0 {
		// If no transaction may be sent now, a request need not wake this goroutine.
		var incoming <-chan *waiting
		if g.notReading = !g.ready() || g.closed; !g.notReading {
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
		g.sendLeftover(ended)
		if !g.ready() {
			if g.underWay < batches {
				patience.Reset(slow - time.Since(g.sent)) // sendNow does not set it
			} else {
				patience.Stop() // only the end of a transaction helps
			}
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

// sendLeftover sends blocks separately, as many as may be sent.
func (g *gatherer) sendLeftover(ended chan<- outcome) {
	for len(g.leftover) > 0 && g.separate < blocksSeparate {
		block := g.leftover[0]
		g.leftover = g.leftover[1:]
		g.separate++
		go func() {
			g.sendOne(block)
			ended <- outcome{batch: block, separate: true}
		}()
	}
}

// end notes the result of a transaction. Blocks that must be sent separately stay
// busy, so that no other transaction waits for them.
func (g *gatherer) end(one outcome) {
	if one.separate {
		g.separate--
	} else {
		g.underWay--
		g.answered = len(one.batch)
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
		g.leftover = append(g.leftover, block)
	}
}

// ready reports whether a transaction may be sent now.
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

// take removes as many pending requests as one transaction should have, the oldest
// first, and none for a block that is busy. A key may occur only once in a
// transaction: a retry must find the record stored.
func (g *gatherer) take() []*waiting {
	type key struct{ block, key string }
	keys := make(map[key]bool)
	var batch []*waiting
	records, size := 0, 0
	most := engine.Half(len(g.pending), g.answered)
	g.pending = slices.DeleteFunc(g.pending, func(w *waiting) bool {
		if len(batch) == most || records >= batchRecords || size >= batchBytes || g.busy[w.Block] {
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

// sendBatch stores the records and answers the requests. It returns those that are
// not stored and must be sent again, block by block: requests whose block another
// session holds, or all if the transaction was rolled back for another reason.
func (s *Store) sendBatch(ctx context.Context, batch []*waiting) (left []*waiting) {
	err := s.appendTogether(ctx, batch, togetherPatience)
	if isHeld(err) {
		batch, left = s.splitHeld(ctx, batch)
		err = s.appendTogether(ctx, batch, togetherPatience)
	}
	if isHeld(err) || rolledBack(err) != nil && len(batch) > 1 {
		return append(left, batch...)
	}
	s.answer(batch, err)
	return left
}

// sendBlock stores the records of one block that could not be stored with others.
func (s *Store) sendBlock(ctx context.Context, block []*waiting) {
	err := s.appendPatiently(ctx, block, errHeld)
	if len(block) > 1 && rolledBack(err) != nil && !isHeld(err) {
		for _, w := range block {
			s.answer([]*waiting{w}, s.appendPatiently(ctx, []*waiting{w}, err))
		}
		return
	}
	s.answer(block, err)
}

// appendPatiently stores records of one block, which another session may hold. If other
// processes wait for it too, PostgreSQL first lets this one wait for its turn, and then
// for the session, and bounds each wait by itself. So it waits for half of the time, twice:
// a wait that outlasts answerTime leaves open what is stored. Late is the answer if
// there is no time left.
func (s *Store) appendPatiently(ctx context.Context, block []*waiting, late error) error {
	err := late
	for range 2 {
		if time.Since(block[0].sent) >= batchTime {
			break
		}
		if err = s.appendTogether(ctx, block, heldPatience/2); !isHeld(err) {
			break
		}
	}
	return err
}

// appendTogether stores the records in one transaction.
func (s *Store) appendTogether(ctx context.Context, batch []*waiting, patience time.Duration) error {
	if len(batch) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, batchTime)
	defer cancel()
	began := time.Now()
	err := s.again(ctx, func(ctx context.Context) error {
		return s.write(ctx, func(ctx context.Context, conn *pgxpool.Conn) error {
			return s.appendAll(ctx, conn.Conn(), batch, patience)
		})
	})
	accepted := 0
	for _, w := range batch {
		if w.answer == nil {
			accepted++
		}
	}
	s.committed(accepted, began, err)
	if err == nil {
		s.numbering.wrote()
	}
	return err
}

// splitHeld separates requests whose block is free from those whose block is held.
// If it cannot find out, all count as held.
func (s *Store) splitHeld(ctx context.Context, batch []*waiting) (free, held []*waiting) {
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

// answer answers requests.
func (s *Store) answer(batch []*waiting, err error) {
	for _, w := range batch {
		if err != nil && (!w.final || errors.Is(err, errUnconfirmed)) {
			// The context of the batch does not matter: its time-out is not the caller's.
			w.answer = s.writeError(context.Background(), err)
		}
		w.done <- w.answer
	}
}
