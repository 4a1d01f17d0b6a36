package web_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"oda/internal/test/env"
)

// failingIn is callIn for a failed call with its own error.
func failingIn(request string, sent float64, detail string) string {
	return strings.Replace(callIn(request, sent, sent+.5, true), "it broke", detail, 1)
}

// From anywhere, the archive knows the failure that comes next in time, and the one before.
func TestTheNextFailureIsTheNextInTime(t *testing.T) {
	s := emptySite(t)
	calls := make([]string, 60)
	for i := range calls {
		calls[i] = callIn([]string{"m.f", "m.g"}[i%2], float64(i*10), float64(i*10+5), i == 20 || i == 21 || i == 40)
	}
	calls[50] = callIn("m.f", 35, 36, true) // recorded late, as call 51
	s.storeCalls(t, "eb-1", calls)
	s.storeCalls(t, "eb-none", []string{callIn("m.f", 0, 1, false)})
	s.storeCalls(t, "eb-1", calls[:30])
	begin := s.timeline(t, "eb-1", "version=1").Begin
	edge := func(seconds int64) string { return fmt.Sprint("edge=", begin+seconds*1_000_000) }
	for at, want := range map[string]string{
		"next-failure?version=1&" + edge(-10):               "51",
		"next-failure?version=1&" + edge(36):                "51", // its end can be seen
		"next-failure?version=1&" + edge(37):                "21",
		"next-failure?version=1&call=51&" + edge(500):       "21",
		"next-failure?version=1&call=21":                    "22",
		"next-failure?version=1&call=22":                    "41",
		"next-failure?version=1&call=30":                    "41",
		"next-failure?version=1&call=41":                    "0",
		"next-failure?version=1&call=51&function=m.g":       "22",
		"next-failure?version=1&call=51&calls=ok":           "0",
		"previous-failure?version=1&" + edge(1000):          "41",
		"previous-failure?version=1&" + edge(399):           "22",
		"previous-failure?version=1&" + edge(34):            "0",
		"previous-failure?version=1&call=41":                "22",
		"previous-failure?version=1&call=21":                "51",
		"previous-failure?version=1&call=51":                "0",
		"previous-failure?version=1&call=999&" + edge(1000): "41",
		"previous-failure?version=1&call=41&function=m.f":   "21",
		"previous-failure?version=1&call=x&edge=y":          "0",
		"next-failure?call=22":                              "0", // in the current version
	} {
		if got := s.get(t, "ebs/eb-1/timeline/"+at).Text(); got != want {
			t.Errorf("%s is %s, want %s", at, got, want)
		}
	}
	if got := s.get(t, "ebs/eb-none/timeline/next-failure").Text(); got != "0" {
		t.Errorf("without failures, the next one is %s", got)
	}
}

// Every way in which calls failed is listed where its first is in time, and each error leads
// to where else it happened, if it has a type.
func TestEveryFailureIsListed(t *testing.T) {
	s := emptySite(t)
	const kinds = 30
	var calls []string
	for i := range 2 * kinds {
		calls = append(calls, failingIn("m.f", float64(1000-i), fmt.Sprintf("kind %02d", i%kinds)))
	}
	calls = append(calls, failingIn("m.f", 0, "ConnectionError: gone"), failing("m.g", "ValueError: no number"))
	s.storeCalls(t, "eb-1", calls)
	s.timeline(t, "eb-1", "") // so that all calls are known, however busy the machine is
	page := s.says(t, "ebs/eb-1", fmt.Sprintf("Show %d further kinds", kinds+2-10))
	var want []string
	for i := range kinds {
		want = append(want, fmt.Sprintf("kind %02d", i))
	}
	want = append(want, "ValueError: no number", "ConnectionError: gone") // both at the beginning
	got := regexp.MustCompile(`<span class="detail">([^<]*)</span>`).FindAllStringSubmatch(page, -1)
	seen := make([]string, len(got))
	for i := range got {
		seen[len(got)-1-i] = got[i][1] // the last ones recorded were the first
	}
	if strings.Join(seen, "; ") != strings.Join(want, "; ") {
		t.Errorf("listed are %q, want %q", seen, want)
	}
	if !strings.Contains(page, fmt.Sprintf(`call=%d#timeline" data-call="%[1]d"><span class="times">2 ×</span>`, 2*kinds)) {
		t.Error("a failure does not lead to its first call in time")
	}
	const elsewhere = `href="./../calls?error=ConnectionError&amp;outcome=failed">Where else did this happen?`
	if n := strings.Count(page, elsewhere); n != 2 { // in the list and in the table
		t.Errorf("the page asks %d times where else it happened", n)
	}
	for call, want := range map[int]bool{2*kinds + 1: true, 1: false} {
		if panel := s.get(t, fmt.Sprintf("ebs/eb-1/timeline/%d", call)).Text(); strings.Contains(panel, elsewhere) != want {
			t.Errorf("the panel of call %d asks where else it happened: %v, want %v", call, !want, want)
		}
	}
}

// A page never shows a number that is another one when it is loaded again: it has the last
// one, or says that it counts.
func TestCountsStayAsTheyAre(t *testing.T) {
	s := emptySite(t)
	const all, failed = 40_000, 400
	calls := make([]string, all)
	for i := range calls {
		calls[i] = fmt.Sprintf(`{"request":"m.f","status":"%s"}`, []string{"OK", "ERROR"}[i%(all/failed)/(all/failed-1)])
	}
	s.storeCalls(t, "eb-1", calls)
	tally := regexp.MustCompile(`(?s)<p class="tally".*?</p>`)
	counting := 0
	for {
		page := s.get(t, "ebs/eb-1?after=100").Text()
		text := regexp.MustCompile(`<[^>]*>|[\s\x{202f}]`).ReplaceAllString(tally.FindString(page), "")
		if strings.HasPrefix(text, "40000calls,400failed,") || text == "40000calls,400failed" {
			if !strings.Contains(strings.ReplaceAll(page, "\u202f", ""), ">101–200 of 40000<") {
				t.Error("the table does not say which calls it has")
			}
			break
		}
		if counting++; text != "40000calls,countingfailures…" || strings.Contains(page, `class="place"`) || strings.Contains(page, `class="troubles"`) {
			t.Fatalf("while it counts, the page says %q", text)
		}
	}
	t.Logf("%d pages said that the archive counts", counting)
}

// Keys go from failure to failure wherever one is on the page, but not where one writes;
// and a question mark says which there are.
func TestKeysOfTheWholePage(t *testing.T) {
	var calls []string
	for i := range 400 {
		calls = append(calls, callIn(fmt.Sprintf("m%d.f", i/200), float64(i*10), float64(i*10+5), i == 100 || i == 150 || i == 300))
	}
	s, ctx := withBlock(t, calls...)
	watch := env.NewWatch(ctx)
	do(t, ctx, chromedp.EmulateViewport(1440, 900))
	showTimeline(t, ctx, s, "eb-1")
	open := func(call int) string {
		return fmt.Sprintf(`Number(document.querySelector(".panel article.failed")?.dataset.call) === %d && location.search.includes("call=%[1]d")`, call)
	}
	press := func(key, condition string) {
		t.Helper()
		do(t, ctx, chromedp.KeyEvent(key))
		eventually(t, ctx, condition)
	}
	const (
		asked  = `document.querySelector("dialog.keys").open`
		inView = `(() => { const box = document.querySelector(".lanes").getBoundingClientRect(); return box.top >= 0 && box.bottom < innerHeight; })()`
	)
	if !evaluate[bool](t, ctx, `(() => { const box = document.querySelector(".lanes").getBoundingClientRect(); return box.top < 400; })()`) {
		t.Error("the timeline begins below the fold")
	}
	press("n", open(101))
	press("n", open(151))
	press("n", open(301))
	press("n", `document.querySelector(".shown").textContent === "No failure comes after this" && `+open(301))
	press("p", open(151))
	press("?", asked)
	press("n", asked+` && `+open(151)) // not through the dialog
	press(kb.Escape, `!`+asked+` && `+open(151))
	press(kb.Escape, `!document.querySelector(".panel article")`)

	do(t, ctx, chromedp.Click(chromedp.CSS(`.find input`)))
	press("n", `document.querySelector(".find input").value === "n" && !document.querySelector(".panel article")`)
	evaluate[bool](t, ctx, `document.activeElement.blur(), scrollTo(0, document.body.scrollHeight), true`)
	press("p", open(301)+` && `+inView)
	press(kb.Escape, `!document.querySelector(".panel article")`)

	// From what is in view, and lanes without calls in it are small.
	showTimeline(t, ctx, s, "eb-1?from=2026-03-01T20:20:00Z&to=2026-03-01T20:24:00Z")
	eventually(t, ctx, `document.querySelector(".tall li.empty .name")?.textContent === "m1" && document.querySelectorAll(".tall li.empty").length === 1`)
	press("n", open(151))
	press("0", `!document.querySelector(".tall li.empty")`)
	shows(t, ctx, ".legend", "failed", "several calls", "f")
	noComplaints(t, ctx, watch)
}

// A link to any call of a long block opens it and shows a bar of its own, wherever it is.
func TestALinkLeadsToACallOfALongBlock(t *testing.T) {
	calls := make([]string, 20_000)
	for i := range calls {
		calls[i] = callIn("m.f", float64(i), float64(i)+.5, false)
	}
	s, ctx := withBlock(t, calls...)
	do(t, ctx, chromedp.EmulateViewport(1440, 900))
	for _, call := range []int{19_000, 7} { // the first when not all calls are known
		showTimeline(t, ctx, s, fmt.Sprintf("eb-1?call=%d#timeline", call))
		eventually(t, ctx, fmt.Sprintf(`(() => {
			const given = new URLSearchParams(location.search), [from, to] = ["from", "to"].map((name) => Date.parse(given.get(name)) / 1000);
			const at = Date.parse("2026-03-01T20:00:00Z") / 1000 + %d - 1;
			return Number(document.querySelector(".panel article")?.dataset.call) === %[1]d && from < at && at < to && to - from < 3000;
		})()`, call))
	}
}
