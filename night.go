package oda

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	_ "time/tzdata" // so that zones are known wherever the program runs
	"unicode/utf8"
)

// NightQuery asks for the calls of a night: those from From until just before
// To, made by one telescope or by any.
type NightQuery struct {
	From, To  Instant
	Telescope string // empty: any
}

// days returns the days that the night touches.
func (q NightQuery) days() Days { return Days{DayOf(q.From), DayOf(q.To - 1)} }

// ParseNight parses the parameters of a report. A night lasts from noon of the
// date to noon of the next day in the zone.
func ParseNight(params map[string][]string) (NightQuery, error) {
	p := Params{Values: params}
	var q NightQuery
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
		return NightQuery{}, err
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
func nightOf(date string, zone *time.Location) (from, to Instant, ok bool) {
	day, ok := parseTime(date)
	if !ok || len(date) != len("2006-01-02") {
		return 0, 0, false
	}
	y, m, d := day.Date()
	begin, end := time.Date(y, m, d, 12, 0, 0, 0, zone).UTC(), time.Date(y, m, d+1, 12, 0, 0, 0, zone).UTC()
	return InstantOf(begin), InstantOf(end), begin.Year() >= 1 && end.Year() <= 9999
}

// LastNight returns the date of the night that began yesterday, which lasts until noon.
// Yesterday and noon are those in the zone of now.
func LastNight(now time.Time) string { return now.AddDate(0, 0, -1).Format(time.DateOnly) }

// Tonight returns the date of the night that has begun today, empty before noon.
func Tonight(now time.Time) string {
	if now.Hour() < 12 {
		return ""
	}
	return now.Format(time.DateOnly)
}

// Night reports what was done in a night. Its numbers are sums over the blocks.
type Night struct {
	From Moment `json:"from"`
	To   Moment `json:"to"`
	Tally
	Blocks            []NightBlock    `json:"blocks"`              // by their first call
	Slowest           []SlowCall      `json:"slowest"`             // the slowest first
	FailuresByRequest []FailedRequest `json:"failures_by_request"` // the most failures first
}

// Tally counts calls. A call that does not say how long it took counts as 0
// seconds.
type Tally struct {
	Calls    int64   `json:"calls"`
	Failures int64   `json:"failures"`
	Took     Elapsed `json:"seconds_in_calls"`
}

// NightBlock is an ExecutionBlock with calls in the night. It counts only these
// calls.
type NightBlock struct {
	ID        string  `json:"id"`
	Telescope *string `json:"telescope"` // nil: none
	CreatedBy string  `json:"created_by"`
	FirstCall Moment  `json:"first_call"`
	LastCall  Moment  `json:"last_call"`
	Tally
	References []Reference `json:"references"`

	LastResponse Moment `json:"-"` // when all calls had their responses; reports in JSON do not say it
}

// SlowCall is a call that took long.
type SlowCall struct {
	Block    string  `json:"id"`
	Sequence int64   `json:"sequence"`
	Request  string  `json:"request"`
	SentAt   Moment  `json:"sent_at"`
	Took     Elapsed `json:"seconds"`
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
	nightsAtOnce  = 2                // reports
	nightTime     = 60 * time.Second // of a report; less than an answer may take
	nightWorkers  = 4                // that read blocks in parallel
	nightBlocks   = 100_000
	nightRequests = 10_000 // that are counted separately
	slowestCalls  = 20
	requestBytes  = 256 // of the name of a request; longer names are cut
)

// OtherRequests stands for the requests that are not counted separately.
const OtherRequests = "(other requests)"

// Night reports what was done in a night. It counts every record that was
// acknowledged before the call of Night, and perhaps some that are added during
// it. Each block is counted as it is at one moment.
func (a *Archive) Night(ctx context.Context, q NightQuery) (*Night, error) {
	leave, err := a.enterNight(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	ctx, cancel := context.WithTimeoutCause(ctx, nightTime, Errorf(Overloaded, "The report on this night took longer than %d seconds and was stopped. "+
		"Ask for one telescope, or try again when the archive is less busy.", int(nightTime.Seconds())))
	defer cancel()
	night, err := a.night(ctx, q)
	if cause, ok := context.Cause(ctx).(*Error); ok && err != nil {
		return nil, cause
	}
	return night, err
}

// enterNight waits until a report may begin. The caller must call leave.
func (a *Archive) enterNight(ctx context.Context) (leave func(), err error) {
	return a.nights.Take(ctx,
		Errorf(Overloaded, "Too many reports on nights at once: at most %d can be made at the same time. Try again shortly.", nightsAtOnce))
}

func (a *Archive) night(ctx context.Context, q NightQuery) (*Night, error) {
	blocks, err := a.blocksOn(ctx, q.days(), q.Telescope)
	if err != nil {
		return nil, err
	}
	// So many records are in memory at once as there are workers.
	ctx, stop := context.WithCancelCause(WithRoom(ctx, nil))
	defer stop(nil)
	sums := make([]nightSum, min(nightWorkers, len(blocks)))
	var next atomic.Int64
	var workers sync.WaitGroup
	for i := range sums {
		sums[i] = newNightSum(q)
		workers.Go(func() {
			for n := next.Add(1) - 1; n < int64(len(blocks)) && ctx.Err() == nil; n = next.Add(1) - 1 {
				if err := sums[i].read(ctx, a.engine, &a.nightSums, blocks[n]); err != nil {
					stop(err)
				}
			}
		})
	}
	workers.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return reportOf(q, sums), nil
}

// blocksOn returns the blocks that may have calls on these days, with their
// summaries.
func (a *Archive) blocksOn(ctx context.Context, days Days, telescope string) ([]*Found, error) {
	ids, err := a.engine.BlocksOn(ctx, days, nightBlocks+1)
	if err != nil {
		return nil, err
	}
	if len(ids) > nightBlocks {
		return nil, Errorf(InvalidQuery, "More than %d ExecutionBlocks have calls in this night, too many for a report. "+
			"Read the ExecutionBlocks themselves.", nightBlocks)
	}
	var blocks []*Found
	for len(ids) > 0 {
		some := ids[:min(len(ids), lookAtOnce)]
		ids = ids[len(some):]
		refs := make([]Ref, len(some))
		for i, id := range some {
			refs[i] = Ref{ExecutionBlock, id}
		}
		found, err := a.engine.Look(ctx, refs)
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
func (a *Archive) DaysAround(ctx context.Context, until, from Day) (before, after *Day, err error) {
	return a.engine.DaysAround(ctx, until, from)
}

// lookAtOnce is how many entities are looked up at a time.
const lookAtOnce = 1000
