package work

import (
	"time"

	"oda/bench/measure"
)

// plan holds all counts and times of a run, so that what is measured can be
// read in one place, and so that a quick run differs from a full one by
// numbers alone.
type plan struct {
	quick bool
	// budgeted is for work that DESIGN has a budget for, usual for the rest,
	// brief for the many points of a curve.
	budgeted, usual, brief measure.Plan

	documentSize  int   // of entities, in bytes
	hot           int   // entities that are read again and again
	connections   []int // of recording; the busy number is among them
	busy          int   // the usual number of connections
	batch         int   // records in a request
	lengths       []int // records in a block
	prepared      int   // records that blocks of one length have together
	rewriteTo     int   // the longest block given to the rewriting peer
	longBlock     int   // records in the block that is read
	sizes         []int // entities in the archive, growing
	several       int   // entities in one PUT of several
	fillers       int   // connections that fill an archive
	listings      int   // rounds of listings and starts
	shares        []float64
	openLength    time.Duration
	openRounds    int
	processes     []int
	others        bool // PocketBase and Kinto, which must be downloaded
	scaleRecords  int
	scaleShortest int // records in the shortest and the longest block of
	scaleLongest  int // the archive that shows scale
	scaleBatch    int
}

// full takes about 40 minutes on two cores.
func full() plan {
	return plan{
		budgeted:      measure.Plan{Warm: time.Second, Length: 2 * time.Second, Rounds: 5},
		usual:         measure.Plan{Warm: time.Second, Length: 2 * time.Second, Rounds: 3},
		brief:         measure.Plan{Warm: 500 * time.Millisecond, Length: 1500 * time.Millisecond, Rounds: 3},
		documentSize:  5000,
		hot:           100,
		connections:   []int{1, 16, 64, 256},
		busy:          64,
		batch:         20,
		lengths:       []int{10, 100, 1_000, 10_000, 100_000, 1_000_000},
		prepared:      60_000,
		rewriteTo:     10_000,
		longBlock:     10_000,
		sizes:         []int{1_000, 10_000, 100_000, 1_000_000},
		several:       100,
		fillers:       8,
		listings:      5,
		shares:        []float64{0.10, 0.25, 0.50, 0.75},
		openLength:    5 * time.Second,
		openRounds:    3,
		processes:     []int{1, 2, 4},
		others:        true,
		scaleRecords:  10_000_000,
		scaleShortest: 2_000,
		scaleLongest:  20_000,
		scaleBatch:    1_000,
	}
}

// quick takes less than two minutes. Its figures are rough; it shows that
// everything works, and what has changed by a lot.
func quick() plan {
	p := full()
	p.quick = true
	p.budgeted = measure.Plan{Length: time.Second, Rounds: 1}
	p.usual = measure.Plan{Length: 400 * time.Millisecond, Rounds: 1}
	p.brief = measure.Plan{Length: 300 * time.Millisecond, Rounds: 1}
	p.connections = []int{1, 64}
	p.lengths = []int{10, 100, 1_000, 10_000}
	p.prepared = 6_000
	p.rewriteTo = 1_000
	p.longBlock = 1_000
	p.sizes = []int{1_000, 10_000}
	p.listings = 2
	p.shares = []float64{0.25, 0.75}
	p.openLength = time.Second
	p.openRounds = 1
	p.processes = []int{1, 2}
	p.others = false
	p.scaleRecords = 100_000
	return p
}

// estimate is how long that many arms take.
func estimate(arms int, p measure.Plan) time.Duration {
	return time.Duration(arms) * (p.Warm + time.Duration(p.Rounds)*p.Length)
}
