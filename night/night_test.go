package night

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"oda"
)

func TestANightLastsFromNoonToNoon(t *testing.T) {
	for _, test := range []struct{ date, zone, from, to string }{
		{"2026-03-01", "", "2026-03-01T12:00:00.000000Z", "2026-03-02T12:00:00.000000Z"},
		{"2026-03-01", "UTC", "2026-03-01T12:00:00.000000Z", "2026-03-02T12:00:00.000000Z"},
		{"2026-02-28", "Africa/Johannesburg", "2026-02-28T10:00:00.000000Z", "2026-03-01T10:00:00.000000Z"},
		{"2024-02-29", "Australia/Perth", "2024-02-29T04:00:00.000000Z", "2024-03-01T04:00:00.000000Z"},
		{"2026-01-01", "Pacific/Kiritimati", "2025-12-31T22:00:00.000000Z", "2026-01-01T22:00:00.000000Z"},
		{"2026-01-01", "Asia/Kathmandu", "2026-01-01T06:15:00.000000Z", "2026-01-02T06:15:00.000000Z"},
		// The clocks go forward and back: these nights have 23 and 25 hours.
		{"2026-03-28", "Europe/Amsterdam", "2026-03-28T11:00:00.000000Z", "2026-03-29T10:00:00.000000Z"},
		{"2026-10-24", "Europe/Amsterdam", "2026-10-24T10:00:00.000000Z", "2026-10-25T11:00:00.000000Z"},
		{"2026-10-03", "Australia/Lord_Howe", "2026-10-03T01:30:00.000000Z", "2026-10-04T01:00:00.000000Z"},
		// No clock there showed the noon of the 30th.
		{"2011-12-29", "Pacific/Apia", "2011-12-29T22:00:00.000000Z", "2011-12-30T22:00:00.000000Z"},
		{"2011-12-31", "Pacific/Apia", "2011-12-30T22:00:00.000000Z", "2011-12-31T22:00:00.000000Z"},
		{"0001-01-02", "", "0001-01-02T12:00:00.000000Z", "0001-01-03T12:00:00.000000Z"},
		{"9999-12-30", "", "9999-12-30T12:00:00.000000Z", "9999-12-31T12:00:00.000000Z"},
	} {
		params := map[string][]string{"date": {test.date}}
		if test.zone != "" {
			params["zone"] = []string{test.zone}
		}
		q, err := new(Zones).Parse(params)
		if err != nil {
			t.Errorf("%s in %s: %v", test.date, test.zone, err)
			continue
		}
		if q.From.String() != test.from || q.To.String() != test.to {
			t.Errorf("%s in %s lasts from %s to %s, want from %s to %s", test.date, test.zone, q.From, q.To, test.from, test.to)
		}
		if days := oda.DayOf(q.To-1) - oda.DayOf(q.From) + 1; days > 3 {
			t.Errorf("%s in %s touches %d days", test.date, test.zone, days)
		}
	}
}

func TestNightsFollowEachOther(t *testing.T) {
	for _, zone := range []string{"UTC", "Europe/Amsterdam", "America/Santiago", "Australia/Perth", "Pacific/Apia"} {
		location, _ := zoneNamed(zone)
		day := time.Date(2011, 1, 1, 0, 0, 0, 0, time.UTC)
		_, before, _ := nightOf(day.AddDate(0, 0, -1).Format("2006-01-02"), location)
		for range 800 {
			from, to, ok := nightOf(day.Format("2006-01-02"), location)
			if !ok || from != before || to < from {
				t.Fatalf("%s: the night of %s lasts from %s to %s, but the night before ended at %s", zone, day, from, to, before)
			}
			before, day = to, day.AddDate(0, 0, 1)
		}
	}
}

func TestAnInvalidNightQuerySaysWhatToDo(t *testing.T) {
	for _, test := range []struct {
		params map[string][]string
		faults []string
		words  string
	}{
		{map[string][]string{}, []string{"query:date"}, "give the date on which the night began, as 2026-01-31"},
		{map[string][]string{"date": {""}}, []string{"query:date"}, "is empty"},
		{map[string][]string{"date": {"2026-03-01", "2026-03-01"}}, []string{"query:date"}, "is given 2 times"},
		{map[string][]string{"date": {"2026-02-29"}}, []string{"query:date"}, "write it as 2026-01-31"},
		{map[string][]string{"date": {"2026-03-01T12:00:00Z"}}, []string{"query:date"}, "write it as 2026-01-31"},
		{map[string][]string{"date": {"yesterday"}}, []string{"query:date"}, "write it as 2026-01-31"},
		{map[string][]string{"date": {"9999-12-31"}}, []string{"query:date"}, "between 0001-01-01 and 9999-12-30"},
		{map[string][]string{"date": {"0000-12-31"}}, []string{"query:date"}, "between"},
		{map[string][]string{"date": {"2026-03-01"}, "zone": {"Mars/Olympus"}}, []string{"query:zone"}, "write it as Africa/Johannesburg"},
		{map[string][]string{"date": {"2026-03-01"}, "zone": {"Local"}}, []string{"query:zone"}, "is not the name"},
		{map[string][]string{"date": {"2026-03-01"}, "zone": {"right/UTC"}}, []string{"query:zone"}, "is not the name"},
		{map[string][]string{"date": {"2026-03-01"}, "zone": {"localtime"}}, []string{"query:zone"}, "is not the name"},
		{map[string][]string{"date": {"2026-03-01"}, "zone": {"../../etc/passwd"}}, []string{"query:zone"}, "is not the name"},
		{map[string][]string{"date": {"2026-03-01"}, "telescope": {"\xff"}}, []string{"query:telescope"}, "UTF-8"},
		{map[string][]string{"zone": {"x"}}, []string{"query:zone", "query:date"}, "is not the name"},
	} {
		_, err := new(Zones).Parse(test.params)
		e, ok := err.(*oda.Error)
		if !ok || e.Code != oda.InvalidQuery {
			t.Errorf("%v: got %v", test.params, err)
			continue
		}
		var faults []string
		for _, f := range e.Faults {
			faults = append(faults, f.Pointer)
		}
		if !strings.Contains(e.Detail, test.words) || fmt.Sprint(faults) != fmt.Sprint(test.faults) {
			t.Errorf("%v: %s %v", test.params, e.Detail, faults)
		}
	}
}

// sumOf adds up the calls of one block.
func sumOf(records ...string) total {
	s := newTotal(Query{From: 0, To: oda.Day(1).Begin()})
	block := Block{ID: "b"}
	for i, text := range records {
		s.add(&block, oda.Record{Sequence: int64(i + 1), RecordedOn: 1, Text: []byte(text)})
	}
	s.blocks = append(s.blocks, block)
	return s
}

func TestWhichCallsHaveFailed(t *testing.T) {
	for text, failed := range map[string]bool{
		`{"request":"r"}`:                              false,
		`{"request":"r","status":"OK"}`:                false,
		`{"request":"r","status":"oK"}`:                false,
		`{"request":"r","status":"\u004fk"}`:           false,
		`{"request":"r","status":null}`:                false,
		`{"request":"r","status":"FAILED"}`:            true,
		`{"request":"r","status":""}`:                  true,
		`{"request":"r","status":"OK "}`:               true,
		`{"request":"r","error":null}`:                 false,
		`{"request":"r","error":{}}`:                   true,
		`{"request":"r","status":"OK","error":{}}`:     true,
		`{"request":"r","error":{},"status":"OK"}`:     true,
		`{"request":"r","response":{"error":{"a":1}}}`: false,
	} {
		night := reportOf(Query{}, []total{sumOf(text)})
		if night.Calls != 1 || (night.Tally.Failures == 1) != failed || (len(night.FailuresByRequest) == 1) != failed {
			t.Errorf("%s: %+v, want failed %v", text, night, failed)
		}
	}
}

func TestTheSlowestCallsHaveOneOrder(t *testing.T) {
	var records []string
	for i := range 50 {
		records = append(records, fmt.Sprintf(`{"request":"r","request_sent_at":"1970-01-01T00:00:%02dZ","response_received_at":"1970-01-01T00:01:%02dZ"}`, i%30, i%30+i%3))
	}
	records = append(records, `{"request":"r"}`, `{"request":"r","request_sent_at":"1970-01-01T05:00:00Z"}`,
		`{"request":"r","request_sent_at":"1970-01-01T05:00:00Z","response_received_at":"1970-01-01T04:00:00Z"}`)
	q := Query{From: 0, To: oda.Day(1).Begin()}
	want := reportOf(q, []total{sumOf(records...)})
	if len(want.Slowest) != slowestCalls || want.Slowest[0].Took != 62_000_000 || want.Slowest[0].Sequence != 3 {
		t.Errorf("the slowest are %+v", want.Slowest)
	}
	parts := []total{newTotal(q), newTotal(q), newTotal(q)}
	block := Block{ID: "b"}
	for i := len(records) - 1; i >= 0; i-- {
		parts[i%3].add(&block, oda.Record{Sequence: int64(i + 1), RecordedOn: 1, Text: []byte(records[i])})
	}
	if got := reportOf(q, parts); fmt.Sprint(got.Slowest) != fmt.Sprint(want.Slowest) {
		t.Errorf("added up in parts, the slowest are\n%+v, want\n%+v", got.Slowest, want.Slowest)
	}
}

func TestTheNamesOfRequestsTakeBoundedMemory(t *testing.T) {
	var records []string
	for i := range maxRequests + 500 {
		records = append(records, fmt.Sprintf(`{"request":"r%05d","status":"no"}`, i))
	}
	long := strings.Repeat("é", requestBytes)
	records = append(records, `{"request":"r00000"}`)
	s := sumOf(append([]string{`{"request":"` + long + `1","error":{}}`, `{"request":"` + long + `2","error":{}}`}, records...)...)
	night := reportOf(Query{}, []total{s, s})
	if len(s.requests) > 2*maxRequests || len(night.FailuresByRequest) > maxRequests+1 {
		t.Errorf("%d requests are counted separately, %d are reported", len(s.requests), len(night.FailuresByRequest))
	}
	calls, failures := int64(0), int64(0)
	for _, r := range night.FailuresByRequest {
		calls, failures = calls+r.Calls, failures+r.Failures
		if len(r.Request) > requestBytes+len("…") {
			t.Errorf("a name has %d bytes", len(r.Request))
		}
	}
	if want := int64(2 * (maxRequests + 502)); failures != want || calls != want+2 || night.Tally.Failures != want {
		t.Errorf("%d calls and %d failures by request, %d failures in all", calls, failures, night.Tally.Failures)
	}
	if first := night.FailuresByRequest[0]; first.Request != OtherRequests {
		t.Errorf("the first is %+v", first)
	}
}

func TestWhichRequestsAreCountedTogetherIsNoMatterOfChance(t *testing.T) {
	var records []string
	for i := range 3*maxRequests + 5 {
		records = append(records, fmt.Sprintf(`{"request":"r%05d","status":"no"}`, i))
	}
	var want *Report
	for seed := range uint64(3) {
		random := rand.New(rand.NewPCG(seed, 1))
		random.Shuffle(len(records), func(i, j int) { records[i], records[j] = records[j], records[i] })
		cut := random.IntN(len(records))
		night := reportOf(Query{}, []total{sumOf(records[:cut]...), sumOf(records[cut:]...)})
		if want == nil {
			want = night
		}
		if !reflect.DeepEqual(night.FailuresByRequest, want.FailuresByRequest) {
			t.Fatalf("the same calls in another order are reported differently")
		}
	}
	if others := want.FailuresByRequest[0]; !reflect.DeepEqual(others, FailedRequest{Request: OtherRequests, Failures: 2*maxRequests + 5, Calls: 2*maxRequests + 5}) {
		t.Errorf("the others are %+v", others)
	}
}

func TestAbsurdlyLongCallsDoNotOverflow(t *testing.T) {
	var t1 Tally
	for range 100 {
		t1.add(Tally{1, 0, oda.Elapsed(315_537_897_599_999_999)}) // ten thousand years
	}
	if t1.Took < 0 || t1.Calls != 100 {
		t.Errorf("the sum is %+v", t1)
	}
}
