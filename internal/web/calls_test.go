package web_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"oda/internal/test/env"
)

// failing is a failed call with its own text.
func failing(request, detail string) string {
	return fmt.Sprintf(`{"request":%q,"status":"ERROR","error":{"detail":%q},"request_sent_at":"2026-03-01T20:00:00Z"}`, request, detail)
}

// The head of a block has what failed most, whatever failed before it.
func TestTheMostFrequentFailureIsAlwaysThere(t *testing.T) {
	s := emptySite(t)
	var calls []string
	for i := range 300 {
		calls = append(calls, failing("m.read_wind", fmt.Sprintf("timeout %d", i)))
	}
	few := append(calls[:7:7], failing("m.scan", "the correlator is down"), failing("m.scan", "the correlator is down"))
	for range 20 {
		calls = append(calls, failing("m.scan", "the correlator is down"))
	}
	s.storeCalls(t, "eb-many", calls)
	s.storeCalls(t, "eb-few", few)
	s.timeline(t, "eb-many", "") // so that all calls are known, however busy the machine is
	const at = `<time class="muted" datetime="2026-03-01T20:00:00.000000Z" title="2026-03-01T20:00:00.000000Z">20:00:00</time> <span class="detail">`
	for block, want := range map[string][]string{
		"eb-many": {`20 ×</span> <span class="name">scan</span> ` + at + `the correlator is down`, "Show 190 further kinds", "There are more kinds"},
		"eb-few":  {`2 ×</span> <span class="name">scan</span> ` + at + `the correlator is down`},
	} {
		s.says(t, "ebs/"+block, want...)
	}
}

// Names with very many parts take no longer than others.
func TestFunctionsWithManyPartsAreToldApartAtOnce(t *testing.T) {
	s := emptySite(t)
	long := strings.Repeat("a.", 75)
	var calls []string
	for i := range 400 {
		calls = append(calls, failing(fmt.Sprintf("A.%s%d", long, i), ""), failing(fmt.Sprintf("B.%s%d", long, i), ""))
	}
	s.storeCalls(t, "eb-dots", calls)
	began := time.Now()
	page := s.get(t, "ebs/eb-dots").Text()
	if took := time.Since(began); took > env.AtMost(3*time.Second) { // in square time it takes half a minute
		t.Errorf("the page took %s", took)
	}
	if want := `">B.` + long + `399</option>`; !strings.Contains(page, want) {
		t.Error("the functions cannot be told apart")
	}
}

// A page of calls says which ones these are, and leads to the last.
func TestAPageOfCallsSaysWhichTheyAre(t *testing.T) {
	s := emptySite(t)
	var calls []string
	for i := range 450 {
		calls = append(calls, callIn("m.f", float64(i), float64(i)+0.5, i%3 == 0))
	}
	s.storeCalls(t, "eb-1", calls)
	s.storeCalls(t, "eb-2", calls[:3])
	s.timeline(t, "eb-1", "") // so that all calls are known, however busy the machine is
	const last = `#calls">Last</a>`
	for at, want := range map[string][]string{
		"eb-1":                        {">1–100 of 450<", `href="eb-1?after=350` + last},
		"eb-1?after=350":              {">351–450 of 450<", ">First<", ">Previous<"},
		"eb-1?after=449":              {">450 of 450<"},
		"eb-1?calls=failed":           {">1–100 of 150<", ">Next<"},
		"eb-1?calls=failed&after=148": {">51–150 of 150<"},
		"eb-1?after=450":              {"No further calls.", ">First<"},
		"eb-2?function=m.g":           {"Only calls of <strong>g</strong> are listed.", "There are none."},
		"eb-2":                        {},
	} {
		page := s.says(t, "ebs/"+at, want...)
		if at != "eb-1" && strings.Contains(page, last) {
			t.Errorf("%s leads to the last calls, which it has, or which are next", at)
		}
		if at == "eb-2" && strings.Contains(page, `class="place"`) {
			t.Error("a table with all calls says which they are")
		}
	}
}

// A link to a call that a version does not have says so.
func TestACallThatIsNotThereIsNamed(t *testing.T) {
	s := emptySite(t)
	s.storeCalls(t, "eb-1", []string{callIn("m.f", 0, 1, false), callIn("m.f", 1, 2, false)})
	s.storeCalls(t, "eb-1", []string{callIn("m.f", 0, 1, false)})
	for _, at := range []string{"call=99", "call=0", "call=abc", "call=-1", "version=1&call=3"} {
		_, call, _ := strings.Cut(at, "call=")
		s.says(t, "ebs/eb-1?"+at, "There is no call "+call+" in this version of the block.")
	}
}

// Calls on both sides of midnight have their dates.
func TestCallsSayOnWhichDayTheyWere(t *testing.T) {
	s := emptySite(t)
	s.storeCalls(t, "eb-1", []string{
		callIn("m.f", 0, 1, false), callIn("m.f", 60, 61, false), failing("m.f", "sent as the first"), callIn("m.f", 5*3600, 5*3600+1, false),
	})
	page := s.get(t, "ebs/eb-1").Text()
	for _, day := range []string{"2026-03-01", "2026-03-02"} {
		if n := strings.Count(page, `<span class="day">`+day+`</span>`); n != 1 {
			t.Errorf("%s is there %d times", day, n)
		}
	}
}

// What a filter leaves is said in a sentence.
func TestAFilterOfCallsIsSaid(t *testing.T) {
	s := emptySite(t)
	s.storeCalls(t, "eb-1", []string{callIn("m.f", 0, 1, true), callIn("m.f", 1, 2, false)})
	for query, want := range map[string]string{
		"calls=failed":              `Only <strong class="failed">failures</strong> are listed.`,
		"calls=ok":                  `Only calls that did not fail are listed.`,
		"function=m.f":              `Only calls of <strong>f</strong> are listed.`,
		"function=m.f&calls=failed": `Only <strong class="failed">failures</strong> of <strong>f</strong> are listed.`,
		"function=m.f&calls=ok":     `Only calls of <strong>f</strong> that did not fail are listed.`,
	} {
		s.says(t, "ebs/eb-1?"+query, want)
	}
}

// onlyFailed chooses that only failed calls are listed.
const onlyFailed = `(() => {
	const form = document.querySelector(".callfilter");
	form.elements.calls.value = "failed";
	return form.dispatchEvent(new Event("change"));
})()`

// The browser's way back closes a call and takes back a filter, and only then leaves the
// block.
func TestTheWayBackStaysOnTheBlock(t *testing.T) {
	s, ctx := withBlock(t, observed()...)
	do(t, ctx, chromedp.Navigate(s.base+"/ebs"))
	showTimeline(t, ctx, s, "eb-1")
	do(t, ctx, chromedp.Click(chromedp.CSS(`.troubles a`)))
	eventually(t, ctx, `location.search.includes("call=") && document.querySelector(".panel article") !== null`)
	evaluate[bool](t, ctx, onlyFailed)
	eventually(t, ctx, `location.search.includes("calls=failed")`)
	for _, shows := range []string{
		`location.search.includes("call=") && document.querySelector(".callfilter [name=calls]").value === "" && document.querySelector(".panel article") !== null`,
		`location.pathname.endsWith("/ebs/eb-1") && location.search === "" && document.querySelector(".panel article") === null`,
		`location.pathname.endsWith("/ebs")`,
	} {
		evaluate[bool](t, ctx, `(setTimeout(() => history.back()), true)`) // it may leave the page before it answers
		eventually(t, ctx, `document.readyState === "complete" && `+shows)
	}
}

// Over a slow line, what comes late takes no step of the way back away, and writes nothing
// into the address that somebody went back to.
func TestTheWayBackOverASlowLine(t *testing.T) {
	s, ctx := withBlock(t, observed()...)
	showTimeline(t, ctx, s, "eb-1")
	slowLine(t, ctx)
	// A call is opened while the address is about to change.
	evaluate[bool](t, ctx, `(document.querySelector("[data-do=in]").click(), document.querySelector(".troubles a").click(), true)`)
	eventually(t, ctx, `location.search.includes("call=")`)
	// And left while a filter is about to come into the address.
	evaluate[bool](t, ctx, `(`+onlyFailed+`, setTimeout(() => history.back()), true)`)
	eventually(t, ctx, `document.readyState === "complete" && location.search.startsWith("?from=") && !location.search.includes("call") && document.querySelector(".panel article") === null`)
	evaluate[bool](t, ctx, `(setTimeout(() => history.forward()), true)`)
	eventually(t, ctx, `document.readyState === "complete" && location.search.includes("call=") && document.querySelector(".callfilter [name=calls]").value === "" && document.querySelector(".panel article") !== null`)
}

// On a phone, the timeline has no text that is cut off: 17:15 on the axis must not look
// like 17:1, nor may the words in an empty timeline go beyond its ends.
func TestTheTimelineHasWholeTexts(t *testing.T) {
	s := emptySite(t)
	s.storeCalls(t, "eb-none", nil)
	s.storeCalls(t, "eb-a", []string{
		`{"request":"f","status":"OK","request_sent_at":"2026-03-01T17:00:00Z","response_received_at":"2026-03-01T17:00:10Z"}`,
		`{"request":"f","status":"OK","request_sent_at":"2026-03-01T17:15:50Z","response_received_at":"2026-03-01T17:16:00Z"}`,
	})
	ctx := env.Browser(t)
	for block, text := range map[string]string{"eb-a": "/^17:/", "eb-none": "/recorded/"} {
		do(t, ctx, chromedp.EmulateViewport(320, 800))
		showTimeline(t, ctx, s, block)
		evaluate[bool](t, ctx, `(() => {
			const write = CanvasRenderingContext2D.prototype.fillText;
			window.whole = [];
			window.cut = [];
			CanvasRenderingContext2D.prototype.fillText = function (text, x, ...rest) {
				const wide = this.measureText(text).width, left = this.textAlign === "center" ? x - wide / 2 : x;
				(left < 0 || left + wide > this.canvas.clientWidth ? cut : whole).push(text);
				write.call(this, text, x, ...rest);
			};
			return true;
		})()`)
		for width := int64(327); width < 430; width += 7 {
			evaluate[bool](t, ctx, `whole.splice(0), true`)
			do(t, ctx, chromedp.EmulateViewport(width, 800))
			eventually(t, ctx, `[...whole, ...cut].some((text) => `+text+`.test(text))`)
		}
		if cut := evaluate[[]string](t, ctx, `cut.filter((text) => `+text+`.test(text))`); len(cut) > 0 {
			t.Errorf("these are cut off: %q", cut)
		}
	}
}
