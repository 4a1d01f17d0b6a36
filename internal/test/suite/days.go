package suite

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"oda"
	"oda/internal/test/must"
)

// days are about the index of the days of calls.
var days = []scenario{
	{"a block is found on the days of its calls", func(t *testing.T, d *desk) {
		d.mustPut(eb("b"), `{}`)
		d.mustPut(eb("none"), `{}`)
		d.mustRecord("b", sentOn("2026-03-01T23:59:59.999999Z"))
		d.mustRecord("b", sentOn("2026-03-02T00:00:00Z"))
		d.mustRecord("b", sentOn("2026-03-05T12:00:00+13:00"))
		d.mustRecord("b", `{"request":"r","response_received_at":"2026-03-08"}`)
		for day, want := range map[string][]int64{
			"2026-02-28": nil, "2026-03-01": {1}, "2026-03-02": {2}, "2026-03-03": nil, "2026-03-04": {3}, "2026-03-05": nil, "2026-03-08": {4},
		} {
			d.mustFind(day, day, map[string][]int64{"b": want})
		}
		d.mustFind("2026-03-01", "2026-03-02", map[string][]int64{"b": {1, 2}})
		d.mustFind("2026-03-02", "2026-03-04", map[string][]int64{"b": {2, 3}})
	}},
	{"a call without a time is of the day on which it is recorded", func(t *testing.T, d *desk) {
		d.mustPut(eb("b"), `{}`)
		midnight := oda.InstantOf(at("2026-03-02"))
		d.clock.Set(midnight-2, 0)
		// Time never stands still, so the third is recorded on the next day.
		for range 3 {
			d.mustRecord("b", call("r"))
		}
		d.clock.Set(midnight-1, 0) // the clock is set back
		d.mustRecord("b", call("r"))
		d.mustRecord("b", sentOn("2026-03-01"))
		d.mustRecord("b", call("r"))
		d.mustFind("2026-03-01", "2026-03-01", map[string][]int64{"b": {1, 2, 5}})
		d.mustFind("2026-03-02", "2026-03-02", map[string][]int64{"b": {3, 4, 6}})
	}},
	{"a clock before 1970", func(t *testing.T, d *desk) {
		d.clock.Set(oda.InstantOf(at("1969-12-30"))-2, 0)
		d.mustPut(eb("b"), `{}`)
		d.mustPut(eb("listed"), `{"request_responses":[`+call("r")+`]}`)
		d.clock.Set(oda.InstantOf(at("1969-12-31"))-2, 0)
		for range 3 {
			d.mustRecord("b", call("r"))
		}
		must.Get(d.engine.Append(d.ctx, d.adding("b", d.keyed("1", call("r")), d.keyed("2", call("r")))))(t)
		d.mustFind("1969-12-29", "1969-12-30", map[string][]int64{"b": {1, 2}, "listed": {1}})
		d.mustFind("1969-12-31", "1969-12-31", map[string][]int64{"b": {3, 4, 5}, "listed": nil})
	}},
	{"several records at once, of many days, some of them known", func(t *testing.T, d *desk) {
		d.mustPut(eb("b"), `{}`)
		d.clock.Set(oda.InstantOf(at("2026-03-02"))-2, 0)
		batch := []oda.NewRecord{
			d.keyed("1", sentOn("2026-03-07")), d.keyed("2", call("r")), d.keyed("3", call("r")), d.keyed("4", call("r")),
			d.keyed("5", sentOn("2026-03-07")), d.keyed("6", sentOn("2026-03-05")),
		}
		for _, some := range [][]oda.NewRecord{batch[:4], batch, batch} {
			must.Get(d.engine.Append(d.ctx, d.adding("b", some...)))(t)
		}
		d.mustFind("2026-03-01", "2026-03-01", map[string][]int64{"b": {2}})
		d.mustFind("2026-03-02", "2026-03-02", map[string][]int64{"b": {3, 4}})
		d.mustFind("2026-03-05", "2026-03-07", map[string][]int64{"b": {1, 5, 6}})
	}},
	{"records that come in a list, and those that the next version shares", func(t *testing.T, d *desk) {
		first, second := sentOn("2026-03-01T12:00:00Z"), sentOn("2026-03-02T12:00:00Z")
		d.mustPut(eb("b"), `{`+listing(first, second, call("recorded with its block"))+`}`)
		d.mustFind("2026-01-01", "2026-01-01", map[string][]int64{"b": {3}})
		d.mustFind("2026-03-01", "2026-03-02", map[string][]int64{"b": {1, 2}})
		d.mustUpdate(eb("b"), listing(sentOn("2026-03-09"), second))
		d.mustFind("2026-03-01", "2026-03-01", map[string][]int64{"b": nil})
		d.mustFind("2026-03-02", "2026-03-02", map[string][]int64{"b": {2}})
		d.mustFind("2026-03-09", "2026-03-09", map[string][]int64{"b": {4}})
		d.mustUpdate(eb("b"), "")
		d.mustFind("2026-03-01", "2026-03-03", map[string][]int64{"b": nil})
		d.mustRecord("b", sentOn("2026-03-02"))
		d.mustFind("2026-03-02", "2026-03-02", map[string][]int64{"b": {5}})
		m := d.mustGet(eb("b")).Metadata
		must.Get(d.send(d.keep(eb("b"), document(m, ""))))(t)
		d.mustRecord("b", sentOn("2026-03-02"))
		d.mustFind("2026-03-02", "2026-03-02", map[string][]int64{"b": {5, 6}})
	}},
	{"a block that is created with a list", func(t *testing.T, d *desk) {
		put := d.write(eb("b"), `{`+listing(sentOn("2026-03-01"), sentOn("2026-03-02"))+`}`)
		must.Get(d.store.Create(d.ctx, put, "k"))(t)
		d.mustFind("2026-03-02", "2026-03-02", map[string][]int64{"b": {2}})
	}},
	{"calls of any year that can be written", func(t *testing.T, d *desk) {
		d.mustPut(eb("b"), `{}`)
		for i, day := range []string{"0000-01-01", "0001-01-01", "1969-12-31", "1970-01-01", "9999-12-31"} {
			d.mustRecord("b", sentOn(day+"T23:59:59.999999999Z"))
			d.mustFind(day, day, map[string][]int64{"b": {int64(i + 1)}})
		}
	}},
	{"a day is found in a long block, and little else is read", func(t *testing.T, d *desk) {
		var list []string
		for i := range 9000 {
			list = append(list, fmt.Sprintf(`{"request":"%d","request_sent_at":"2026-03-%02dT12:00:00Z"}`, i, 1+i/1000))
		}
		d.mustPut(eb("b"), `{`+listing(list...)+`}`)
		read := 0
		for _, err := range d.engine.RecordsOn(d.ctx, "b", oda.Days{First: day("2026-03-08"), Last: day("2026-03-08")}, oda.AllSequences) {
			if err != nil {
				t.Fatal(err)
			}
			read++
		}
		if read < 1000 || read > 4096+1000 {
			t.Errorf("%d of 9000 records were read for a day that has 1000", read)
		}
		var want []int64
		for i := range int64(1000) {
			want = append(want, 4001+i)
		}
		d.mustFind("2026-03-05", "2026-03-05", map[string][]int64{"b": want})
	}},
	{"records of one day that end one part of a block and begin the next", func(t *testing.T, d *desk) {
		var list []string
		var want []int64
		for i := range 4090 {
			list = append(list, fmt.Sprintf(`{"request":"%d","request_sent_at":"2026-03-01"}`, i))
			want = append(want, int64(i+1))
		}
		d.mustPut(eb("b"), `{`+listing(list...)+`}`)
		for range 5 { // one by one, and three at a time
			want = append(want, d.mustRecord("b", sentOn("2026-03-01T12:00:00Z")).Sequence)
			one := d.keyed("", sentOn("2026-03-01"))
			receipts := must.Get(d.engine.Append(d.ctx, d.adding("b", one, one, one)))(t)
			for _, r := range receipts {
				want = append(want, r.Sequence)
			}
		}
		d.mustFind("2026-03-01", "2026-03-01", map[string][]int64{"b": want})
		d.mustUpdate(eb("b"), listing(list[:10]...))
		want = append(want[:10:10], d.mustRecord("b", sentOn("2026-03-01")).Sequence)
		d.mustFind("2026-03-01", "2026-03-01", map[string][]int64{"b": want})
	}},
	{"the days around one", func(_ *testing.T, d *desk) {
		d.mustBeAround("2026-03-01", "2026-03-01", "", "")
		d.mustPut(eb("b"), `{`+listing(sentOn("2026-03-02"), sentOn("1969-12-30"), sentOn("2026-03-09T23:59:59Z"))+`}`)
		d.mustPut(eb("c"), `{`+listing(sentOn("2026-03-02"))+`}`)
		d.mustBeAround("2026-03-01", "2026-03-03", "1969-12-30", "2026-03-09")
		d.mustBeAround("2026-03-02", "2026-03-02", "2026-03-02", "2026-03-02")
		d.mustBeAround("1969-12-29", "2026-03-10", "", "")
		d.mustRecord("b", sentOn("2026-03-20"))
		d.mustBeAround("0001-01-01", "2026-03-10", "", "2026-03-20")
	}},
	{"many blocks are found, but no more than are wanted", func(t *testing.T, d *desk) {
		want := map[string][]int64{}
		for i := range 30 {
			id := fmt.Sprint("b", i)
			d.mustPut(eb(id), `{`+listing(sentOn("2026-03-01"), sentOn("2026-03-02"))+`}`)
			want[id] = []int64{1, 2}
		}
		d.mustFind("2026-03-01", "2026-03-02", want)
		ids, err := d.engine.BlocksOn(d.ctx, oda.Days{First: day("2026-03-01"), Last: day("2026-03-02")}, 7)
		if err != nil || len(ids) != 7 {
			t.Errorf("got %d blocks and %v, want 7", len(ids), err)
		}
	}},
}

// sentOn is a record of a call that was made at a time.
func sentOn(time string) string { return `{"request":"r","request_sent_at":"` + time + `"}` }

// at is a time.
func at(text string) time.Time {
	t, err := oda.ParseTime(text)
	if err != nil {
		panic("suite: " + text + " " + err.Error())
	}
	return t
}

// day is the day of a date.
func day(date string) oda.Day { return oda.DayOf(oda.InstantOf(at(date))) }

// mustBeAround demands that these are the last day with calls up to one, and the first
// from another on; empty if there is none.
func (d *desk) mustBeAround(until, from, before, after string) {
	d.tb.Helper()
	gotBefore, gotAfter, err := d.engine.DaysAround(d.ctx, day(until), day(from))
	if err != nil {
		d.tb.Fatalf("the days around: %v", err)
	}
	want := func(date string) *oda.Day {
		if date == "" {
			return nil
		}
		on := day(date)
		return &on
	}
	same(d.tb, "the days with calls up to "+until+" and from "+from, []*oda.Day{gotBefore, gotAfter}, []*oda.Day{want(before), want(after)})
}

// mustFind demands that these are the calls of the days, by their sequence
// numbers.
func (d *desk) mustFind(first, last string, want map[string][]int64) {
	d.tb.Helper()
	days := oda.Days{First: day(first), Last: day(last)}
	ids, err := d.engine.BlocksOn(d.ctx, days, 1000)
	if err != nil {
		d.tb.Fatalf("blocks on %s to %s: %v", first, last, err)
	}
	slices.Sort(ids)
	if unique := slices.Compact(slices.Clone(ids)); len(unique) != len(ids) {
		d.tb.Errorf("blocks were found twice: %v", ids)
	}
	for block, sequences := range want {
		if sequences != nil && !slices.Contains(ids, block) {
			d.tb.Errorf("the block %s was not found on %s to %s, but %v", block, first, last, ids)
		}
		var got []int64
		for r, err := range d.engine.RecordsOn(d.ctx, block, days, oda.AllSequences) {
			if err != nil {
				d.tb.Fatalf("calls of %s on %s to %s: %v", block, first, last, err)
			}
			if on := oda.KeysOfCall(r.Text).Day.Or(r.RecordedOn); on >= days.First && on <= days.Last {
				got = append(got, r.Sequence)
			}
		}
		same(d.tb, fmt.Sprintf("the calls of %s on %s to %s", block, first, last), got, sequences)
	}
}
