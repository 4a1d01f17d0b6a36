package suite

import (
	"cmp"
	"math"
	"slices"

	"oda"
	"oda/night"
)

// observedCall is a call as the sum of a night sees it.
type observedCall struct {
	telescope      *string
	block          string
	sequence       int64
	request        string
	at             oda.Instant
	sent, received oda.Instant // if it is timed
	timed, failed  bool
	error          *observedError
}

// observedError is an error. What type it has is said beside it.
type observedError struct {
	Type   string `json:"x_type"`
	Detail string `json:"detail"`
}

// errorSamples are the errors of calls.
var errorSamples = []string{
	`,"error":null`, `,"error":{}`, `,"error":{"detail":"wind"}`, `,"error":{"detail":"odd.TooBad: wind","x_type":"TooBad"}`,
	`,"error":{"stacktrace":"Traceback:\n a.b.Gone: no\n","detail":"wind","x_type":"Gone"}`,
}

const lastInstant = oda.Instant(math.MaxInt64)

// busyIn adds up, the plain way, how long there was one of some calls before an instant: it
// goes through the times at which one begins or ends.
func busyIn(calls []observedCall, among func(*observedCall) bool, before oda.Instant) oda.Elapsed {
	var times []oda.Instant
	for i := range calls {
		if c := &calls[i]; c.timed && among(c) {
			times = append(times, min(c.sent, before), min(c.received, before))
		}
	}
	slices.Sort(times)
	busy := oda.Elapsed(0)
	for i := 1; i < len(times); i++ {
		if slices.ContainsFunc(calls, func(c observedCall) bool {
			return c.timed && among(&c) && c.sent <= times[i-1] && c.received >= times[i]
		}) {
			busy += oda.Elapsed(times[i] - times[i-1])
		}
	}
	return busy
}

func fillUse(report *night.Report, calls []observedCall) {
	report.Telescopes = []night.Telescope{}
	report.Busy = busyIn(calls, func(*observedCall) bool { return true }, lastInstant)
	for _, name := range []string{"ska_low", "ska_mid", ""} { // as they are ordered
		one := night.Telescope{FirstCall: math.MaxInt64, LastCall: math.MinInt64}
		if name != "" {
			one.Telescope = &name
		}
		among := func(c *observedCall) bool {
			return c.telescope == nil && name == "" || c.telescope != nil && *c.telescope == name
		}
		blocks := map[string]bool{}
		for i := range calls {
			if c := &calls[i]; among(c) {
				blocks[c.block] = true
				one.Calls++
				if c.failed {
					one.Failures++
				}
				one.FirstCall, one.LastCall = min(one.FirstCall, oda.Moment(c.at)), max(one.LastCall, oda.Moment(c.at))
			}
		}
		if one.Calls == 0 {
			continue
		}
		one.Blocks, one.Busy = int64(len(blocks)), busyIn(calls, among, lastInstant)
		one.Idle = oda.Elapsed(one.LastCall-one.FirstCall) - busyIn(calls, among, oda.Instant(one.LastCall))
		report.Idle += one.Idle
		report.Telescopes = append(report.Telescopes, one)
	}
}

// errorsOf counts the errors of calls. There are fewer than a report names.
func errorsOf(calls []observedCall) []night.Error {
	slices.SortFunc(calls, func(a, b observedCall) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.block, b.block), cmp.Compare(a.sequence, b.sequence))
	})
	counted, blocks := map[observedError]*night.Error{}, map[observedError]map[string]bool{}
	for _, c := range calls {
		if !c.failed {
			continue
		}
		if c.error == nil {
			c.error = &observedError{}
		}
		key := *c.error
		if counted[key] == nil {
			one := &night.Error{First: night.CallPlace{Block: c.block, Sequence: c.sequence}}
			if key.Type != "" {
				one.Type = &key.Type
			}
			if key.Detail != "" {
				one.Detail = &key.Detail
			}
			counted[key], blocks[key] = one, map[string]bool{}
		}
		blocks[key][c.block] = true
		counted[key].Calls++
		counted[key].Blocks = int64(len(blocks[key]))
	}
	errors := []night.Error{}
	for _, one := range counted {
		errors = append(errors, *one)
	}
	text := func(t *string) string {
		if t == nil {
			return ""
		}
		return *t
	}
	slices.SortFunc(errors, func(a, b night.Error) int {
		return cmp.Or(cmp.Compare(b.Calls, a.Calls), cmp.Compare(text(a.Type), text(b.Type)), cmp.Compare(text(a.Detail), text(b.Detail)))
	})
	return errors
}

// unusualOf finds the calls that took at least twice the median of their requests.
func unusualOf(calls []observedCall) ([]night.UnusualCall, map[string]oda.Elapsed) {
	took := map[string][]oda.Elapsed{}
	for _, c := range calls {
		if c.timed {
			took[c.request] = append(took[c.request], oda.Elapsed(c.received-c.sent))
		}
	}
	unusual, usual := []night.UnusualCall{}, map[string]oda.Elapsed{}
	middle := func(c observedCall) float64 {
		all := slices.Sorted(slices.Values(took[c.request]))
		return (float64(all[(len(all)-1)/2]) + float64(all[len(all)/2])) / 2
	}
	for _, c := range calls {
		if !c.timed || len(took[c.request]) < 5 {
			continue
		}
		median := middle(c)
		if median > 0 {
			usual[c.request] = oda.Elapsed(median)
		}
		if median > 0 && float64(c.received-c.sent) >= 2*median {
			unusual = append(unusual, night.UnusualCall{
				CallPlace: night.CallPlace{Block: c.block, Sequence: c.sequence}, Request: c.request,
				SentAt: oda.Moment(c.sent), Took: oda.Elapsed(c.received - c.sent), Median: oda.Elapsed(median),
			})
		}
	}
	ratio := func(c night.UnusualCall) float64 {
		return float64(c.Took) / middle(observedCall{request: c.Request})
	}
	slices.SortFunc(unusual, func(a, b night.UnusualCall) int {
		return cmp.Or(cmp.Compare(ratio(b), ratio(a)), cmp.Compare(b.Took, a.Took), cmp.Compare(a.SentAt, b.SentAt), cmp.Compare(a.Block, b.Block), cmp.Compare(a.Sequence, b.Sequence))
	})
	return unusual[:min(20, len(unusual))], usual
}
