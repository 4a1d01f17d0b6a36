package web

import (
	"bytes"
	"context"
	"encoding/json"
	"net/url"
	"strconv"
	"time"

	"oda"
	"oda/internal/rawjson"
)

// callsView is a page of the calls of a block.
type callsView struct {
	Total    int64
	Failures int64 // of those that were looked at
	Looked   bool  // at all of them
	Begin    *oda.Instant
	End      *oda.Instant
	Rows     []callRow
	Failed   bool // only those that failed are shown
	All      string
	Only     string // address of the failures
	First    string
	Before   string
	After    string
	Old      bool // the page shows an older state, whose calls are in its document
}

// Lasted is how long it took from the first call to the last.
func (v *callsView) Lasted() string {
	if v.Begin == nil || v.End == nil {
		return ""
	}
	return showElapsed(v.End.Time().Sub(v.Begin.Time()))
}

// callRow is a call.
type callRow struct {
	Sequence       int64
	Module, Name   string
	Sent           *oda.Instant
	Took           string // empty if it is not known
	Failed         bool
	Status         string
	Arguments      string
	Result         string
	Problem, Trace string
	Record         string // as it was sent, indented
}

// Bounds of a page of calls.
const (
	callsOnPage   = 100
	callsLooked   = 20_000                 // of which failures are counted
	callsLookTime = 150 * time.Millisecond // or as many as that
	shownText     = 2000                   // bytes of a result, an argument or an error
)

// callsOf reads a page of the calls of a block.
func (s *Site) callsOf(ctx context.Context, view *entityView, params url.Values) (*callsView, error) {
	v := &callsView{Total: view.Versions[0].Records, Failed: params.Get("calls") == "failed", Old: view.Old()}
	if v.Old {
		return v, nil
	}
	after, _ := strconv.ParseInt(params.Get("after"), 10, 64)
	after = max(0, after)
	if err := s.look(ctx, view.ID, v); err != nil {
		return nil, err
	}
	more, err := s.readCalls(ctx, view.ID, v, after)
	if err != nil {
		return nil, err
	}
	href := func(after int64) string {
		p := url.Values{}
		if v.Failed {
			p.Set("calls", "failed")
		}
		if after > 0 {
			p.Set("after", strconv.FormatInt(after, 10))
		}
		return view.ID + question(p) + "#calls"
	}
	v.All, v.Only = view.ID+"#calls", view.ID+"?calls=failed#calls"
	if after > 0 {
		v.First = href(0)
		if !v.Failed {
			v.Before = href(max(0, after-callsOnPage))
		}
	}
	if more > 0 {
		v.After = href(more)
	}
	return v, nil
}

// look goes over the calls for what the head of the table says of them.
func (s *Site) look(ctx context.Context, block string, v *callsView) error {
	v.Looked = true
	late := time.Now().Add(callsLookTime)
	for after, looked := int64(0), 0; ; {
		page, err := s.cfg.Archive.Records(ctx, block, after, 1000)
		if err != nil {
			return err
		}
		for i := range page.Records {
			call := oda.CallOf(page.Records[i].Text)
			if call.Failed {
				v.Failures++
			}
			for _, at := range []*oda.Instant{call.Sent, call.Received} {
				if at == nil {
					continue
				}
				if v.Begin == nil || *at < *v.Begin {
					v.Begin = at
				}
				if v.End == nil || *at > *v.End {
					v.End = at
				}
			}
		}
		looked += len(page.Records)
		if !page.More {
			return nil
		}
		if looked >= callsLooked || time.Now().After(late) {
			v.Looked = false
			return nil
		}
		after = page.Records[len(page.Records)-1].Sequence
	}
}

// readCalls reads the rows behind a sequence number, and returns the one behind
// which there are more, 0 if there are none.
func (s *Site) readCalls(ctx context.Context, block string, v *callsView, after int64) (more int64, err error) {
	late := time.Now().Add(2 * callsLookTime)
	for len(v.Rows) < callsOnPage {
		limit := callsOnPage
		if v.Failed {
			limit = 1000 // most of which are left out
		}
		page, err := s.cfg.Archive.Records(ctx, block, after, limit)
		if err != nil {
			return 0, err
		}
		for i := range page.Records {
			r := &page.Records[i]
			after = r.Sequence
			call := oda.CallOf(r.Text)
			if v.Failed && !call.Failed {
				continue
			}
			if v.Rows = append(v.Rows, newCallRow(r, call)); len(v.Rows) == callsOnPage {
				if page.More || i+1 < len(page.Records) {
					return after, nil
				}
				return 0, nil
			}
		}
		if !page.More {
			return 0, nil
		}
		if !v.Failed || time.Now().After(late) {
			return after, nil
		}
	}
	return after, nil
}

// newCallRow reads a record for people.
func newCallRow(r *oda.Record, call oda.Call) callRow {
	row := callRow{Sequence: r.Sequence, Sent: call.Sent, Failed: call.Failed}
	row.Module, row.Name = lastName(call.Request)
	if call.Sent != nil && call.Received != nil && *call.Received >= *call.Sent {
		row.Took = showElapsed(call.Received.Time().Sub(call.Sent.Time()))
	}
	members := rawjson.MembersOf(r.Text)
	for {
		key, value, ok := members.Next()
		if !ok {
			break
		}
		switch string(key) {
		case "status":
			row.Status = short(value)
		case "request_args":
			row.Arguments = arguments(value)
		case "response":
			row.Result = member(value, "result")
		case "error":
			row.Problem, row.Trace = member(value, "detail"), member(value, "stacktrace")
		}
	}
	if row.Failed && row.Status == "" {
		row.Status = "failed"
	}
	row.Record = indented(r.Text)
	return row
}

// member reads a member of an object for people; where there is none, the whole
// object.
func member(object []byte, name string) string {
	members := rawjson.MembersOf(object)
	for {
		key, value, ok := members.Next()
		if !ok {
			break
		}
		if string(key) == name {
			return short(value)
		}
	}
	if name == "stacktrace" || string(object) == "null" {
		return ""
	}
	return short(object)
}

// arguments writes the arguments of a call as in a program, without those that
// are empty.
func arguments(value []byte) string {
	if len(value) == 0 || value[0] != '{' {
		return short(value)
	}
	text := ""
	members := rawjson.MembersOf(value)
	for {
		key, value, ok := members.Next()
		switch {
		case !ok:
			return cutText(text)
		case string(value) == "[]" || string(value) == "{}" || string(value) == "null":
		case string(key) == "kwargs" && value[0] == '{':
			named := rawjson.MembersOf(value)
			for {
				name, value, ok := named.Next()
				if !ok || len(text) > shownText {
					break
				}
				text = joined(text, string(name)+"="+string(value))
			}
		case string(key) == "args" && value[0] == '[':
			text = joined(text, string(value[1:len(value)-1]))
		default:
			text = joined(text, string(key)+"="+string(value))
		}
	}
}

func joined(text, next string) string {
	if text == "" {
		return next
	}
	return text + ", " + next
}

// short reads a value: the content of a string, or else its text.
func short(value []byte) string {
	switch {
	case string(value) == "null":
		return ""
	case len(value) > 0 && value[0] == '"':
		return cutText(rawjson.Unquote(value))
	}
	return cutText(string(value))
}

func cutText(text string) string {
	if len(text) > shownText {
		return string(bytes.ToValidUTF8([]byte(text[:shownText]), nil)) + "…"
	}
	return text
}

// indented writes a record with a value to a line, if it is not too long.
func indented(text []byte) string {
	if len(text) > 2*shownText {
		return ""
	}
	var out bytes.Buffer
	if json.Indent(&out, text, "", "  ") != nil {
		return string(text)
	}
	return out.String()
}
