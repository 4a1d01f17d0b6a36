package web

import (
	"cmp"
	"slices"

	"oda"
)

// layout says where the calls of an index are drawn: in which lane, in which row
// of it, and from when to when. It does not depend on what part of the time is
// shown, so that a call stays in its row when one moves about.
type layout struct {
	lanes   []callLane
	byBegin []int32 // the calls in the order of time
	drawn   []int32 // the calls by lane, row and time
	places  []place // by call
	begin   oda.Instant
	end     oda.Instant
	focus   [2]oda.Instant // where nearly all calls are
	beyond  int            // calls that are not there
}

// callLane has the calls of a module, a function or a device.
type callLane struct {
	Name     string `json:"name"`
	Rows     int    `json:"rows"`
	Calls    int    `json:"calls"`
	Failures int    `json:"failures"`
}

// place is where a call is drawn.
type place struct {
	begin, end oda.Instant
	lane, row  uint16
}

// Bounds of a layout. What is beyond them shares a lane or a row.
const (
	mostLanes = 40
	mostRows  = 12 // of a lane; the last one is for calls that find none free
)

// What makes the lanes.
const (
	byModule   = "module"
	byFunction = "function"
	byDevice   = "device"
)

// by returns the lanes that are wanted, or those that tell the most.
func (x *callIndex) by(wanted string) string {
	switch wanted {
	case byModule, byFunction, byDevice:
		return wanted
	}
	for _, name := range x.functions.all {
		if moduleOf(name) != moduleOf(x.functions.all[0]) {
			return byModule
		}
	}
	return byFunction
}

// moduleOf is the part of a function's name before the last dot.
func moduleOf(function string) string {
	module, _ := lastName(function)
	return module[:max(0, len(module)-1)]
}

// layout lays the calls out in lanes.
func (x *callIndex) layout(by string) *layout {
	if l := x.layouts[by]; l != nil {
		return l
	}
	l := &layout{places: make([]place, len(x.calls)), byBegin: make([]int32, len(x.calls))}
	l.time(x.calls)
	l.assign(x, by)
	l.stack()
	l.look(x.calls)
	if x.layouts == nil {
		x.layouts = make(map[string]*layout)
	}
	x.layouts[by] = l
	return l
}

// time places the calls in time. One without times is placed where the one before it
// began, or the one after it; if no call has times, when it was recorded.
func (l *layout) time(calls []indexedCall) {
	known := slices.IndexFunc(calls, func(c indexedCall) bool { return c.begin != noTime })
	for i := range calls {
		c, p := &calls[i], &l.places[i]
		switch {
		case c.begin != noTime:
			p.begin = c.begin
		case known < 0:
			p.begin = c.recorded
		case i > 0:
			p.begin = l.places[i-1].begin
		default:
			p.begin = calls[known].begin
		}
		p.end = p.begin + oda.Instant(max(0, c.took))
		l.byBegin[i] = int32(i)
		if i == 0 || p.begin < l.begin {
			l.begin = p.begin
		}
		if i == 0 || p.end > l.end {
			l.end = p.end
		}
	}
	slices.SortStableFunc(l.byBegin, func(a, b int32) int { return cmp.Compare(l.places[a].begin, l.places[b].begin) })
}

// assign gives each call its lane. Lanes come in the order of their first calls,
// which later ones do not change.
func (l *layout) assign(x *callIndex, by string) {
	number, lanes := make(map[string]uint16), make(map[uint16]uint16)
	for i := range x.calls {
		c := &x.calls[i]
		key := c.function
		if by == byDevice {
			key = c.device
		}
		at, known := lanes[key]
		if !known {
			name := x.functions.all[c.function]
			switch by {
			case byDevice:
				name = x.devices.all[c.device]
			case byModule:
				name = moduleOf(name)
			}
			if at, known = number[name]; !known && len(l.lanes) >= mostLanes-1 {
				name = otherNames
				at, known = number[name]
			}
			if !known {
				at = uint16(len(l.lanes))
				number[name], l.lanes = at, append(l.lanes, callLane{Name: name})
			}
			lanes[key] = at
		}
		l.places[i].lane = at
		l.lanes[at].Calls++
		if c.failed {
			l.lanes[at].Failures++
		}
	}
}

// stack gives each call the first row of its lane that is free when it begins.
func (l *layout) stack() {
	ends := make([][mostRows]oda.Instant, len(l.lanes))
	for _, i := range l.byBegin {
		p := &l.places[i]
		free, lane := &ends[p.lane], &l.lanes[p.lane]
		row := 0
		for row < mostRows-1 && row < lane.Rows && free[row] > p.begin {
			row++
		}
		p.row = uint16(row)
		free[row] = max(free[row], p.end, p.begin+1)
		lane.Rows = max(lane.Rows, row+1)
	}
	l.drawn = slices.SortedStableFunc(slices.Values(l.byBegin), func(a, b int32) int {
		return cmp.Or(cmp.Compare(l.places[a].lane, l.places[b].lane), cmp.Compare(l.places[a].row, l.places[b].row))
	})
}

// look finds the part of the time that is worth a look: a call with a wrong date
// must not make all others a line. As long as nothing happens in most of the
// time, only the side with more calls is kept.
func (l *layout) look(calls []indexedCall) {
	l.focus = [2]oda.Instant{l.begin, l.end}
	order := l.byBegin
	for len(order) > 2 {
		span, longest, at := l.span(order)
		if longest < span/10*8 || span < 3600_000_000 {
			break
		}
		if at > len(order)/2 {
			order = order[:at]
		} else {
			order = order[at:]
		}
	}
	if l.beyond = len(calls) - len(order); l.beyond > 0 {
		l.focus = [2]oda.Instant{l.places[order[0]].begin, l.places[order[0]].end}
		for _, i := range order {
			l.focus[1] = max(l.focus[1], l.places[i].end)
		}
	}
}

// span returns how long calls take together, the longest time between two of them,
// and the number of the call after it.
func (l *layout) span(order []int32) (span, longest oda.Instant, at int) {
	end := l.places[order[0]].end
	for n, i := range order {
		p := &l.places[i]
		if gap := p.begin - end; gap > longest {
			longest, at = gap, n
		}
		end = max(end, p.end)
	}
	return end - l.places[order[0]].begin, longest, at
}
