package web_test

import (
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"oda/internal/test/env"
)

// callAt is a record of a call. An error has a type and a detail.
func callAt(at time.Time, took time.Duration, request, device, err string) string {
	outcome := `"status":"OK"`
	if err != "" {
		outcome = fmt.Sprintf(`"status":"ERROR","error":{"detail":%q}`, err)
	}
	return fmt.Sprintf(`{"request":%q,"request_args":{"kwargs":{"device":%q}},"request_sent_at":%q,"response_received_at":%q,%s}`,
		request, device, at.Format(time.RFC3339Nano), at.Add(took).Format(time.RFC3339Nano), outcome)
}

// callNights stores two blocks: one of last month, and one of today with a call in progress
// from half an hour ago for five minutes.
func (s site) callNights(t *testing.T) (halfHourAgo time.Time) {
	t.Helper()
	now := time.Now().UTC().Truncate(time.Second)
	month, half := now.AddDate(0, 0, -30), now.Add(-30*time.Minute)
	s.store(t, "/sbds/sbd-1", `{"name":"NGC 253 deep","telescope":"ska_low"}`)
	s.store(t, "/ebs/eb-old", `{"telescope":"ska_mid","request_responses":[`+strings.Join([]string{
		callAt(month, time.Second, "ska.read_wind", "SKA001", "ConnectionError: gone away"),
		callAt(month.Add(time.Minute), time.Second, "ska.read_wind", "SKA001", ""),
		callAt(month.Add(48*time.Hour), time.Second, "ska.scan", "SKA002", "ValueError: wrong"),
	}, ",")+`]}`)
	s.store(t, "/ebs/eb-new", `{"telescope":"ska_low","sbd_ref":"sbd-1","sbd_version":1,"request_responses":[`+strings.Join([]string{
		callAt(half.Add(-time.Minute), 100*time.Millisecond, "ska.read_wind", "SKA003", "ConnectionError: gone again"),
		callAt(half, 5*time.Minute, "ska.scan", "SKA003", ""),
		callAt(half.Add(10*time.Minute), 100*time.Millisecond, "ska.end_scan", "SKA003", ""),
	}, ",")+`]}`)
	return half
}

var foundRow = regexp.MustCompile(`<td class="what"><a href="([^"]*)"`)

// found gives the addresses of the calls of a page, in order.
func found(page string) string {
	var all []string
	for _, row := range foundRow.FindAllStringSubmatch(page, -1) {
		all = append(all, strings.TrimSuffix(strings.TrimPrefix(row[1], "./ebs/"), "#timeline"))
	}
	return strings.Join(all, " ")
}

// The page of calls shows those that its address asks for, with their numbers, and leads on.
func TestThePageOfCallsShowsWhatIsAskedFor(t *testing.T) {
	s := emptySite(t)
	s.says(t, "calls", "There are no calls in this archive yet", "oda demo")
	s.callNights(t)
	for at, want := range map[string]struct {
		found string
		says  []string
	}{
		"calls":                          {"eb-new?call=1", []string{"Failed calls of the last 24 hours", "<strong class=\"bad\">ConnectionError</strong> gone again", "NGC 253 deep"}},
		"calls?outcome=failed":           {"eb-new?call=1 eb-old?call=3 eb-old?call=1", []string{`<dd class="bad">3</dd>`, `<dd>2 ExecutionBlocks</dd>`, "SKA-Mid"}},
		"calls?outcome=failed&limit=2":   {"eb-new?call=1 eb-old?call=3", []string{`<dd class="bad">3</dd>`, `rel="next"`, `name="limit" value="2"`}},
		"calls?sort=sent&outcome=failed": {"eb-old?call=1 eb-old?call=3 eb-new?call=1", []string{"the oldest first"}},
		// Where else did this happen?
		"calls?error=ConnectionError&outcome=failed": {"eb-new?call=1 eb-old?call=1", []string{
			`<a href="calls?device=SKA001&amp;error=ConnectionError&amp;outcome=failed">SKA001</a>`, `<a href="calls?error=ConnectionError&amp;outcome=failed&amp;request=ska.read_wind">read_<wbr>wind</a>`,
		}},
		"calls?eb=eb-new":                           {"eb-new?call=3 eb-new?call=2 eb-new?call=1", []string{"<dt>Calls</dt><dd>3</dd>", `<dd class="bad"><a href="calls?eb=eb-new&amp;outcome=failed">1</a>`, "Hatched in red: failed"}},
		"calls?eb=eb-new&longer_than=10":            {"eb-new?call=2", []string{"longer than</span> 10 s", "5 min 00 s"}},
		"calls?outcome=failed&q=gone":               {"eb-new?call=1 eb-old?call=1", nil},
		"calls?outcome=failed&telescope=SKA-Mid":    {"", nil}, // redirects
		"calls?outcome=failed&telescope=ska_mid":    {"eb-old?call=3 eb-old?call=1", []string{`telescope</span> SKA-Mid`}},
		"calls?outcome=failed&device=SKA009&q=gone": {"", []string{"No call was found", "without “device SKA009”"}},
		"calls?device=SKA001":                       {"", []string{"A filter cannot be read, or one is missing", "This value and to are needed"}},
		"calls?outcome=failed&from=yesterday":       {"", []string{"This value is not a valid time"}},
		"calls?outcome=failed&cursor=x":             {"", []string{"The cursor in the address is not a cursor of this archive"}},
		"calls?outcome=maybe":                       {"", []string{"This value must be one of ok, failed"}},
	} {
		page := s.says(t, at, want.says...)
		if got := found(page); got != want.found {
			t.Errorf("/%s shows %q, want %q", at, got, want.found)
		}
	}
	s.leads(t, "calls?outcome=failed&telescope=SKA-Mid&q=", "calls?outcome=failed&telescope=ska_mid")

	pages, last := s.walk(t, "calls?outcome=failed&limit=1", "next")
	if got := found(strings.Join(pages, "")); got != "eb-new?call=1 eb-old?call=3 eb-old?call=1" || len(pages) != 3 {
		t.Errorf("page by page, there are %q on %d pages", got, len(pages))
	}
	if first, _ := s.walk(t, last, "first"); len(first) != 2 || found(first[1]) != "eb-new?call=1" {
		t.Errorf("the last page does not lead to the first")
	}
	// Each bar of the drawing leads to its calls.
	bars := regexp.MustCompile(`<a href="([^"]+)"><title>`).FindAllStringSubmatch(s.get(t, "calls?outcome=failed").Text(), -1)
	if len(bars) != 3 {
		t.Fatalf("there are %d bars, want 3", len(bars))
	}
	for i, want := range []string{"eb-old?call=1", "eb-old?call=3", "eb-new?call=1"} {
		if got := found(s.get(t, html.UnescapeString(bars[i][1])).Text()); got != want {
			t.Errorf("bar %d leads to %q, want %q", i, got, want)
		}
	}
}

// A spreadsheet gets all calls of the page at once, and none of their texts as a formula.
func TestCallsAreATable(t *testing.T) {
	s := emptySite(t)
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var calls []string
	for i := range 1200 { // more than a page of the interface has
		calls = append(calls, callAt(noon.Add(time.Duration(i)*time.Second), time.Second, fmt.Sprint("f", i), "=1+1", "ValueError: a, b"))
	}
	s.store(t, "/ebs/eb-1", `{"telescope":"ska_mid","request_responses":[`+strings.Join(calls, ",")+`]}`)
	link := regexp.MustCompile(`href="(calls\.csv[^"]+)"`).FindStringSubmatch(s.get(t, "calls?outcome=failed&limit=5").Text())
	if link == nil {
		t.Fatal("the page does not lead to a table")
	}
	table := s.get(t, html.UnescapeString(link[1]))
	lines := strings.Split(strings.TrimSpace(table.Text()), "\r\n")
	want := `eb-1,1200,f1199,2026-03-01T12:19:59.000000Z,2026-03-01T12:20:00.000000Z,1,failed,ValueError,"ValueError: a, b",'=1+1,ska_mid,`
	if len(lines) != 1201 || !strings.HasPrefix(lines[1], want) || !strings.HasPrefix(table.Header.Get("Content-Type"), "text/csv") {
		t.Errorf("of %d lines, the second is\n%s, want\n%s", len(lines), lines[1], want)
	}
	if r := s.get(t, "calls.csv?outcome=maybe"); r.Status != http.StatusBadRequest || !strings.Contains(r.Text(), "outcome must be one of") {
		t.Errorf("a wrong filter is answered %d", r.Status)
	}
}

// Without anything to ask for, the page shows the last night with calls, and says so if none
// of them failed.
func TestThePageOfCallsShowsTheLastNight(t *testing.T) {
	s := emptySite(t)
	night := time.Now().UTC().AddDate(0, 0, -9).Truncate(24 * time.Hour).Add(20 * time.Hour)
	s.store(t, "/ebs/eb-1", `{"request_responses":[`+callAt(night, time.Second, "f", "d", "")+`]}`)
	s.says(t, "calls", "of the night of "+night.Format(time.DateOnly)+", the last with calls", "all 1 call succeeded", `href="calls?outcome=failed"`)
	s.store(t, "/ebs/eb-2", `{"request_responses":[`+callAt(night, time.Second, "f", "d", "broken")+`]}`)
	if got := found(s.says(t, "calls", "of the night of "+night.Format(time.DateOnly))); got != "eb-2?call=1" {
		t.Errorf("it shows %q", got)
	}
	s.store(t, "/ebs/eb-3", `{"request_responses":[`+callAt(time.Now().UTC(), time.Second, "f", "d", "")+`]}`)
	s.says(t, "calls", "of the last 24 hours", "all 1 call succeeded")
}

// The page of an instant shows what was running then, and leads to what was before and after.
func TestAnInstantShowsWhatWasRunning(t *testing.T) {
	s := emptySite(t)
	half := s.callNights(t)
	at := func(after time.Duration) string {
		return "calls?at=" + url.QueryEscape(half.Add(after).Format(time.RFC3339))
	}
	during := s.says(t, at(2*time.Minute), "SKA-Low", "NGC 253 deep", `for 2 min 00 s of 5 min 00 s`, `title="10 min later"`, "eb-new?from=")
	if got := found(during); got != "eb-new?call=2" {
		t.Errorf("it shows %q", got)
	}
	s.says(t, at(7*time.Minute), "eb-new", "Between two calls")
	s.says(t, at(7*time.Minute)+"&telescope=ska_mid", "Nothing was running then", `telescope</span> SKA-Mid`)
	before := half.AddDate(0, 0, -30).Format(time.DateOnly)
	s.says(t, "calls?at=2001-01-01T20:00Z", "Nothing was running then", `The nearest night with calls: <a href="night?date=`+before[:8])
	s.says(t, "calls?at=2999-01-01", "This time has not come yet")
	if r := s.get(t, "calls?at=noon"); r.Status != http.StatusBadRequest || !strings.Contains(r.Text(), "at is not a valid time") {
		t.Errorf("a wrong time is answered %d\n%s", r.Status, r.Text())
	}
	ctx := env.Browser(t)
	do(t, ctx, chromedp.Navigate(s.base+"/"+at(-8*time.Minute)))
	shows(t, ctx, "main", "Nothing was running then")
	follow(t, ctx, `[title="10 min later"]`)
	follow(t, ctx, `.progress .what a`)
	eventually(t, ctx, `document.querySelector(".panel article")?.textContent.includes("scan")`)
}

// The search box finds calls by what people remember of them: failed ones first.
func TestTheSearchBoxFindsCalls(t *testing.T) {
	s := emptySite(t)
	s.callNights(t)
	for text, want := range map[string]struct {
		says  string
		found string
	}{
		"ConnectionError": {"Failed calls with the error “ConnectionError”", "eb-new?call=1 eb-old?call=1"},
		"SKA001":          {"Failed calls for the device “SKA001”", "eb-old?call=1"},
		"read_wind":       {"Failed calls of the function “read_wind”", "eb-new?call=1 eb-old?call=1"},
		"gone aw":         {"Failed calls with “gone aw”", "eb-old?call=1"},
		"end_scan":        {"Calls of the last days with “end_scan”", "eb-new?call=3"},
	} {
		page := s.says(t, "search?q="+url.QueryEscape(text), want.says)
		if got := found(page); got != want.found {
			t.Errorf("%q finds %q, want %q", text, got, want.found)
		}
		all := regexp.MustCompile(`<p class="all"><a href="(calls[^"]+)"`).FindStringSubmatch(page)
		if all == nil {
			t.Errorf("%q leads to no calls", text)
		} else if got := found(s.get(t, html.UnescapeString(all[1])).Text()); got != want.found {
			t.Errorf("%q leads to %q, want %q", text, got, want.found)
		}
	}
	s.says(t, "search?q=NGC253", "Nothing has “NGC253”", "This has “NGC 253”", "sbd-1")
	s.says(t, "search?q=NGC254", "Nothing has all these words", "no call of the last year failed with it")
	reply := s.get(t, "search?q=yesterday+20:13")
	want := "./calls?at=" + url.QueryEscape(time.Now().UTC().AddDate(0, 0, -1).Format("2006-01-02")+"T20:13:00Z")
	if got := reply.Header.Get("Location"); got != want {
		t.Errorf("yesterday 20:13 leads to %q, want %q", got, want)
	}
}

// While it is open, the page of calls shows new failures. The night leads to it.
func TestThePageOfCallsRenewsItself(t *testing.T) {
	s := emptySite(t)
	half := s.callNights(t)
	ctx := env.Browser(t)
	s.connected(t, ctx, "calls")
	s.Must("POST", "/ebs/eb-new/request_response", callAt(half.Add(20*time.Minute), time.Second, "ska.late", "SKA003", "TimeoutError: no answer"))
	eventually(t, ctx, `document.querySelectorAll("#found tr").length === 2 && document.querySelector("#overview .bad").textContent === "2"`)
	day := half.Add(20*time.Minute - 12*time.Hour).Format(time.DateOnly)
	link := regexp.MustCompile(`<dd class="bad"><a href="([^"]+)"`).FindStringSubmatch(s.get(t, "night?date="+day).Text())
	if link == nil {
		t.Fatal("the night does not lead to its failed calls")
	}
	if got := found(s.get(t, html.UnescapeString(link[1])).Text()); !strings.HasPrefix(got, "eb-new?call=4") {
		t.Errorf("the failed calls of the night are %q", got)
	}
}
