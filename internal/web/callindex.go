package web

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"oda"
	"oda/archive"
)

// callIndex is what the pages know of every call of a block.
type callIndex struct {
	of   string        // the state of a block, by its key
	turn chan struct{} // taken while what is known is read or extended
	knownCalls
}

// knownCalls are the calls of a version of a block, in a few words each: a block may
// have 100,000. Calls are only ever added to a version.
type knownCalls struct {
	version  int64
	last     int64 // sequence of the last call that was read
	records  int64 // that the version had then, 0 for an older state
	calls    []indexedCall
	complete bool // nothing followed when it was last read
	full     bool // more follow than are kept

	functions names
	devices   names
	failures  int64
	troubles  []trouble
	alike     map[failure]int    // where those of a kind are among the troubles
	forgotten bool               // some kinds are not among them
	layouts   map[string]*layout // by what makes the lanes; those of these calls
}

// indexedCall is a call in an index.
type indexedCall struct {
	sequence         int64
	recorded         oda.Instant
	begin            oda.Instant // sent, or else received; or else noTime
	took             oda.Elapsed // negative: it is not known
	function, device uint16
	failed           bool
	said             uint64 // a number for its arguments, and one for all that is compared of it
	saidExactly      uint64
}

// noTime stands for the begin of a call whose record has no times.
const noTime = oda.Instant(-1 << 63)

// Bounds of an index, and of all of them together. A call takes 56 bytes, and 32
// more for each kind of lanes in which it is laid out.
const (
	indexedCalls = 250_000 // of a block
	indexedNames = 1000    // of functions or devices, which are rarely more than 20
	nameLength   = 160     // characters of a name that are kept
	cachedCalls  = 400_000 // of all blocks
	costOfIndex  = 2000    // calls that take as much memory as an index with none
	indexesInUse = 4       // at a time; others wait
)

// names numbers names in the order in which they come.
type names struct {
	all []string
	at  map[string]uint16
}

// otherNames stands for all names once there are too many to keep.
const otherNames = "(others)"

func (n *names) number(name string) uint16 {
	name = keptName(name)
	if i, ok := n.at[name]; ok {
		return i
	}
	if len(n.all) == indexedNames {
		name = otherNames
		if i, ok := n.at[name]; ok {
			return i
		}
	}
	if n.at == nil {
		n.at = make(map[string]uint16)
	}
	i := uint16(len(n.all))
	n.all, n.at[name] = append(n.all, name), i
	return i
}

// keptName is a name as it is shown and filtered by, or both its ends if it is very long:
// the function is at the end.
func keptName(name string) string {
	if len(name) > nameLength {
		if runes := []rune(name); len(runes) > nameLength {
			name = string(runes[:nameLength/2-1]) + "…" + string(runes[len(runes)-nameLength/2:])
		}
	}
	return unmasked(name)
}

// add adds a record.
func (x *callIndex) add(r *oda.Record) {
	call := oda.CallOf(r.Text)
	c := indexedCall{sequence: r.Sequence, recorded: r.RecordedOn, begin: call.At(noTime), took: -1, failed: call.Failed}
	if took, known := call.Took(); known {
		c.took = took
	}
	c.function = x.functions.number(string(call.Request()))
	c.device = x.devices.number(call.Device())
	c.said, c.saidExactly = said(r.Text)
	if c.failed {
		x.failures++
		x.note(&c, call.Error())
	}
	x.calls = append(x.calls, c)
	x.last = r.Sequence
}

// settled reports whether all calls are known that will ever be: what is counted is final
// until another one is recorded.
func (x *callIndex) settled() bool { return x.complete || x.full }

// total is how many calls there are, 0 if that is not known.
func (x *callIndex) total() int64 {
	if x.settled() {
		return max(x.records, int64(len(x.calls)))
	}
	return x.records
}

// reset empties the index for a version of the block.
func (x *callIndex) reset(version int64) {
	x.knownCalls = knownCalls{version: version}
}

// extend reads the calls that are not in the index yet, until it is late.
func (x *callIndex) extend(ctx context.Context, archive *archive.Archive, of *blockState, late time.Time) error {
	if of.old != nil {
		return x.extendOld(of.old, late)
	}
	for {
		now, err := archive.VersionInfo(ctx, of.ref(), 0)
		if err != nil {
			return err
		}
		if newest := now.Metadata.Version; newest != x.version {
			x.reset(newest)
		}
		x.records = now.Records
		if x.full || x.complete && int64(len(x.calls)) == now.Records {
			return nil
		}
		if err := x.read(ctx, archive, of.id, late); err != nil {
			x.reset(0)
			return err
		}
		// Another version may have other calls, so those that were read while it
		// was stored belong to none.
		now, err = archive.VersionInfo(ctx, of.ref(), 0)
		if err != nil {
			x.reset(0)
			return err
		}
		if now.Metadata.Version == x.version {
			return nil
		}
		if x.reset(0); time.Now().After(late) {
			return nil
		}
	}
}

func (x *callIndex) read(ctx context.Context, archive *archive.Archive, block string, late time.Time) error {
	x.layouts = nil
	for limit := 100; ; limit = 1000 {
		page, err := archive.Records(ctx, block, x.last, limit)
		if err != nil {
			return err
		}
		for i := range page.Records {
			x.add(&page.Records[i])
		}
		x.complete, x.full = !page.More, page.More && len(x.calls) >= indexedCalls
		if x.complete || x.full || time.Now().After(late) {
			return nil
		}
	}
}

// extendOld is extend for an older state, to which nothing is added. It must skip the
// calls that are known, and that may use up its time. So it always reads some more: the
// more it has skipped, the more it reads.
func (x *callIndex) extendOld(e *oda.Entity, late time.Time) error {
	if x.complete || x.full {
		return nil
	}
	x.version, x.layouts = e.Metadata.Version, nil
	known := len(x.calls)
	for r, err := range recordsAfter(e, x.last) {
		if err != nil {
			return err
		}
		fresh := len(x.calls) - known
		if x.full = len(x.calls) >= indexedCalls; x.full || fresh > known/4 && fresh%100 == 0 && time.Now().After(late) {
			return nil
		}
		x.add(r)
	}
	x.complete = true
	return nil
}

// find returns the number of a call in the index, and whether it is there.
func (x *callIndex) find(sequence int64) (int, bool) {
	return slices.BinarySearchFunc(x.calls, sequence, func(c indexedCall, sequence int64) int { return cmp.Compare(c.sequence, sequence) })
}

// wanted returns the first calls after a sequence number that pass a filter, one more
// than fit on a page, and the sequence number up to which these are all.
func (x *callIndex) wanted(f callFilter, after int64) (sequences []int64, until int64) {
	wants := f.in(x)
	first, _ := x.find(after + 1)
	for i := first; i < len(x.calls); i++ {
		if !wants(int32(i)) {
			continue
		}
		if sequences = append(sequences, x.calls[i].sequence); len(sequences) > callsOnPage {
			return sequences, x.calls[i].sequence
		}
	}
	return sequences, x.last
}

// place counts the calls that pass a filter: those up to a sequence number, and all. It
// also returns the call after which the last page of them begins.
func (x *callIndex) place(f callFilter, after int64) (before, all, lastPage int64) {
	wants := f.in(x)
	var sequences [callsOnPage + 1]int64 // of the last calls
	for i := range x.calls {
		if !wants(int32(i)) {
			continue
		}
		sequence := x.calls[i].sequence
		if sequence <= after {
			before++
		}
		sequences[all%int64(len(sequences))] = sequence
		all++
	}
	return before, all, sequences[all%int64(len(sequences))]
}

// pageBack returns the call that is a whole page before another, 0 if there is none, and
// whether that is known.
func (x *callIndex) pageBack(sequence int64) (int64, bool) {
	places, _ := x.find(sequence + 1)
	switch {
	case !x.complete && sequence > x.last:
		return 0, false
	case places <= callsOnPage:
		return 0, true
	}
	return x.calls[places-callsOnPage-1].sequence, true
}

// callIndexes are the indexes of the blocks that were looked at last.
type callIndexes struct {
	using chan struct{}
	mu    sync.Mutex
	cache []cachedIndex // the last used at the end
}

type cachedIndex struct {
	*callIndex
	cost int
}

// index returns the index of a state of a block, extended until it is complete or the
// time is up. Nobody else uses it until the caller calls done.
func (s *Site) index(ctx context.Context, of *blockState, most time.Duration) (x *callIndex, done func(), err error) {
	x = s.indexes.take(of.key())
	select {
	case x.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
	select {
	case s.indexes.using <- struct{}{}:
	case <-ctx.Done():
		<-x.turn
		return nil, nil, ctx.Err()
	}
	done = func() {
		<-s.indexes.using
		<-x.turn
	}
	late := time.Now().Add(most)
	if err := x.extend(ctx, s.cfg.Archive, of, late); err != nil {
		s.indexes.drop(x)
		done()
		return nil, nil, err
	}
	s.indexes.keep(x, len(x.calls)+costOfIndex)
	return x, done, nil
}

// take returns the index of a state, an empty one if there is none.
func (c *callIndexes) take(of string) *callIndex {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, x := range c.cache {
		if x.of == of {
			c.cache = append(slices.Delete(c.cache, i, i+1), x)
			return x.callIndex
		}
	}
	x := &callIndex{turn: make(chan struct{}, 1), of: of}
	c.cache = append(c.cache, cachedIndex{x, costOfIndex})
	return x
}

// keep notes what an index costs, and forgets those that were used longest ago
// if all together cost too much.
func (c *callIndexes) keep(x *callIndex, cost int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := 0
	for i := range c.cache {
		if c.cache[i].callIndex == x {
			c.cache[i].cost = cost
		}
		all += c.cache[i].cost
	}
	for len(c.cache) > 1 && all > cachedCalls {
		all -= c.cache[0].cost
		c.cache = slices.Delete(c.cache, 0, 1)
	}
}

// drop forgets an index.
func (c *callIndexes) drop(x *callIndex) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cache = slices.DeleteFunc(c.cache, func(y cachedIndex) bool { return y.callIndex == x })
}
