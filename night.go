package oda

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	_ "time/tzdata" // zones are known wherever the program runs
	"unicode/utf8"
)

// NightQuery asks for the calls of a night: those of an instant from From on
// and before To, of blocks of a telescope where one is named.
type NightQuery struct {
	From, To  Instant
	Telescope string // empty: any
}

// ParseNight reads the parameters of a night, which lasts from noon of the date
// to noon of the next day in the zone.
func ParseNight(params map[string][]string) (NightQuery, error) {
	p := queryParser{params: params}
	var q NightQuery
	zone := time.UTC
	if name, ok := p.one("zone"); ok {
		var known bool
		if zone, known = zoneNamed(name); !known {
			p.fault("zone", "is not the name of a time zone; write it as Africa/Johannesburg, or UTC")
		}
	}
	switch text, ok := p.one("date"); {
	case !ok:
		p.fault("date", "is missing; give the date on which the night began, as 2026-01-31")
	case p.faults == nil:
		if q.From, q.To, ok = nightOf(text, zone); !ok {
			p.fault("date", "is not a date between 0001-01-01 and 9999-12-30; write it as 2026-01-31")
		}
	}
	if telescope, ok := p.one("telescope"); ok {
		if !utf8.ValidString(telescope) {
			p.fault("telescope", "is not valid UTF-8")
		}
		q.Telescope = telescope
	}
	if len(p.faults) > 0 {
		return NightQuery{}, &Error{Code: InvalidQuery, Faults: p.faults, Detail: "This night cannot be reported: " +
			strings.TrimPrefix(p.faults[0].Pointer, "query:") + " " + p.faults[0].Detail + "."}
	}
	return q, nil
}

// zoneNamed finds a time zone by its IANA name. Go knows two more names, and
// systems may have directories of zones with other rules.
func zoneNamed(name string) (*time.Location, bool) {
	if name == "" || name == "Local" || name == "localtime" || name == "posixrules" || strings.HasPrefix(name, "posix/") || strings.HasPrefix(name, "right/") {
		return nil, false
	}
	zone, err := time.LoadLocation(name)
	return zone, err == nil
}

// nightOf gives the night that began on a date. It has 23 or 25 hours where the
// clocks are changed in it.
func nightOf(date string, zone *time.Location) (from, to Instant, ok bool) {
	day, ok := parseTime(date)
	if !ok || len(date) != len("2006-01-02") {
		return 0, 0, false
	}
	y, m, d := day.Date()
	begin, end := time.Date(y, m, d, 12, 0, 0, 0, zone).UTC(), time.Date(y, m, d+1, 12, 0, 0, 0, zone).UTC()
	return InstantOf(begin), InstantOf(end), begin.Year() >= 1 && end.Year() <= 9999
}

// Night is what was done in a night. Its numbers are sums over the blocks.
type Night struct {
	From Moment `json:"from"`
	To   Moment `json:"to"`
	Tally
	Blocks            []NightBlock    `json:"blocks"`              // by their first call
	Slowest           []SlowCall      `json:"slowest"`             // the slowest first
	FailuresByRequest []FailedRequest `json:"failures_by_request"` // the most failures first
}

// Tally counts calls. Those that do not say how long they took count as 0
// seconds.
type Tally struct {
	Calls    int64   `json:"calls"`
	Failures int64   `json:"failures"`
	Took     Elapsed `json:"seconds_in_calls"`
}

// NightBlock is an ExecutionBlock with calls in the night. Only these are
// counted.
type NightBlock struct {
	ID        string  `json:"id"`
	Telescope *string `json:"telescope"` // nil: none
	CreatedBy string  `json:"created_by"`
	FirstCall Moment  `json:"first_call"`
	LastCall  Moment  `json:"last_call"`
	Tally
	References []Reference `json:"references"`
}

// SlowCall is a call that took long.
type SlowCall struct {
	Block    string  `json:"id"`
	Sequence int64   `json:"sequence"`
	Request  string  `json:"request"`
	SentAt   Moment  `json:"sent_at"`
	Took     Elapsed `json:"seconds"`
}

// FailedRequest counts the calls of one request that failed at least once.
type FailedRequest struct {
	Request  string `json:"request"`
	Failures int64  `json:"failures"`
	Calls    int64  `json:"calls"`
}

// Bounds of the reports on nights. Memory grows with the blocks of a night
// only, and with the requests that are told apart.
const (
	nightsAtOnce  = 2
	nightWait     = 5 * time.Second  // for the turn of a report
	nightTime     = 60 * time.Second // of a report; less than an answer may take
	nightWorkers  = 4                // that read blocks at the same time
	nightBlocks   = 100_000
	nightRequests = 10_000 // that are told apart
	slowestCalls  = 20
	requestBytes  = 256 // of the name of a request; it is cut behind that
)

// otherRequests stands for the requests that are not told apart.
const otherRequests = "(other requests)"

// Night reports what was done in a night. It counts every record that was
// acknowledged before it was asked for; of those that come meanwhile it may
// count some. Each block counts as it is at one moment.
func (a *Archive) Night(ctx context.Context, q NightQuery) (*Night, error) {
	leave, err := a.enterNight(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	ctx, cancel := context.WithTimeoutCause(ctx, nightTime, Errorf(Overloaded, "The report on this night took longer than %d seconds and was given up. "+
		"Ask for one telescope, or try again when the archive has less to do.", int(nightTime.Seconds())))
	defer cancel()
	night, err := a.night(ctx, q)
	if cause, ok := context.Cause(ctx).(*Error); ok && err != nil {
		return nil, cause
	}
	return night, err
}

// enterNight waits for the turn of a report, which the caller ends.
func (a *Archive) enterNight(ctx context.Context) (leave func(), err error) {
	return enter(ctx, a.nights, nightWait,
		Errorf(Overloaded, "%d reports on nights are being made, which is as many as there may be. Try again shortly.", nightsAtOnce))
}

func (a *Archive) night(ctx context.Context, q NightQuery) (*Night, error) {
	days := Days{DayOf(q.From), DayOf(q.To - 1)}
	blocks, err := a.blocksOn(ctx, days, q.Telescope)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	sums := make([]nightSum, min(nightWorkers, len(blocks)))
	var next atomic.Int64
	var workers sync.WaitGroup
	for i := range sums {
		sums[i] = newNightSum(q)
		workers.Go(func() {
			for n := next.Add(1) - 1; n < int64(len(blocks)) && ctx.Err() == nil; n = next.Add(1) - 1 {
				if err := sums[i].read(ctx, a.engine, days, blocks[n]); err != nil {
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

// blocksOn finds the blocks that may have calls on these days, with what is
// known of them.
func (a *Archive) blocksOn(ctx context.Context, days Days, telescope string) ([]*Found, error) {
	ids, err := a.engine.BlocksOn(ctx, days, nightBlocks+1)
	if err != nil {
		return nil, err
	}
	if len(ids) > nightBlocks {
		return nil, Errorf(InvalidQuery, "More than %d ExecutionBlocks have calls in this night, which is more than a report can have. "+
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
			if f != nil && (telescope == "" || f.Summary.Telescope == telescope) {
				blocks = append(blocks, f)
			}
		}
	}
	return blocks, nil
}

// lookAtOnce is how many entities are looked up at a time.
const lookAtOnce = 1000
