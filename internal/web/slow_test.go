package web_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"oda/internal/test/env"
	"oda/internal/web"
)

// slowLine lets everything that a page asks for come half a second later, which is longer
// than a page waits before it changes its address.
func slowLine(t *testing.T, ctx context.Context) {
	t.Helper()
	if _, err := chromedp.Call(ctx, network.EmulateNetworkConditionsByRule, network.EmulateNetworkConditionsByRuleParams{
		MatchedNetworkConditions: []*network.Conditions{{Latency: 500, DownloadThroughput: -1, UploadThroughput: -1}},
	}); err != nil {
		t.Fatal(err)
	}
}

// hurried lets a page wait for a tenth of the time.
func hurried(t *testing.T, ctx context.Context) {
	t.Helper()
	before(t, ctx, `for (const name of ["setTimeout", "setInterval"]) {
		const later = window[name];
		window[name] = (what, time) => later(what, time / 10);
	}`)
}

// The page of an archive that is being opened becomes the one that was asked for, also if
// a gateway cannot reach the archive meanwhile, and if the page takes longer than it waits
// before it looks again.
func TestASlowPageComesAfterTheOpening(t *testing.T) {
	var opened atomic.Bool
	var gone atomic.Int32
	opening := web.OpeningHandler(web.Config{Version: "1"}, func() (string, float64) { return "its schema is being upgraded", 0.66 })
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		file, asset := strings.CutPrefix(r.URL.Path, "/api/v1/ui/")
		if asset || !opened.Load() {
			if asset {
				r.SetPathValue("file", file)
			}
			opening.ServeHTTP(w, r)
			return
		}
		if gone.Add(1) <= 2 {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		select {
		case <-time.After(time.Second):
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, `<main>The archive is open.</main>`)
		case <-r.Context().Done():
		}
	}))
	defer server.Close()
	ctx := env.Browser(t)
	hurried(t, ctx)
	do(t, ctx, chromedp.Navigate(server.URL+"/ebs"))
	opened.Store(true)
	eventually(t, ctx, shown("main", "The archive is open."))
}

// Over a slow line, a call that comes late neither takes the focus from where somebody has
// gone meanwhile, nor the place of a call that was chosen later.
func TestALateCallDisturbsNobody(t *testing.T) {
	t.Parallel() // it mostly waits
	s, ctx := withBlock(t, observed()...)
	showTimeline(t, ctx, s, "eb-1?call=2")
	slowLine(t, ctx)
	const next, find = `document.querySelector(".panel [rel=next]")`, `document.querySelector(".findtools input")`
	for name, meanwhile := range map[string]string{"went on to write": "", "closed the call and went on to write": `document.querySelector(".panel .close").click();`} {
		evaluate[bool](t, ctx, `(() => {
			window.answered = 0;
			window.real ??= fetch;
			window.fetch = (...given) => real(...given).finally(() => setTimeout(() => { answered++; }, 200));
			`+next+`.focus();
			`+next+`.click();
			`+meanwhile+find+`.focus();
			return true;
		})()`)
		eventually(t, ctx, `answered > 0`)
		if !evaluate[bool](t, ctx, `document.activeElement === `+find) {
			t.Errorf("who %s lost the focus", name)
		}
		evaluate[bool](t, ctx, `(document.querySelector("#call-5 [data-call]").click(), true)`)
		eventually(t, ctx, `document.querySelector(".panel article")?.dataset.call === "5"`)
	}
}

// Who opens a call before the timeline is there sees it, not the one in the address.
func TestTheChosenCallCountsBeforeTheNamedOne(t *testing.T) {
	s, ctx := withBlock(t, observed()...)
	slowLine(t, ctx)
	do(t, ctx, chromedp.Navigate(s.base+"/ebs/eb-1#call-3"))
	evaluate[bool](t, ctx, `(document.querySelector("#call-7 [data-call]").click(), true)`)
	eventually(t, ctx, drawn+` && document.querySelector(".panel article") && location.search.includes("call=")`)
	if got := evaluate[string](t, ctx, `document.querySelector(".panel article").dataset.call + location.search`); got != "7?call=7" {
		t.Errorf("shown is %s, want 7?call=7", got)
	}
}

// Who goes back and forth before another page has come is where they were, and what they do
// then is in the address.
func TestBackAndForthOverASlowLine(t *testing.T) {
	s, ctx := withBlock(t, observed()...)
	showTimeline(t, ctx, s, "eb-1")
	do(t, ctx, chromedp.Click(chromedp.CSS(`.troubles a`)))
	eventually(t, ctx, `location.search.includes("call=")`)
	slowLine(t, ctx)
	evaluate[bool](t, ctx, `(addEventListener("popstate", () => { if (location.search) window.returned = true; else history.forward(); }), setTimeout(() => history.back()), true)`)
	eventually(t, ctx, `document.readyState === "complete" && window.returned && location.search === "?call=2" && document.querySelector(".panel article") !== null`)
	evaluate[bool](t, ctx, `(document.querySelector("[data-do=in]").click(), true)`)
	eventually(t, ctx, `document.readyState === "complete" && location.search.includes("from=") && location.search.includes("call=2")`)
}

// failFirst lets the first answers to what is asked for at some addresses be that the archive
// is busy.
func failFirst(t *testing.T, ctx context.Context, addresses string, answers int) {
	t.Helper()
	before(t, ctx, fmt.Sprintf(`{
		const ask = fetch;
		window.failing = 0;
		window.fetch = (address, ...rest) => /%s/.test(address) && failing-- > 0
			? Promise.resolve(new Response('{"detail":"The archive is busy."}', { status: 503 })) : ask(address, ...rest);
		window.failing = %d;
	}`, addresses, answers))
}

// A timeline that the archive cannot send now comes later, also that of an older state, about
// which no news come.
func TestATimelineThatFailsComesLater(t *testing.T) {
	s := emptySite(t)
	s.storeCalls(t, "eb-1", observed())
	s.storeCalls(t, "eb-1", observed())
	for _, at := range []string{"eb-1", "eb-1?version=1"} {
		ctx := env.Browser(t)
		hurried(t, ctx)
		failFirst(t, ctx, "timeline", 2)
		showTimeline(t, ctx, s, at)
	}
}

// A filter that the archive cannot answer to at once narrows both timeline and table as soon
// as it can.
func TestAFilterThatFailsCountsLater(t *testing.T) {
	s := emptySite(t)
	s.storeCalls(t, "eb-1", []string{callIn("m.f", 0, 1, false), callIn("m.f", 1, 2, true), callIn("m.f", 2, 3, false)})
	for name, addresses := range map[string]string{"the timeline": `timeline\?`, "the summary": `summary`, "the table": `eb-1\?`} {
		t.Run(name, func(t *testing.T) {
			ctx := env.Browser(t)
			hurried(t, ctx)
			failFirst(t, ctx, addresses, 0)
			connectedTimeline(t, ctx, s, "eb-1")
			eventually(t, ctx, `document.querySelector(".lanes").ariaLabel.startsWith("3 calls")`)
			before := evaluate[int](t, ctx, colour)
			evaluate[bool](t, ctx, `(window.failing = 2, document.querySelector("[name=calls]").value = "failed", document.querySelector(".callfilter").dispatchEvent(new Event("change")))`)
			eventually(t, ctx, `[...document.querySelectorAll("tr[id]")].map((r) => r.id).join() === "call-2"`)
			eventually(t, ctx, fmt.Sprintf(`%s < %d`, colour, before))
		})
	}
}

// colour counts the pixels of the timeline that are drawn.
const colour = `(() => {
	const canvas = document.querySelector(".tall canvas"), c = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", { willReadFrequently: true });
	c.drawImage(canvas, 0, 0);
	return c.getImageData(0, 0, canvas.width, canvas.height).data.filter((part, i) => i % 4 === 3 && part > 0).length;
})()`

// A page that is refused, as after the end of its session, does not ask again and again. One
// that fails does, until it is there.
func TestAPageThatIsRefusedAsksNoMore(t *testing.T) {
	s := newSite(t, "")
	for status, again := range map[int]bool{http.StatusUnauthorized: false, http.StatusServiceUnavailable: true} {
		ctx := env.Browser(t)
		hurried(t, ctx)
		s.connected(t, ctx, "changes")
		evaluate[bool](t, ctx, fmt.Sprintf(`(window.asked = 0, window.fetch = async () => { asked++; return new Response("", { status: %d }); }, true)`, status))
		s.Must("PUT", fmt.Sprintf("/sbds/sbd-%d", status), `{}`)
		if again {
			eventually(t, ctx, `asked > 2`)
			continue
		}
		eventually(t, ctx, `asked > 0`)
		// By the clock of the page, it would ask ten times more in this time.
		if asked := evaluate[int](t, ctx, `new Promise((done) => setTimeout(() => done(asked), 10_000))`); asked > 2 {
			t.Errorf("a page that is answered with %d asked %d times", status, asked)
		}
	}
}

// Failures that were not all counted are asked for again, also after the archive could not
// answer, or an answer broke off.
func TestCountingGoesOnAfterAFailure(t *testing.T) {
	s := emptySite(t)
	ctx := env.Browser(t)
	hurried(t, ctx)
	do(t, ctx, chromedp.Navigate(s.base+"/ebs"))
	evaluate[bool](t, ctx, `(() => {
		const table = (cell) => "<table><tr>" + cell + "</tr></table>";
		document.querySelector("main").insertAdjacentHTML("beforeend", table('<td id="failed-eb-1" data-partial="1">1</td>'));
		const answers = [
			new Response("", { status: 503 }),
			new Response(new ReadableStream({ start: (body) => body.error(new TypeError("broken off")) })),
			new Response(table('<td id="failed-eb-1">7</td>')),
		];
		window.fetch = async () => answers.shift();
		document.dispatchEvent(new Event("renewed"));
		return true;
	})()`)
	eventually(t, ctx, `document.getElementById("failed-eb-1").textContent === "7"`)
}

// Selecting a part in the strip above the timeline ends when the browser takes the pointer
// away, and only the main button selects.
func TestAPointerThatIsTakenAwaySelectsNoMore(t *testing.T) {
	s, ctx := withBlock(t, observed()...)
	for name, events := range map[string]string{
		"taken away":   `send("pointerdown", 100), send("pointermove", 300), send("pointercancel", 300)`,
		"other button": `send("pointerdown", 100, 2)`,
	} {
		showTimeline(t, ctx, s, "eb-1")
		if got := evaluate[[]string](t, ctx, `(async () => {
			const strip = document.querySelector(".overview"), box = strip.getBoundingClientRect();
			strip.setPointerCapture = () => {}; // there is no such pointer
			const send = (type, x, button = 0) => strip.dispatchEvent(new PointerEvent(type, { pointerId: 1, button, clientX: box.left + x, clientY: box.top + 10 }));
			const shown = async () => {
				for (let frames = 0; frames < 3; frames++) await new Promise(requestAnimationFrame);
				return document.querySelector(".shown").textContent;
			};
			`+events+`;
			const before = await shown();
			send("pointermove", 500);
			return [before, await shown()];
		})()`); got[0] != got[1] {
			t.Errorf("%s: %q became %q", name, got[0], got[1])
		}
	}
}

// A filter that is chosen before the script of the page has come narrows the table as well.
func TestAFilterThatIsChosenEarlyCounts(t *testing.T) {
	t.Parallel() // it mostly waits
	s := emptySite(t)
	s.storeCalls(t, "eb-1", []string{callIn("m.f", 0, 1, false), callIn("m.g", 1, 2, true), callIn("m.g", 2, 3, false)})
	for choice, want := range map[string]string{`calls.value = "failed"`: "call-2", `function.value = "m.g"`: "call-2,call-3"} {
		ctx := env.Browser(t)
		slowLine(t, ctx)
		// The button is the last of the form: the choices are there by then.
		before(t, ctx, `const early = setInterval(() => {
			const form = document.querySelector(".callfilter:has(button)"), scripted = document.querySelector("section.timeline.scripted");
			if (form) form.elements.`+choice+`;
			if (form || scripted) clearInterval(early);
			window.early = form && !scripted;
		}, 1)`)
		showTimeline(t, ctx, s, "eb-1")
		if !evaluate[bool](t, ctx, `window.early`) {
			t.Fatal("the script was there first")
		}
		eventually(t, ctx, `[...document.querySelectorAll("tr[id]")].map((r) => r.id).join() === "`+want+`" && location.search !== ""`)
	}
}
