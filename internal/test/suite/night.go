package suite

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"oda"
	"oda/client"
	"oda/internal/test/must"
	"oda/naming"
	"oda/night"
	"oda/search"
)

var nights = []scenario{
	{"a night is the sum of what is read of its blocks", func(t *testing.T, d *desk) {
		round := 0
		rapid.Check(t, func(rt *rapid.T) {
			round++
			own := *d
			own.tb = rt
			o := &observatory{
				desk: &own, name: fmt.Sprint("r", round), noon: at("2020-01-01T12:00:00Z").AddDate(0, 0, 30*round),
			}
			for range rapid.IntRange(1, 20).Draw(rt, "steps") {
				o.step(rt)
				if rapid.IntRange(0, 3).Draw(rt, "look meanwhile") == 0 {
					o.compare(rt)
				}
			}
			for range 4 {
				o.compare(rt)
			}
		})
	}},
}

// notesOfNights says what a report tells of notes, and what is unresolved.
var notesOfNights = []scenario{
	{"a night has the notes that meet it, and the time that was lost in it", func(t *testing.T, d *desk) {
		d.mustPut(note("late"), `{"text":"late","from":"2026-03-02T04:00:00Z","time_lost_s":60,"time_lost_type":"weather"}`)
		d.mustPut(note("wind"), `{"text":"wind","from":"2026-03-01T21:10:00Z","to":"2026-03-01T21:50:00Z","time_lost_s":2400.5,"time_lost_type":"weather","telescope":"ska_mid"}`)
		d.mustPut(note("before"), `{"text":"since the day","from":"2026-03-01T09:00:00Z","to":"2026-03-01T12:00:01Z","time_lost_s":100,"telescope":"ska_low"}`)
		d.mustPut(note("other"), `{"text":"something","from":"2026-03-01T12:00:00Z","time_lost_s":7}`)
		d.mustPut(note("ended"), `{"text":"ended","from":"2026-03-01T09:00:00Z","to":"2026-03-01T12:00:00Z"}`)
		d.mustPut(note("next"), `{"text":"next","from":"2026-03-02T12:00:00Z","time_lost_s":1}`)
		d.mustPut(note("gone"), `{"text":"gone","from":"2026-03-01T13:00:00Z","time_lost_s":1,"withdrawn":true}`)
		for telescope, want := range map[string]struct {
			notes []string
			lost  []night.TimeLost
		}{
			"":        {[]string{"before", "other", "wind", "late"}, []night.TimeLost{{Type: oda.LostToWeather, Lost: 2_460_500_000}, {Type: oda.LostToOther, Lost: 7_000_000}}},
			"ska_mid": {[]string{"other", "wind", "late"}, []night.TimeLost{{Type: oda.LostToWeather, Lost: 2_460_500_000}, {Type: oda.LostToOther, Lost: 7_000_000}}},
			"ska_low": {[]string{"before", "other", "late"}, []night.TimeLost{{Type: oda.LostToWeather, Lost: 60_000_000}, {Type: oda.LostToOther, Lost: 7_000_000}}},
		} {
			report := must.Get(d.store.Night(d.ctx, client.Night{Date: "2026-03-01", Zone: "UTC", Telescope: telescope}))(t)
			notes := []string{}
			for _, f := range report.Notes {
				notes = append(notes, f.ID)
			}
			same(t, "the notes of "+telescope, notes, want.notes)
			same(t, "the time lost at "+telescope, report.TimeLost, want.lost)
		}
	}},
	{"of many notes the first 500 are told, and all time is lost", func(t *testing.T, d *desk) {
		var puts []writing
		for i := range 1203 {
			text := fmt.Sprintf(`{"text":"x","from":%q,"time_lost_s":1}`, at("2026-03-01T12:00:00Z").Add(time.Duration(i*7%1203)*time.Minute).Format(time.RFC3339))
			puts = append(puts, d.write(note(fmt.Sprintf("n%04d", i*7%1203)), text))
		}
		for some := range slices.Chunk(puts, 100) {
			must.Get(d.store.Put(d.ctx, some))(t)
		}
		report := must.Get(d.store.Night(d.ctx, client.Night{Date: "2026-03-01", Zone: "UTC"}))(t)
		same(t, "how many", len(report.Notes), 500)
		for i, f := range report.Notes {
			same(t, "a note", f.ID, fmt.Sprintf("n%04d", i))
		}
		same(t, "the time lost", report.TimeLost, []night.TimeLost{{Type: oda.LostToOther, Lost: 1203_000_000}})
	}},
	{"a block with a call that goes on is running", func(t *testing.T, d *desk) {
		for _, id := range []string{"a", "b"} {
			d.mustPut(eb(id), `{"telescope":"ska_mid",`+listing(sentOn("2026-03-01T23:00:00Z"))+`}`)
		}
		d.mustBegin(d.begun("b", "k"))
		running := func() (ids []string) {
			for _, b := range must.Get(d.store.Night(d.ctx, client.Night{Date: "2026-03-01", Zone: "UTC"}))(t).Blocks {
				if b.Running {
					ids = append(ids, b.ID)
				}
			}
			return ids
		}
		same(t, "those that run", running(), []string{"b"})
		d.mustSay(d.saying(eb("a"), "Executing"))
		same(t, "those that run, as somebody says", running(), []string{"a", "b"})
		must.Do(t, d.store.Withdraw(d.ctx, d.begun("b", "k")))
		same(t, "those that run in the end", running(), []string{"a"})
	}},
}

// nightsInside need an engine itself.
var nightsInside = []scenario{
	{"unresolved is what began before the end of the night, until somebody resolves it", func(t *testing.T, d *desk) {
		reporter := night.New(d.engine, naming.New(d.engine), search.New(d.engine))
		open := func(date, telescope string) []string {
			q := must.Get(new(night.Zones).Parse(map[string][]string{"date": {date}, "telescope": {telescope}, "zone": {"UTC"}}))(t)
			ids := []string{}
			for _, f := range must.Get(reporter.Unresolved(d.ctx, q))(t) {
				ids = append(ids, f.ID)
			}
			return ids
		}
		d.mustPut(note("old"), `{"text":"receptor 17 is noisy","level":"problem","from":"2025-01-01","telescope":"ska_mid"}`)
		d.mustPut(note("new"), `{"text":"receptor 18 is noisy","level":"problem","from":"2026-03-01T23:00:00Z"}`)
		d.mustPut(note("info"), `{"text":"nothing","from":"2026-03-01T23:00:00Z"}`)
		same(t, "that night", open("2026-03-01", "ska_mid"), []string{"new", "old"})
		same(t, "the night before", open("2026-02-28", "ska_mid"), []string{"old"})
		same(t, "of another telescope", open("2026-03-01", "ska_low"), []string{"new"})
		d.mustSay(d.saying(note("old"), "Resolved"))
		same(t, "once it is resolved", open("2026-03-01", "ska_mid"), []string{"new"})
	}},
	{"what was read of a night is not read again until it changes", func(t *testing.T, d *desk) {
		q := night.Query{From: oda.InstantOf(at("2026-03-01T12:00:00Z")), To: oda.InstantOf(at("2026-03-02T12:00:00Z"))}
		store := &reading{Engine: d.engine}
		reporter := night.New(store, naming.New(store), search.New(store))
		mustRead := func(what string, most int64, calls int64) {
			t.Helper()
			store.records.Store(0)
			report, err := reporter.Report(d.ctx, q)
			if err != nil || report.Calls != calls {
				t.Fatalf("%s: %d calls are reported, want %d, and %v", what, report.Calls, calls, err)
			}
			if read := store.records.Load(); read > most {
				t.Errorf("%s: %d records were read, want at most %d", what, read, most)
			}
		}
		tonight, tomorrow := sentOn("2026-03-01T23:00:00Z"), sentOn("2026-03-02T23:00:00Z")
		d.mustPut(eb("long"), `{`+listing(slices.Repeat([]string{tonight}, 900)...)+`}`)
		d.mustPut(eb("short"), `{`+listing(tonight, tomorrow)+`}`)
		mustRead("first", 902, 901)
		mustRead("again", 0, 901)
		d.mustRecord("long", tonight)
		mustRead("after a record", 2, 902)
		d.mustRecord("long", tomorrow)
		mustRead("after a record of another night", 2, 902)
		mustRead("after nothing", 0, 902)
		d.mustUpdate(eb("long"), listing(tonight, tonight, tomorrow))
		mustRead("after another version", 3, 3)
		d.mustUpdate(eb("short"), "")
		mustRead("after a version without calls", 0, 2)
		d.mustRecord("short", tonight)
		mustRead("after its first record", 1, 3)
	}},
	{"records that come while a night is reported are in it whole or not at all", func(t *testing.T, d *desk) {
		d.mustPut(eb("b"), `{}`)
		reporter := night.New(d.engine, naming.New(d.engine), search.New(d.engine))
		q := night.Query{From: oda.InstantOf(at("2026-03-01T12:00:00Z")), To: oda.InstantOf(at("2026-03-02T12:00:00Z"))}
		stop, ended := make(chan struct{}), make(chan error, 1)
		go func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					ended <- nil
					return
				default:
				}
				pair := d.adding("b", oda.NewRecord{Text: []byte(sentOn("2026-03-01T23:00:00Z"))}, oda.NewRecord{Text: []byte(sentOn("2026-03-02T01:00:00Z"))})
				if _, err := d.engine.Append(d.ctx, pair); err != nil {
					ended <- err
					return
				}
			}
		}()
		last := int64(0)
		for range 30 {
			report := must.Get(reporter.Report(d.ctx, q))(t)
			if report.Calls < last || report.Calls%2 != 0 {
				t.Errorf("%d calls are reported, after %d", report.Calls, last)
			}
			last = report.Calls
		}
		close(stop)
		must.Do(t, <-ended)
	}},
}

// reading is an engine that counts the records that are read.
type reading struct {
	oda.Engine
	records atomic.Int64
}

func (r *reading) RecordsOn(ctx context.Context, block string, days oda.Days, among oda.Sequences) iter.Seq2[oda.Record, error] {
	return func(yield func(oda.Record, error) bool) {
		for record, err := range r.Engine.RecordsOn(ctx, block, days, among) {
			r.records.Add(1)
			if !yield(record, err) {
				return
			}
		}
	}
}

func (r *reading) Records(ctx context.Context, block string, after int64, limit int) (oda.RecordPage, error) {
	page, err := r.Engine.Records(ctx, block, after, limit)
	r.records.Add(int64(len(page.Records)))
	return page, err
}

// observatory makes random calls on the days around a date.
type observatory struct {
	*desk
	name string
	noon time.Time
}

func (o *observatory) block(t *rapid.T) string {
	return o.name + rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "block")
}

// step stores or records something.
func (o *observatory) step(t *rapid.T) {
	o.clock.Set(oda.InstantOf(o.moment(t)), time.Microsecond)
	ref := eb(o.block(t))
	stored, err := o.store.Get(o.ctx, ref)
	if err != nil {
		o.mustPut(ref, `{`+o.members(t, true)+`}`)
		return
	}
	switch rapid.IntRange(0, 5).Draw(t, "step") {
	case 0:
		o.mustPut(ref, document(stored.Metadata, o.members(t, true)))
	case 1:
		if _, err := o.send(o.keep(ref, document(stored.Metadata, o.members(t, false)))); err != nil {
			t.Fatalf("keep: %v", err)
		}
	default:
		var batch []oda.NewRecord
		for i, text := range o.calls(t, 1) {
			key := rapid.SampledFrom([]string{"", "", fmt.Sprint(i), fmt.Sprint(i, "-", len(text))}).Draw(t, "key")
			batch = append(batch, o.keyed(key, text))
		}
		if _, err := o.store.Append(o.ctx, o.adding(ref.ID, batch...)); err != nil && oda.CodeOf(err) != oda.KeyReused {
			t.Fatalf("record: %v", err)
		}
	}
}

// moment is some time around the date, often close to an end of a night or day.
func (o *observatory) moment(t *rapid.T) time.Time {
	hours := rapid.SampledFrom([]int{0, 0, 12, 24, 36, -12, 2, 10, 13, 23}).Draw(t, "hours")
	return o.noon.Add(time.Duration(hours)*time.Hour + time.Duration(rapid.SampledFrom([]int{-1, 0, 1, 60_000_000}).Draw(t, "microseconds"))*time.Microsecond)
}

// members are those of a block, with a list of records where it may have one.
func (o *observatory) members(t *rapid.T, list bool) string {
	members := rapid.SampledFrom([]string{`"a":1`, `"telescope":"ska_mid","status":"Executing"`, `"telescope":"ska_low","sbi_ref":"sbi-1","status":"Observed"`}).Draw(t, "members")
	if list && rapid.Bool().Draw(t, "listed") {
		members += "," + listing(o.calls(t, 0)...)
	}
	return members
}

// calls are records of some calls.
func (o *observatory) calls(t *rapid.T, least int) []string {
	var records []string
	for range rapid.IntRange(least, 4).Draw(t, "calls") {
		record := fmt.Sprintf(`{"request":"r%d"`, rapid.IntRange(0, 2).Draw(t, "request"))
		for _, name := range []string{"request_sent_at", "response_received_at"} {
			zone := time.FixedZone("", 60*rapid.SampledFrom([]int{0, 330, -720}).Draw(t, "offset"))
			switch moment := o.moment(t).In(zone); rapid.IntRange(0, 3).Draw(t, "form") {
			case 0:
				record += fmt.Sprintf(`,%q:null`, name)
			case 1:
				record += fmt.Sprintf(`,%q:%q`, name, moment.Format("2006-01-02T15:04:05.999999999Z07:00"))
			case 2:
				record += fmt.Sprintf(`,%q:%q`, name, moment.UTC().Format("2006-01-02 15:04:05.000000999"))
			}
		}
		record += rapid.SampledFrom([]string{``, ``, `,"status":"OK"`, `,"status":"ok"`, `,"status":"ERROR"`, `,"status":null`, `,"status":""`}).Draw(t, "status")
		record += rapid.SampledFrom(append(slices.Repeat([]string{``}, 3), errorSamples...)).Draw(t, "error")
		records = append(records, record+`}`)
	}
	return records
}

// compare asks for a night and adds up itself what all blocks answer.
func (o *observatory) compare(t *rapid.T) {
	zone := rapid.SampledFrom([]string{"UTC", "Africa/Johannesburg", "Pacific/Kiritimati", "Pacific/Honolulu", "America/New_York"}).Draw(t, "zone")
	date := o.noon.AddDate(0, 0, rapid.IntRange(-2, 2).Draw(t, "night")).Format("2006-01-02")
	which := client.Night{Date: date, Zone: zone, Telescope: rapid.SampledFrom([]string{"", "", "ska_low"}).Draw(t, "telescope")}
	got, err := o.store.Night(o.ctx, which)
	if err != nil {
		t.Fatalf("%+v: %v", which, err)
	}
	location, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatalf("%v", err)
	}
	noon, err := time.ParseInLocation("2006-01-02 15", date+" 12", location)
	if err != nil {
		t.Fatalf("%v", err)
	}
	want := o.night(t, noon, noon.AddDate(0, 0, 1), which.Telescope)
	want.Zone = zone
	if o.engine == nil { // what clients are not told
		want.Usual = nil
		for i := range want.Blocks {
			want.Blocks[i].LastResponse = 0
		}
	}
	for i := range got.Telescopes { // of which a drawing is made
		one, sum, end := &got.Telescopes[i], oda.Elapsed(0), oda.Instant(math.MinInt64)
		for _, s := range one.InCalls {
			if s.From <= end || s.To <= s.From {
				t.Fatalf("telescope %d is busy %v", i, one.InCalls)
			}
			sum, end = sum+oda.Elapsed(s.To-s.From), s.To
		}
		if o.engine != nil && sum != one.Busy {
			t.Fatalf("telescope %d is busy %v, in all %d", i, one.InCalls, one.Busy)
		}
		one.InCalls = nil
	}
	same(t, fmt.Sprintf("the night %+v", which), *got, want)
}

// night adds up, the plain way.
func (o *observatory) night(t *rapid.T, from, to time.Time, telescope string) night.Report {
	report := night.Report{
		From: oda.Moment(oda.InstantOf(from)), To: oda.Moment(oda.InstantOf(to)), Blocks: []night.Block{}, Slowest: []night.SlowCall{},
		FailuresByRequest: []night.FailedRequest{}, Notes: []oda.Found{}, TimeLost: []night.TimeLost{},
	}
	var all []observedCall
	requests := map[string]night.FailedRequest{}
	for _, id := range o.list(oda.Query{Kind: oda.ExecutionBlock, Order: oda.ByCreation}) {
		if !strings.HasPrefix(id, o.name) {
			continue
		}
		block := o.observed(id)
		if telescope != "" && (block.Telescope == nil || *block.Telescope != telescope) {
			continue
		}
		page, err := o.store.Records(o.ctx, id, 0, 10_000)
		if err != nil {
			t.Fatalf("records: %v", err)
		}
		for _, r := range page.Records {
			var c struct {
				Request  string         `json:"request"`
				Sent     string         `json:"request_sent_at"`
				Received string         `json:"response_received_at"`
				Status   *string        `json:"status"`
				Error    *observedError `json:"error"`
			}
			if err := json.Unmarshal(r.Text, &c); err != nil {
				t.Fatalf("%s: %v", r.Text, err)
			}
			when := r.RecordedOn.Time()
			if c.Received != "" {
				when = at(c.Received)
			}
			if c.Sent != "" {
				when = at(c.Sent)
			}
			if when.Before(from) || !when.Before(to) {
				continue
			}
			tally := night.Tally{Calls: 1}
			if c.Error != nil || c.Status != nil && !strings.EqualFold(*c.Status, "OK") {
				tally.Failures = 1
			}
			one := observedCall{telescope: block.Telescope, block: id, sequence: r.Sequence, request: c.Request, at: oda.InstantOf(when), failed: tally.Failures > 0, error: c.Error}
			if c.Sent != "" && c.Received != "" && !oda.InstantOf(at(c.Received)).Time().Before(oda.InstantOf(at(c.Sent)).Time()) {
				tally.Took = oda.Elapsed(oda.InstantOf(at(c.Received)) - oda.InstantOf(at(c.Sent)))
				one.sent, one.received, one.timed = oda.InstantOf(at(c.Sent)), oda.InstantOf(at(c.Received)), true
				report.Slowest = append(report.Slowest, night.SlowCall{Block: id, Sequence: r.Sequence, Request: c.Request, SentAt: oda.Moment(oda.InstantOf(at(c.Sent))), Took: tally.Took})
			}
			all = append(all, one)
			i := oda.Moment(oda.InstantOf(when))
			if block.Calls == 0 {
				block.FirstCall, block.LastCall, block.LastResponse = i, i, i
			}
			block.FirstCall, block.LastCall = min(block.FirstCall, i), max(block.LastCall, i)
			block.LastResponse = max(block.LastResponse, i, i+oda.Moment(tally.Took))
			block.Tally = sum(block.Tally, tally)
			report.Tally = sum(report.Tally, tally)
			request := requests[c.Request]
			requests[c.Request] = night.FailedRequest{Request: c.Request, Calls: request.Calls + 1, Failures: request.Failures + tally.Failures}
			if tally.Failures > 0 {
			}
		}
		if block.Calls > 0 {
			block.Busy = busyIn(all, func(c *observedCall) bool { return c.block == id }, lastInstant)
			report.Blocks = append(report.Blocks, block)
		}
	}
	fillUse(&report, all)
	report.Errors = errorsOf(all)
	report.Unusual, report.Usual = unusualOf(all)
	slices.SortFunc(report.Blocks, func(a, b night.Block) int {
		return cmp.Or(cmp.Compare(a.FirstCall, b.FirstCall), cmp.Compare(a.ID, b.ID))
	})
	slices.SortFunc(report.Slowest, func(a, b night.SlowCall) int {
		return cmp.Or(cmp.Compare(b.Took, a.Took), cmp.Compare(a.SentAt, b.SentAt), cmp.Compare(a.Block, b.Block), cmp.Compare(a.Sequence, b.Sequence))
	})
	report.Slowest = report.Slowest[:min(20, len(report.Slowest))]
	for _, r := range requests {
		if r.Failures > 0 {
			report.FailuresByRequest = append(report.FailuresByRequest, r)
		}
	}
	slices.SortFunc(report.FailuresByRequest, func(a, b night.FailedRequest) int {
		return cmp.Or(cmp.Compare(b.Failures, a.Failures), cmp.Compare(a.Request, b.Request))
	})
	return report
}

func sum(a, b night.Tally) night.Tally {
	return night.Tally{Calls: a.Calls + b.Calls, Failures: a.Failures + b.Failures, Took: a.Took + b.Took}
}

// observed reads what a report says of a block as such.
func (o *observatory) observed(id string) night.Block {
	block := night.Block{ID: id, CreatedBy: o.mustGet(eb(id)).Metadata.CreatedBy, References: []oda.Reference{}}
	var in struct {
		Telescope *string `json:"telescope"`
		SBI       string  `json:"sbi_ref"`
		Status    string  `json:"status"`
	}
	if err := json.Unmarshal([]byte(o.text(eb(id))), &in); err != nil {
		o.tb.Fatalf("%v", err)
	}
	block.Telescope, block.Status, block.Running = in.Telescope, oda.StandingOf(in.Status), in.Status == "Executing"
	if in.SBI != "" {
		block.References = append(block.References, oda.Reference{Kind: oda.SBInstance, ID: in.SBI, Field: "sbi_ref"})
	}
	return block
}
