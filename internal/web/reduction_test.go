package web_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"oda"
	"oda/internal/test/must"
	"oda/internal/web"
)

// callIn writes a record. Times are in seconds; a negative one is not said.
func callIn(request string, sent, received float64, failed bool) string {
	at := func(name string, seconds float64) string {
		if seconds < 0 {
			return ""
		}
		t := time.Date(2026, 3, 1, 20, 0, 0, 0, time.UTC).Add(time.Duration(seconds * float64(time.Second)))
		return `,"` + name + `":"` + t.Format("2006-01-02T15:04:05.000000Z") + `"`
	}
	outcome := `,"status":"OK","response":{"result":"fine"}`
	if failed {
		outcome = `,"status":"ERROR","error":{"detail":"it broke","stacktrace":"Traceback:\n  in ` + request + `"}`
	}
	return `{"request":"` + request + `","request_args":{"kwargs":{"receptor":"SKA001"}}` + at("request_sent_at", sent) + at("response_received_at", received) + outcome + `}`
}

// storeCalls stores a block with these calls.
func (s site) storeCalls(t *testing.T, block string, calls []string) {
	t.Helper()
	body := `{"telescope":"ska_mid","request_responses":[` + strings.Join(calls, ",") + `]`
	if stored := s.Do("GET", "/ebs/"+block, ""); stored.Status == http.StatusOK {
		var of struct{ Metadata json.RawMessage }
		must.Do(t, json.Unmarshal(stored.Body, &of))
		body += `,"metadata":` + string(of.Metadata)
	}
	s.Must("PUT", "/ebs/"+block, body+`}`)
}

// record records a call.
func (s site) record(t *testing.T, block, call string) {
	t.Helper()
	s.Must("PATCH", "/ebs/"+block+"/request_response", call)
}

// reduction is what a timeline is drawn from.
type reduction struct {
	Calls, Failures int
	Complete        bool
	Begin, End      int64
	Focus           [2]int64
	From, To        int64
	By              string
	Lanes           []struct {
		Name                  string
		Rows, Calls, Failures int
	}
	Functions []string
	Bars      [][10]int64
	Gaps      [][2]int64
	Overview  [][2]int64
}

// timeline asks for the data of a timeline until it is complete.
func (s site) timeline(t *testing.T, block, query string) reduction {
	t.Helper()
	for {
		answer := s.get(t, "ebs/"+block+"/timeline?"+query)
		var r reduction
		if err := json.Unmarshal(answer.Body, &r); answer.Status != http.StatusOK || err != nil {
			t.Fatalf("%d %v %s", answer.Status, err, answer.Body)
		}
		if r.Complete {
			return r
		}
	}
}

// counted adds the bars up.
func (r *reduction) counted() (calls, failures int) {
	for _, b := range r.Bars {
		calls += int(b[4])
		failures += int(b[5])
	}
	return calls, failures
}

// Whatever the calls are like, each is in one bar, in a row of its lane, and calls
// that are drawn by themselves do not cover each other.
func TestEveryCallHasItsBar(t *testing.T) {
	s := emptySite(t)
	many := func(n int, one func(i int) string) []string {
		calls := make([]string, n)
		for i := range calls {
			calls[i] = one(i)
		}
		return calls
	}
	for name, calls := range map[string][]string{
		"one":           {callIn("m.f", 0, 1, false)},
		"none":          {},
		"without-times": many(30, func(i int) string { return callIn("m.f", -1, -1, i == 3) }),
		"some-timeless": many(30, func(i int) string { return callIn("m.f", float64(i%3-1), float64(i%3), i == 3) }),
		"equal":         many(50, func(i int) string { return callIn(fmt.Sprint("m.f", i%3), 5, 5, i%10 == 0) }),
		"overlapping":   many(200, func(i int) string { return callIn("m.f", float64(i), float64(i+1000), i%7 == 0) }),
		"odd-order":     many(100, func(i int) string { return callIn("m.f", float64(i*37%100), float64(i*53%100), i%9 == 0) }),
		"unanswered":    many(20, func(i int) string { return callIn("m.f", float64(i), -1, i%2 == 0) }),
		"all-times": {
			`{"request":"m.f","request_sent_at":"0001-01-01T00:00:00Z","response_received_at":"9999-12-31T23:59:59Z"}`,
			`{"request":"m.f","request_sent_at":"9999-12-31T23:59:58Z","response_received_at":"9999-12-31T23:59:59Z"}`,
		},
		"many-modules": many(300, func(i int) string { return callIn(fmt.Sprintf("m%d.f", i), float64(i), float64(i)+.5, i%11 == 0) }),
		"long": many(8000, func(i int) string {
			return callIn(fmt.Sprintf("m%d.f", i%3), float64(i)/10, float64(i)/10+.3, i%99 == 0)
		}),
	} {
		block := "eb-" + name
		s.storeCalls(t, block, calls)
		failures := 0
		for _, c := range calls {
			failures += strings.Count(c, "it broke")
		}
		for _, query := range []string{"", "by=device", "by=function&parts=5000", "parts=10", "parts=x&from=y"} {
			r := s.timeline(t, block, query)
			if n, failed := r.counted(); n != len(calls) || failed != failures || r.Calls != n || r.Failures != failed {
				t.Errorf("%s %s: the bars have %d calls and %d failures, want %d and %d", name, query, n, failed, len(calls), failures)
			}
			if len(r.Bars) > 5000 || len(r.Lanes) > 40 {
				t.Errorf("%s %s: there are %d bars in %d lanes", name, query, len(r.Bars), len(r.Lanes))
			}
			var before [10]int64
			for _, b := range r.Bars {
				lane := r.Lanes[b[0]]
				if b[1] >= int64(lane.Rows) || b[2] < 0 || b[3] < 0 || r.Begin+b[2]+b[3] > r.End {
					t.Errorf("%s %s: the bar %v is out of its lane %v", name, query, b, lane)
				}
				if alone := before[4] == 1 && b[4] == 1 && b[1] < 11; alone && before[0] == b[0] && before[1] == b[1] && before[2]+before[3] > b[2] {
					t.Errorf("%s %s: %v covers %v", name, query, before, b)
				}
				before = b
			}
		}
	}
}

// The nearer one looks, the fewer calls are joined; filters leave out others.
func TestATimelineShowsDetails(t *testing.T) {
	s := emptySite(t)
	var calls []string
	for i := range 6000 {
		calls = append(calls, callIn("m.read", float64(i), float64(i)+.2, i == 3000))
	}
	calls = append(calls, callIn("m.scan", 100, 5000, false), callIn("m.read", 9000, 9001, false))
	s.storeCalls(t, "eb-1", calls)

	whole := s.timeline(t, "eb-1", "parts=500")
	if len(whole.Bars) > 1100 {
		t.Errorf("the whole has %d bars in 500 parts", len(whole.Bars))
	}
	if len(whole.Gaps) != 1 || whole.Gaps[0] != [2]int64{5999_200_000, 9000_000_000} {
		t.Errorf("the gaps are %v", whole.Gaps)
	}
	near := s.timeline(t, "eb-1", fmt.Sprintf("parts=500&from=%d&to=%d", whole.Begin+2990_000_000, whole.Begin+3010_100_000))
	reads := 0
	for _, b := range near.Bars {
		if b[4] != 1 {
			t.Errorf("%v is joined", b)
		}
		if near.Functions[b[7]] == "m.read" {
			reads++
		}
		if b[5] == 1 && (b[6] != 3001 || b[2] != 3000_000_000 || b[3] != 200_000) {
			t.Errorf("the failure is %v", b)
		}
	}
	if reads != 21 {
		t.Errorf("%d calls are near, want 21", reads)
	}
	for query, want := range map[string]int{"calls=failed": 1, "calls=ok": 6001, "function=m.scan": 1, "function=m.scan&calls=failed": 0, "function=nothing": 0} {
		r := s.timeline(t, "eb-1", query)
		if got, _ := r.counted(); got != want || r.Calls != 6002 {
			t.Errorf("%s leaves %d calls, want %d", query, got, want)
		}
	}

	// A version with other calls is another timeline, and a call that is recorded
	// belongs to it.
	s.storeCalls(t, "eb-1", []string{callIn("m.new", 1, 2, false)})
	s.record(t, "eb-1", callIn("m.new", 3, 4, true))
	if r := s.timeline(t, "eb-1", ""); r.Calls != 2 || r.Failures != 1 || r.End-r.Begin != 3_000_000 {
		t.Errorf("after another version there are %d calls, %d of which failed", r.Calls, r.Failures)
	}
}

// A timeline that is asked for while calls are recorded never loses one.
func TestATimelineGrows(t *testing.T) {
	s := emptySite(t)
	s.storeCalls(t, "eb-1", []string{})
	const calls = 30
	var readers sync.WaitGroup
	for _, by := range []string{"module", "function", "device"} {
		readers.Go(func() {
			for before := 0; before < calls; {
				r := s.timeline(t, "eb-1", "by="+by)
				if n, _ := r.counted(); n != r.Calls || n < before {
					t.Errorf("after %d calls there are %d, and %d in bars", before, r.Calls, n)
				}
				before = r.Calls
			}
		})
	}
	for i := range calls {
		s.record(t, "eb-1", callIn("m.f", float64(i), float64(i)+.5, false))
	}
	readers.Wait()
}

// A call with a wrong date does not make a line of all others.
func TestATimelineLooksWhereTheCallsAre(t *testing.T) {
	s := emptySite(t)
	calls := []string{strings.ReplaceAll(callIn("m.f", 0, 1, false), "2026-03-01", "1970-01-01"), strings.ReplaceAll(callIn("m.f", 0, 1, false), "2026-03-01", "9999-12-31")}
	for i := range 20 {
		calls = append(calls, callIn("m.f", float64(i), float64(i)+.5, false))
	}
	s.storeCalls(t, "eb-1", calls)
	r := s.timeline(t, "eb-1", "")
	if got := r.Focus[1] - r.Focus[0]; got != 19_500_000 || len(r.Bars) != 20 {
		t.Errorf("%d µs with %d bars are shown", got, len(r.Bars))
	}
}

// A page, too, tells what went wrong without a script, and shows the call that the
// address names.
func TestACallHasAnAddress(t *testing.T) {
	s := emptySite(t)
	s.storeCalls(t, "eb-1", []string{callIn("m.a", 0, 1, false), callIn("m.b", 2, 3, true), callIn("m.a", 4, 5, false), callIn("m.b", 6, 7, true)})
	page := s.says(t, "ebs/eb-1?call=2",
		`<span class="times">2 ×</span> <span class="name">b</span> <time `, `>20:00:02</time> <span class="detail">it broke</span>`,
		"  in m.b</pre>", `href="eb-1?call=1#timeline" rel="prev"`, `href="eb-1?call=3#timeline" rel="next"`, `data-go="failureAfter" href="eb-1?call=4#timeline"`,
	)
	if strings.Contains(page, `data-go="failureBefore"`) {
		t.Error("there is a failure before the first")
	}
	part := s.get(t, "ebs/eb-1/timeline/2?function=m.b").Text()
	if strings.Contains(part, `rel="prev"`) || !strings.Contains(part, `href="eb-1?call=4&amp;function=m.b#timeline" rel="next"`) {
		t.Errorf("the calls of a function around it:\n%s", part)
	}
	if table := s.get(t, "ebs/eb-1?function=m.b&calls=failed").Text(); strings.Count(table, `id="call-`) != 2 || !strings.Contains(table, `<option value="m.b" selected>`) {
		t.Error("the table is not filtered")
	}
	for at, want := range map[string]int{"ebs/eb-1/timeline/5": 404, "ebs/eb-1/timeline/x": 404, "ebs/eb-1/timeline/0": 404, "ebs/eb-2/timeline": 404, "ebs/eb-2/timeline/1": 404, "ebs/%20/timeline": 404, "ebs/eb-1?call=99": 200} {
		if got := s.get(t, at).Status; got != want {
			t.Errorf("%s answers %d, want %d", at, got, want)
		}
	}
}

// Indexes of many blocks take a bounded amount of memory.
func TestIndexesAreForgotten(t *testing.T) {
	var c web.CallIndexes
	for i := range 1000 {
		c.Use(fmt.Sprint("eb-", i), 9000)
		c.Use("eb-always", 200_000)
	}
	blocks, cost := c.Kept()
	if cost > 400_000 || len(blocks) < 20 || blocks[len(blocks)-1] != "eb-always" || blocks[len(blocks)-2] != "eb-999" {
		t.Errorf("%d blocks with %d calls are kept, the last %q", len(blocks), cost, blocks[max(0, len(blocks)-3):])
	}
}

// The calls that a filter leaves are the same whether they are looked up in the index or
// read one by one, on every page of the table.
func TestFilteredCallsAreAllThere(t *testing.T) {
	s := emptySite(t)
	var calls []string
	want := map[string][]string{}
	for i := range 1500 {
		function, failed := fmt.Sprint("m.f", i%7), i%5 == 0 && i > 300 || i == 3
		calls = append(calls, callIn(function, float64(i), float64(i)+.5, failed))
		number := strconv.Itoa(i + 1)
		outcome := map[bool]string{true: "failed", false: "ok"}[failed]
		for _, filter := range []string{"", "calls=" + outcome, "function=" + function, "calls=" + outcome + "&function=" + function} {
			want[filter] = append(want[filter], number)
		}
	}
	s.storeCalls(t, "eb-1", calls)
	for !s.timeline(t, "eb-1", "").Complete { // so that the index knows all calls
	}
	row := regexp.MustCompile(`id="call-(\d+)"`)
	for filter, all := range want {
		var got []string
		pages, _ := s.walk(t, "ebs/eb-1?"+filter, "next")
		for _, found := range row.FindAllStringSubmatch(strings.Join(pages, ""), -1) {
			got = append(got, found[1])
		}
		if !slices.Equal(got, all) {
			t.Errorf("%q leaves %d calls in the table, want %d:\n%v", filter, len(got), len(all), got)
		}
		if most := (len(all) + 99) / 100; len(pages) != most {
			t.Errorf("%q has %d pages, want %d", filter, len(pages), most)
		}
	}
}

// An older state of a block has its timeline, its table and its calls, too.
func TestOlderStatesHaveTheirCalls(t *testing.T) {
	s := emptySite(t)
	var calls []string
	for i := range 150 {
		calls = append(calls, callIn(fmt.Sprint("m.old", i%2), float64(i), float64(i)+.5, i == 149))
	}
	s.storeCalls(t, "eb-1", calls)
	s.storeCalls(t, "eb-1", []string{callIn("m.new", 0, 1, false)})
	for _, state := range []string{"version=1", "at=2026-01-01"} {
		if state != "version=1" { // as it was before the second version
			state = "at=" + regexp.MustCompile(`"last_modified_on":"([^"]*)"`).FindStringSubmatch(s.Do("GET", "/ebs/eb-1/versions/1", "").Text())[1]
		}
		text := func(at string) string { return s.get(t, at).Text() }
		pages, _ := s.walk(t, "ebs/eb-1?"+state, "next")
		if len(pages) != 2 || strings.Count(pages[0], `id="call-`) != 100 || strings.Contains(pages[0], ">new<") || !strings.Contains(pages[0], "150 calls") || !strings.Contains(pages[0], "1 failed") {
			t.Fatalf("%s does not show the calls of that state on two pages, but on %d", state, len(pages))
		}
		if strings.Count(pages[1], `id="call-`) != 50 || !strings.Contains(pages[1], "it broke") {
			t.Errorf("the second page of %s does not have the rest", state)
		}
		if r := s.timeline(t, "eb-1", state); r.Calls != 150 || r.Failures != 1 || !r.Complete {
			t.Errorf("the timeline of %s has %d calls, %d failed", state, r.Calls, r.Failures)
		}
		if part := text("ebs/eb-1/timeline/150?" + state); !strings.Contains(part, "it broke") || !strings.Contains(part, `rel="prev"`) {
			t.Errorf("the last call of %s is\n%s", state, part)
		}
		for filter, want := range map[string]int{"&calls=failed": 1, "&function=m.old1": 75, "&function=m.old1&calls=ok": 74, "&function=m.new": 0} {
			if got := strings.Count(text("ebs/eb-1?"+state+filter), `id="call-`); got != want {
				t.Errorf("%s leaves %d calls, want %d", state+filter, got, want)
			}
		}
	}
	if now := s.timeline(t, "eb-1", "version=2"); now.Calls != 1 {
		t.Errorf("the current version has %d calls", now.Calls)
	}
	for at, want := range map[string]int{"ebs/eb-1/timeline?version=3": 404, "ebs/eb-1/timeline?version=x": 404, "ebs/eb-1/timeline?at=x": 400, "ebs/eb-1/timeline?at=2001-01-01": 404, "ebs/eb-1/timeline/151?version=1": 404} {
		if got := s.get(t, at).Status; got != want {
			t.Errorf("%s answers %d, want %d", at, got, want)
		}
	}
}

// However slowly an older state is read, each request knows more of it.
func TestTheTimelineOfALongOlderStateIsCompleteInTheEnd(t *testing.T) {
	texts := make([][]byte, 10_000)
	for i := range texts {
		texts[i] = []byte(`{"request":"m.f"}`)
	}
	requests, err := web.LateRequests(&oda.Entity{Records: oda.TextsOf(texts)}, 100)
	if err != nil || requests < 2 || requests > 30 {
		t.Errorf("it takes %d requests (%v)", requests, err)
	}
}

// Calls without times are drawn where they were recorded, in every state.
func TestCallsWithoutTimesAreNotMadeIn1970(t *testing.T) {
	s := emptySite(t)
	s.storeCalls(t, "eb-1", []string{callIn("m.f", -1, -1, false), callIn("m.f", -1, -1, true)})
	s.storeCalls(t, "eb-1", []string{callIn("m.f", -1, -1, false)})
	modified := regexp.MustCompile(`"last_modified_on":"([^"]*)"`).FindStringSubmatch(s.Do("GET", "/ebs/eb-1/versions/1", "").Text())[1]
	for _, state := range []string{"", "version=1", "at=" + modified} {
		if r := s.timeline(t, "eb-1", state); time.Since(time.UnixMicro(r.Begin)) > time.Hour {
			t.Errorf("%q begins at %v", state, time.UnixMicro(r.Begin))
		}
		if page := s.get(t, "ebs/eb-1?"+state).Text(); strings.Contains(page, "1970") {
			t.Errorf("the page with %q says 1970", state)
		}
	}
}

// Going back through the table of calls one sees the same pages as on the way there,
// however many calls a page has, and whatever their numbers are.
func TestTheTableIsReadInBothDirections(t *testing.T) {
	s := emptySite(t)
	calls := func(from, to, bytes int) (all []string) {
		for i := range to - from {
			all = append(all, fmt.Sprintf(`{"request":"m.f","request_args":{"args":["%04d %s"]}}`, from+i, strings.Repeat("x", bytes)))
		}
		return all
	}
	s.storeCalls(t, "eb-bytes", calls(0, 200, 1000))
	s.storeCalls(t, "eb-gaps", calls(0, 3000, 1))
	s.storeCalls(t, "eb-gaps", append(calls(0, 150, 1), calls(3000, 3150, 1)...))
	s.storeCalls(t, "eb-old", calls(0, 200, 1000))
	s.storeCalls(t, "eb-old", nil)
	row := regexp.MustCompile(`id="call-(\d+)"`)
	for at, least := range map[string]int{"eb-bytes": 4, "eb-gaps": 3, "eb-old?version=1": 4} {
		block, state, _ := strings.Cut(at, "?")
		s.timeline(t, block, state) // so that the index knows all calls
		numbers := func(pages []string) (all []string) {
			for _, page := range pages {
				all = append(all, fmt.Sprint(row.FindAllStringSubmatch(page, -1)))
			}
			return all
		}
		pages, last := s.walk(t, "ebs/"+at, "next")
		there := numbers(pages)
		pages, first := s.walk(t, last, "prev")
		back := numbers(pages)
		slices.Reverse(back)
		if !slices.Equal(there, back) || len(there) < least || first != "ebs/"+at {
			t.Errorf("the pages of %s are\n%s\nand on the way back to %s\n%s", at, strings.Join(there, "\n"), first, strings.Join(back, "\n"))
		}
	}
}

// The links of the table keep what the timeline shows, and the form keeps a function that
// is not known yet.
func TestTheTableKeepsWhatIsShown(t *testing.T) {
	s := emptySite(t)
	calls := make([]string, 250)
	for i := range calls {
		calls[i] = callIn("m.f", float64(i), float64(i)+.5, i == 0)
	}
	s.storeCalls(t, "eb-1", calls)
	const time = "from=2026-03-01T20%3A00%3A00Z&amp;to=2026-03-01T20%3A01%3A00Z"
	s.says(t, "ebs/eb-1?after=100&by=device&"+strings.ReplaceAll(time, "&amp;", "&"),
		`<a href="eb-1?by=device&amp;`+time+`#calls">First</a>`,
		`<a href="eb-1?after=200&amp;by=device&amp;`+time+`#calls" rel="next">`,
		`<a href="eb-1?by=device&amp;call=101&amp;`+time+`#timeline" data-call="101">`,
		`<a href="eb-1?by=device&amp;calls=failed&amp;`+time+`#calls">Show only failures</a>`,
	)
	s.says(t, "ebs/eb-1?function=m.unknown", `<option value="m.unknown" selected>unknown</option>`)
}
