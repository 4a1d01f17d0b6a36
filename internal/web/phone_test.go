package web_test

import (
	"bytes"
	"context"
	"fmt"
	"image/png"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"oda/internal/test/env"
	"oda/internal/test/must"
)

// screens are the sizes of a phone, a desk and a wall.
var screens = map[string]struct{ width, height int64 }{"phone": {390, 844}, "desk": {1280, 800}, "wall": {2560, 1440}, "desk at 200 %": {640, 400}}

// wide finds the elements that are wider than the screen and cannot be
// scrolled.
const wide = `(() => {
	const found = [];
	const look = (element) => {
		if (element.getBoundingClientRect().right > innerWidth + 1) {
			found.push(element.tagName + "." + element.className + " " + element.textContent.slice(0, 40));
		}
		if (!["auto", "scroll", "hidden"].includes(getComputedStyle(element).overflowX)) {
			for (const child of element.children) look(child);
		}
	};
	look(document.body);
	return found;
})()`

// mustFit fails the test if the page that is open is wider than the screen.
func mustFit(t *testing.T, ctx context.Context, screen string) {
	t.Helper()
	if found := evaluate[[]string](t, ctx, wide); len(found) > 0 {
		t.Errorf("these are wider than the screen of a %s:\n%s", screen, strings.Join(found, "\n"))
	}
}

// The reference of the interface fits a phone with its operations unfolded, and shows the
// first of them on the first screen.
func TestTheReferenceFitsAPhone(t *testing.T) {
	s := emptySite(t)
	ctx := env.Browser(t)
	phone, desk := screens["phone"], screens["desk"]
	do(t, ctx, chromedp.EmulateViewport(phone.width, phone.height), chromedp.Navigate(s.URL()+"/ui"))
	const first = `document.querySelector(".opblock")?.getBoundingClientRect().bottom < innerHeight`
	eventually(t, ctx, first)
	for _, id := range []string{"listEBs", "storeEB", "readRecords", "recordBatch", "storeSeveral"} { // one of each form
		block := `.opblock[id$="-` + id + `"]`
		do(t, ctx, chromedp.Click(chromedp.CSS(block+` .opblock-summary-control`)),
			chromedp.WaitVisible(chromedp.CSS(block+` .responses-inner`)))
	}
	mustFit(t, ctx, "phone")
	evaluate[bool](t, ctx, `scrollTo(0, 0), true`)
	do(t, ctx, chromedp.EmulateViewport(desk.width, desk.height))
	eventually(t, ctx, first)
}

// widths are those of phones, of a tablet, and of a half window and a whole one.
func widths() []int64 {
	if env.InProof() {
		return []int64{320, 360, 375, 390, 768, 801, 960, 961, 1024, 1280}
	}
	return []int64{320, 390, 801, 961, 1280}
}

// brokenWords finds the words of a usual length that are not on one line.
const brokenWords = `(() => {
	const broken = new Set(), texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	for (let text; text = texts.nextNode();) {
		const within = text.parentElement;
		if (within.closest("pre, svg, script, .json, .diff, .args, .unseen, .brand") || !within.checkVisibility()) continue;
		for (const { 0: word, index } of text.data.matchAll(/[A-Za-z0-9]+/g)) {
			const range = document.createRange();
			range.setStart(text, index);
			range.setEnd(text, index + word.length);
			const end = within.closest(".troubles a")?.getBoundingClientRect().bottom ?? Infinity; // what is beyond is not seen
			const lines = new Set([...range.getClientRects()].map((box) => box.top).filter((top) => top < end));
			if (lines.size > 1 && word.length < 16) broken.add(word);
		}
	}
	return [...broken];
})()`

// beyond is by how much the widest table is wider than what it is in.
const beyond = `Math.max(0, ...[...document.querySelectorAll("table.entities")].map((e) => e.offsetWidth - e.parentElement.clientWidth))`

// Whatever is in the archive, a page is as wide as its window, and a table breaks words
// only if they are longer than words are.
func TestTablesFitWithoutBreakingWords(t *testing.T) {
	s := emptySite(t)
	s.absurd(t)
	for version := range 3 {
		s.store(t, "/sbds/sbd-1jmtcf1spv6f", fmt.Sprintf(`{"name":"Polaris Australis %d","telescope":"ska_mid","targets":[
			{"name":"Polaris Australis","ra":1.5,"dec":-88.9},{"name":"PhaseCalibrator B0218+357","ra":35.2,"dec":35.9}]}`, version))
	}
	failure := `,"status":"ERROR","error":{"detail":"ConnectionError: the correlator device does not answer"}}`
	s.store(t, "/ebs/eb-d2nq1cpkh0b", `{"telescope":"ska_mid","sbd_ref":"sbd-1jmtcf1spv6f","sbd_version":3,"request_responses":[
		{"request":"ska.functions.read_system_temperature","request_sent_at":"2026-03-01T20:00:00Z","response_received_at":"2026-03-01T20:09:03Z"`+failure+`,
		{"request":"ska.functions.assign_resources","request_sent_at":"2026-03-01T20:10:00Z"`+failure+`]}`)
	endless := strings.Repeat("endless", 100)
	s.store(t, "/ebs/eb-names", `{"request_responses":[{"request":"`+endless+`","request_args":{"device":"`+endless+`"},"status":"ERROR","error":{"detail":"E`+endless+`: no"}}]}`)
	ctx := env.Browser(t)
	for _, at := range []string{
		"", "changes", "ebs", "sbds", "sbis", "prjs", "search?q=endless", "calls?outcome=failed", "calls?eb=eb-absurd", "calls?at=2026-03-01T20:05Z", "night?date=2026-03-01", "night?date=" + time.Now().UTC().Format(time.DateOnly),
		"sbds/sbd-1jmtcf1spv6f", "sbds/sbd-absurd", "sbds/" + strings.Repeat("endless", 8)[:50], "ebs/eb-d2nq1cpkh0b", "ebs/eb-absurd", "ebs/eb-absurd?call=1",
		"ebs/eb-absurd?function=unknown", // lists no calls
		"api/v1/", "api/v1/guide", "api/v1/problems", "api/v1/problems/metadata-mismatch",
	} {
		do(t, ctx, chromedp.Navigate(s.base+"/"+at))
		// Tools say something when they are used.
		evaluate[int](t, ctx, `[...document.querySelectorAll(".findtools input")].map((e) => { e.value = "nothing like this"; e.dispatchEvent(new Event("input")); }).length`)
		// The failures of a long block may not be counted yet.
		evaluate[int](t, ctx, `[...document.querySelectorAll("[data-name=Failed]")].map((e) => { e.innerHTML = "<span class=none>not counted yet</span>"; }).length`)
		for _, width := range widths() {
			do(t, ctx, chromedp.EmulateViewport(width, 800))
			if over := evaluate[int](t, ctx, `document.documentElement.scrollWidth - document.documentElement.clientWidth`); over > 0 {
				t.Errorf("/%s scrolls sideways by %d at a width of %d:\n%s", at, over, width, strings.Join(evaluate[[]string](t, ctx, wide), "\n"))
			}
			if beyond := evaluate[float64](t, ctx, beyond); beyond > 1 {
				t.Errorf("a table of /%s is %g wider than the page's column at a width of %d", at, beyond, width)
			}
			if broken := evaluate[[]string](t, ctx, brokenWords); len(broken) > 0 {
				t.Errorf("/%s breaks these words at a width of %d: %q", at, width, broken)
			}
		}
	}
}

// On a narrow screen each call has its time too.
func TestAPhoneShowsWhenACallWasSent(t *testing.T) {
	s := emptySite(t)
	s.storeCalls(t, "eb-1", []string{callIn("m.f", 0, 1, false), callIn("m.g", 2.5, 3, true)})
	ctx := env.Browser(t)
	do(t, ctx, chromedp.Navigate(s.base+"/ebs/eb-1"))
	for _, width := range widths() {
		do(t, ctx, chromedp.EmulateViewport(width, 800))
		shows(t, ctx, `.calls`, "20:00:00.000", "20:00:02.500")
		if high := evaluate[float64](t, ctx, `(() => { const row = document.querySelector(".calls .failed"); return row.firstElementChild.offsetHeight / row.offsetHeight; })()`); high < .9 {
			t.Errorf("at a width of %d the mark of a failure is beside %.2f of its row", width, high)
		}
	}
}

// However narrow the window or the paper is, the drawing of a night shows all of it: each
// telescope has its name beside its bars, and the hours can be read.
func TestTheWholeNightIsInSight(t *testing.T) {
	s := emptySite(t)
	at := func(hour int) string {
		return time.Date(2026, 3, 1, 12+hour, 0, 0, 0, time.UTC).Format(time.RFC3339)
	}
	for i, hours := range [][2]int{{0, 1}, {3, 4}, {23, 24}, {5, 9}, {5, 9}, {5, 9}, {5, 9}, {5, 9}, {5, 9}, {5, 9}, {5, 9}, {5, 9}, {5, 9}, {5, 9}} {
		s.store(t, fmt.Sprint("/ebs/eb-", i), fmt.Sprintf(`{"telescope":"telescope_%d","request_responses":[{"request":"f","request_sent_at":%q},{"request":"f","request_sent_at":%q}]}`,
			i%3, at(hours[0]), at(hours[1]-1)))
	}
	// trouble is what is wrong with the drawing.
	const trouble = `(() => {
		const found = [], of = (e) => e.getBoundingClientRect(), all = (s) => [...document.querySelectorAll(".plot " + s)];
		const frame = of(document.querySelector(".plot"));
		const bars = all("rect").map(of), names = all("text").filter((e) => e.textContent.startsWith("telescope")).map(of);
		const hours = all("text").filter((e) => /^\d\d:\d\d$/.test(e.textContent) && e.checkVisibility()).map(of);
		for (const box of [...bars, ...names, ...hours]) {
			if (box.left < frame.left || box.right > frame.right || box.right > innerWidth) found.push("something is out of sight");
		}
		if (hours.length < 3 || hours.some((box, i) => i > 0 && box.left < hours[i - 1].right + 2)) found.push("the hours cover each other");
		if (names.some((box) => box.height < (matchMedia("print").matches ? 7 : 12))) found.push("the names are too small");
		if (names.some((box) => bars.every((bar) => bar.left < box.right - 4 || Math.abs(bar.top + bar.bottom - box.top - box.bottom) / 2 > 8))) found.push("a name is not beside its bars");
		return found.join("; ");
	})()`
	ctx := env.Browser(t)
	do(t, ctx, chromedp.Navigate(s.base+"/night?date=2026-03-01"))
	for _, width := range append(widths(), 2560) {
		do(t, ctx, chromedp.EmulateViewport(width, 800))
		if found := evaluate[string](t, ctx, trouble); found != "" {
			t.Errorf("at a width of %d, %s", width, found)
		}
	}
	media(t, ctx, "print")
	do(t, ctx, chromedp.EmulateViewport(703, 1032)) // A4 without its margins
	if found := evaluate[string](t, ctx, trouble); found != "" {
		t.Errorf("on paper, %s", found)
	}
}

// media makes the browser show a page as on paper, or as on a screen.
func media(t *testing.T, ctx context.Context, name string) {
	t.Helper()
	must.Get(chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: name}))(t)
}

// A drawing that goes on beyond an edge has a shadow there, and none at its end.
func TestAShadowSaysThatADrawingGoesOn(t *testing.T) {
	s := emptySite(t)
	s.store(t, "/sbds/sbd-1", `{"name":"First"}`)
	s.store(t, "/ebs/eb-1", `{"sbd_ref":"sbd-1"}`)
	ctx := env.Browser(t)
	scheme(t, ctx, "light")
	do(t, ctx, chromedp.EmulateViewport(screens["phone"].width, screens["phone"].height), chromedp.Navigate(s.base+"/ebs/eb-1"))
	for scrolled, want := range map[int][2]bool{0: {false, true}, 60: {true, true}, 10000: {true, false}} {
		edges := evaluate[[]float64](t, ctx, fmt.Sprintf(`(() => {
			const graph = document.querySelector(".graph");
			graph.scrollIntoView({ block: "center" });
			graph.scrollLeft = %d;
			const box = graph.getBoundingClientRect();
			return [box.left + 3, box.right - 3, box.bottom - 3];
		})()`, scrolled))
		shot := must.Get(chromedp.Run(ctx, chromedp.CaptureScreenshot()))(t)
		picture := must.Get(png.Decode(bytes.NewReader(shot)))(t)
		for i, side := range []string{"left", "right"} {
			red, _, _, _ := picture.At(int(edges[i]), int(edges[2])).RGBA()
			if got := red < 0xf000; got != want[i] {
				t.Errorf("scrolled by %d, there is a shadow on the %s: %t, want %t", scrolled, side, got, want[i])
			}
		}
	}
}

// What can only be clicked is not printed; that there are more calls is.
func TestPaperHasNoTools(t *testing.T) {
	s := newSite(t, "/ns/x")
	ctx := env.Browser(t)
	media(t, ctx, "print")
	do(t, ctx, chromedp.EmulateViewport(703, 1032)) // A4 without its margins
	for _, at := range []string{"ebs/" + s.long(t) + "?call=1", "ebs?limit=3", "", "changes", "night?date=2001-01-01", "sbds/" + s.ids(t, "/sbds/search?fields=id&limit=1")[0]} {
		do(t, ctx, chromedp.Navigate(s.base+"/"+at))
		if strings.HasPrefix(at, "ebs/") {
			eventually(t, ctx, `document.querySelector(".findtools:not([hidden])") && document.querySelector(".copy")`)
			evaluate[int](t, ctx, `document.querySelectorAll(".paging").forEach((e) => e.append("Calls 1 to 100 of 350")) ?? 0`)
			shows(t, ctx, `main`, "Calls 1 to 100 of 350")
		}
		if tools := evaluate[[]string](t, ctx, `[...document.querySelectorAll("button, input, select, .paging a, .tally a, .tools a")].filter((e) => e.checkVisibility()).map((e) => e.outerHTML)`); len(tools) > 0 {
			t.Errorf("/%s is printed with\n%s", at, strings.Join(tools, "\n"))
		}
		if evaluate[bool](t, ctx, `document.querySelector(".graph svg")?.getBoundingClientRect().right > innerWidth`) {
			t.Errorf("/%s is printed with a part of its graph", at)
		}
	}
}

// hintCut is by how many pixels the hint in the search box is too long for it. The cross
// that empties a box takes no room from it: the style sheet leaves it out while a hint is seen.
const hintCut = `(() => {
	const box = document.querySelector(".find input"), style = getComputedStyle(box), pen = document.createElement("canvas").getContext("2d");
	pen.font = getComputedStyle(box, "::placeholder").font;
	return Math.ceil(pen.measureText(box.placeholder).width - box.clientWidth + parseFloat(style.paddingLeft) + parseFloat(style.paddingRight));
})()`

func TestTheSearchBoxShowsItsWholeHint(t *testing.T) {
	s := emptySite(t)
	ctx := env.Browser(t)
	do(t, ctx, chromedp.Navigate(s.base+"/"))
	for _, width := range append([]int64{1024, 1100, 1440, 1920}, widths()...) {
		do(t, ctx, chromedp.EmulateViewport(width, 800))
		if cut := evaluate[int](t, ctx, hintCut); cut > 0 {
			t.Errorf("at a width of %d, %d pixels of the hint are not seen", width, cut)
		}
	}
}
