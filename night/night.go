// Package night reports what was done in a night: calls, failures and the slowest, by
// block and by what was called.
//
// Start reading at Reporter. It asks the engine which blocks have calls in the night,
// and adds up each of them (sum.go). What it has read of a block (block.go) is kept for
// the next report (cache.go).
package night

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	_ "time/tzdata" // so that zones are known wherever the program runs
	"unicode/utf8"

	"oda"
)

// Query asks for the calls of a night: those from From until just before
// To, made by one telescope or by any.
type Query struct {
	From, To  oda.Instant
	Telescope string // empty: any
}

// days returns the days that the night touches.
func (q Query) days() oda.Days { return oda.Days{First: oda.DayOf(q.From), Last: oda.DayOf(q.To - 1)} }

// Parse parses the parameters of a report. A night lasts from noon of the
// date to noon of the next day in the zone.
func Parse(params map[string][]string) (Query, error) {
	p := oda.Params{Values: params}
	var q Query
	zone := time.UTC
	if name, ok := p.One("zone"); ok {
		var known bool
		if zone, known = zoneNamed(name); !known {
			p.Fault("zone", "is not the name of a time zone; write it as Africa/Johannesburg, or UTC")
		}
	}
	switch text, ok := p.One("date"); {
	case !ok:
		p.Fault("date", "is missing; give the date on which the night began, as 2026-01-31")
	case p.Faults == nil:
		if q.From, q.To, ok = nightOf(text, zone); !ok {
			p.Fault("date", "is not a date between 0001-01-01 and 9999-12-30; write it as 2026-01-31")
		}
	}
	if telescope, ok := p.One("telescope"); ok {
		if !utf8.ValidString(telescope) {
			p.Fault("telescope", "is not valid UTF-8")
		}
		q.Telescope = telescope
	}
	if err := p.Err("This night cannot be reported"); err != nil {
		return Query{}, err
	}
	return q, nil
}

// zoneNamed returns the time zone with an IANA name. It refuses the names that
// only Go knows, and those of a system's directories of zones with other rules.
func zoneNamed(name string) (*time.Location, bool) {
	if name == "" || name == "Local" || name == "localtime" || name == "posixrules" || strings.HasPrefix(name, "posix/") || strings.HasPrefix(name, "right/") {
		return nil, false
	}
	zone, err := time.LoadLocation(name)
	return zone, err == nil
}

// nightOf returns the night that began on a date. It has 23 or 25 hours if the
// clocks change during it.
func nightOf(date string, zone *time.Location) (from, to oda.Instant, ok bool) {
	day, err := oda.ParseTime(date)
	if err != nil || len(date) != len("2006-01-02") {
		return 0, 0, false
	}
	y, m, d := day.Date()
	begin, end := time.Date(y, m, d, 12, 0, 0, 0, zone).UTC(), time.Date(y, m, d+1, 12, 0, 0, 0, zone).UTC()
	return oda.InstantOf(begin), oda.InstantOf(end), begin.Year() >= 1 && end.Year() <= 9999
}

// Last returns the date of the night that began yesterday, which lasts until noon.
// Yesterday and noon are those in the zone of now.
func Last(now time.Time) string { return now.AddDate(0, 0, -1).Format(time.DateOnly) }

// Tonight returns the date of the night that has begun today, empty before noon.
func Tonight(now time.Time) string {
	if now.Hour() < 12 {
		return ""
	}
	return now.Format(time.DateOnly)
}

// Report says what was done in a night. Its numbers are sums over the blocks.
type Report struct {
	From oda.Moment `json:"from"`
	To   oda.Moment `json:"to"`
	Tally
	Blocks            []Block         `json:"blocks"`              // by their first call
	Slowest           []SlowCall      `json:"slowest"`             // the slowest first
	FailuresByRequest []FailedRequest `json:"failures_by_request"` // the most failures first
}

// Tally counts calls. A call that does not say how long it took counts as 0
// seconds.
type Tally struct {
	Calls    int64       `json:"calls"`
	Failures int64       `json:"failures"`
	Took     oda.Elapsed `json:"seconds_in_calls"`
}

// Block is an ExecutionBlock with calls in the night. It counts only these
// calls.
type Block struct {
	ID        string     `json:"id"`
	Telescope *string    `json:"telescope"` // nil: none
	CreatedBy string     `json:"created_by"`
	FirstCall oda.Moment `json:"first_call"`
	LastCall  oda.Moment `json:"last_call"`
	Tally
	References []oda.Reference `json:"references"`

	LastResponse oda.Moment `json:"-"` // when all calls had their responses; reports in JSON do not say it
}

// SlowCall is a call that took long.
type SlowCall struct {
	Block    string      `json:"id"`
	Sequence int64       `json:"sequence"`
	Request  string      `json:"request"`
	SentAt   oda.Moment  `json:"sent_at"`
	Took     oda.Elapsed `json:"seconds"`
}

// FailedRequest counts the calls of a request that failed at least once.
type FailedRequest struct {
	Request  string `json:"request"`
	Failures int64  `json:"failures"`
	Calls    int64  `json:"calls"`

	Blocks []string `json:"-"` // the first in which it failed, at most FailedBlocks; reports in JSON do not say it
}

// FailedBlocks bounds the blocks that a FailedRequest names.
const FailedBlocks = 4

// Bounds of reports on nights. The memory of a report grows only with the number
// of blocks and of distinct requests, not with the number of calls.
const (
	reportsAtOnce = 2                // reports
	reportTime    = 60 * time.Second // of a report; less than an answer may take
	workers       = 4                // that read blocks in parallel
	maxBlocks     = 100_000
	maxRequests   = 10_000 // that are counted separately
	slowestCalls  = 20
	requestBytes  = 256 // of the name of a request; longer names are cut
)

// OtherRequests stands for the requests that are not counted separately.
const OtherRequests = "(other requests)"

// Engine is what reports are made from.
type Engine interface {
	oda.Calendar
	oda.Reader
	oda.Finder
}

// Reporter makes reports. It is safe for concurrent use.
type Reporter struct {
	engine  Engine
	turns   oda.Turns
	readers oda.Turns // for all calls of blocks
	known   cache
}

// New returns a Reporter for the blocks in an engine.
func New(engine Engine) *Reporter {
	return &Reporter{engine: engine, turns: oda.NewTurns(reportsAtOnce), readers: oda.NewTurns(reportsAtOnce)}
}

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
	err = share(ctx, len(blocks), func(ctx context.Context, worker, n int) error {
		return totals[worker].read(ctx, r.engine, &r.known, blocks[n])
	})
	if err != nil {
		return nil, err
	}
	return reportOf(q, totals), nil
}

// share has workers read n blocks, each by one of them, until an error.
func share(ctx context.Context, n int, read func(ctx context.Context, worker, n int) error) error {
	// So many records are in memory at once as there are workers.
	ctx, stop := context.WithCancelCause(oda.WithRoom(ctx, nil))
	defer stop(nil)
	var next atomic.Int64
	var group sync.WaitGroup
	for worker := range min(workers, n) {
		group.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				if err := read(ctx, worker, i); err != nil {
					stop(err)
				}
			}
		})
	}
	group.Wait()
	return context.Cause(ctx)
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
	var blocks []*oda.Found
	for len(ids) > 0 {
		some := ids[:min(len(ids), lookAtOnce)]
		ids = ids[len(some):]
		refs := make([]oda.Ref, len(some))
		for i, id := range some {
			refs[i] = oda.Ref{Kind: oda.ExecutionBlock, ID: id}
		}
		found, err := r.engine.Look(ctx, refs)
		if err != nil {
			return nil, err
		}
		for _, f := range found {
			if f != nil && f.Damage != nil {
				return nil, f.Damage // nobody knows of which telescope it is
			}
			if f != nil && (telescope == "" || f.Summary.Telescope == telescope) {
				blocks = append(blocks, f)
			}
		}
	}
	return blocks, nil
}

// DaysAround returns the last day up to one, and the first day from another on, on which
// there are calls, or were in an earlier version of a block; nil where there is none.
func (r *Reporter) DaysAround(ctx context.Context, until, from oda.Day) (before, after *oda.Day, err error) {
	return r.engine.DaysAround(ctx, until, from)
}

// lookAtOnce is how many entities are looked up at a time.
const lookAtOnce = 1000
