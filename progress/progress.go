// Package progress says how far a Project is: which of its SBDefinitions were observed, by
// which runs, and what came of each.
//
// Start reading at Reporter. It reads in the document what the Project is made of
// (project.go), finds the runs of its SBDefinitions over references (runs.go), and has the
// calls of their blocks added up by package night.
package progress

import (
	"cmp"
	"context"
	"slices"
	"time"

	"oda"
	"oda/night"
)

// Report says how far a Project is. What no document says is nil.
type Report struct {
	Project     string  `json:"prj_id"`
	Blocks      []Block `json:"blocks"` // in the order of the Project
	Definitions int     `json:"sbds"`
	Done        int     `json:"sbds_done"`
	Truncated   bool    `json:"truncated"` // something was left out
}

// Block is an observing block of a Project, or what older Projects call a programme. The
// last one has neither identifier nor name if it is of SBDefinitions that name the Project
// and none of its blocks.
type Block struct {
	ID          *string      `json:"obs_block_id"`
	Name        *string      `json:"name"`
	Definitions []Definition `json:"sbds"`
}

// Definition is an SBDefinition of a Project, as it is now.
type Definition struct {
	ID      string  `json:"sbd_id"`
	Name    *string `json:"name"`
	Version *int64  `json:"version"` // nil if it is not stored
	Status  *string `json:"status"`
	Runs    []Run   `json:"runs"` // in the order in which they began
	Done    bool    `json:"done"` // one of the runs is
	Changed *bool   `json:"changed_since_last_run"`

	Class oda.Class `json:"-"` // of its own status
}

// Run is one time that an SBDefinition was observed, or is to be: an SBInstance with one of
// its ExecutionBlocks, if it has any, or an ExecutionBlock that names the definition itself.
type Run struct {
	Instance *string      `json:"sbi_id"`
	Block    *string      `json:"eb_id"`
	Version  *int64       `json:"sbd_version"`
	Status   *string      `json:"status"` // of the block, else of the instance
	Class    oda.Class    `json:"class"`
	Started  *oda.Moment  `json:"started"`
	Ended    *oda.Moment  `json:"ended"`
	Busy     *oda.Elapsed `json:"busy_seconds"`
	Calls    *int64       `json:"calls"`
	Failures *int64       `json:"failures"`
}

// Bounds of a report. It is truncated where it would exceed them.
const (
	maxDefinitions = 1000
	maxRuns        = 10_000
	maxBlocks      = 1000

	reportTime = 10 * time.Second
	callsTime  = 5 * time.Second // after which calls that are not yet added up are left out

	largeAtOnce = 4   // reports with more entities than fewFound
	fewFound    = 500 // that a report may have without a turn
)

// Engine is what reports are made from.
type Engine interface {
	oda.Reader
	oda.Finder
	oda.Log
}

// Reporter reports on the progress of Projects. It is safe for concurrent use.
type Reporter struct {
	engine Engine
	nights *night.Reporter // adds up the calls of blocks
	turns  oda.Turns
	known  known
}

// New returns a Reporter for the Projects in an engine.
func New(engine Engine, nights *night.Reporter) *Reporter {
	return &Reporter{engine: engine, nights: nights, turns: oda.NewTurns(largeAtOnce)}
}

// Report reports on a Project.
func (r *Reporter) Report(ctx context.Context, id string) (*Report, error) {
	late := oda.Errorf(oda.Overloaded, "The progress of this Project took longer than %d seconds and was stopped. Try again when the archive is less busy.", int(reportTime.Seconds()))
	ctx, cancel := context.WithTimeoutCause(ctx, reportTime, late)
	defer cancel()
	report, err := r.report(ctx, oda.Ref{Kind: oda.Project, ID: id})
	if err != nil && context.Cause(ctx) == error(late) {
		return nil, late
	}
	return report, err
}

// read reads what a Project is made of.
func (r *Reporter) read(ctx context.Context, ref oda.Ref) (*graph, error) {
	e, err := r.engine.Get(ctx, ref)
	if err != nil {
		return nil, err
	}
	p, err := readProject(ctx, e)
	if err != nil {
		return nil, err
	}
	f := &finder{Finder: r.engine, turns: r.turns, truncated: p.truncated}
	defer f.end()
	definitions, err := p.definitions(ctx, f)
	if err != nil {
		return nil, err
	}
	runs, err := f.runsOf(ctx, p.ids)
	if err != nil {
		return nil, err
	}
	return &graph{project: p, definitions: definitions, runs: runs, truncated: f.truncated}, nil
}

func (r *Reporter) report(ctx context.Context, ref oda.Ref) (*Report, error) {
	p, err := r.graph(ctx, ref)
	if err != nil {
		return nil, err
	}
	calls, complete, err := r.calls(ctx, p.runs)
	if err != nil {
		return nil, err
	}
	report := &Report{Project: ref.ID, Blocks: []Block{}, Definitions: len(p.ids), Truncated: p.truncated || !complete}
	for _, g := range p.groups {
		block := Block{ID: orNil(g.id), Name: orNil(g.name), Definitions: []Definition{}}
		for _, id := range g.ids {
			d := definition(id, p.definitions[id], slices.Clone(p.runs[id]), calls)
			if d.Done {
				report.Done++
			}
			block.Definitions = append(block.Definitions, d)
		}
		report.Blocks = append(report.Blocks, block)
	}
	return report, nil
}

// calls adds up the calls of the blocks of all runs. If there is no time for all of them,
// it is not complete.
func (r *Reporter) calls(ctx context.Context, runs map[string][]run) (calls map[*oda.Found]*night.Calls, complete bool, err error) {
	calls = make(map[*oda.Found]*night.Calls)
	var blocks []*oda.Found
	for _, some := range runs {
		for _, one := range some {
			if _, twice := calls[one.block]; !twice && one.block != nil {
				calls[one.block] = nil
				blocks = append(blocks, one.block)
			}
		}
	}
	bounded, cancel := context.WithTimeout(ctx, callsTime)
	defer cancel()
	all, err := r.nights.Calls(bounded, blocks)
	complete = err == nil
	if err != nil && ctx.Err() == nil && (bounded.Err() != nil || oda.CodeOf(err) == oda.Overloaded) {
		err = nil
	}
	for i, block := range blocks {
		calls[block] = all[i]
	}
	return calls, complete, err
}

// definition returns what there is to say about an SBDefinition, which is nil if it is not
// stored.
func definition(id string, found *oda.Found, runs []run, calls map[*oda.Found]*night.Calls) Definition {
	d := Definition{ID: id, Runs: make([]Run, len(runs))}
	if found != nil {
		d.Name, d.Version = orNil(found.Summary.Name), &found.Metadata.Version
		d.Status, d.Class = orNil(found.Standing.Text), found.Standing.Class
	}
	slices.SortStableFunc(runs, func(a, b run) int { return cmp.Compare(a.began(calls[a.block]), b.began(calls[b.block])) })
	last := int64(0)
	for i, one := range runs {
		d.Runs[i] = one.report(calls[one.block])
		d.Done = d.Done || d.Runs[i].Class == oda.ClassDone
		last = max(last, one.version)
	}
	if found != nil && last > 0 {
		isNewer := found.Metadata.Version > last
		d.Changed = &isNewer
	}
	return d
}

// began returns when a run began, or else when its block or its instance was stored first.
func (r *run) began(calls *night.Calls) oda.Instant {
	if calls != nil && calls.Tally.Calls > 0 {
		return oda.Instant(calls.First)
	}
	return r.created()
}

// report returns what there is to say about a run, given its calls, which are nil if they
// are not known.
func (r *run) report(calls *night.Calls) Run {
	standing := r.standing()
	one := Run{
		Instance: orNil(r.instanceID), Block: orNil(r.blockID), Version: orNil(r.version),
		Status: orNil(standing.Text), Class: standing.Class,
	}
	if calls != nil {
		one.Calls, one.Failures, one.Busy = &calls.Tally.Calls, &calls.Failures, &calls.Busy
		if calls.Tally.Calls > 0 {
			one.Started = &calls.First
		}
	}
	one.Ended = r.ended(&standing, calls)
	return one
}

// ended returns when a run ended. That is what the status of its block says; a run that is
// planned or running has not. If nobody has said when, it ended with its last call.
func (r *run) ended(standing *oda.Standing, calls *night.Calls) *oda.Moment {
	switch {
	case standing.Class == oda.ClassPlanned || standing.Class == oda.ClassRunning:
		return nil
	case r.block != nil && r.block.Standing.Sequence > 0 && r.block.Standing.Class.Ended():
		at := oda.Moment(r.block.Standing.At)
		return &at
	case calls != nil && calls.Tally.Calls > 0:
		return &calls.LastResponse
	}
	return nil
}

// orNil returns nil for a value that is missing.
func orNil[T comparable](value T) *T {
	var none T
	if value == none {
		return nil
	}
	return &value
}
