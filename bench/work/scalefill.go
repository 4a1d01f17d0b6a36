package work

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"oda/bench/load"
	"oda/bench/measure"
	"oda/bench/peers"
)

// largestBatch is the most records that the archive takes in one request.
const largestBatch = 5_000

// scaleBlock is a block of the large archive.
type scaleBlock struct {
	id     string
	length int
}

// scaleBlocks have from the shortest to the longest length, evenly mixed.
func (s *stage) scaleBlocks() []scaleBlock {
	var blocks []scaleBlock
	step, steps := s.plan.scaleShortest, s.plan.scaleLongest/s.plan.scaleShortest
	for left := s.plan.scaleRecords; left > 0; {
		length := min(left, step*(1+len(blocks)*7%steps))
		blocks = append(blocks, scaleBlock{id: fmt.Sprintf("eb-scale-%06d", len(blocks)), length: length})
		left -= length
	}
	return blocks
}

// tenths notes when each tenth of the records was stored.
type tenths struct {
	mu    sync.Mutex
	total int
	done  int
	last  time.Time
	at    int // records at the last mark
	rates []float64
}

func (t *tenths) add(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.done += n
	reached := 10 * t.done / t.total
	if reached == len(t.rates) {
		return
	}
	now := time.Now()
	rate := float64(t.done-t.at) / now.Sub(t.last).Seconds()
	for len(t.rates) < reached {
		t.rates = append(t.rates, rate)
	}
	t.last, t.at = now, t.done
}

// scaleFill records all records over a few connections, a block at a time
// each, and notes the rate and what was written to disk.
func (s *stage) scaleFill(ctx context.Context, e *engine, blocks []scaleBlock, result *EngineScale) error {
	before, err := s.written(ctx, e)
	if err != nil {
		return err
	}
	var (
		keys    atomic.Int64
		payload atomic.Int64
		bar     = s.counter(fmt.Sprintf("%s: record %d records", e.arm, s.plan.scaleRecords), s.plan.scaleRecords)
		marks   = &tenths{total: s.plan.scaleRecords, last: time.Now()}
	)
	err = inParallel(ctx, s.plan.fillers, len(blocks), func(ctx context.Context, _, i int) error {
		b := blocks[i]
		path := api + "/ebs/" + b.id
		if _, err := send(ctx, e.addr(), load.Request(nil, "PUT", path, jsonBody(), peers.EmptyBlock(b.id))); err != nil {
			return err
		}
		for done := 0; done < b.length; {
			size := min(largestBatch, b.length-done)
			if _, err := send(ctx, e.addr(), newBatcher(b.id, size, &keys).Next(nil)); err != nil {
				return err
			}
			done += size
			payload.Add(recordBytes(size))
			marks.add(size)
			bar.add(int64(size))
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("recording %d records: %w", s.plan.scaleRecords, err)
	}
	result.Records, result.Payload, result.Tenths = s.plan.scaleRecords, payload.Load(), marks.rates
	if e.arm == onPostgres {
		if err := settle(ctx, e.db); err != nil {
			return err
		}
	}
	after, err := s.written(ctx, e)
	if err != nil {
		return err
	}
	result.Written, result.Log = after.bytes-before.bytes, after.log-before.log
	return nil
}

// recordBytes is the length of the records of a batch.
func recordBytes(count int) int64 {
	var sum int64
	for i := range count {
		sum += int64(len(peers.Record(i)))
	}
	return sum
}

// scaleWork is one operation that is compared; place 0 is the empty archive.
type scaleWork struct {
	name   string
	worker func(place, i int) load.Worker
}

// scaleNames are the operations in the order of the report.
var scaleNames = []string{"record", "GET one entity", "GET 100 records of a block", "list, the first 100"}

// scaleWorks send the same to both.
func (s *stage) scaleWorks(fresh, reads [][]string) []scaleWork {
	hot := hotReads(s.plan.hot)
	page := [][]byte{get(api + "/ebs?limit=100&created_after=2000-01-01")}
	parts := make([][][]byte, len(reads))
	for place, blocks := range reads {
		random := rand.New(rand.NewPCG(8, 8))
		for range 1000 {
			block, after := blocks[random.IntN(len(blocks))], random.IntN(s.plan.scaleBatch)
			parts[place] = append(parts[place], get(fmt.Sprintf("%s/ebs/%s/request_responses?limit=100&after=%d", api, block, after)))
		}
	}
	ok := expected{status: http.StatusOK}
	workers := []func(place, i int) load.Worker{
		func(place, i int) load.Worker { return newRecorder(i, fresh[place][i]) },
		func(_, i int) load.Worker { return newFixed(i, hot, ok) },
		func(place, i int) load.Worker { return newFixed(i, parts[place], ok) },
		func(_, i int) load.Worker { return newFixed(i, page, ok) },
	}
	works := make([]scaleWork, len(workers))
	for n, worker := range workers {
		works[n] = scaleWork{name: scaleNames[n], worker: worker}
	}
	return works
}

// scaleCompare measures operations on the large archive and on an empty one
// (with a few entities of its own to ask for), in turn.
func (s *stage) scaleCompare(ctx context.Context, e, empty *engine, blocks []scaleBlock, result *EngineScale) error {
	places := []*engine{empty, e}
	fresh := make([][]string, len(places)) // blocks to record into
	reads := make([][]string, len(places)) // blocks to read from
	for n, which := range places {
		err := s.fill(ctx, which.addr(), "sbd-hot", 0, s.plan.hot, s.plan.documentSize)
		if err != nil {
			return err
		}
		if fresh[n], err = s.blocks(ctx, which.addr(), "compare", s.plan.busy); err != nil {
			return err
		}
	}
	var err error
	if reads[0], err = s.blocks(ctx, empty.addr(), "read", 1); err != nil {
		return err
	}
	if err := s.lengthen(ctx, empty.addr(), reads[0], s.plan.scaleBatch); err != nil {
		return err
	}
	for _, b := range blocks {
		reads[1] = append(reads[1], b.id)
	}
	result.Costs = map[string]measure.Spread{}
	for _, work := range s.scaleWorks(fresh, reads) {
		var arms []measure.Arm
		for n, which := range places {
			name := []string{"empty", "large"}[n]
			arms = append(arms, closed(name, which.addr(), s.plan.busy, func(i int) load.Worker { return work.worker(n, i) }))
		}
		c, err := s.measure(ctx, e.arm+": "+work.name, s.plan.usual, arms)
		if err != nil {
			return err
		}
		result.Costs[work.name] = costRatio(c.series[1], c.series[0])
	}
	return nil
}
