package web

import (
	"context"
	"iter"
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
		records, err := s.recordsOf(ctx, one, view.after)
		if err != nil {
			return nil, nil, err
		}
		for r, err := range records {
			if err != nil {
				return nil, nil, err
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

// recordsOf gives the records of a version of a block behind a number of others.
func (s *Site) recordsOf(ctx context.Context, one *side, after int64) (iter.Seq2[*oda.Record, error], error) {
	if one.Current {
		return s.currentRecords(ctx, one.ID, after), nil
	}
	e, err := s.cfg.Archive.Version(ctx, one.Ref, one.Metadata.Version)
	if err != nil {
		return nil, err
	}
	return recordsBehind(e, after), nil
}

// currentRecords gives the records of a block as it is behind a number of others. Their
// sequences do not count them: there are gaps where a version replaced records.
func (s *Site) currentRecords(ctx context.Context, block string, after int64) iter.Seq2[*oda.Record, error] {
	return func(yield func(*oda.Record, error) bool) {
		n, last := int64(0), int64(0)
		for {
			page, err := s.cfg.Archive.Records(ctx, block, last, callsScanned)
			if err != nil {
				yield(nil, err)
				return
			}
			for i := range page.Records {
				if n++; n > after && !yield(&page.Records[i], nil) {
					return
				}
				last = page.Records[i].Sequence
			}
			if !page.More {
				return
			}
		}
	}
}

// recordsIn gives the records within the text of a block's document.
func recordsIn(document []byte) oda.Texts {
	members := rawjson.MembersOf(document)
	for {
		key, value, ok := members.Next()
		if !ok {
			return nil
		}
		if string(key) != "request_responses" {
			continue
		}
		return func(yield func([]byte, error) bool) {
			scan := rawjson.NewScanner(value, 1<<20)
			if _, err := scan.BeginArray(); err != nil {
				return // there is no list
			}
			for {
				if more, err := scan.NextElement(); !more || err != nil {
					return // what is stored was checked
				}
				start, end, err := scan.Skip()
				if err != nil || !yield(value[start:end], nil) {
					return
				}
			}
		}
	}
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
	return calledLine{jsondiff.Line{Text: text, Key: call.Request}, r.Sequence, row.Failed, row.Took}
}
