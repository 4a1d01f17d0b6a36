package web_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"oda/internal/app"
	"oda/internal/test/env"
	"oda/internal/test/must"
)

// emptySite starts an archive under a base path.
func emptySite(t *testing.T, configure ...func(*app.Config)) site {
	t.Helper()
	a := env.Start(t, append(configure, func(cfg *app.Config) { cfg.BasePath = "/ns/x" })...)
	return site{a, strings.TrimSuffix(a.URL(), "/api/v1")}
}

// withBlock starts an archive that has the block eb-1 with these calls, and opens a tab.
func withBlock(t *testing.T, calls ...string) (site, context.Context) {
	t.Helper()
	s := emptySite(t)
	s.storeCalls(t, "eb-1", calls)
	return s, env.Browser(t)
}

// eventually waits until a condition holds, in the page that is open or in one that comes
// after it.
func eventually(t *testing.T, ctx context.Context, condition string) {
	t.Helper()
	for late := time.Now().Add(2 * time.Minute); ; time.Sleep(5 * time.Millisecond) {
		try, cancel := context.WithTimeout(ctx, 10*time.Second) // while a page is left, there may be no answer
		so, err := chromedp.Run(try, chromedp.Evaluate[bool](`new Promise((done) => {
			const late = performance.now() + 1000;
			const look = () => { if (`+condition+`) done(true); else if (performance.now() > late) done(false); else setTimeout(look, 20); };
			look();
		})`, chromedp.EvalAwaitPromise))
		cancel()
		if err == nil && so {
			return
		}
		if time.Now().After(late) || ctx.Err() != nil {
			t.Fatalf("it never came to this: %s (%v)\n%s", condition, err, text(t, ctx, `body`))
		}
	}
}

const (
	drawn = `document.querySelector("section.timeline")?.dataset.drawn`
	// red counts the pixels of the timeline that have the colour of failures.
	red = `(() => {
		const canvas = document.querySelector(".tall canvas"), readable = { willReadFrequently: true };
		const c = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", readable), probe = new OffscreenCanvas(1, 1).getContext("2d", readable);
		c.drawImage(canvas, 0, 0);
		probe.fillStyle = getComputedStyle(canvas).getPropertyValue("--bad");
		probe.fillRect(0, 0, 1, 1);
		const [r, g, b] = probe.getImageData(0, 0, 1, 1).data, all = c.getImageData(0, 0, canvas.width, canvas.height).data;
		let n = 0;
		for (let i = 0; i < all.length; i += 4) if (all[i] === r && all[i + 1] === g && all[i + 2] === b) n++;
		return n;
	})()`
)

// showTimeline opens the page of a block, and waits until its timeline is drawn.
func showTimeline(t *testing.T, ctx context.Context, s site, at string) {
	t.Helper()
	do(t, ctx, chromedp.Navigate(s.base+"/ebs/"+at))
	eventually(t, ctx, drawn)
}

// noComplaints fails the test if the browser complained, except of pages that say what is
// wrong with their address.
func noComplaints(t *testing.T, ctx context.Context, watch *env.Watch) {
	t.Helper()
	complaints := must.Get(watch.Complaints(ctx))(t)
	for _, c := range complaints {
		if !strings.Contains(c, "status of 400") && !strings.Contains(c, "status of 404") {
			t.Errorf("the browser complains: %s", c)
		}
	}
}

// observed is a small observation, two of whose calls failed.
func observed() []string {
	const devices, monitor = "scripting.devicecontrol.", "scripting.monitoring."
	calls := []string{callIn(devices+"assign_resources", 0, 8, false), callIn(devices+"configure", 10, 40, true), callIn(devices+"configure", 45, 60, false), callIn(devices+"scan", 62, 300, false)}
	for i := range 40 {
		calls = append(calls, callIn(monitor+"read_attitude", 63+float64(i)*5, 63.3+float64(i)*5, i == 20))
	}
	return append(calls, callIn(devices+"end", 305, 306, false), callIn(devices+"release_all_resources", 500, 503, false))
}

// Failures are red, named above the timeline, and lead to what went wrong. What is
// looked at is in the address, and a filter narrows both timeline and table.
func TestTheTimelineShowsFailures(t *testing.T) {
	s := emptySite(t)
	s.storeCalls(t, "eb-1", observed())
	s.storeCalls(t, "eb-good", []string{callIn("m.f", 0, 1, false), callIn("m.g", 1, 2, false)})
	ctx := env.Browser(t)
	watch := env.NewWatch(ctx)
	do(t, ctx, chromedp.EmulateViewport(1280, 900))

	showTimeline(t, ctx, s, "eb-good")
	if n := evaluate[int](t, ctx, red); n > 0 {
		t.Errorf("%d pixels are red though nothing failed", n)
	}
	showTimeline(t, ctx, s, "eb-1")
	if n := evaluate[int](t, ctx, red); n < 500 {
		t.Errorf("only %d pixels are red", n)
	}
	shows(t, ctx, `.troubles`, "1 × configure 20:00:10\nit broke", "1 × read_attitude 20:02:43\nit broke")
	shows(t, ctx, `.tall ul`, "devicecontrol", "monitoring")
	// By the mouse, on the bar itself.
	at := evaluate[[]float64](t, ctx, `(() => {
		const box = document.querySelector(".tall canvas").getBoundingClientRect(), gutter = document.querySelector(".tall ul").offsetWidth;
		return [box.left + gutter + (box.width - gutter) * (503 * .02 + 25) / (503 * 1.04), box.top + 55];
	})()`)
	do(t, ctx, chromedp.MouseClickXY(at[0], at[1]))
	eventually(t, ctx, `document.querySelector(".panel article.failed")?.dataset.call === "2" && location.search.includes("call=2")`)
	panel := text(t, ctx, `.panel`)
	for _, want := range []string{"configure", "ERROR", "it broke", "Traceback:\n  in scripting.devicecontrol.configure", "30.0 s", `receptor="SKA001"`} {
		if !strings.Contains(panel, want) {
			t.Errorf("the panel lacks %q:\n%s", want, panel)
		}
	}
	do(t, ctx, chromedp.Click(chromedp.CSS(`[data-do=failureAfter]`)))
	eventually(t, ctx, `document.querySelector(".panel article").dataset.call === "25" && location.search.includes("call=25")`)
	for name, screen := range screens {
		do(t, ctx, chromedp.EmulateViewport(screen.width, screen.height))
		mustFit(t, ctx, name)
	}
	mustBeUsable(t, ctx, "light", "dark")
	do(t, ctx, chromedp.SetValue(chromedp.CSS(`[name=calls]`), "ok"), chromedp.SetValue(chromedp.CSS(`[name=by]`), "device"))
	evaluate[bool](t, ctx, `document.querySelector(".callfilter").dispatchEvent(new Event("change"))`)
	eventually(t, ctx, `(`+red+`) === 0 && document.querySelector(".tall ul").textContent.includes("SKA001") && !document.querySelector("tr.failed")`)
	eventually(t, ctx, `location.search.includes("calls=ok") && location.search.includes("by=device")`)
	noComplaints(t, ctx, watch)
}

// Everything that a pointer does, a keyboard does.
func TestTheTimelineByKeyboard(t *testing.T) {
	s, ctx := withBlock(t, observed()...)
	watch := env.NewWatch(ctx)
	showTimeline(t, ctx, s, "eb-1")
	for i := 0; !evaluate[bool](t, ctx, `document.activeElement.matches(".lanes")`); i++ {
		if i > 40 {
			t.Fatal("the timeline is not reached with the tabulator")
		}
		do(t, ctx, chromedp.KeyEvent(kb.Tab))
	}
	shown := func() []float64 {
		eventually(t, ctx, `location.search.includes("from=")`)
		return evaluate[[]float64](t, ctx, `["from", "to"].map((name) => Date.parse(new URLSearchParams(location.search).get(name)) / 1000)`)
	}
	press := func(key, condition string) {
		t.Helper()
		do(t, ctx, chromedp.KeyEvent(key))
		eventually(t, ctx, condition)
	}
	press("+", `document.querySelector(".shown").textContent.startsWith("4 min 21 s")`)
	before := shown()
	press(kb.ArrowRight, fmt.Sprintf(`Date.parse(new URLSearchParams(location.search).get("from")) / 1000 > %f`, before[0]+30))
	press("-", `document.querySelector(".shown").textContent.startsWith("8 min")`)
	press("+", `document.querySelector(".shown").textContent.startsWith("4 min")`)
	press(kb.End, fmt.Sprintf(`Date.parse(new URLSearchParams(location.search).get("from")) / 1000 > %f`, before[0]+100))
	press("0", `!location.search.includes("from=")`)
	press("n", `document.querySelector(".panel article.failed")?.dataset.call === "2"`)
	press("n", `document.querySelector(".panel article.failed").dataset.call === "25"`)
	press("p", `document.querySelector(".panel article.failed").dataset.call === "2"`)
	press(".", `document.querySelector(".panel article").dataset.call === "3"`)
	press(",", `document.querySelector(".panel article").dataset.call === "2"`)
	press(kb.Escape, `!document.querySelector(".panel article") && !location.search.includes("call=") && document.activeElement.matches(".lanes")`)
	noComplaints(t, ctx, watch)
}

// By pointers: dragging moves, the wheel zooms with Ctrl and otherwise leaves the
// page alone, and the strip selects a part.
func TestTheTimelineByPointer(t *testing.T) {
	s, ctx := withBlock(t, observed()...)
	do(t, ctx, chromedp.EmulateViewport(1280, 900))
	showTimeline(t, ctx, s, "eb-1")
	middle := func(of string) (x, y float64) {
		at := evaluate[[]float64](t, ctx, `(() => { const box = document.querySelector("`+of+`").getBoundingClientRect(); return [box.left + box.width * .6, box.top + box.height / 2]; })()`)
		return at[0], at[1]
	}
	drag := func(of string, by float64) {
		x, y := middle(of)
		do(t, ctx, chromedp.MouseEvent(input.DispatchMouseEventTypeMousePressed, x, y, chromedp.ButtonLeft, chromedp.ClickCount(1)),
			chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, x+by/2, y, chromedp.ButtonLeft),
			chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, x+by, y, chromedp.ButtonLeft),
			chromedp.MouseEvent(input.DispatchMouseEventTypeMouseReleased, x+by, y, chromedp.ButtonLeft, chromedp.ClickCount(1)))
	}
	drag(".overview", 200)
	eventually(t, ctx, `location.search.includes("from=")`)
	first := evaluate[float64](t, ctx, `Date.parse(new URLSearchParams(location.search).get("from"))`)
	drag(".lanes", -200)
	eventually(t, ctx, fmt.Sprintf(`Date.parse(new URLSearchParams(location.search).get("from")) > %f`, first))
	wheel := func(modifiers int64) {
		x, y := middle(".lanes")
		if _, err := chromedp.Call(ctx, input.DispatchMouseEvent, input.DispatchMouseEventParams{
			Type: input.DispatchMouseEventTypeMouseWheel, X: x, Y: y, DeltaX: .1, DeltaY: -100, Modifiers: modifiers,
		}); err != nil {
			t.Fatal(err)
		}
	}
	// Two fingers that move apart.
	touch := func(kind input.DispatchTouchEventType, fingers ...float64) {
		var points []*input.TouchPoint
		_, y := middle(".lanes")
		for i, x := range fingers {
			id := float64(i)
			points = append(points, &input.TouchPoint{X: x, Y: y, ID: &id})
		}
		must.Get(chromedp.Call(ctx, input.DispatchTouchEvent, input.DispatchTouchEventParams{Type: kind, TouchPoints: points}))(t)
	}
	const span = `(Date.parse(new URLSearchParams(location.search).get("to")) - Date.parse(new URLSearchParams(location.search).get("from")))`
	long := evaluate[float64](t, ctx, span)
	touch(input.DispatchTouchEventTypeTouchStart, 700)
	touch(input.DispatchTouchEventTypeTouchStart, 700, 800)
	touch(input.DispatchTouchEventTypeTouchMove, 650, 850)
	touch(input.DispatchTouchEventTypeTouchMove, 600, 900)
	touch(input.DispatchTouchEventTypeTouchEnd)
	eventually(t, ctx, fmt.Sprintf(`%s < %f`, span, long/2))
	before := text(t, ctx, ".shown")
	wheel(0)
	if got := text(t, ctx, ".shown"); got != before {
		t.Errorf("the wheel alone zooms from %q to %q", before, got)
	}
	wheel(2) // Ctrl
	eventually(t, ctx, fmt.Sprintf(`document.querySelector(".shown").textContent !== %q`, before))
}

// Calls appear while the page is open, also those that were recorded while the
// archive was restarted, or while the page was hidden. A hidden page has no
// connection.
func TestTheTimelineIsLive(t *testing.T) {
	database := func(cfg *app.Config) { cfg.Database = "sqlite:" + filepath.Join(t.TempDir(), "archive.db") }
	var where app.Config
	s := emptySite(t, database, func(cfg *app.Config) { where = *cfg })
	s.storeCalls(t, "eb-1", []string{})
	ctx := env.Browser(t)
	showTimeline(t, ctx, s, "eb-1")
	evaluate[bool](t, ctx, `window.same = true`)
	n := 0
	appear := func() {
		t.Helper()
		eventually(t, ctx, fmt.Sprintf(`window.same && document.querySelectorAll("tr[id^=call-]").length === %d && new Set([...document.querySelectorAll("tr[id^=call-]")].map(r => r.id)).size === %d
			&& document.querySelector(".tally").textContent.replaceAll(/\s+/g, " ").startsWith("%d call") && document.querySelector(".lanes").ariaLabel.startsWith("%d call")`, n, n, n, n))
	}
	post := func(failed bool) {
		t.Helper()
		s.record(t, "eb-1", callIn("m.f", float64(n), float64(n)+.5, failed))
		n++
	}
	eventually(t, ctx, `document.querySelector(".live").dataset.connected === "true"`)
	for range 3 {
		post(false)
		appear()
	}
	if evaluate[int](t, ctx, red) > 0 {
		t.Error("something is red")
	}
	post(true)
	appear()
	eventually(t, ctx, `(`+red+`) > 0 && document.querySelector(".troubles").textContent.includes("it broke")`)

	// A restart, with calls before the page has noticed.
	addr := s.Addr()
	must.Do(t, s.Stop())
	eventually(t, ctx, `document.querySelector(".live").dataset.connected === "false"`)
	s = emptySite(t, func(cfg *app.Config) { cfg.Database, cfg.Listen = where.Database, addr })
	for range 5 {
		post(false)
	}
	appear()
	eventually(t, ctx, `document.querySelector(".live").dataset.connected === "true"`)
	post(false)
	appear()

	hide := func(hidden bool) {
		evaluate[bool](t, ctx, fmt.Sprintf(`Object.defineProperty(document, "hidden", { configurable: true, value: %v }), document.dispatchEvent(new Event("visibilitychange"))`, hidden))
	}
	hide(true)
	s.AwaitFollowers(0)
	post(false)
	hide(false)
	appear()
	post(false)
	appear()
}

// connectedTimeline opens the page of a block, and waits until it follows the block.
func connectedTimeline(t *testing.T, ctx context.Context, s site, at string) {
	t.Helper()
	showTimeline(t, ctx, s, at)
	eventually(t, ctx, `document.querySelector(".live").dataset.connected === "true"`)
}

// before runs a script in each page before its own.
func before(t *testing.T, ctx context.Context, script string) {
	t.Helper()
	must.Get(chromedp.Call(ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: script}))(t)
}

// A new version may have other calls. The page shows the one or the other, and waits
// with the new one while somebody types.
func TestTheTimelineShowsOneVersion(t *testing.T) {
	s, ctx := withBlock(t, callIn("m.f", 0, 1, false), callIn("m.f", 1, 2, false), callIn("m.f", 2, 3, false))
	connectedTimeline(t, ctx, s, "eb-1")
	const says = `[document.querySelector(".tally strong").textContent, [...document.querySelectorAll("tr[id]")].map((r) => r.id).join(" "),
		[...document.querySelectorAll(".versions .number a")].map((v) => v.textContent).join(" "), document.querySelector(".facts").textContent.match(/Version.*/)[0]].join("; ")`
	const second = `2 calls; call-4 call-5; 2 1; Version2, the current one`
	s.storeCalls(t, "eb-1", []string{callIn("m.g", 0, 1, false), callIn("m.g", 1, 2, false)})
	eventually(t, ctx, fmt.Sprintf(`%s === %q`, says, second))
	eventually(t, ctx, `document.querySelector(".live").matches("[data-connected=true]:empty")`)

	do(t, ctx, chromedp.SendKeys(chromedp.CSS(`#at`), "2026-"))
	s.storeCalls(t, "eb-1", []string{callIn("m.h", 0, 1, false)})
	eventually(t, ctx, `document.querySelector(".live").textContent.includes("new version")`)
	if got := evaluate[string](t, ctx, says+` + "; " + document.querySelector("#at").value`); got != second+"; 2026-" {
		t.Errorf("while somebody types, the page says %s", got)
	}
	evaluate[bool](t, ctx, `document.querySelector("#at").value = "", document.activeElement.blur(), true`)
	eventually(t, ctx, fmt.Sprintf(`%s === "1 call; call-6; 3 2 1; Version3, the current one"`, says))
}

// Calls that come take neither the focus nor a click away.
func TestANewCallLeavesTheSummaryInPlace(t *testing.T) {
	s, ctx := withBlock(t, callIn("m.f", 0, 1, true))
	connectedTimeline(t, ctx, s, "eb-1")
	evaluate[bool](t, ctx, `window.link = document.querySelector(".troubles a"), link.focus(), true`)
	s.record(t, "eb-1", callIn("m.f", 2, 3, false))
	eventually(t, ctx, `document.querySelector(".tally").textContent.startsWith("2 calls")`)
	if !evaluate[bool](t, ctx, `document.activeElement === link`) {
		t.Error("a call that changes nothing in a link takes its focus")
	}
	s.record(t, "eb-1", callIn("m.f", 4, 5, true))
	eventually(t, ctx, `document.querySelector(".troubles .times").textContent === "2 ×"`)
	if !evaluate[bool](t, ctx, `document.activeElement.dataset.call === "1"`) {
		t.Error("the focus is lost")
	}

	const failed = `document.querySelector(".troubles .times").textContent`
	at := evaluate[[]float64](t, ctx, `(() => { const box = document.querySelector(".troubles a").getBoundingClientRect(); return [box.left + box.width / 2, box.top + box.height / 2]; })()`)
	do(t, ctx, chromedp.MouseEvent(input.DispatchMouseEventTypeMousePressed, at[0], at[1], chromedp.ButtonLeft, chromedp.ClickCount(1)))
	s.record(t, "eb-1", callIn("m.f", 6, 7, true))
	eventually(t, ctx, `document.querySelector("section.timeline").textContent.includes("4 calls")`)
	// By then it would have asked for the summary.
	if got := evaluate[string](t, ctx, `new Promise((done) => setTimeout(done, 500)).then(() => `+failed+`)`); got != "2 ×" {
		t.Errorf("the summary says %q while somebody clicks on it", got)
	}
	do(t, ctx, chromedp.MouseEvent(input.DispatchMouseEventTypeMouseReleased, at[0], at[1], chromedp.ButtonLeft, chromedp.ClickCount(1)))
	eventually(t, ctx, `document.querySelector(".panel article")?.dataset.call === "1" && `+failed+` === "3 ×"`)
}

// If the answers to two filters come in the wrong order, the last filter counts.
func TestTheLastFilterCounts(t *testing.T) {
	s, ctx := withBlock(t, callIn("m.f", 0, 1, false), callIn("m.g", 1, 2, false), callIn("m.h", 2, 3, false))
	before(t, ctx, `{
		const ask = fetch;
		window.fetch = async (address, ...rest) => {
			const answer = await ask(address, ...rest);
			if (!address.includes("eb-1?function=m.f")) return answer;
			window.answered = true;
			await new Promise((done) => setTimeout(done, 500));
			setTimeout(() => { window.late = true; }, 300);
			return answer;
		};
	}`)
	connectedTimeline(t, ctx, s, "eb-1")
	show := func(function string) {
		evaluate[bool](t, ctx, fmt.Sprintf(`document.querySelector("[name=function]").value = %q, document.querySelector(".callfilter").dispatchEvent(new Event("change"))`, function))
	}
	show("m.f")
	eventually(t, ctx, `window.answered`)
	show("m.g")
	eventually(t, ctx, `window.late && [...document.querySelectorAll("tr[id]")].map((r) => r.id).join() === "call-2"`)
}

// A link to the calls of a function works before there are any.
func TestTheTimelineKeepsAFilter(t *testing.T) {
	s, ctx := withBlock(t, callIn("m.f", 0, 1, false))
	connectedTimeline(t, ctx, s, "eb-1?function=m.later")
	for range 2 {
		s.record(t, "eb-1", callIn("m.f", 2, 3, false))
	}
	s.record(t, "eb-1", callIn("m.later", 4, 5, false))
	eventually(t, ctx, `document.querySelector(".lanes").ariaLabel.startsWith("4 calls") && [...document.querySelectorAll("tr[id]")].map((r) => r.id).join() === "call-4"`)
	do(t, ctx, chromedp.Click(chromedp.CSS(`#call-4 a`)))
	eventually(t, ctx, `location.search.includes("call=4") && location.search.includes("function=m.later")`)
}

// A block whose calls are not all known is asked for again, but not in haste if that
// makes no more of them known.
func TestTheTimelineAsksWithPatience(t *testing.T) {
	t.Parallel() // it mostly waits
	s, ctx := withBlock(t, callIn("m.f", 0, 1, false))
	before(t, ctx, `{
		const ask = fetch;
		window.asked = [];
		window.fetch = async (address, ...rest) => {
			if (!address.includes("/timeline?")) return ask(address, ...rest);
			asked.push(performance.now());
			return Response.json({ ...await (await ask(address, ...rest)).json(), complete: false });
		};
	}`)
	connectedTimeline(t, ctx, s, "eb-1")
	evaluate[bool](t, ctx, `asked.length = 0, true`) // a page that connects asks once more
	eventually(t, ctx, `asked.length >= 4`)
	if took := evaluate[float64](t, ctx, `asked[3] - asked[0]`); took < 1500 {
		t.Errorf("it asks four times in %.0f ms", took)
	}
}

// A table that has become long ends with a link to the calls behind it.
func TestALongLiveTableGoesOn(t *testing.T) {
	s, ctx := withBlock(t, callIn("m.f", 0, 1, false))
	connectedTimeline(t, ctx, s, "eb-1")
	const calls = 2500
	var records []string
	for i := range calls {
		records = append(records, fmt.Sprintf(`{"key":"%d","record":%s}`, i, callIn("m.f", float64(i), float64(i)+.5, false)))
	}
	s.Must("POST", "/ebs/eb-1/request_responses", `{"records":[`+strings.Join(records, ",")+`]}`)
	eventually(t, ctx, `document.querySelector("#calls ~ .paging a[rel=next]")`)
	last := evaluate[int](t, ctx, `document.querySelectorAll("tr[id]").length`)
	if last < 2000 || last >= calls {
		t.Errorf("the table has %d rows", last)
	}
	follow(t, ctx, `#calls ~ .paging a[rel=next]`)
	if got, want := evaluate[string](t, ctx, `document.querySelector("tr[id]").id`), fmt.Sprintf("call-%d", last+1); got != want {
		t.Errorf("the table goes on with %s, want %s", got, want)
	}
}

// A call with a wrong date is out of sight, and the timeline says so.
func TestTheTimelineTellsOfCallsFarAway(t *testing.T) {
	s := emptySite(t)
	calls := []string{callIn("m.f", 0, 1, false), callIn("m.f", 1, 2, false), callIn("m.f", 2, 3, false), callIn("m.f", 3, 4, false), callIn("m.f", 1e6, 1e6+1, false)}
	ctx := env.Browser(t)
	for block, far := range map[string]struct {
		calls []string
		says  string
	}{
		"eb-1": {calls, "; 1 call is far from the others: zoom out to see it"},
		"eb-2": {append(calls, callIn("m.f", 1e6, 1e6+1, false)), "; 2 calls are far from the others: zoom out to see them"},
	} {
		s.storeCalls(t, block, far.calls)
		showTimeline(t, ctx, s, block)
		if got := text(t, ctx, ".shown"); !strings.HasSuffix(got, far.says) {
			t.Errorf("the timeline says %q, want %q", got, far.says)
		}
	}
}

// Whatever the strings of a record are, they are shown and never run.
func TestScriptsInCallsAreHarmless(t *testing.T) {
	const script = `\"><script>window.harmed = 1</script><img src=x onerror=\"window.harmed = 1\">'{{7*7}}</title></details>`
	s := emptySite(t)
	one := `{"request":"` + script + `.` + script + `","request_args":{"args":["` + script + `"],"kwargs":{"device":"` + script + `","` + script + `":1}},"status":"` + script + `","` + script + `":"` + script + `",` +
		`"error":{"detail":"` + script + `","stacktrace":"` + script + `"},"response":{"result":"` + script + `"}}`
	s.storeCalls(t, "eb-1", []string{one, callIn("m.f", 1, 2, false)})
	ctx := env.Browser(t)
	watch := env.NewWatch(ctx)
	for _, at := range []string{"eb-1", "eb-1?by=device&call=1", "eb-1?by=%3Cscript%3E&from=%3Cscript%3E&to=x&call=%3Cscript%3E", "eb-1?function=%3Cscript%3E"} {
		showTimeline(t, ctx, s, at)
		do(t, ctx, chromedp.Click(chromedp.CSS(`.troubles a`)))
		eventually(t, ctx, `document.querySelector(".panel article.failed")`)
		s.record(t, "eb-1", one)
		eventually(t, ctx, fmt.Sprintf(`document.querySelector(".tally").textContent.startsWith("%d ")`, s.timeline(t, "eb-1", "").Calls))
		if evaluate[bool](t, ctx, `"harmed" in window || document.querySelector("main img") !== null`) {
			t.Errorf("%s runs a script of a record", at)
		}
	}
	noComplaints(t, ctx, watch)
}

// Budgets of a timeline of 50,000 calls, on a machine with two cores.
const (
	firstDraw = time.Second
	panStep   = 50 * time.Millisecond
)

// A long timeline is drawn at once, and moves smoothly. The machine may be busy with
// other things, so that one load of a few may count, and the median of the steps.
func TestALongTimelineIsSmooth(t *testing.T) {
	env.ProofOnly(t)
	s := emptySite(t)
	var calls []string
	for i := range 50_000 {
		begin := float64(i) / 40
		calls = append(calls, callIn(fmt.Sprintf("scripting.module%d.function%d", i%3, i%7), begin, begin+.05+float64(i%11)/20, i%150 == 0))
	}
	s.storeCalls(t, "eb-1", calls)
	ctx := env.Browser(t)
	watch := env.NewWatch(ctx)
	do(t, ctx, chromedp.EmulateViewport(1280, 900))
	before(t, ctx, `
		window.steps = [];
		new MutationObserver(() => {
			window.first ??= performance.now();
			if (window.pressed) steps.push(performance.now() - pressed);
			window.pressed = 0;
		}).observe(document, { subtree: true, attributes: true, attributeFilter: ["data-drawn"] });`)
	took := time.Hour
	for try := 0; took > firstDraw && try < 8; try++ {
		showTimeline(t, ctx, s, "eb-1")
		took = time.Duration(evaluate[float64](t, ctx, `first`) * float64(time.Millisecond))
		t.Logf("the first draw came after %v", took)
	}
	if took > firstDraw {
		t.Errorf("the first draw takes more than %v", firstDraw)
	}
	eventually(t, ctx, `document.querySelector(".tally").textContent.replaceAll(/\s/g, "").startsWith("50000calls,334failed")`)
	for _, zoomed := range []int{1, 8} {
		steps := evaluate[[]float64](t, ctx, fmt.Sprintf(`(async () => {
			const lanes = document.querySelector(".lanes"), press = (key) => lanes.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
			const wait = (ms) => new Promise((done) => setTimeout(done, ms));
			for (let i = 0; i < %d; i++) press("+");
			await wait(500);
			steps.length = 0;
			for (let i = 0; i < 40; i++) {
				window.pressed = performance.now();
				press(i %% 8 < 4 ? "ArrowRight" : "ArrowLeft");
				while (window.pressed) await wait(1);
			}
			return steps;
		})()`, zoomed))
		slices.Sort(steps)
		median := time.Duration(steps[len(steps)/2] * float64(time.Millisecond))
		t.Logf("zoomed in %d times, a step takes %v, at most %.1f ms", zoomed, median, steps[len(steps)-1])
		if median > panStep {
			t.Errorf("a step takes %v, more than %v", median, panStep)
		}
	}
	if data := s.get(t, "ebs/eb-1/timeline?parts=1900", "Accept-Encoding", "gzip"); len(data.Raw) > 200<<10 {
		t.Errorf("the reduction takes %d bytes", len(data.Raw))
	}
	noComplaints(t, ctx, watch)
}
