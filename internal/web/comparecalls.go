package web

import (
	"cmp"
	"context"
	"hash/maphash"
	"iter"
	"strings"
	"time"

	"oda"
	"oda/alignment"
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

// blockRun is what a block did, as it is compared with another.
type blockRun struct {
	side      *side
	of        *blockState
	calls     []alignment.Call
	exactly   []uint64 // numbers of what was said and answered, if that is compared too
	sequences []int64
	missing   int64 // calls that are not among these
	reading   bool  // they will be, once they are read
}

// compareRead is how long the calls of a block are read that nobody has looked at lately.
const compareRead = 2 * time.Second

// runOf reads a run. Functions have the same numbers in both runs.
func (s *Site) runOf(ctx context.Context, one *side, exactly bool, functions map[string]int32) (*blockRun, error) {
	r := &blockRun{side: one, of: &blockState{id: one.ID}}
	if !one.Current {
		e, err := s.sideEntity(ctx, one)
		if err != nil {
			return nil, err
		}
		r.of.old = e
	}
	x, done, err := s.index(ctx, r.of, compareRead)
	if err != nil {
		return nil, err
	}
	defer done()
	numbers := make([]int32, len(x.functions.all))
	for i, name := range x.functions.all {
		number, known := functions[name]
		if !known {
			number = int32(len(functions))
			functions[name] = number
		}
		numbers[i] = number
	}
	if err := oda.RoomIn(ctx).Take(ctx, roomOfCall*int64(len(x.calls))); err != nil {
		return nil, err
	}
	r.calls, r.sequences = make([]alignment.Call, len(x.calls)), make([]int64, len(x.calls))
	for i := range x.calls {
		c := &x.calls[i]
		r.calls[i] = alignment.Call{Function: numbers[c.function], Said: c.said, Failed: c.failed, Took: c.took}
		if exactly {
			r.exactly = append(r.exactly, c.saidExactly)
		}
		r.sequences[i] = c.sequence
	}
	if !x.complete {
		r.missing, r.reading = max(1, one.Records-int64(len(x.calls))), !x.full
	}
	return r, nil
}

// roomOfCall is how many bytes a call takes that is aligned, with its row.
const roomOfCall = 64

// texts gives the records of a run one by one, those from a place on. They must be asked for in
// the order of their places.
func (s *Site) texts(ctx context.Context, r *blockRun, first, most int) (next func(place int) ([]byte, error), stop func()) {
	if first >= len(r.sequences) {
		return nil, func() {}
	}
	pull, stop := iter.Pull2(s.records(ctx, r.of, r.sequences[first]-1, most))
	return func(place int) ([]byte, error) {
		for {
			record, err, ok := pull()
			switch {
			case err != nil:
				return nil, err
			case !ok || record.Sequence > r.sequences[place]:
				return nil, nil // another version has replaced it meanwhile
			case record.Sequence == r.sequences[place]:
				return record.Text, nil
			}
		}
	}, stop
}

// saidSeed is for the numbers of what was said.
var saidSeed = maphash.MakeSeed()

// said returns a number for the arguments of a record's call, and one for its arguments, its
// result and its error.
func said(record []byte) (essential, exactly uint64) {
	var some, all maphash.Hash
	some.SetSeed(saidSeed)
	all.SetSeed(saidSeed)
	for key, value := range rawjson.Members(record) {
		switch string(key) {
		case "request_args":
			alignment.Essential(value, false, func(piece []byte) { _, _ = some.Write(piece) })
		case "status":
		case "response":
			value = memberOf(value, "result")
		case "error":
			value = memberOf(value, "detail")
		default:
			continue
		}
		_, _ = all.Write(key)
		alignment.Essential(value, true, func(piece []byte) { _, _ = all.Write(piece) })
	}
	return some.Sum64(), all.Sum64()
}

// memberOf returns the text of a member of an object, that of the object if it has none.
func memberOf(object []byte, name string) []byte {
	for key, value := range rawjson.Members(object) {
		if string(key) == name {
			return value
		}
	}
	return object
}

// comparedText bounds the text of a call, in which differences are marked.
const comparedText = 1 << 20

// calledText is a call as it is compared: what was called with what, how it failed, and
// perhaps what came of it. Its times are no part of it.
func calledText(record []byte, exactly bool) string {
	call := oda.CallOf(record)
	var said, status, result, problem string
	for key, value := range rawjson.Members(record) {
		switch string(key) {
		case "request_args":
			var text []byte
			alignment.Essential(value, exactly, func(piece []byte) { text = append(text, piece...) })
			said = arguments(text, comparedText)
		case "status":
			status = short(value, shownText)
		case "response":
			result = member(value, "result", comparedText)
		case "error":
			problem = member(value, "detail", comparedText)
		}
	}
	_, name := lastName(string(call.Request()))
	text := name + "(" + said + ")"
	if exactly && result != "" {
		text += " → " + result
	}
	if !call.Failed {
		return text
	}
	text += " → " + cmp.Or(status, "failed")
	if problem != "" {
		text += ": " + problem
	}
	return text
}
