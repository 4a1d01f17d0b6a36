package web

import (
	"context"
	"strings"

	"oda"
	"oda/internal/jsondiff"
	"oda/internal/rawjson"
)

// withoutCalls leaves the calls out of the lines of a block's document.
func withoutCalls(lines []jsondiff.Line) []jsondiff.Line {
	kept := lines[:0]
	within := false
	for _, l := range lines {
		switch {
		case within:
			within = l.Indent > 1
		case l.Indent == 1 && l.Key == `"request_responses"`:
			within = strings.HasSuffix(l.Text, "[")
			l.Text = l.Key + ": […]"
			kept = append(kept, l)
		default:
			kept = append(kept, l)
		}
	}
	return kept
}

// blockCalls reads the calls of both blocks, a call to a line.
func (s *Site) blockCalls(ctx context.Context, view *compareView) (from, to []jsondiff.Line, err error) {
	var sides [2][]jsondiff.Line
	for i, one := range view.Heads {
		of := &blockState{id: one.ID}
		if !one.Current {
			if of.old, err = s.sideEntity(ctx, one); err != nil {
				return nil, nil, err
			}
		}
		n := int64(0) // their places, since sequences have gaps where a version replaced records
		for r, err := range s.records(ctx, of, 0, callsScanned) {
			if err != nil {
				return nil, nil, err
			}
			if n++; n <= view.after {
				continue
			}
			if len(sides[i]) == compareCalls {
				view.more = true
				break
			}
			line := newCalledLine(r)
			sides[i], one.calls = append(sides[i], line.Line), append(one.calls, line)
		}
	}
	return sides[0], sides[1], nil
}

// recordsIn gives the records within the text of a block's document.
func recordsIn(document []byte) oda.Texts {
	for key, value := range rawjson.Members(document) {
		if string(key) != "request_responses" {
			continue
		}
		return func(yield func([]byte, error) bool) {
			for text := range rawjson.Elements(value) {
				if !yield(text, nil) {
					return
				}
			}
		}
	}
	return nil
}

// calledLine is a call as it is compared: by what was called with what and what
// came of it, not by its times.
type calledLine struct {
	jsondiff.Line
	sequence int64
	failed   bool
	took     string
}

func newCalledLine(r *oda.Record) calledLine {
	call := oda.CallOf(r.Text)
	row := newCallRow(r, call, shownText)
	text := row.Name + "(" + row.Arguments + ")"
	if row.Result != "" {
		text += " → " + row.Result
	}
	if row.Failed {
		text += " → " + row.Status
	}
	if row.Problem != "" {
		text += ": " + row.Problem
	}
	return calledLine{jsondiff.Line{Text: text, Key: string(call.Request())}, r.Sequence, row.Failed, row.Took}
}
