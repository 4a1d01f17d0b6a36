package web_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"oda/internal/test/env"
	"oda/internal/test/must"
)

// say says what came of an entity.
func (s site) say(t *testing.T, at, status string) {
	t.Helper()
	s.Must("POST", "/"+at+"/status", status)
}

// markup is everything of a page that is not text.
var markup = regexp.MustCompile(`<title>.*?</title>|<[^>]*>|\s+`)

// words are what a reader sees of a part of a page: from a mark up to another.
func words(page, from, to string) string {
	_, part, _ := strings.Cut(page, from)
	part, _, _ = strings.Cut(part, to)
	return strings.TrimSpace(strings.Join(strings.Fields(markup.ReplaceAllString(from+part, " ")), " "))
}

// A badge has the words of the status, a mark and a colour of its class, and says the class
// if the words do not. It is wherever the entity is shown.
func TestABadgeIsWhereverTheEntityIs(t *testing.T) {
	s := emptySite(t)
	s.store(t, "/sbds/sbd-1", `{"name":"Centaurus","status":"Ready"}`)
	s.store(t, "/sbis/sbi-1", `{"sbd_ref":"sbd-1"}`)
	for id, status := range map[string]string{"eb-1": "Observing Failed", "eb-2": "Aborted", "eb-3": "waiting", "eb-4": "Running", "eb-5": "observed"} {
		s.store(t, "/ebs/"+id, `{"sbi_ref":"sbi-1","sbd_ref":"sbd-1","request_responses":[`+callIn("m.f", 0, 1, false)+`]}`)
		s.say(t, "ebs/"+id, `{"status":"`+status+`"}`)
	}
	badges := regexp.MustCompile(`<span class="status ([a-z]*)"><svg[^>]*><path d="([^"]+)"/></svg>([^<]*)(?:<span class="unseen"> \((\w+)\)</span>)?</span>`)
	want := map[string]string{ // the class, and how it is said to those who see neither mark nor colour
		"Observing Failed": "failed failed", "Aborted": "stopped stopped", "waiting": " ", "Running": "running ", "observed": "done done", "Ready": "planned planned",
	}
	marks := map[string]string{}
	for at, number := range map[string]int{
		"": 11, "ebs": 5, "sbds": 1, "sbis": 0, "search?q=centaurus": 6, "changes": 5, "changes?change=status": 5, "changes?change=stored": 0,
		"night?date=2026-03-01": 6, "ebs/eb-1": 3, "sbds/sbd-1": 1, "compare?from=ebs/eb-1@1&to=ebs/eb-2@1": 2, "compare?from=ebs/eb-1@1&to=sbds/sbd-1@1": 2,
		"ebs?class=failed": 1, "ebs?status=OBSERVING_failed": 1, "ebs?status=Running&class=failed": 0, "search?q=aborted": 1,
	} {
		page := s.get(t, at).Text()
		found := badges.FindAllStringSubmatch(page, -1)
		if at == "" { // the newest blocks and the newest changes
			number = min(number, len(found))
		}
		if len(found) != number {
			t.Errorf("/%s has %d badges, want %d: %q", at, len(found), number, found)
		}
		for _, badge := range found {
			if got := badge[1] + " " + badge[4]; got != want[badge[3]] {
				t.Errorf("/%s says of %q: %q, want %q", at, badge[3], got, want[badge[3]])
			}
			marks[badge[1]] = badge[2]
		}
	}
	each := map[string]bool{}
	for _, mark := range marks {
		each[mark] = true
	}
	if len(each) != 6 {
		t.Errorf("six classes have the marks %q", marks)
	}
	s.says(t, "ebs/eb-1",
		`ExecutionBlock eb-1: Centaurus, from 2026-03-01 20:00, Observing Failed</title>`,
		`<g class="status failed"><svg x="10"`, `>Observing Failed</text>`, `<g class="status planned">`)
	s.says(t, "ebs?class=done&status=x", `<option selected>done</option>`, `<input id="status" name="status" value="x"`)
	for at, says := range map[string]string{"ebs?class=fine": "must be one of planned", "ebs?status=" + strings.Repeat("x", 65): "must be 1 to 64 characters"} {
		if reply := s.get(t, at); reply.Status != http.StatusBadRequest || !strings.Contains(reply.Text(), says) {
			t.Errorf("/%s answers %d without %q", at, reply.Status, says)
		}
	}
}

// The head of a block says whether it runs or has ended, as far as that is known, when and
// why.
func TestTheHeadSaysWhetherABlockRuns(t *testing.T) {
	s := emptySite(t)
	const at = `,"at":"2026-03-01T21:00:00Z"}`
	for i, test := range []struct{ document, status, want string }{
		{`{}`, ``, ``},
		{`{}`, `{"status":"Executing"` + at, "Running since 2026-03-01 21:00:00 , Executing (running)"},
		{`{}`, `{"status":"observed"` + at, "Ended 2026-03-01 21:00:00 , observed (done)"},
		{`{}`, `{"status":"Failed","reason":"<the wind>"` + at, "Ended 2026-03-01 21:00:00 , Failed : &lt;the wind&gt;"},
		{`{}`, `{"status":"Out of time"` + at, "Ended 2026-03-01 21:00:00 , Out of time (stopped)"},
		{`{}`, `{"status":"half done","class":"done"` + at, "Ended 2026-03-01 21:00:00 , half done (done)"},
		{`{}`, `{"status":"waiting"` + at, "waiting since 2026-03-01 21:00:00"},
		{`{}`, `{"status":"Ready"` + at, "Ready (planned) since 2026-03-01 21:00:00"},
		{`{"status":"Observed"}`, ``, "Ended at no known time, Observed (done) as the document says"},
		{`{"status":"Executing"}`, ``, "Running, Executing (running) as the document says"},
		{`{"status":"Executing"}`, `{"status":"Failed"` + at, "Ended 2026-03-01 21:00:00 , Failed"},
	} {
		block := fmt.Sprint("ebs/eb-", i)
		s.store(t, "/"+block, test.document)
		if test.status != "" {
			s.say(t, block, test.status)
		}
		page := s.get(t, block).Text()
		if got := words(page, `<div id="standing"`, `</div>`); got != test.want {
			t.Errorf("%s %s: the head says %q, want %q", test.document, test.status, got, test.want)
		}
		if strings.Contains(page, ">Live<") || strings.Contains(page, "Running") != strings.HasPrefix(test.want, "Running") {
			t.Errorf("%s %s: the page says that the block lives", test.document, test.status)
		}
	}
	s.says(t, "ebs/eb-10", `<dt>Status as written</dt><dd>Executing</dd>`) // and not as it is
	// Others neither run nor end. An older state has the status of today.
	s.store(t, "/sbds/sbd-1", `{"x":1}`, `{"x":2}`)
	s.say(t, "sbds/sbd-1", `{"status":"Observed"`+at)
	for query, want := range map[string]string{"": "Observed (done) since 2026-03-01 21:00:00", "?version=1": "Now: Observed (done) since 2026-03-01 21:00:00", "?version=2": "Observed (done) since 2026-03-01 21:00:00"} {
		for _, part := range []string{"", "/status"} {
			if got := words(s.get(t, "sbds/sbd-1"+part+query).Text(), `<div id="standing"`, `</div>`); got != want && (part == "" || query != "?version=2") {
				t.Errorf("sbd-1%s%s: the head says %q, want %q", part, query, got, want)
			}
		}
	}
	// Without a status, the page says what is known.
	s.storeCalls(t, "eb-silent", []string{callIn("m.f", 0, 1, false), callIn("m.f", 60, 61, false)})
	if got, want := words(s.get(t, "ebs/eb-silent").Text(), `<p class="tally"`, `</p>`), "2 calls , none failed, in 1 min 01 s from 2026-03-01 20:00:00 ; the last at 2026-03-01 20:01:01"; got != want {
		t.Errorf("the summary is %q, want %q", got, want)
	}
}

// All that was said of an entity is on its page, the newest first, and on further ones.
func TestTheStatusesAreReadPageByPage(t *testing.T) {
	s := emptySite(t)
	s.store(t, "/prjs/prj-1", `{"x":1}`, `{"x":2}`)
	if page := s.get(t, "prjs/prj-1").Text(); strings.Contains(page, `id="statuses"`) {
		t.Error("there is a table of statuses, but no status")
	}
	for i := range 23 {
		s.say(t, "prjs/prj-1", fmt.Sprintf(`{"status":"Said %02d","at":"2026-03-01T20:00:%02dZ","version":%d}`, i, i, 1+i%2))
	}
	s.say(t, "prjs/prj-1", `{"status":"Said late","reason":"the spool was cut off","at":"2026-03-01T19:00:00Z"}`)
	var got []string
	row := regexp.MustCompile(`(?s)<tr( class="current")?>\s*<td class="when">.*?</tr>`)
	pages, _ := s.walk(t, "prjs/prj-1", "next")
	for _, page := range pages {
		got = append(got, row.FindAllString(page, -1)...)
	}
	if len(pages) != 3 || len(got) != 24 {
		t.Fatalf("there are %d entries on %d pages", len(got), len(pages))
	}
	for i, want := range map[int][]string{
		0: {"2026-03-01 19:00:00", "came late, <time", "Said late", "the spool was cut off", `href="prj-1?version=2">2<`},
		1: {`<tr class="current">`, "2026-03-01 20:00:22", "Said 22", "the current one", `href="prj-1?version=1">1<`}, 23: {"Said 00", "2026-03-01 20:00:00"},
	} {
		for _, text := range want {
			if !strings.Contains(got[i], text) {
				t.Errorf("row %d lacks %q:\n%s", i, text, got[i])
			}
		}
	}
	for i, one := range got {
		if strings.Contains(one, "came late") != (i == 0) || strings.Contains(one, "the current one") != (i == 1) {
			t.Errorf("row %d:\n%s", i, one)
		}
	}
	s.says(t, "prjs/prj-1?version=1&statuses=12", `href="prj-1?statuses=2&amp;version=1#statuses" rel="next"`, `href="prj-1?version=1#statuses" rel="first"`)
	for _, bad := range []string{"x", "0", "-1", "99999999999999999999"} {
		if reply := s.get(t, "prjs/prj-1?statuses="+bad); reply.Status != http.StatusBadRequest || !strings.Contains(reply.Text(), "a whole number from 1") {
			t.Errorf("statuses=%s answers %d", bad, reply.Status)
		}
	}
	s.says(t, "changes", `came late, for <time datetime="2026-03-01T19:00:00`)
}

// A page that is open hears what is said of its entity: it says it without a reload, and
// takes neither the focus nor anything else away. Nothing is said of the connection while
// there is one.
func TestAnOpenPageHearsWhatIsSaid(t *testing.T) {
	t.Parallel() // it mostly waits
	s := emptySite(t)
	s.store(t, "/sbds/sbd-1", `{"name":"Centaurus"}`, `{"name":"Centaurus A"}`)
	s.storeCalls(t, "eb-1", []string{callIn("m.f", 0, 1, false)})
	ctx := env.Browser(t)
	home := env.Tab(t, ctx)
	s.connected(t, home, "")
	for at, live := range map[string]string{"sbds/sbd-1": "[data-connected=true]:empty", "sbds/sbd-1?version=1": "[data-connected=true]:empty", "ebs/eb-1": ".live[data-connected=true]:empty"} {
		do(t, ctx, chromedp.Navigate(s.base+"/"+at))
		eventually(t, ctx, fmt.Sprintf(`document.querySelector(%q) !== null`, live))
		s.AwaitFollowers(2) // both tabs share a stream of changes, and one of what is running
		evaluate[bool](t, ctx, `window.same = true, document.querySelector(".versions a").focus(), true`)
		entity, _, _ := strings.Cut(at, "?")
		for _, status := range []string{"Executing", "Observed"} {
			s.say(t, entity, `{"status":"`+status+`"}`)
			eventually(t, ctx, shown("#standing .standing", status))
			eventually(t, ctx, shown("#standing .standing .ago", "ago"))
			eventually(t, ctx, shown("#said tr.current", status))
			eventually(t, home, shown("#changes tr:first-child .status", status))
		}
		if !evaluate[bool](t, ctx, `window.same && document.activeElement.matches(".versions a")`) {
			t.Errorf("/%s was loaded again, or the focus is lost", at)
		}
	}
	eventually(t, home, shown("#blocks .status", "Observed"))
	if text := evaluate[string](t, ctx, `document.body.innerText`); strings.Contains(text, "Live") {
		t.Error("the page says that it is live")
	}
	must.Do(t, s.Stop())
	eventually(t, ctx, shown(".live", "Not connected"))
}

// Calls that are recorded are no matter of the status: nothing asks for it again.
func TestCallsDoNotRenewTheStatus(t *testing.T) {
	s := emptySite(t)
	s.storeCalls(t, "eb-1", []string{callIn("m.f", 0, 1, false)})
	ctx := env.Browser(t)
	connectedTimeline(t, ctx, s, "eb-1")
	const asked = `performance.getEntriesByType("resource").filter((e) => e.name.includes("/eb-1/status")).length`
	eventually(t, ctx, asked+` === 1`) // when it was connected
	for i := range 3 {
		s.record(t, "eb-1", callIn("m.f", float64(2*i+2), float64(2*i+3), false))
		eventually(t, ctx, fmt.Sprintf(`document.querySelector(".tally").textContent.startsWith("%d calls")`, i+2))
	}
	s.say(t, "ebs/eb-1", `{"status":"Observed"}`)
	eventually(t, ctx, shown("#standing .standing", "Observed"))
	if got := evaluate[int](t, ctx, asked); got != 2 {
		t.Errorf("the status was asked for %d times, want twice", got)
	}
}

// The drawing, badges and tables with statuses can be seen in both colour schemes: axe has
// no findings.
func TestStatusesCanBeSeen(t *testing.T) {
	s := emptySite(t)
	s.store(t, "/sbds/sbd-1", `{"name":"Centaurus","status":"Ready"}`)
	s.store(t, "/sbis/sbi-1", `{"sbd_ref":"sbd-1"}`)
	for id, status := range map[string]string{"eb-1": "Observing Failed", "eb-2": "Aborted", "eb-3": "waiting", "eb-4": "Running", "eb-5": "observed", "eb-6": "Ready"} {
		s.store(t, "/ebs/"+id, `{"telescope":"ska_mid","sbi_ref":"sbi-1","sbd_ref":"sbd-1","request_responses":[`+callIn("m.f", 0, 1000, true)+`]}`)
		s.say(t, "ebs/"+id, `{"status":"`+status+`","reason":"the wind","at":"`+time.Now().Add(-time.Hour).UTC().Format(time.RFC3339)+`"}`)
		s.say(t, "ebs/"+id, `{"status":"late","at":"2026-03-01T20:00:00Z"}`)
	}
	ctx := env.Browser(t)
	for _, at := range []string{"", "ebs?class=failed", "changes", "night?date=2026-03-01", "ebs/eb-1", "ebs/eb-4", "sbds/sbd-1", "compare?from=ebs/eb-1@1&to=ebs/eb-2@1"} {
		do(t, ctx, chromedp.Navigate(s.base+"/"+at))
		mustBeUsable(t, ctx, "light", "dark")
	}
}
