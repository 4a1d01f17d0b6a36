package web

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"

	"oda"
	"oda/calls"
	"oda/night"
)

// failureTable is the calls of a night that failed, by what they have in common.
type failureTable struct {
	ID, Name, Of string
	Rows         []failureRow
	More         string // how many there are in all, if they are not all in the table
	Partial      bool   // not all calls were counted
}

// failureRow is some of the calls that failed, with the first of them.
type failureRow struct {
	Name, Detail, Href string
	Failed             int64
	Calls              int64 // how many there were, 0 if that is not known
	First              *failedCall
}

// failedCall leads to a call that failed. The title is that of its block, or of the call
// where the block is known.
type failedCall struct{ Name, Title, Href string }

// Bounds of counting by device, which is done for the page alone.
const (
	byDeviceTime = 300 * time.Millisecond
	oneTime      = 50 * time.Millisecond // for one call
	filterText   = 200                   // bytes of a text that makes a filter
)

// failedParams ask for the calls of the night that failed.
func (v *nightView) failedParams() url.Values {
	return withoutEmpty(url.Values{
		"outcome": {string(oda.CallFailed)}, "from": {inAddress(oda.Instant(v.From))}, "to": {inAddress(oda.Instant(v.To))}, "telescope": {v.Telescope},
	})
}

// FailedHref is the address of the calls that failed in the night.
func (v *nightView) FailedHref() string { return callsHref(v.failedParams()) }

// nightFailures tells of the calls that failed, in several ways.
func (s *Site) nightFailures(ctx context.Context, v *nightView) []failureTable {
	if v.Failures == 0 {
		return nil
	}
	tables := []failureTable{v.byError()}
	if devices := s.byDevice(ctx, v); len(devices.Rows) > 0 {
		tables = append(tables, devices)
	}
	return append(tables, v.byFunction())
}

// byError tells of the errors that most calls failed with. The report has the first 50.
func (v *nightView) byError() failureTable {
	t := failureTable{ID: "errors", Name: "Failures by error", Of: "Error"}
	if len(v.Errors) > nightFailing {
		t.More = thousands(int64(len(v.Errors)))
	}
	for _, e := range v.Errors[:min(len(v.Errors), nightFailing)] {
		row := failureRow{Name: orEmpty(e.Type), Failed: e.Calls}
		if params := v.errorParams(e); params.Has("error") || params.Has("q") || len(v.Errors) == 1 {
			row.Href = callsHref(params)
		}
		row.Detail = strings.TrimSpace(strings.TrimPrefix(orEmpty(e.Detail), row.Name+":"))
		if row.Name == "" && row.Detail == "" {
			row.Name = "(no error given)"
		}
		row.First = v.firstIn(e.First)
		t.Rows = append(t.Rows, row)
	}
	return t
}

// errorParams ask for the calls that failed with an error. Where its type is not enough, they
// ask for its words.
func (v *nightView) errorParams(e night.Error) url.Values {
	params := v.failedParams()
	alike := func(other night.Error) bool { return orEmpty(other.Type) == orEmpty(e.Type) && other.First != e.First }
	if e.Type != nil {
		params.Set("error", *e.Type)
	}
	detail := orEmpty(e.Detail)
	if (e.Type == nil || slices.ContainsFunc(v.Errors, alike)) && len(detail) <= filterText && strings.ContainsFunc(detail, unicode.IsLetter) {
		params.Set("q", detail)
	}
	return params
}

// firstIn leads to a call in the timeline of its block.
func (v *nightView) firstIn(call night.CallPlace) *failedCall {
	first := &failedCall{Name: "#" + thousands(call.Sequence), Title: call.Block, Href: v.callHref(call)}
	if b := v.known[call.Block]; b != nil {
		first.Title = newNightRow(*b).Label()
	}
	return first
}

// byDevice counts by device. It is a service of the page, so it takes little time and says if
// that was not enough.
func (s *Site) byDevice(ctx context.Context, v *nightView) failureTable {
	t := failureTable{ID: "devices", Name: "Failures by device", Of: "Device"}
	q, err := calls.Parse(v.failedParams())
	if err != nil {
		return t
	}
	q.Within = byDeviceTime
	tally, err := s.cfg.Calls.Tally(ctx, q, calls.ByDevice)
	if err != nil {
		return t
	}
	t.Partial = !tally.Complete
	devices := slices.DeleteFunc(tally.Tally, func(c calls.Count) bool { return c.Key == nil })
	if len(devices) > nightFailing {
		t.More = thousands(int64(len(devices)))
	}
	q.OldestFirst = true
	for _, device := range devices[:min(len(devices), nightFailing)] {
		row := failureRow{Name: *device.Key, Failed: device.Failures}
		row.Href = callsHref(with(v.failedParams(), "device", *device.Key))
		q.Device = *device.Key
		if first := s.oneCall(ctx, q); first != nil {
			row.First = v.firstIn(night.CallPlace{Block: first.Block, Sequence: first.Sequence})
			row.Detail = reasonOf(first.Error)
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// lastFailed is the last call of a block that failed in the night, nil if none is found.
func (s *Site) lastFailed(ctx context.Context, v *nightView, block string) *failedCall {
	q, err := calls.Parse(with(v.failedParams(), "eb", block))
	if err != nil {
		return nil
	}
	last := s.oneCall(ctx, q)
	if last == nil {
		return nil
	}
	return &failedCall{"#" + thousands(last.Sequence), oda.Function(last.Request), v.callHref(night.CallPlace{Block: block, Sequence: last.Sequence})}
}

// oneCall is the call that comes first in the order of a question. It is only a hint, so it
// takes little time.
func (s *Site) oneCall(ctx context.Context, q calls.Query) *oda.CallEntry {
	q.Limit, q.Within = 1, oneTime
	page, err := s.cfg.Calls.Page(ctx, q)
	if err != nil || len(page.Calls) == 0 {
		return nil
	}
	return &page.Calls[0]
}

// reasonOf is an error in few words.
func reasonOf(e *oda.CallError) string {
	if e == nil {
		return ""
	}
	if e.Type != nil {
		return *e.Type
	}
	return orEmpty(e.Detail)
}

// byFunction tells of the functions that failed most, with names that tell them apart.
func (v *nightView) byFunction() failureTable {
	t := failureTable{ID: "functions", Name: "Failures by function", Of: "Function"}
	requests := v.FailuresByRequest[:min(len(v.FailuresByRequest), nightFailing)]
	names := make([]string, len(requests))
	for i, r := range requests {
		names[i] = r.Request
	}
	for i, name := range tellApart(names) {
		row := failureRow{Name: name, Failed: requests[i].Failures, Calls: requests[i].Calls}
		if name == "" {
			row.Name = "(no name)"
		}
		// No call has a name that the report has cut.
		if full := requests[i].Request; full != "" && full != night.OtherRequests && !strings.HasSuffix(full, "…") {
			row.Href = callsHref(with(v.failedParams(), "request", full))
		}
		t.Rows = append(t.Rows, row)
	}
	if all := int64(len(v.FailuresByRequest)); all > nightFailing {
		t.More = thousands(all)
		if slices.ContainsFunc(v.FailuresByRequest, func(r night.FailedRequest) bool { return r.Request == night.OtherRequests }) {
			t.More = "more than " + thousands(all-1)
		}
	}
	return t
}
