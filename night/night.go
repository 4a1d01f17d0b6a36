// Package night reports what was done in a night: calls and failures by block, telescope,
// request and error, how long the telescopes were busy, and which calls took long.
//
// Start reading at Reporter. It asks the engine which blocks have calls in the night,
// and adds up each of them (sum.go). What it has read of a block (block.go) is kept for
// the next report (known.go). What people said is in notes.go, and the report itself in
// report.go.
package night

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"oda"
	"oda/internal/kept"
	"oda/naming"
)

// Bounds of making reports.
const (
	reportsAtOnce = 2                // reports
	reportTime    = 60 * time.Second // of a report; less than an answer may take
	workers       = 4                // that read blocks in parallel
)

// Engine is what reports are made from.
type Engine interface {
	oda.Calendar
	oda.Reader
	oda.Finder
	Status(ctx context.Context, ref oda.Ref) (*oda.Status, error)
	Running(ctx context.Context, block string) ([]oda.RunningCall, error)
}

// Reporter makes reports. It is safe for concurrent use.
type Reporter struct {
	engine  Engine
	names   *naming.Namer
	notes   Notes
	zones   atomic.Pointer[Zones]
	turns   oda.Turns
	readers oda.Turns // for all calls of blocks
	known   *known
}

// New returns a Reporter for the blocks in an engine. The nights last from noon to noon UTC.
func New(engine Engine, names *naming.Namer, notes Notes) *Reporter {
	r := &Reporter{engine: engine, names: names, notes: notes, known: kept.New[blockNight, *blockSum](knownBytes), turns: oda.NewTurns(reportsAtOnce), readers: oda.NewTurns(reportsAtOnce)}
	r.SetZones(&Zones{})
	return r
}

// SetZones sets the time zones of nights.
func (r *Reporter) SetZones(zones *Zones) { r.zones.Store(zones) }

// Zones returns the time zones of nights.
func (r *Reporter) Zones() *Zones { return r.zones.Load() }

// Report reports what was done in a night. It counts every record that was
// acknowledged before the call of Report, and perhaps some that are added during
// it. Each block is counted as it is at one moment.
func (r *Reporter) Report(ctx context.Context, q Query) (*Report, error) {
	giveBack, err := r.turns.Take(ctx, oda.Errorf(oda.Overloaded,
		"Too many reports on nights at once: at most %d can be made at the same time. Try again shortly.", reportsAtOnce))
	if err != nil {
		return nil, err
	}
	defer giveBack()
	ctx, cancel := context.WithTimeoutCause(ctx, reportTime, oda.Errorf(oda.Overloaded, "The report on this night took longer than %d seconds and was stopped. "+
		"Ask for one telescope, or try again when the archive is less busy.", int(reportTime.Seconds())))
	defer cancel()
	report, err := r.report(ctx, q)
	if cause, ok := context.Cause(ctx).(*oda.Error); ok && err != nil {
		return nil, cause
	}
	return report, err
}

func (r *Reporter) report(ctx context.Context, q Query) (*Report, error) {
	blocks, err := r.blocksOn(ctx, q.days(), q.Telescope)
	if err != nil {
		return nil, err
	}
	totals := make([]total, min(workers, len(blocks)))
	for i := range totals {
		totals[i] = newTotal(q)
	}
	// So many records are in memory at once as there are workers.
	err = oda.Share(oda.WithRoom(ctx, nil), workers, len(blocks), func(ctx context.Context, worker, n int) error {
		return totals[worker].read(ctx, r.engine, r.known, blocks[n])
	})
	if err != nil {
		return nil, err
	}
	report := reportOf(q, totals)
	if err := r.run(ctx, report.Blocks); err != nil {
		return nil, err
	}
	if err := r.say(ctx, q, report); err != nil {
		return nil, err
	}
	return report, r.name(ctx, report.Blocks, blocks)
}

// run marks the blocks that are running: somebody says so, or one of their calls goes on.
func (r *Reporter) run(ctx context.Context, blocks []Block) error {
	calls, err := r.engine.Running(ctx, "")
	if err != nil {
		return err
	}
	active := make(map[string]bool)
	for _, c := range calls {
		if !c.Silent {
			active[c.Block] = true
		}
	}
	for i := range blocks {
		blocks[i].Running = blocks[i].Status.Class == oda.ClassRunning || active[blocks[i].ID]
	}
	return nil
}

// name gives the blocks of a report their names. So that all are known, it asks again as
// long as older versions had to wait for the next question.
func (r *Reporter) name(ctx context.Context, reported []Block, blocks []*oda.Found) error {
	found := make(map[string]*oda.Found, len(blocks))
	for _, block := range blocks {
		found[block.ID] = block
	}
	for some := range slices.Chunk(reported, namedAtOnce) {
		for unnamed := len(some) + 1; ; {
			var places []int
			var asked []*oda.Found
			for i := range some {
				if some[i].Name == nil {
					places, asked = append(places, i), append(asked, found[some[i].ID])
				}
			}
			if len(asked) == unnamed || len(asked) == 0 {
				break
			}
			unnamed = len(asked)
			names, err := r.names.Called(ctx, asked)
			if err != nil {
				return err
			}
			for i, name := range names {
				block := &some[places[i]]
				block.Targets = name.Targets
				if name.Text != "" {
					block.Name = &name.Text
				}
			}
		}
	}
	return nil
}

// blocksOn returns the blocks that may have calls on these days, with their
// summaries.
func (r *Reporter) blocksOn(ctx context.Context, days oda.Days, telescope string) ([]*oda.Found, error) {
	ids, err := r.engine.BlocksOn(ctx, days, maxBlocks+1)
	if err != nil {
		return nil, err
	}
	if len(ids) > maxBlocks {
		return nil, oda.Errorf(oda.InvalidQuery, "More than %d ExecutionBlocks have calls in this night, too many for a report. "+
			"Read the ExecutionBlocks themselves.", maxBlocks)
	}
	blocks, err := oda.LookBlocks(ctx, r.engine, ids)
	if telescope != "" {
		blocks = slices.DeleteFunc(blocks, func(f *oda.Found) bool { return f.Summary.Telescope != telescope })
	}
	return blocks, err
}

// DaysAround returns the last day up to one, and the first day from another on, on which
// there are calls, or were in an earlier version of a block; nil where there is none.
func (r *Reporter) DaysAround(ctx context.Context, until, from oda.Day) (before, after *oda.Day, err error) {
	return r.engine.DaysAround(ctx, until, from)
}

// namedAtOnce is how many blocks are named at a time.
const namedAtOnce = 1000
