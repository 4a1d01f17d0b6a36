package web

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"oda"
)

// callPanel is a call, shown next to the timeline.
type callPanel struct {
	callRow
	Root, Block string
	Closed      string // the address of the page without it
	Old         bool   // it is in an older state of the block
	Drawn       bool   // it is known where
	Begin, End  oda.Instant
	Device      string
	// Addresses of the calls around it, in the order of time, as the filter
	// leaves them.
	Before, After               string
	FailureBefore, FailureAfter string
}

// entityRoot is the relative path from the page of an entity to the base.
const entityRoot = "./../"

// callPanel reads a call for the panel.
func (s *Site) callPanel(ctx context.Context, x *callIndex, of *blockState, v *callsView, sequence int64) (*callPanel, error) {
	var r *oda.Record
	if sequence > 0 {
		var err error
		if r, err = s.record(ctx, of, sequence); err != nil {
			return nil, err
		}
	}
	if r == nil {
		return nil, oda.Errorf(oda.NotFound, "The ExecutionBlock %s has no call %d.", of.id, sequence)
	}
	call := oda.CallOf(r.Text)
	p := &callPanel{callRow: newCallRow(r, call, shownInFull), Root: v.Root, Block: v.Block, Closed: v.Closed(), Old: of.old != nil}
	p.Device = keptName(call.Device())
	if i, ok := x.find(sequence); ok {
		l := x.layout(x.by(""))
		p.Drawn, p.Begin, p.End = true, l.places[i].begin, l.places[i].end
		p.around(x, l, v, int32(i))
	} else if p.Begin = call.At(noTime); p.Begin != noTime {
		took, _ := call.Took()
		p.Drawn, p.End = true, p.Begin+oda.Instant(took)
	}
	return p, nil
}

// around finds the calls around one.
func (p *callPanel) around(x *callIndex, l *layout, v *callsView, of int32) {
	wanted := callFilter{v.Function, v.Outcome}.in(x)
	before, failureBefore, passed := int64(0), int64(0), false
	for _, i := range l.byBegin {
		c := &x.calls[i]
		switch {
		case i == of:
			passed = true
			p.Before, p.FailureBefore = v.callHref(before), v.callHref(failureBefore)
			continue
		case !wanted(i):
			continue
		case !passed:
			before = c.sequence
		case p.After == "":
			p.After = v.callHref(c.sequence)
		}
		if !c.failed {
			continue
		}
		if !passed {
			failureBefore = c.sequence
		} else {
			p.FailureAfter = v.callHref(c.sequence)
			return
		}
	}
}

// callHref is CallHref, and empty for no call.
func (v *callsView) callHref(sequence int64) string {
	if sequence == 0 {
		return ""
	}
	return v.CallHref(sequence)
}

// timelinePart serves a part of the page of a block by itself: a call, by its sequence;
// the links to the calls around it, none if it is not there; the summary of all calls; or
// which call is the next failure.
func (s *Site) timelinePart(w http.ResponseWriter, r *http.Request) error {
	part := r.PathValue("part")
	name, params := "callpanel", r.URL.Query()
	switch part {
	case "summary":
		name = "callsummary"
	case "around":
		name = "callsaround"
	case nextFailure, previousFailure:
		return s.ofIndex(w, r, func(x *callIndex, params url.Values) any { return x.failureBeside(params, part == nextFailure) })
	default:
		if sequence, err := strconv.ParseInt(part, 10, 64); err != nil || sequence < 1 {
			return oda.Errorf(oda.NoSuchPath, "A timeline has the parts \"summary\", \"around\", %q, %q and the numbers of its calls.", nextFailure, previousFailure)
		}
		params.Set("call", part)
	}
	of, err := s.blockState(r.Context(), r.PathValue("id"), params)
	if err != nil {
		return err
	}
	v, err := s.newCallsView(r.Context(), of, params, indexTime)
	if err != nil {
		return err
	}
	if name == "callpanel" && v.Call == nil {
		return oda.Errorf(oda.NotFound, "The ExecutionBlock %s has no call %s.", v.Block, part)
	}
	var data any = v
	if name != "callsummary" {
		data = v.Call
	}
	text, err := s.renderPart(name, data)
	if err != nil {
		return err
	}
	newFile(htmlType, text).serve(w, r, privateCache, pagePolicy)
	return nil
}
