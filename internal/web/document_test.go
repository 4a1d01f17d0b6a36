package web_test

import (
	"encoding/json"
	"fmt"
	"html"
	"math"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"oda/internal/test/env"
)

// A document can be searched, folded as a whole and copied, also one that no
// summary understands.
func TestADocumentIsSearchedFoldedAndCopied(t *testing.T) {
	s := newSite(t, "/ns/x")
	odd := `{"":"no key","long":"` + strings.Repeat("word ", 50) + `","list":[[[{"deep":{"Needle":[1.50,null,true,{"x":"in the needle"}]}}]]],"🔭":"שלום","needles":{"a":"no"}}`
	s.store(t, "/sbds/sbd-odd", odd)
	ctx := env.Browser(t)
	watch := env.NewWatch(ctx)
	do(t, ctx, chromedp.EmulateViewport(1280, 900), chromedp.Navigate(s.base+"/sbds/sbd-odd"), chromedp.WaitVisible(chromedp.CSS(`.findtools`)))

	do(t, ctx, chromedp.Click(chromedp.CSS(`.refold`)))
	if got := text(t, ctx, `#json`); strings.Contains(got, "needle\"") || !strings.Contains(got, "no key") {
		t.Errorf("folded, the document is shown as\n%s", got)
	}
	found := func() string {
		return evaluate[string](t, ctx, `document.querySelector("#json .here").textContent + " " + document.querySelector(".findtools output").textContent`)
	}
	do(t, ctx, chromedp.SendKeys(chromedp.CSS(`.findtools input`), "needle"))
	if got := found(); !strings.HasPrefix(got, `"Needle"`) || !strings.HasSuffix(got, "1 of 3") {
		t.Errorf("the first place is %q", got)
	}
	if !evaluate[bool](t, ctx, `document.querySelector("#json .here").checkVisibility()`) {
		t.Error("what was found is folded")
	}
	do(t, ctx, chromedp.KeyEvent(kb.Enter))
	if got := found(); !strings.HasPrefix(got, `"x": "in the needle"`) || !strings.HasSuffix(got, "2 of 3") {
		t.Errorf("the second place is %q", got)
	}
	do(t, ctx, chromedp.Click(chromedp.CSS(`.findtools .previous`)), chromedp.Click(chromedp.CSS(`.findtools .previous`)))
	if got := found(); !strings.HasPrefix(got, `"needles"`) || !strings.HasSuffix(got, "3 of 3") {
		t.Errorf("before the first place comes %q", got)
	}
	do(t, ctx, chromedp.SendKeys(chromedp.CSS(`.findtools input`), "x"))
	if got := text(t, ctx, `.findtools output`); got != "not in the document" {
		t.Errorf("of what is not there it says %q", got)
	}
	do(t, ctx, chromedp.Click(chromedp.CSS(`.unfold`)))
	if evaluate[bool](t, ctx, `document.querySelector("#json details:not([open])") !== null`) {
		t.Error("something is still folded")
	}

	evaluate[bool](t, ctx, `navigator.clipboard.writeText = async (text) => { window.copied = text; }; true`)
	do(t, ctx, chromedp.Click(chromedp.CSS(`button[data-from]`)), chromedp.WaitVisible(`//button[text()="Copied"]`))
	if got, want := evaluate[string](t, ctx, `window.copied`), s.Do("GET", "/sbds/sbd-odd", "").Text(); got != want {
		t.Errorf("copied is\n%s\nand not\n%s", got, want)
	}
	noComplaints(t, ctx, watch)
}

// A long document stays fast, as far as a page shows it.
func TestALongDocumentStaysFast(t *testing.T) {
	s := newSite(t, "")
	var list []string
	for i := range 5000 {
		list = append(list, fmt.Sprintf(`{"number":%d,"name":"value %d"}`, i, i))
	}
	s.store(t, "/sbds/sbd-long", `{"list":[`+strings.Join(list, ",")+`]}`)
	ctx := env.Browser(t)
	do(t, ctx, chromedp.Navigate(s.base+"/sbds/sbd-long"), chromedp.WaitVisible(chromedp.CSS(`.findtools`)))
	second := float64(env.AtMost(time.Second).Milliseconds())
	for what, script := range map[string]string{
		"to unfold all": `document.querySelector(".unfold").click()`,
		"to find":       `const input = document.querySelector(".findtools input"); input.value = "value 1"; input.dispatchEvent(new Event("input"))`,
	} {
		best := math.Inf(1)
		for range 5 { // other programs may have the processors meanwhile
			took := evaluate[float64](t, ctx, `(() => {
				document.querySelector(".refold").click();
				document.body.getBoundingClientRect();
				const began = performance.now();
				`+script+`;
				document.body.getBoundingClientRect();
				return performance.now() - began;
			})()`)
			if best = min(best, took); best < second {
				break
			}
		}
		t.Logf("%s takes %.0f ms", what, best)
		if best > second {
			t.Errorf("%s takes %.0f ms", what, best)
		}
	}
	if got := text(t, ctx, `.findtools output`); !strings.HasPrefix(got, "1 of ") {
		t.Errorf("found is %q", got)
	}
}

// A document as deep as one may be is shown to its bottom, in a box that scrolls by
// itself: the page stays as wide as the screen.
func TestADeepDocumentStaysWithinThePage(t *testing.T) {
	s := emptySite(t)
	s.store(t, "/sbds/sbd-deep", strings.Repeat(`{"a":[`, 49)+`"the bottom"`+strings.Repeat(`]}`, 49))
	ctx := env.Browser(t)
	for name, screen := range screens {
		do(t, ctx, chromedp.EmulateViewport(screen.width, screen.height), chromedp.Navigate(s.base+"/sbds/sbd-deep"))
		mustFit(t, ctx, name)
		if !evaluate[bool](t, ctx, `(() => {
			const bottom = [...document.querySelectorAll("#json .str")].find((value) => value.textContent === '"the bottom"');
			return bottom.checkVisibility() && bottom.getClientRects().length === 1;
		})()`) {
			t.Errorf("on a %s the bottom is not shown in one line", name)
		}
	}
	if page := s.get(t, "sbds/sbd-deep").Text(); strings.Contains(page, "is long") {
		t.Error("a deep document is called long")
	}
}

// Texts are shown as they are read, and are given as they are stored. What turns their
// direction is seen, on every page.
func TestTextsAreReadable(t *testing.T) {
	s := emptySite(t)
	const turned = "abc\u202etxt.exe"
	stored := `{"name":"` + turned + `","angle":"12\u00b0","telescope":"` + turned + `","targets":[{"name":"` + turned + `","ra":1.5,"dec":2.5}]}`
	s.store(t, "/sbds/sbd-1", stored, strings.Replace(stored, "12", "13", 1))
	s.store(t, "/ebs/eb-1", `{"sbd_ref":"sbd-1","telescope":"`+turned+`","request_responses":[
		{"request":"m.`+turned+`","request_args":{"kwargs":{"at":"5\u00b0"}},"request_sent_at":"2026-03-01T20:00:00Z","status":"`+turned+`","error":{"detail":"`+turned+`"}}]}`)
	page := s.get(t, "sbds/sbd-1").Text()
	if !strings.Contains(page, `13°`) || strings.Contains(page, `\u00b0`) {
		t.Error("an escaped character is not shown as itself")
	}
	if document := s.Do("GET", "/sbds/sbd-1", "").Text(); !strings.Contains(document, `"13\u00b0"`) || !strings.Contains(document, turned) {
		t.Errorf("the document is not as it was stored: %s", document)
	}
	if calls := s.get(t, "ebs/eb-1?call=1").Text(); !strings.Contains(calls, `at=&#34;5°&#34;`) {
		t.Error("the arguments of a call are not readable")
	}
	field := regexp.MustCompile(` value="[^"]*"`)
	if search := s.get(t, "search?q=%E2%80%AEx").Text(); !strings.Contains(search, "value=\"\u202ex\"") {
		t.Error("the box does not hold what was searched for")
	}
	named := regexp.MustCompile(`<option value="(m\.abc[^"]*)">`).FindStringSubmatch(s.get(t, "ebs/eb-1").Text())
	if named == nil {
		t.Fatal("the function is not there to filter by")
	}
	for _, function := range []string{"m." + turned, html.UnescapeString(named[1]), s.timeline(t, "eb-1", "").Functions[0]} {
		filter := "function=" + url.QueryEscape(function)
		r := s.timeline(t, "eb-1", filter)
		if page := s.get(t, "ebs/eb-1?"+filter).Text(); !strings.Contains(page, `id="call-1"`) || !strings.Contains(page, `<option value="`+named[1]+`" selected>`) || len(r.Bars) != 1 {
			t.Errorf("calls of %q are not found", function)
		}
	}
	for _, at := range []string{
		"", "sbds", "ebs", "search?q=abc", "sbds/sbd-1", "sbds/sbd-1?version=1", "ebs/eb-1?call=1", "ebs/eb-1/timeline", "ebs/eb-1/timeline/1", "ebs/eb-1/timeline/summary", "changes", "night?date=2026-03-01",
		"compare?from=sbds/sbd-1@1&to=sbds/sbd-1@2", "compare?from=ebs/eb-1@1&to=ebs/eb-1@1&what=calls", "search?q=%E2%80%AEx", "nothing/%E2%80%AE",
	} {
		page := s.get(t, at).Text()
		if strings.ContainsRune(field.ReplaceAllString(page, ""), '\u202e') {
			t.Errorf("%q has a character in it that turns the text behind it", at)
		}
		if at != "changes" && !strings.HasPrefix(at, "nothing") && !strings.Contains(page, "⟨U+202E⟩") && !strings.Contains(page, `\u202e`) {
			t.Errorf("%q does not show that character", at)
		}
	}
}

// An old version is listed among those around it, and leads to the next ones.
func TestOldVersionsAreListedWhereTheyAre(t *testing.T) {
	s := emptySite(t)
	metadata := ""
	for i := range 60 {
		answer := s.Do("PUT", "/sbds/sbd-1", fmt.Sprintf(`{"name":"%d"%s}`, i, metadata))
		var stored struct{ Metadata json.RawMessage }
		if err := json.Unmarshal(answer.Body, &stored); err != nil || answer.Status != http.StatusOK {
			t.Fatalf("%d %s", answer.Status, answer.Body)
		}
		metadata = `,"metadata":` + string(stored.Metadata)
	}
	link := func(version, text string) string {
		return `<a href="sbd-1?version=` + version + `#versions">` + text + `</a>`
	}
	for at, want := range map[string][]string{
		"":            {">60</a>", ">41</a>", link("40", "Older")},
		"?version=30": {">39</a>", `aria-current="true">30</a>`, ">20</a>", link("40", "Newer"), link("19", "Older"), `?version=29">Version 29</a>`, `?version=31">Version 31</a>`},
		"?version=1":  {">10</a>", `aria-current="true">1</a>`, link("11", "Newer")},
	} {
		page := s.says(t, "sbds/sbd-1"+at, want...)
		if at != "?version=30" && strings.Contains(page, ">Newer<") == strings.Contains(page, ">Older<") {
			t.Errorf("%q leads to versions that are not there", at)
		}
	}
}

// The page says how many targets and references there are besides those that it shows, and
// no number that is too small.
func TestCountsOfWhatIsNotShown(t *testing.T) {
	s := emptySite(t)
	target := func(n int) string {
		return `"targets":[` + strings.TrimSuffix(strings.Repeat(`{"name":"T","ra":1,"dec":2},`, n), ",") + `]`
	}
	blocks := make([]string, 13)
	for i := range blocks {
		blocks[i] = fmt.Sprintf(`"sbd-%d"`, i)
	}
	s.store(t, "/sbds/sbd-some", `{`+target(60)+`}`)
	s.store(t, "/sbds/sbd-many", `{`+target(3000)+`}`)
	s.store(t, "/prjs/prj-a", `{"obs_blocks":[{"sbd_ids":[`+strings.Join(blocks, ",")+`]}]}`, `{"x":1}`)
	for at, want := range map[string][]string{
		"sbds/sbd-some":        {"These are 50 of 60; the others are in the document."},
		"sbds/sbd-many":        {"These are 50 of at least 1\u202f000; the others are in the document."},
		"sbds":                 {"and 58 more", "and at least 998 more"},
		"prjs/prj-a?version=1": {"1 further reference,"}, // the progress shows those of the current one
	} {
		s.says(t, at, want...)
	}
}

// A page that shows an entity as it was at a time says which time that is, in UTC, also
// where only a date was given, or a time of another zone.
func TestAsItWasAtATime(t *testing.T) {
	s := emptySite(t)
	s.store(t, "/sbds/sbd-1", `{"name":"First"}`)
	for at, want := range map[string]string{
		"2999-01-31":                     ">2999-01-31 00:00:00<",
		"2999-01-31 18:00":               ">2999-01-31 18:00:00<",
		"2999-01-31T01:00:00.25%2B02:00": ">2999-01-30 23:00:00<",
	} {
		page := s.get(t, "sbds/sbd-1?at="+strings.ReplaceAll(at, " ", "%20")).Text()
		_, old, _ := strings.Cut(page, `<p class="old"`)
		if old, _, _ = strings.Cut(old, "</p>"); !strings.Contains(old, want) {
			t.Errorf("at %s, it says\n%s", at, old)
		}
	}
}
