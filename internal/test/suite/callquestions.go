package suite

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"oda"
	asking "oda/calls"
	"oda/internal/test/must"
)

// callQuestions are about questions about calls.
var callQuestions = []scenario{
	{"what is asked about calls is answered as by who knows all of them", func(t *testing.T, d *desk) {
		round := 0
		rapid.Check(t, func(rt *rapid.T) {
			round++
			own := *d
			own.tb = rt
			k := &callKeeper{desk: &own, last: make(map[string]int64), telescopes: make(map[string]*string), name: fmt.Sprint("r", round), noon: at("1980-01-02T12:00:00Z").AddDate(0, 0, 30*round)}
			for range rapid.IntRange(1, 15).Draw(rt, "steps") {
				k.step(rt)
			}
			for range 8 {
				k.ask(rt)
				k.tally(rt)
			}
		})
	}},
	{"a block that grows is asked about again and again", func(t *testing.T, d *desk) {
		d.mustPut(eb("b"), `{}`)
		for i := range 6 {
			d.mustRecord("b", sentOn(fmt.Sprintf("2026-03-01T12:00:%02dZ", 50-i)))
			found := must.Get(d.store.Calls(d.ctx, asking.Query{Block: "b", OldestFirst: true, Limit: 100}))(t)
			if len(found) != i+1 || found[0].Sequence != int64(i+1) {
				t.Fatalf("after %d records, there are the calls %+v", i+1, found)
			}
		}
		d.mustUpdate(eb("b"), listing(sentOn("2026-03-01T13:00:00Z")))
		if found := must.Get(d.store.Calls(d.ctx, asking.Query{Block: "b", Limit: 100}))(t); len(found) != 1 {
			t.Errorf("a version with one record has %d calls", len(found))
		}
		if found := must.Get(d.store.Calls(d.ctx, asking.Query{Block: "unknown", Limit: 100}))(t); len(found) != 0 {
			t.Errorf("an unknown block has the calls %+v", found)
		}
	}},
}

// callQuestionsInside need an engine itself.
var callQuestionsInside = []scenario{
	{"the bars of a histogram have all calls", func(t *testing.T, d *desk) {
		d.mustPut(eb("b"), `{`+listing(sentOn("2026-03-01T12:00:00Z"), sentOn("2026-03-01T12:59:59.999999Z"), sentOn("2026-03-01T15:00:00Z"),
			sentOn("2026-03-01T16:00:00Z"), `{"request":"r","request_sent_at":"2026-03-01T13:00:00Z","status":"ERROR"}`)+`}`)
		from, to := oda.InstantOf(at("2026-03-01T12:00:00Z")), oda.InstantOf(at("2026-03-01T16:00:00Z"))
		hour := oda.Instant(time.Hour / time.Microsecond)
		o, err := asking.New(d.engine).Overview(d.ctx, asking.Query{From: &from, To: &to}, asking.Bars{From: from, Width: hour, Number: 4}, asking.ByRequest, asking.ByBlock)
		if err != nil || !o.Complete {
			t.Fatal(err, o)
		}
		want := []asking.Bar{
			{From: from, Calls: 2}, {From: from + hour, Calls: 1, Failures: 1}, {From: from + 2*hour}, {From: from + 3*hour, Calls: 1},
		}
		same(t, "the bars", o.Bars, want)
		if r, b := o.Tallies[0].Tally, o.Tallies[1].Tally; len(r) != 1 || r[0].Calls != 4 || r[0].Failures != 1 || len(b) != 1 || *b[0].Key != "b" {
			t.Errorf("beside the bars are the tallies %+v and %+v", r, b)
		}
	}},
	{"a page ends when its time is up, also where nothing is found", func(t *testing.T, d *desk) {
		var calls []string
		for day := range 5 {
			calls = append(calls, fmt.Sprintf(`{"request":"a","request_sent_at":"2026-03-0%dT12:00:00Z"}`, day+1))
		}
		d.mustPut(eb("a"), `{"telescope":"mid",`+listing(calls...)+`}`)
		d.mustPut(eb("b"), `{"telescope":"low",`+listing(calls[4])+`}`)
		finder, from, to := asking.New(d.engine), oda.InstantOf(at("2026-03-01T00:00:00Z")), oda.InstantOf(at("2026-03-06T00:00:00Z"))
		tally, err := finder.Tally(d.ctx, asking.Query{From: &from, To: &to, Telescope: "none", Within: 1}, asking.ByDay)
		if err != nil || tally.Complete {
			t.Error("a tally that had no time is complete", err)
		}
		for _, telescope := range []string{"none", "low"} {
			for _, forwards := range []bool{false, true} {
				q := asking.Query{From: &from, To: &to, Telescope: telescope, OldestFirst: forwards, Limit: 10, Within: 1}
				found, pages := 0, 0
				for next := ""; pages == 0 || next != ""; pages++ {
					if pages > 10 {
						t.Fatalf("the pages of %+v do not end", q)
					}
					if next != "" {
						if q, err = asking.Parse(map[string][]string{"cursor": {next}}); err != nil {
							t.Fatal(err)
						}
						q.Within = 1
					}
					page, err := finder.Page(d.ctx, q)
					if err != nil {
						t.Fatal(err)
					}
					found, next = found+len(page.Calls), ""
					if page.Next != nil {
						next = *page.Next
					}
				}
				if want := map[string]int{"low": 1}[telescope]; found != want || pages < 5 {
					t.Errorf("%s, oldest first %t: %d pages with %d calls, want %d", telescope, forwards, pages, found, want)
				}
			}
		}
	}},
}

// callKeeper knows all calls of some blocks.
type callKeeper struct {
	*desk
	name string
	noon time.Time
	made []oda.CallEntry
	last map[string]int64 // sequence number of each block

	telescopes map[string]*string
}

func (k *callKeeper) block(rt *rapid.T) string {
	return k.name + rapid.SampledFrom([]string{"-a", "-b", "-c"}).Draw(rt, "block")
}

// step stores a block, or records calls into one.
func (k *callKeeper) step(rt *rapid.T) {
	block := k.block(rt)
	var records []string
	var known []oda.CallEntry
	for range rapid.IntRange(0, 6).Draw(rt, "records") {
		text, e := k.call(rt)
		e.Block = block
		records, known = append(records, text), append(known, e)
	}
	stored, err := k.store.Get(k.ctx, eb(block))
	isNew := oda.CodeOf(err) == oda.NotFound
	if !isNew && rapid.IntRange(0, 3).Draw(rt, "a new version") > 0 {
		for i, text := range records {
			r := k.mustRecord(block, text)
			k.add(known[i], r.Sequence, r.Metadata)
		}
		return
	}
	members, telescope := listing(records...), (*string)(nil)
	if name := rapid.SampledFrom([]string{"", "mid", "low"}).Draw(rt, "telescope"); name != "" {
		members, telescope = `"telescope":"`+name+`",`+members, &name
	}
	last := k.last[block]
	k.telescopes[block] = telescope
	if isNew {
		stored = k.mustPut(eb(block), `{`+members+`}`)
	} else {
		stored = k.mustPut(eb(block), document(stored.Metadata, members))
	}
	// The texts of records differ, so none is shared with the version before.
	k.made = slices.DeleteFunc(k.made, func(e oda.CallEntry) bool { return e.Block == block })
	for i := range known {
		k.add(known[i], last+int64(i)+1, stored.Metadata)
	}
}

// add adds a call that was recorded.
func (k *callKeeper) add(e oda.CallEntry, sequence int64, m oda.Metadata) {
	e.Sequence, e.By, k.last[e.Block] = sequence, m.LastModifiedBy, sequence
	e.Telescope = k.telescopes[e.Block]
	if e.At == 0 {
		e.At = m.LastModifiedOn
	}
	k.made = append(k.made, e)
}

// call returns a record and what it says as a call.
func (k *callKeeper) call(rt *rapid.T) (string, oda.CallEntry) {
	e := oda.CallEntry{Outcome: oda.CallOK}
	e.Request = rapid.SampledFrom([]string{"scan", "tango.scan", "tango.read", "read"}).Draw(rt, "request")
	record := map[string]any{"request": e.Request, "nonce": fmt.Sprint(k.clock.Now(), len(k.made), rapid.IntRange(0, 1<<40).Draw(rt, "nonce"))}
	sent := k.noon.Add(time.Duration(rapid.IntRange(0, 60*3600).Draw(rt, "sent")) * time.Second)
	if rapid.IntRange(0, 4).Draw(rt, "not at the same time") == 0 {
		sent = k.noon
	}
	which := rapid.IntRange(0, 5).Draw(rt, "which times")
	if which > 0 && which != 1 {
		at := oda.Moment(oda.InstantOf(sent))
		e.SentAt, e.At, record["request_sent_at"] = &at, oda.Instant(at), sent.Format(time.RFC3339Nano)
	}
	if which > 0 && which != 2 {
		received := sent.Add(time.Duration(rapid.SampledFrom([]int{-5, 0, 500, 999, 1000, 60_000, 7_200_000, 90_000_000}).Draw(rt, "milliseconds")) * time.Millisecond)
		at := oda.Moment(oda.InstantOf(received))
		e.ReceivedAt, record["response_received_at"] = &at, received.Format(time.RFC3339Nano)
		if e.SentAt == nil {
			e.At = oda.Instant(at)
		} else if took := oda.Elapsed(at - *e.SentAt); took >= 0 {
			e.Took = &took
		}
	}
	if device := rapid.SampledFrom([]string{"", "SKA001", "SKA002"}).Draw(rt, "device"); device != "" {
		e.Device, record["request_args"] = &device, map[string]any{"kwargs": map[string]any{"device": device}}
	}
	switch rapid.IntRange(0, 3).Draw(rt, "failure") {
	case 0:
		e.Outcome, record["status"] = oda.CallFailed, "ERROR"
	case 1:
		kind := rapid.SampledFrom([]string{"TimeoutError", "ValueError"}).Draw(rt, "error")
		detail := kind + ": no answer from " + rapid.SampledFrom([]string{"wind", "rain"}).Draw(rt, "what")
		e.Outcome, e.Error, record["error"] = oda.CallFailed, &oda.CallError{Type: &kind, Detail: &detail}, map[string]any{"detail": detail}
	}
	text, err := json.Marshal(record)
	if err != nil {
		rt.Fatal(err)
	}
	return string(text), e
}

// question returns a question about the calls of the blocks of this keeper.
func (k *callKeeper) question(rt *rapid.T) (q asking.Query, wanted func(oda.CallEntry) bool) {
	from, to := oda.InstantOf(k.noon.AddDate(0, 0, -2)), oda.InstantOf(k.noon.AddDate(0, 0, 10))
	q.From, q.To = &from, &to
	if rapid.Bool().Draw(rt, "part of the time") {
		from = oda.InstantOf(k.noon.Add(time.Duration(rapid.IntRange(-1, 60).Draw(rt, "from")) * time.Hour))
		to = from + oda.Instant(rapid.IntRange(0, 40).Draw(rt, "hours")*3_600_000_000)
	}
	if rapid.IntRange(0, 3).Draw(rt, "in progress") == 0 {
		at := oda.InstantOf(k.noon.Add(time.Duration(rapid.IntRange(-1, 62*60).Draw(rt, "minute")) * time.Minute))
		q.From, q.To, q.At = nil, nil, &at
	}
	pick := func(name string, texts ...string) string {
		if rapid.IntRange(0, 2).Draw(rt, name+" is asked for") > 0 {
			return ""
		}
		return rapid.SampledFrom(texts).Draw(rt, name)
	}
	q.Outcome = oda.Outcome(pick("outcome", "ok", "failed", "failed"))
	q.Request = pick("request", "scan", "read", "tango.scan", "can")
	q.Device = pick("device", "SKA001", "SKA002", "SKA003")
	q.Telescope = pick("telescope", "mid", "low")
	q.Block = pick("block", k.name+"-a", k.name+"-b")
	q.Error = pick("type of error", "TimeoutError", "ValueError")
	q.Words = pick("words", "ska001", "answer wi", "RAIN timeouterror", "tango")
	if text := pick("longer", "0.5", "1", "59.5"); text != "" {
		var took oda.Elapsed
		if err := took.UnmarshalJSON([]byte(text)); err != nil {
			rt.Fatal(err)
		}
		q.LongerThan = &took
	}
	q.OldestFirst = rapid.Bool().Draw(rt, "oldest first")
	q.Limit = rapid.SampledFrom([]int{1, 2, 3, 7, 1000}).Draw(rt, "limit")
	text := func(s *string) string {
		if s == nil {
			return ""
		}
		return *s
	}
	return q, func(e oda.CallEntry) bool {
		var kind, detail string
		if e.Error != nil {
			kind, detail = text(e.Error.Type), text(e.Error.Detail)
		}
		if q.At != nil {
			if e.SentAt == nil || e.Took == nil || *e.Took < 1_000_000 || oda.Instant(*e.SentAt) > *q.At || oda.Instant(*e.ReceivedAt) <= *q.At ||
				oda.Instant(*e.SentAt) < *q.At-24*3_600_000_000 {
				return false
			}
		} else if e.At < *q.From || e.At >= *q.To {
			return false
		}
		said := strings.ToLower(strings.Join([]string{e.Request, text(e.Device), kind, detail}, " "))
		for _, word := range strings.Fields(strings.ToLower(q.Words)) {
			if !strings.Contains(said, word) { // no word of these is a part of another
				return false
			}
		}
		return (q.Outcome == "" || e.Outcome == q.Outcome) && (q.Request == "" || e.Request == q.Request || strings.HasSuffix(e.Request, "."+q.Request)) &&
			(q.Device == "" || text(e.Device) == q.Device) && (q.Telescope == "" || text(e.Telescope) == q.Telescope) && (q.Block == "" || e.Block == q.Block) &&
			(q.Error == "" || kind == q.Error) && (q.LongerThan == nil || e.Took != nil && *e.Took > *q.LongerThan)
	}
}

// ask asks for calls, page by page.
func (k *callKeeper) ask(rt *rapid.T) {
	q, wanted := k.question(rt)
	var want []oda.CallEntry
	for _, e := range k.made {
		if wanted(e) {
			want = append(want, e)
		}
	}
	byTime := q.At != nil || q.Block != "" || q.Outcome == oda.CallFailed
	slices.SortFunc(want, func(a, b oda.CallEntry) int {
		x, y := a.Place(), b.Place()
		if !byTime {
			x.At, y.At = oda.DayOf(x.At).Begin(), oda.DayOf(y.At).Begin()
		}
		if !q.OldestFirst {
			x, y = y, x
		}
		return x.Compare(y)
	})
	got, err := k.store.Calls(k.ctx, q)
	if err != nil {
		rt.Fatalf("%v: %v", q.Params(), err)
	}
	for _, list := range [][]oda.CallEntry{got, want} {
		for i := range list {
			list[i].At = 0 // is not told
		}
	}
	same(rt, fmt.Sprint(q.Params()), got, want)
}

// tally counts calls.
func (k *callKeeper) tally(rt *rapid.T) {
	q, wanted := k.question(rt)
	by := asking.By(rapid.IntRange(0, 5).Draw(rt, "by"))
	want := make(map[string]asking.Count)
	for _, e := range k.made {
		if !wanted(e) {
			continue
		}
		key := map[asking.By]*string{asking.ByRequest: &e.Request, asking.ByDevice: e.Device, asking.ByTelescope: e.Telescope, asking.ByBlock: &e.Block}[by]
		if by == asking.ByError && e.Error != nil {
			key = e.Error.Type
		}
		if by == asking.ByDay {
			day := e.At.Time().Format(time.DateOnly)
			key = &day
		}
		name := ""
		if key != nil {
			name = *key
		}
		c := want[name]
		c.Key = key
		if c.Calls++; e.Outcome == oda.CallFailed {
			c.Failures++
		}
		if e.Took != nil {
			c.Took += *e.Took
		}
		want[name] = c
	}
	tally, err := k.store.Tally(k.ctx, q, by)
	params := fmt.Sprint(q.Params(), " by ", by)
	if err != nil || !tally.Complete {
		rt.Fatalf("%s: %v, complete: %t", params, err, err == nil)
	}
	got := make(map[string]asking.Count)
	for i, c := range tally.Tally {
		if c.Key != nil {
			got[*c.Key] = c
		} else {
			got[""] = c
		}
		if i > 0 && by != asking.ByDay && tally.Tally[i-1].Failures < c.Failures {
			rt.Fatalf("%v: not in the order of failures: %v", params, tally.Tally)
		}
	}
	same(rt, "tally "+params, got, want)
}
