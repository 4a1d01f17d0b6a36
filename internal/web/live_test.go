package web_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"

	"oda/internal/test/env"
	"oda/internal/test/must"
)

// shown is whether a part of the page has a text in it.
func shown(part, text string) string {
	return fmt.Sprintf(`[...document.querySelectorAll(%q)].some((e) => e.textContent.includes(%q))`, part, text)
}

// connected opens a page that follows the archive.
func (s site) connected(t *testing.T, ctx context.Context, at string) {
	t.Helper()
	do(t, ctx, chromedp.Navigate(s.base+"/"+at))
	eventually(t, ctx, `document.querySelector("[data-connected]")?.dataset.connected === "true"`)
}

// What is stored and recorded while a page is open appears in it, without a reload
// and without taking the focus away.
func TestAnOpenPageShowsWhatIsNew(t *testing.T) {
	s := newSite(t, "/ns/x")
	home := env.Browser(t)
	changes := env.Tab(t, home)
	s.connected(t, home, "")
	s.connected(t, changes, "changes?kind=ebs")
	const definitions = `+document.querySelector("#counts a[href$=sbds] .count").textContent.replace(/\D/g, "")`
	before := evaluate[int](t, home, definitions)
	for _, tab := range []context.Context{home, changes} {
		evaluate[bool](t, tab, `document.querySelector("#changes a").focus(); window.still = document.activeElement.href; true`)
	}

	s.Must("PUT", "/ebs/eb-tonight", `{"telescope":"ska_mid"}`)
	eventually(t, home, shown("#blocks .id", "eb-tonight"))
	eventually(t, home, shown("#changes tr", "eb-tonight"))
	eventually(t, changes, shown("#changes tr", "eb-tonight"))

	s.Must("POST", "/ebs/eb-tonight/request_response", `{"request":"scan","status":"OK"}`)
	s.Must("POST", "/ebs/eb-tonight/request_response", `{"request":"scan","status":"ERROR","error":{"detail":"no signal"}}`)
	s.Must("PUT", "/sbds/sbd-tonight", `{"name":"Not a block"}`)
	eventually(t, home, shown("#changes tr", "Not a block"))
	eventually(t, home, fmt.Sprintf(`%s === %d`, definitions, before+1))
	eventually(t, home, `document.querySelector("#blocks tr .number").textContent === "2"`)
	for _, tab := range []context.Context{home, changes} {
		eventually(t, tab, shown("#changes tr", "2 calls, 1 failed"))
		if evaluate[bool](t, tab, `document.activeElement.href !== window.still`) {
			t.Error("the page was loaded again, or the focus is lost")
		}
	}
	if evaluate[bool](t, changes, shown("#changes tr", "sbd-tonight")) {
		t.Error("the page of the blocks shows a definition")
	}
	eventually(t, home, `document.querySelectorAll("#changes time").length === document.querySelectorAll("#changes .ago").length`)
}

// Nothing moves away under a click: not when the page connects, and not when something
// new comes while the button is down.
func TestAClickEndsWhereItBegan(t *testing.T) {
	s := newSite(t, "")
	ctx := env.Browser(t)
	other := env.Tab(t, ctx)
	s.connected(t, other, "changes")
	hurried(t, ctx)
	s.connected(t, ctx, "")
	const moves = `(() => {
		const line = document.querySelector("[data-connected]"), below = document.querySelector("#now").getBoundingClientRect().top;
		line.textContent = "Not connected";
		const without = document.querySelector("#now").getBoundingClientRect().top;
		line.textContent = "";
		return below !== without || below === 0;
	})()`
	if evaluate[bool](t, ctx, moves) {
		t.Error("what is below the line that says whether the page is connected moves when it does")
	}
	link := evaluate[[]float64](t, ctx, `(() => {
		const link = document.querySelector("#changes a");
		link.scrollIntoView({ block: "center" });
		window.clicked = link.href;
		const box = link.getBoundingClientRect();
		return [box.x + box.width / 2, box.y + box.height / 2];
	})()`)
	want := evaluate[string](t, ctx, `window.clicked`)
	do(t, ctx, chromedp.MouseEvent(input.DispatchMouseEventTypeMousePressed, link[0], link[1], chromedp.ButtonLeft, chromedp.ClickCount(1)))
	s.Must("PUT", "/sbds/sbd-meanwhile", `{"name":"Came meanwhile"}`)
	eventually(t, other, shown("#changes tr", "Came meanwhile"))
	if evaluate[bool](t, ctx, `new Promise((done) => setTimeout(done, 3000)).then(() => `+shown("#changes tr", "Came meanwhile")+`)`) {
		t.Error("the list moves while the button is down")
	}
	do(t, ctx, chromedp.MouseEvent(input.DispatchMouseEventTypeMouseReleased, link[0], link[1], chromedp.ButtonLeft, chromedp.ClickCount(1)))
	eventually(t, ctx, fmt.Sprintf(`location.href === %q`, want))
}

// An empty archive has other parts than one with something in it.
func TestAnEmptyArchiveFills(t *testing.T) {
	s := open(t, "", filepath.Join(t.TempDir(), "archive.db"), "127.0.0.1:0")
	home := env.Browser(t)
	changes := env.Tab(t, home)
	for tab, at := range map[context.Context]string{home: "", changes: "changes"} {
		s.connected(t, tab, at)
	}
	s.Must("PUT", "/ebs/eb-first", `{}`)
	for _, tab := range []context.Context{home, changes} {
		eventually(t, tab, shown("table.changes thead + tbody tr", "eb-first"))
	}
}

// A page whose parts become others is loaded again, but not while somebody types.
func TestWhatIsTypedIsKept(t *testing.T) {
	s := open(t, "", filepath.Join(t.TempDir(), "archive.db"), "127.0.0.1:0")
	ctx := env.Browser(t)
	s.connected(t, ctx, "")
	const field = `document.querySelector(".find input")`
	do(t, ctx, chromedp.SendKeys(chromedp.CSS(`.find input`), "half a wor"))
	s.Must("PUT", "/ebs/eb-first", `{}`)
	eventually(t, ctx, `document.querySelector("#counts a[href$=ebs] .count").textContent === "1"`)
	if !evaluate[bool](t, ctx, field+`.value === "half a wor" && document.activeElement === `+field) {
		t.Error("what was typed is lost, or the focus")
	}
	evaluate[bool](t, ctx, field+`.value = "", `+field+`.blur(), true`)
	eventually(t, ctx, shown("#blocks .id", "eb-first"))
}

// However many changes come while their page is open, those that no longer are on it
// are on the next one.
func TestNewChangesLeadToOlderOnes(t *testing.T) {
	s := open(t, "/ns/x", filepath.Join(t.TempDir(), "archive.db"), "127.0.0.1:0")
	s.Must("PUT", "/sbds/sbd-0", `{}`)
	ctx := env.Browser(t)
	s.connected(t, ctx, "changes")
	evaluate[bool](t, ctx, `window.same = true`)
	// goesOn is whether so many changes are told of, and the next page begins below the last row.
	goesOn := func(changes int) string {
		return fmt.Sprintf(`window.same && document.querySelector("main").textContent.includes("Its last position is %d.")
			&& new URL(document.querySelector("a[rel=next]").href).searchParams.get("before") === document.querySelector("#changes tr:last-child [data-name=Position]").textContent`, changes)
	}
	var all []string
	for i := range 60 {
		all = append(all, fmt.Sprintf(`{"sbd_id":"sbd-more-%d"}`, i))
	}
	s.Must("PUT", "/", `{"sbds":[`+strings.Join(all, ",")+`]}`)
	eventually(t, ctx, goesOn(61))
	evaluate[bool](t, ctx, `document.querySelector("a[rel=next]").focus(), true`)
	s.Must("PUT", "/sbds/sbd-last", `{}`)
	eventually(t, ctx, goesOn(62))
	if !evaluate[bool](t, ctx, `document.activeElement.rel === "next"`) {
		t.Error("the focus is lost")
	}
}

// The archive is restarted while a page is open: the page says so, comes back by
// itself, and misses nothing.
func TestAPageReconnects(t *testing.T) {
	t.Parallel() // it mostly waits
	file := filepath.Join(t.TempDir(), "archive.db")
	s := open(t, "/ns/x", file, "127.0.0.1:0")
	s.Must("PUT", "/sbds/sbd-before", `{}`)
	ctx := env.Browser(t)
	s.connected(t, ctx, "changes")
	address := s.Addr()
	must.Do(t, s.Stop())
	eventually(t, ctx, shown(".live", "Not connected"))

	s = open(t, "/ns/x", file, address)
	for i := range 3 { // mostly before the page is back
		s.Must("PUT", fmt.Sprintf("/sbds/sbd-after-%d", i), `{}`)
	}
	for i := range 3 {
		eventually(t, ctx, shown("#changes tr", fmt.Sprintf("sbd-after-%d", i)))
	}
	eventually(t, ctx, `document.querySelector(".live").matches("[data-connected=true]:empty")`)
	s.Must("PUT", "/sbds/sbd-later", `{}`)
	eventually(t, ctx, shown("#changes tr", "sbd-later"))
	if got := evaluate[int](t, ctx, `document.querySelectorAll("#changes tr").length`); got != 5 {
		t.Errorf("the page has %d changes, want 5", got)
	}
}

// A browser has six connections to a host. All its pages share one stream of changes, and one
// of what is running as long as a page wants that; pages that nobody sees have none.
func TestManyPagesShareTheirStreams(t *testing.T) {
	s := newSite(t, "/ns/x")
	tabs := []context.Context{env.Browser(t)}
	for range 6 {
		tabs = append(tabs, env.Tab(t, tabs[0]))
	}
	for i, tab := range tabs {
		s.connected(t, tab, []string{"", "changes"}[i%2])
	}
	s.AwaitFollowers(2)
	s.Must("PUT", "/sbds/sbd-for-all", `{}`)
	for _, tab := range tabs {
		eventually(t, tab, shown("#changes tr", "sbd-for-all"))
	}
	for i, tab := range tabs { // the last is Home again
		s.AwaitFollowers(2)
		hide(t, tab, true)
		if i == len(tabs)-1 {
			s.AwaitFollowers(0)
		}
	}
	s.Must("PUT", "/sbds/sbd-unseen", `{}`)
	hide(t, tabs[3], false)
	s.AwaitFollowers(1)
	eventually(t, tabs[3], shown("#changes tr", "sbd-unseen"))
	do(t, tabs[3], chromedp.Navigate(s.base+"/prjs"))
	s.AwaitFollowers(0)
}

// A browser without shared workers, or that cannot load one, has a stream for each page
// that is seen.
func TestAPageFollowsWithoutSharedWorkers(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"none":       `delete window.SharedWorker`,
		"not loaded": `SharedWorker = class extends SharedWorker { constructor(address) { super(new URL("none.js", address)); } }`,
		"silent":     `SharedWorker = class { port = { postMessage() {} } }`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // it mostly waits
			s := newSite(t, "")
			ctx := env.Browser(t)
			before(t, ctx, script)
			s.connected(t, ctx, "changes")
			s.AwaitFollowers(1)
			s.Must("PUT", "/sbds/sbd-new", `{}`)
			eventually(t, ctx, shown("#changes tr", "sbd-new"))
			hide(t, ctx, true)
			s.AwaitFollowers(0)
			hide(t, ctx, false)
			s.AwaitFollowers(1)
		})
	}
}

// hide lets a page believe that nobody sees it, as when another tab is in front.
func hide(t *testing.T, ctx context.Context, hidden bool) {
	t.Helper()
	script := `delete document.hidden`
	if hidden {
		script = `Object.defineProperty(document, "hidden", { value: true, configurable: true })`
	}
	evaluate[bool](t, ctx, script+`, document.dispatchEvent(new Event("visibilitychange"))`)
}

// The feed is read to its beginning by links, without JavaScript, and each change is
// on one page.
func TestTheChangesAreReadPageByPage(t *testing.T) {
	s := newSite(t, "/ns/x")
	for name, test := range map[string]struct {
		filter string
		want   int
	}{
		"definitions":              {"kind=sbds", len(s.ids(t, "/sbds/search?fields=id&limit=1000"))},
		"blocks and their calls":   {"kind=ebs", len(s.ids(t, "/ebs/search?fields=id&limit=1000"))},
		"what the scheduler made":  {"by=scheduler&change=stored&kind=sbis", len(s.ids(t, "/sbis/search?fields=id&limit=1000"))},
		"one block":                {"id=" + s.failing(t), 1},
		"definitions and projects": {"kind=sbds&kind=prjs", len(s.ids(t, "/sbds/search?fields=id&limit=1000")) + len(s.ids(t, "/prjs/search?fields=id&limit=1000"))},
	} {
		created, seen := 0, map[string]bool{}
		pages, _ := s.walk(t, "changes?"+test.filter, "next")
		for _, page := range pages {
			created += strings.Count(page, "Created, ")
			for _, row := range strings.Split(page, "<tr")[1:] {
				if seen[row] {
					t.Errorf("%s: a change is on two pages:\n%s", name, row)
				}
				seen[row] = strings.Contains(row, "<td")
			}
		}
		if created != test.want {
			t.Errorf("%s: %d are created, want %d, on %d pages", name, created, test.want, len(pages))
		}
	}
	for at, says := range map[string]string{
		"changes?kind=blocks": "must be one of sbds", "changes?before=x": "must be a position", "changes?change=deleted": "must be stored, recorded or status",
	} {
		if page := s.get(t, at); page.Status != http.StatusBadRequest || !strings.Contains(page.Text(), says) {
			t.Errorf("%s answers %d without %q", at, page.Status, says)
		}
	}
}

// recordAll records calls at once.
func (s site) recordAll(t *testing.T, block string, calls []string) {
	t.Helper()
	records := make([]string, len(calls))
	for i, call := range calls {
		records[i] = `{"key":"` + rand.Text() + `","record":` + call + `}`
	}
	s.Must("POST", "/ebs/"+block+"/request_responses", `{"records":[`+strings.Join(records, ",")+`]}`)
}

// A change says which of its calls failed, or that nobody counted, and leads to its
// calls as they were.
func TestAChangeLeadsToItsCalls(t *testing.T) {
	s := emptySite(t)
	failed := []string{callIn("m.f", 0, 1, true), callIn("m.f", 2, 3, false), callIn("m.f", 4, 5, true)}
	s.storeCalls(t, "eb-drop", nil)
	s.recordAll(t, "eb-drop", failed) // 1 to 3
	s.storeCalls(t, "eb-drop", []string{callIn("m.g", 0, 1, true)})
	s.recordAll(t, "eb-drop", failed) // 5 to 7
	s.storeCalls(t, "eb-drop", []string{callIn("m.h", 0, 1, true)})
	s.recordAll(t, "eb-drop", failed) // 9 to 11
	s.storeCalls(t, "eb-many", nil)
	many := make([]string, 600)
	for i := range many {
		many[i] = callIn("m.f", float64(i), float64(i)+.5, i%3 == 0)
	}
	s.recordAll(t, "eb-many", many)
	for _, at := range []string{"", "changes"} {
		s.says(t, at,
			`<a href="./ebs/eb-drop?version=1&amp;after=0#call-1">3 calls</a>, <span class="muted">failures not counted</span>`,
			`<a href="./ebs/eb-drop?version=2#calls">3 calls</a>, <span class="muted">failures not counted</span>`,
			`<a href="./ebs/eb-drop?after=8#call-9">3 calls</a>, <strong class="bad">2 failed</strong>`,
			`<a href="./ebs/eb-many?after=0#call-1">600 calls</a>, <a href="./ebs/eb-many?after=0&amp;calls=failed#calls">failures not counted</a>`,
		)
	}
	for at, want := range map[string]string{
		"ebs/eb-drop?version=1&after=0": `id="call-1"`, "ebs/eb-drop?version=2": "it broke", "ebs/eb-drop?after=8": `id="call-9"`, "ebs/eb-many?after=0&calls=failed": `id="call-1"`,
	} {
		if !strings.Contains(s.get(t, at).Text(), want) {
			t.Errorf("/%s does not have %s", at, want)
		}
	}
}

// How long ago something was is said in a unit of which there are not enough for the next.
func TestHowLongAgo(t *testing.T) {
	s := emptySite(t)
	ctx := env.Browser(t)
	do(t, ctx, chromedp.Navigate(s.base+"/compare"))
	for seconds, want := range map[string]string{
		"1": "1 sec. ago", "59.7": "59 sec. ago", "60": "1 min. ago", "3590": "59 min. ago", "3600": "1 hr. ago", "86000": "23 hr. ago", "31500000": "11 mo. ago",
	} {
		if got := evaluate[string](t, ctx, `ago(Date.now() - 1000 * `+seconds+`)`); got != want {
			t.Errorf("%s seconds are %q, want %q", seconds, got, want)
		}
	}
}
