package suite

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"oda"
	"oda/internal/test/must"
)

// notable are about the indexes of calls that failed or lasted long.
var notable = []scenario{
	{"calls that failed are found by their time, block, function, error and device", func(_ *testing.T, d *desk) {
		d.mustPut(eb("a"), `{`+listing(
			failed("x.y.scan", "2026-03-01", `{"detail":"TimeoutError: no"}`, "SKA001"), sentOn("2026-03-01T01:00:00Z"),
			failed("scan", "2026-03-03", `{"detail":"ConnectionError: no"}`, "SKA002"), failed("a.on", "2026-03-05", `{"detail":"no"}`, ""))+`}`)
		d.mustPut(eb("b"), `{}`)
		d.mustRecord("b", failed("z.scan", "2026-03-02", `{"detail":"TimeoutError: no"}`, "SKA001"))
		d.mustRecord("b", sentOn("2026-03-02"))
		d.mustRecord("b", failed("x.on", "2026-03-04", `null`, "SKA001"))
		for _, test := range []struct {
			asked oda.CallRange
			want  string
		}{
			{anyTime(), "a/1 b/1 a/3 b/3 a/4"},
			{oda.CallRange{From: on("2026-03-02"), To: on("2026-03-04")}, "b/1 a/3"},
			{oda.CallRange{From: on("2026-03-02"), To: on("2026-03-02")}, ""},
			{oda.CallRange{From: on("2026-03-04"), To: on("2026-03-02")}, ""},
			{oda.CallRange{From: on("2026-03-02") + 1, To: on("2026-03-04") + 1}, "a/3 b/3"},
			{atAnyTime(oda.CallRange{Block: "b"}), "b/1 b/3"},
			{atAnyTime(oda.CallRange{Block: "none"}), ""},
			{atAnyTime(oda.CallRange{Function: "scan"}), "a/1 b/1 a/3"},
			{atAnyTime(oda.CallRange{Function: "y.scan"}), ""},
			{atAnyTime(oda.CallRange{Error: "TimeoutError"}), "a/1 b/1"},
			{atAnyTime(oda.CallRange{Device: "SKA001"}), "a/1 b/1 b/3"},
			{atAnyTime(oda.CallRange{Device: "SKA001", Function: "scan"}), "a/1 b/1"},
			{atAnyTime(oda.CallRange{Device: "SKA001", Error: "TimeoutError", Block: "b"}), "b/1"},
			{atAnyTime(oda.CallRange{Error: "ConnectionError", Function: "scan"}), "a/3"},
			{atAnyTime(oda.CallRange{Error: "ConnectionError", Function: "on"}), ""},
			{oda.CallRange{From: on("2026-03-02"), To: on("2026-03-03"), Function: "scan"}, "b/1"},
			{oda.CallRange{From: on("2026-03-03"), To: on("2026-03-05"), Block: "a"}, "a/3"},
			{atAnyTime(oda.CallRange{Function: "sc\x00an"}), ""},
			{atAnyTime(oda.CallRange{Device: "\xff"}), ""},
		} {
			d.mustHaveFailed(test.asked, strings.Fields(test.want)...)
		}
	}},
	{"calls of the same time are in the order of blocks, then of their sequence numbers", func(_ *testing.T, d *desk) {
		for _, block := range []string{"é", "a", "B", "aa"} {
			d.mustPut(eb(block), `{`+listing(
				failed("r", "2026-03-02", `{"detail":"1"}`, "x"), failed("r", "2026-03-01", `{"detail":"2"}`, "x"), failed("r", "2026-03-02", `{"detail":"3"}`, "x"))+`}`)
		}
		want := []string{"B/2", "a/2", "aa/2", "é/2", "B/1", "B/3", "a/1", "a/3", "aa/1", "aa/3", "é/1", "é/3"}
		for _, asked := range []oda.CallRange{anyTime(), atAnyTime(oda.CallRange{Function: "r"}), atAnyTime(oda.CallRange{Device: "x"})} {
			d.mustHaveFailed(asked, want...)
		}
		d.mustHaveFailed(atAnyTime(oda.CallRange{Block: "aa"}), "aa/2", "aa/1", "aa/3")
	}},
	{"many calls that failed, some of them of the same time", func(t *testing.T, d *desk) {
		var list []string
		for i := range 1300 { // more than twice what is read at once
			list = append(list, failed(fmt.Sprintf("r%d.f%d", i, i%3), fmt.Sprintf("2026-03-01T00:00:%02dZ", i*7919%60), `null`, "SKA001"), call(fmt.Sprint(i)))
		}
		d.mustPut(eb("b"), `{`+listing(list...)+`}`)
		all := d.calls("b")
		for _, asked := range []oda.CallRange{anyTime(), atAnyTime(oda.CallRange{Block: "b"}), atAnyTime(oda.CallRange{Function: "f1"}), atAnyTime(oda.CallRange{Device: "SKA001", Function: "f2"})} {
			for range 2 {
				asked.Backwards = !asked.Backwards
				same(t, fmt.Sprintf("%+v", asked), d.failed(asked), answer(all, asked))
			}
		}
		for range d.engine.FailedCalls(d.ctx, anyTime()) {
			break // who has read enough
		}
	}},
	{"what is known of a call that failed", func(t *testing.T, d *desk) {
		long := strings.Repeat("é", 2000)
		d.mustPut(eb("b"), `{`+listing(
			`{"request":"a.b","request_sent_at":"2026-03-01T00:00:00Z","response_received_at":"2026-03-01T00:00:02Z","status":"ERROR"}`,
			`{"request":"`+long+`.`+long+`","request_args":{"kwargs":{"device":"`+long+`"}},"error":{"detail":"`+long+`"},"response_received_at":"2026-03-02"}`,
			`{"request":"a\u0000b.c\u0000","request_args":{"device":"\u0000x"},"error":{"detail":"Er\u0000: \u0000"},"request_sent_at":"0000-01-01"}`,
			`{"request":".","error":{},"request_sent_at":"9999-12-31T23:59:59.999999Z","response_received_at":"2026-03-01"}`)+`}`)
		d.as("bert").mustRecord("b", `{"request":"r","error":{"detail":"E: x","stacktrace":"E: x"},"status":null}`)
		all := d.calls("b")
		if len(all) != 5 || all[0].By != "anna" || all[4].By != "bert" {
			t.Fatalf("the records are the calls %+v", all)
		}
		for i := range all {
			same(t, "the call", d.failed(oda.CallRange{From: all[i].At, To: all[i].At + 1}), all[i:i+1])
		}
		d.mustHaveFailed(atAnyTime(oda.CallRange{Function: *all[1].Device}), "b/2")
		d.mustHaveFailed(atAnyTime(oda.CallRange{Device: *all[2].Device}), "b/3")
	}},
	{"a call that says no time is of the time of its recording", func(t *testing.T, d *desk) {
		bad := failed("r", "", `null`, "")
		d.clock.Set(on("2026-03-02"), 0)
		d.mustPut(eb("b"), `{`+listing(bad, call("r"), bad)+`}`)
		d.mustRecord("b", bad)
		d.mustRecord("b", bad)
		d.clock.Set(on("2026-03-01"), 0) // the clock is set back
		must.Get(d.engine.Append(d.ctx, d.adding("b", d.keyed("1", bad), d.keyed("2", call("r")), d.keyed("3", bad))))(t)
		d.clock.Set(on("2026-03-05"), 0)
		d.mustRecord("b", bad)
		want := []oda.CallPlace{}
		for i, after := range []oda.Instant{0, -1, 0, 1, 2, 3, -1, 5} {
			if after >= 0 {
				want = append(want, oda.CallPlace{At: on("2026-03-02") + after, Block: "b", Sequence: int64(i + 1)})
			}
		}
		want = append(want, oda.CallPlace{At: on("2026-03-05"), Block: "b", Sequence: 9})
		got := []oda.CallPlace{}
		for _, c := range d.failed(anyTime()) {
			got = append(got, c.Place())
		}
		same(t, "the calls", got, want)
	}},
	{"calls of the current version, however their records came", func(t *testing.T, d *desk) {
		one, two, three := failed("one", "2026-03-01", `null`, ""), failed("two", "2026-03-02", `null`, ""), failed("three", "2026-03-03", `null`, "")
		put := d.write(eb("b"), `{`+listing(one, two)+`}`)
		for range 2 {
			must.Get(d.store.Create(d.ctx, put, "k"))(t)
			d.mustHaveFailed(anyTime(), "b/1", "b/2")
		}
		d.mustUpdate(eb("b"), listing(two, three))
		d.mustHaveFailed(anyTime(), "b/2", "b/3")
		d.mustUpdate(eb("b"), listing(one))
		d.mustHaveFailed(anyTime(), "b/4")
		d.mustUpdate(eb("b"), "")
		d.mustHaveFailed(anyTime())
		batch := []oda.NewRecord{d.keyed("1", one), d.keyed("2", call("r")), d.keyed("3", three), d.keyed("4", two)}
		for _, some := range [][]oda.NewRecord{batch[:1], batch[:3], batch[1:], batch} {
			must.Get(d.engine.Append(d.ctx, d.adding("b", some...)))(t)
		}
		d.mustHaveFailed(anyTime(), "b/5", "b/8", "b/7")
		for range 2 {
			must.Get(d.engine.Append(d.ctx, d.adding("b", d.keyed("5", one))))(t)
		}
		if _, err := d.engine.Append(d.ctx, d.adding("b", d.keyed("6", two), d.keyed("5", two))); err == nil {
			t.Error("a known key with another record was accepted")
		}
		if _, err := d.put(eb("b"), `{`+listing(one, two, three)+`}`); err == nil {
			t.Error("a new document of a block that is there was accepted")
		}
		d.mustHaveFailed(anyTime(), "b/5", "b/9", "b/8", "b/7")
		m := d.mustGet(eb("b")).Metadata
		must.Get(d.send(d.keep(eb("b"), document(m, ""))))(t)
		d.mustRecord("b", two)
		d.mustHaveFailed(anyTime(), "b/5", "b/9", "b/8", "b/10", "b/7")
		must.Get(d.store.Put(d.ctx, []writing{d.write(eb("c"), `{`+listing(one)+`}`), d.write(sbd("c"), `{}`), d.keep(eb("d"), `{`+listing(three)+`}`)}))(t)
		d.mustHaveFailed(atAnyTime(oda.CallRange{Function: "one"}), "b/5", "b/9", "c/1")
		d.mustHaveFailed(atAnyTime(oda.CallRange{Block: "d"}), "d/1")

		other := d.fresh()
		entries := d.entries(d.end(), everyRef)
		other.loaded(entries[:3])
		other.loaded(entries[3:])
		same(t, "the calls of a copy", other.failed(anyTime()), d.failed(anyTime()))
	}},
	{"calls that lasted long", func(t *testing.T, d *desk) {
		d.mustPut(eb("b"), `{`+listing(lasting("2026-03-01T00:00:00Z", "2026-03-01T00:00:01Z"), lasting("2026-03-01T00:00:00Z", "2026-03-01T00:00:00.999999Z"),
			lasting("2026-03-01T00:00:05Z", "2026-03-01T00:00:00Z"), sentOn("2026-03-01"))+`}`)
		d.mustPut(eb("a"), `{}`)
		d.mustRecord("a", lasting("2026-03-01T00:00:00Z", "2026-03-01T00:00:09Z"))
		must.Get(d.engine.Append(d.ctx, d.adding("a", d.keyed("", lasting("2026-02-28", "2026-03-05")), d.keyed("1", lasting("2026-02-27", "2026-03-01")))))(t)
		d.mustRecord("a", `{"request":"r","request_sent_at":"2026-03-01T00:00:05Z","response_received_at":"2026-03-01T00:00:07Z","status":"ERROR"}`)
		d.mustHaveFailed(anyTime(), "a/4")
		for _, test := range []struct {
			from, to, received string
			want               string
		}{
			{"0001-01-01", "9999-01-01", "0001-01-01", "a/3 a/2 a/1 b/1 a/4"},
			{"2026-03-01", "2026-03-01T00:00:05Z", "0001-01-01", "a/1 b/1"},
			{"2026-02-28", "2026-03-01T00:00:06Z", "2026-03-01T00:00:01Z", "a/2 a/1 a/4"},
			{"2026-02-27", "2026-03-01T00:00:00Z", "2026-03-01T00:00:00Z", "a/2"},
		} {
			asked := oda.CallRange{From: on(test.from), To: on(test.to)}
			want := strings.Fields(test.want)
			for range 2 {
				same(t, fmt.Sprintf("%+v", test), d.long(asked, on(test.received)), want)
				asked.Backwards = !asked.Backwards
				slices.Reverse(want)
			}
			for i, place := range want {
				asked.Behind = placeOf(d.calls("a", "b"), place)
				same(t, fmt.Sprintf("%+v behind %s", test, place), d.long(asked, on(test.received)), append([]string{}, want[i+1:]...))
			}
		}
		d.mustUpdate(eb("a"), "") // calls that only an earlier version has may be found
		other := d.fresh()
		other.loaded(d.entries(d.end(), everyRef))
		same(t, "the calls of a copy", other.long(anyTime(), 0), d.long(anyTime(), 0))
	}},
	{"random calls are found as a model finds them", func(t *testing.T, d *desk) {
		round := 0
		rapid.Check(t, func(rt *rapid.T) {
			round++
			own := *d
			own.tb = rt
			m := &caller{desk: &own, round: round}
			rt.Repeat(map[string]func(*rapid.T){
				"store": m.store, "record": m.record, "batch": m.batch, "keep": m.keep, "ask": m.ask, "ask for long calls": m.askLong,
			})
		})
	}},
	{"who recorded a record, and records that are among some", func(t *testing.T, d *desk) {
		d.mustPut(eb("b"), `{`+listing(sentOn("2026-03-01"), sentOn("2026-03-01T01:00:00Z"))+`}`)
		d.as("bert").mustRecord("b", sentOn("2026-03-01"))
		d.as("ünal").mustRecord("b", sentOn("2026-03-01"))
		days := oda.Days{First: day("2026-03-01"), Last: day("2026-03-01")}
		for among, want := range map[oda.Sequences]string{
			oda.AllSequences: "1 anna, 2 anna, 3 bert, 4 ünal", {First: 2, Last: 3}: "2 anna, 3 bert", {First: 4, Last: 9}: "4 ünal",
			{First: 3, Last: 2}: "", {First: math.MinInt64, Last: 1}: "1 anna",
		} {
			var got []string
			for r, err := range d.engine.RecordsOn(d.ctx, "b", days, among) {
				must.Do(t, err)
				got = append(got, fmt.Sprintf("%d %s", r.Sequence, r.By))
			}
			same(t, fmt.Sprintf("the records among %v", among), strings.Join(got, ", "), want)
		}
		page := must.Get(d.engine.Records(d.ctx, "b", 0, 10))(t)
		var by []string
		for _, r := range page.Records {
			by = append(by, r.By)
		}
		same(t, "who recorded them", by, []string{"anna", "anna", "bert", "ünal"})
	}},
}

// failed is the record of a call that failed. What is empty it does not say.
func failed(request, sent, problem, device string) string {
	text := `{"request":"` + request + `","status":"ERROR","error":` + problem
	if sent != "" {
		text += `,"request_sent_at":"` + sent + `"`
	}
	if device != "" {
		text += `,"request_args":{"kwargs":{"device":"` + device + `"}}`
	}
	return text + "}"
}

// lasting is the record of a call between two times.
func lasting(sent, received string) string {
	return `{"request":"r","request_sent_at":"` + sent + `","response_received_at":"` + received + `"}`
}

// on is an instant.
func on(text string) oda.Instant { return oda.InstantOf(at(text)) }

// anyTime asks for the calls of all times.
func anyTime() oda.CallRange { return atAnyTime(oda.CallRange{}) }

// atAnyTime asks for the calls of all times that the range has the filters for.
func atAnyTime(asked oda.CallRange) oda.CallRange {
	asked.From, asked.To = math.MinInt64, math.MaxInt64
	return asked
}

// failed returns what is found of calls that failed.
func (d *desk) failed(asked oda.CallRange) []oda.CallEntry {
	d.tb.Helper()
	found := []oda.CallEntry{}
	for call, err := range d.engine.FailedCalls(d.ctx, asked) {
		if err != nil {
			d.tb.Fatalf("calls that failed in %+v: %v", asked, err)
		}
		found = append(found, call)
	}
	return found
}

// long returns the places of calls that lasted long.
func (d *desk) long(asked oda.CallRange, received oda.Instant) []string {
	d.tb.Helper()
	found := []string{}
	for place, err := range d.engine.LongCalls(d.ctx, asked, received) {
		if err != nil {
			d.tb.Fatalf("calls that lasted long in %+v: %v", asked, err)
		}
		found = append(found, fmt.Sprintf("%s/%d", place.Block, place.Sequence))
	}
	return found
}

// mustHaveFailed demands that these calls are found, in both directions and behind each of
// them.
func (d *desk) mustHaveFailed(asked oda.CallRange, want ...string) {
	d.tb.Helper()
	want = append([]string{}, want...)
	for range 2 {
		asked.Behind = nil
		all := d.failed(asked)
		for i := -1; i < len(want); i++ {
			if i >= 0 {
				asked.Behind = placeOf(all, want[i])
			}
			got := []string{}
			for _, call := range d.failed(asked) {
				got = append(got, fmt.Sprintf("%s/%d", call.Block, call.Sequence))
			}
			same(d.tb, fmt.Sprintf("the calls that failed in %+v", asked), got, append([]string{}, want[i+1:]...))
		}
		asked.Backwards = !asked.Backwards
		slices.Reverse(want)
	}
}

// placeOf returns the place of a call.
func placeOf(all []oda.CallEntry, name string) *oda.CallPlace {
	for _, call := range all {
		if place := call.Place(); fmt.Sprintf("%s/%d", place.Block, place.Sequence) == name {
			return &place
		}
	}
	return nil
}

// calls returns the calls of the current versions of blocks, as their records say.
func (d *desk) calls(blocks ...string) (all []oda.CallEntry) {
	d.tb.Helper()
	for _, block := range blocks {
		for after, more := int64(0), true; more; {
			page, err := d.engine.Records(d.ctx, block, after, 1000)
			if err != nil {
				d.tb.Fatalf("records of %s: %v", block, err)
			}
			for _, r := range page.Records {
				all, after = append(all, r.Entry(block)), r.Sequence
			}
			more = page.More
		}
	}
	return all
}

// answer returns the calls that a range asks for, of all.
func answer(all []oda.CallEntry, asked oda.CallRange) []oda.CallEntry {
	found := []oda.CallEntry{}
	for _, c := range all {
		has := func(want string, text *string) bool { return want == "" || text != nil && *text == want }
		function := oda.Function(c.Request)
		if c.Outcome != oda.CallFailed || !inRange(c.Place(), asked) || !has(asked.Block, &c.Block) || !has(asked.Function, &function) || !has(asked.Device, c.Device) ||
			asked.Error != "" && (c.Error == nil || !has(asked.Error, c.Error.Type)) {
			continue
		}
		found = append(found, c)
	}
	slices.SortFunc(found, func(a, b oda.CallEntry) int { return a.Place().Compare(b.Place()) })
	if asked.Backwards {
		slices.Reverse(found)
	}
	return found
}

// inRange reports whether a place is in a range.
func inRange(p oda.CallPlace, asked oda.CallRange) bool {
	if p.At < asked.From || p.At >= asked.To {
		return false
	}
	if asked.Behind == nil {
		return true
	}
	order := p.Compare(*asked.Behind)
	return asked.Backwards && order < 0 || !asked.Backwards && order > 0
}

// caller makes random calls, in blocks of its own, at times of its own.
type caller struct {
	*desk
	round int
	keys  int
}

func (m *caller) block(t *rapid.T) string {
	return fmt.Sprintf("%d%s", m.round, rapid.SampledFrom([]string{"a", "b", "C"}).Draw(t, "block"))
}

// instant draws a time of this round, mostly one of a few.
func (m *caller) instant(t *rapid.T) oda.Instant {
	return on("2026-03-01") + oda.Instant(m.round)*10_000_000_000 + rapid.OneOf(rapid.SampledFrom([]oda.Instant{0, 1, 999_999, 1_000_000}), rapid.Map(rapid.IntRange(0, 9), func(i int) oda.Instant {
		return oda.Instant(i) * 1_000_000
	})).Draw(t, "time")
}

var (
	callFunctions = []string{"a.scan", "b.scan", "on"}
	callErrors    = []string{`null`, `{}`, `{"detail":"TimeoutError: x"}`, `{"detail":"IOError: x"}`}
	callDevices   = []string{"", "SKA001", "SKA002"}
)

// one draws a record.
func (m *caller) one(t *rapid.T) string {
	text := fmt.Sprintf(`{"request":%q,"error":%s,"request_args":{"device":%q}`, rapid.SampledFrom(callFunctions).Draw(t, "function"),
		rapid.SampledFrom(callErrors).Draw(t, "error"), rapid.SampledFrom(callDevices).Draw(t, "device"))
	for _, member := range []string{"request_sent_at", "response_received_at"} {
		if rapid.IntRange(0, 4).Draw(t, "said") > 0 {
			text += fmt.Sprintf(`,%q:%q`, member, m.instant(t))
		}
	}
	return text + rapid.SampledFrom([]string{"", `,"status":"OK"`, `,"status":"ERROR"`}).Draw(t, "status") + "}"
}

// store stores a version with a list, which may have some of the records of the one before.
func (m *caller) store(t *rapid.T) {
	m.clock.Set(m.instant(t), 0)
	block := m.block(t)
	list := rapid.SliceOfN(rapid.Custom(m.one), 0, 5).Draw(t, "list")
	e, err := m.desk.store.Get(m.ctx, eb(block))
	if err != nil {
		m.mustPut(eb(block), `{`+listing(list...)+`}`)
		return
	}
	for _, known := range m.records(block) {
		if rapid.Bool().Draw(t, "shared") {
			list = append(list, known)
		}
	}
	m.mustPut(eb(block), document(e.Metadata, listing(rapid.Permutation(list).Draw(t, "order")...)))
}

// keep stores a version that keeps the records.
func (m *caller) keep(t *rapid.T) {
	block := m.block(t)
	if e, err := m.desk.store.Get(m.ctx, eb(block)); err == nil {
		if _, err := m.send(m.desk.keep(eb(block), document(e.Metadata, ""))); err != nil {
			t.Fatal(err)
		}
	}
}

func (m *caller) record(t *rapid.T) {
	m.clock.Set(m.instant(t), 0)
	_, _ = m.desk.record(m.block(t), m.one(t)) // the block may not be there
}

// batch records several at once. Some may have known keys.
func (m *caller) batch(t *rapid.T) {
	m.clock.Set(m.instant(t), 0)
	block := m.block(t)
	var batch []oda.NewRecord
	for range rapid.IntRange(1, 6).Draw(t, "records") {
		m.keys++
		batch = append(batch, m.keyed(fmt.Sprint(m.keys), m.one(t)))
	}
	first := rapid.IntRange(1, len(batch)).Draw(t, "first")
	_, _ = m.engine.Append(m.ctx, m.adding(block, batch[:first]...))
	_, _ = m.engine.Append(m.ctx, m.adding(block, batch...))
}

// asked draws a range.
func (m *caller) asked(t *rapid.T) oda.CallRange {
	asked := oda.CallRange{From: m.instant(t), To: m.instant(t), Backwards: rapid.Bool().Draw(t, "backwards")}
	if rapid.Bool().Draw(t, "the whole round") {
		asked.From = on("2026-03-01") + oda.Instant(m.round)*10_000_000_000
		asked.To = asked.From + 10_000_000_000
	}
	if rapid.Bool().Draw(t, "go on") {
		asked.Behind = &oda.CallPlace{At: m.instant(t), Block: m.block(t), Sequence: rapid.Int64Range(0, 9).Draw(t, "sequence")}
	}
	return asked
}

// stored returns all calls of this round.
func (m *caller) stored() (all []oda.CallEntry) {
	for _, name := range []string{"a", "b", "C"} {
		block := fmt.Sprintf("%d%s", m.round, name)
		if _, err := m.desk.store.Get(m.ctx, eb(block)); err == nil {
			all = append(all, m.calls(block)...)
		}
	}
	return all
}

func (m *caller) ask(t *rapid.T) {
	asked := m.asked(t)
	if rapid.Bool().Draw(t, "of a block") {
		asked.Block = m.block(t)
	}
	asked.Function = rapid.SampledFrom([]string{"", "", "scan", "on"}).Draw(t, "function")
	asked.Error = rapid.SampledFrom([]string{"", "", "TimeoutError", "IOError"}).Draw(t, "error")
	asked.Device = rapid.SampledFrom(append([]string{""}, callDevices...)).Draw(t, "device")
	same(t, fmt.Sprintf("the calls that failed in %+v", asked), m.failed(asked), answer(m.stored(), asked))
}

// askLong looks for calls of the current versions among those that are found.
func (m *caller) askLong(t *rapid.T) {
	asked, received := m.asked(t), m.instant(t)
	found := m.long(asked, received)
	var want []oda.CallEntry
	for _, c := range m.stored() {
		if c.IsLong() && inRange(c.Place(), asked) && oda.Instant(*c.ReceivedAt) > received {
			c.Outcome = oda.CallFailed
			want = append(want, c)
		}
	}
	for _, c := range answer(want, asked) {
		at := slices.Index(found, fmt.Sprintf("%s/%d", c.Block, c.Sequence))
		if at < 0 {
			t.Fatalf("%+v was not found in order among %v", c.Place(), found)
		}
		found = found[at+1:]
	}
}
