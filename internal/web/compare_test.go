package web_test

import (
	"fmt"
	"math"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"oda/internal/test/env"
	"oda/internal/test/must"
)

// store stores a document in as many versions as there are texts.
func (s site) store(t *testing.T, at string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if stored := s.Do("GET", at, ""); stored.Status == http.StatusOK {
			metadata := regexp.MustCompile(`"metadata":\{[^}]*\}`).FindString(stored.Text())
			text = text[:len(text)-1] + "," + metadata + "}"
		}
		s.Must("PUT", at, text)
	}
}

// definition is an SBDefinition as long as real ones, with a name and a target.
func definition(name, ra string) string {
	scans := make([]string, 150)
	for i := range scans {
		scans[i] = fmt.Sprintf(`{"scan_definition_id":"scan %d","scan_duration_ms":%d,"pointing":{"kind":"five point","offset":[%d,0.0]}}`, i, 1000*i, i)
	}
	return `{"name":"` + name + `","telescope":"ska_mid","scan_definitions":[` + strings.Join(scans, ",") + `],"targets":[{"name":"Centaurus A","ra":` + ra + `}]}`
}

// What changed is seen at once, from the versions of an entity, without a script,
// and everything else can be unfolded.
func TestAComparisonShowsTheChange(t *testing.T) {
	s := newSite(t, "/ns/x")
	s.store(t, "/sbds/sbd-long", definition("First", "201.365"), definition("First", "201.465"), definition("Second", "201.465"))
	ctx := env.Browser(t)
	must.Get(chromedp.Call(ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true}))(t)
	do(t, ctx, chromedp.EmulateViewport(1280, 1000), chromedp.Navigate(s.base+"/sbds/sbd-long"))
	follow(t, ctx, `.versions tr:nth-child(2) td:last-child a`)
	shown := text(t, ctx, `.diff`)
	for _, want := range []string{"targets › 0 › ra", `"ra": 201.365`, `"ra": 201.465`, "equal lines"} {
		if !strings.Contains(shown, want) {
			t.Errorf("the comparison does not show %q:\n%s", want, shown)
		}
	}
	if strings.Contains(shown, "metadata") {
		t.Errorf("the metadata are compared, which the archive itself keeps:\n%s", shown)
	}
	if strings.Contains(shown, "scan 7") || len(shown) > 2000 {
		t.Errorf("what is equal is not folded:\n%s", shown)
	}
	for marked, want := range map[string]string{`.diff del`: "201.365", `.diff ins`: "201.465"} {
		if got := text(t, ctx, marked); got != want {
			t.Errorf("%s marks %q, want %q", marked, got, want)
		}
	}
	do(t, ctx, chromedp.Click(chromedp.CSS(`.diff details > summary`)))
	shows(t, ctx, `.diff`, "scan 7")
	follow(t, ctx, `a[href$="view=unified"]`)
	if got := text(t, ctx, `.diff`); !regexp.MustCompile(`(?s)"ra": 201\.365.*"ra": 201\.465`).MatchString(got) {
		t.Errorf("the unified comparison is\n%s", got)
	}

	// The form takes a version of the same entity, or another entity. It never suggests
	// the version that is shown.
	for at, want := range map[string]string{"": "@2, or an identifier", "?version=2": "@3, or an identifier", "?version=1": "@3, or an identifier"} {
		page := s.get(t, "sbds/sbd-long"+at).Text()
		if !strings.Contains(page, `placeholder="`+want+`"`) {
			t.Errorf("sbd-long%s does not suggest %s", at, want)
		}
	}
	do(t, ctx, chromedp.Navigate(s.base+"/sbds/sbd-long?version=1"), chromedp.SendKeys(chromedp.CSS(`#with`), "@3"))
	follow(t, ctx, `form[action$=compare] button`)
	shows(t, ctx, `.views`, "2 changes")
}

// observation is a call of a made-up run.
func observation(request, args, took, rest string) string {
	return `{"request":"control.` + request + `","request_args":{"kwargs":{` + args + `}},"request_sent_at":"2026-01-31T18:00:00Z","response_received_at":"2026-01-31T18:00:` + took + `Z",` + rest + `}`
}

const (
	isOK  = `"status":"OK","response":{"result":"done"}`
	isBad = `"status":"ERROR","error":{"detail":"dish 36 does not answer"}`
)

// points are calls that every run makes alike.
func points(n int) []string {
	calls := make([]string, n)
	for i := range calls {
		calls[i] = observation("point", fmt.Sprintf(`"dish":%d`, i), "02", isOK)
	}
	return calls
}

func blockOf(definition string, calls ...string) string {
	return `{` + definition + `"request_responses":[` + strings.Join(calls, ",") + `]}`
}

// verdict is what a comparison says first.
func (s site) verdict(t *testing.T, at string) string {
	t.Helper()
	found := regexp.MustCompile(`<p class="verdict">(.*)</p>`).FindStringSubmatch(s.get(t, at).Text())
	if found == nil {
		t.Fatalf("%s says nothing:\n%s", at, s.get(t, at).Text())
	}
	return regexp.MustCompile(`<[^>]*>`).ReplaceAllString(found[1], "")
}

// Two blocks are compared by what they called, without what every run has others of.
func TestTwoBlocksAreComparedByTheirCalls(t *testing.T) {
	s := newSite(t, "")
	run := func(id int, took, rest string, more ...string) []string {
		scan := observation("scan", fmt.Sprintf(`"scan_id":%d,"subarray_id":%d,"length":9`, id, id), took, rest)
		return append(append(points(10), scan), more...)
	}
	other := `"status":"OK","response":{"result":"other"}`
	for name, calls := range map[string][]string{
		"plain":   run(1, "10", isOK),
		"again":   run(2, "10", other),
		"slower":  run(3, "46", isOK, observation("end", "", "01", isOK), observation("end", "", "01", isOK)),
		"bad":     run(4, "10", isBad),
		"changed": append(run(5, "10", isOK)[1:], observation("point", `"dish":99`, "02", isOK)),
		"nothing": nil,
	} {
		s.store(t, "/ebs/eb-"+name, blockOf("", calls...))
	}
	s.store(t, "/ebs/eb-plain", blockOf("", append(run(1, "10", isOK), observation("end", "", "02", isOK))...))
	for at, want := range map[string]string{
		"from=ebs/eb-plain@1&to=ebs/eb-again@1":                "Same 11 steps, as fast",
		"from=ebs/eb-plain@1&to=ebs/eb-again@1&with=results":   "Same 11 steps, 1 with other arguments or results, as fast",
		"from=ebs/eb-plain@1&to=ebs/eb-slower@1":               "Same 11 steps, 2 extra, 120 % slower",
		"from=ebs/eb-slower@1&to=ebs/eb-plain@2":               "12 steps in both, 1 missing, 52 % faster",
		"from=ebs/eb-plain@1&to=ebs/eb-bad@1":                  "Same 11 steps, 1 failed, as fast",
		"from=ebs/eb-bad@1&to=ebs/eb-plain@2":                  "Same 11 steps, 1 extra, 1 failed only in eb-bad, as fast",
		"from=ebs/eb-plain@1&to=ebs/eb-changed@1":              "10 steps in both, 1 extra, 1 missing, as fast",
		"from=ebs/eb-plain@1&to=ebs/eb-nothing@1":              "No step in common, 11 missing",
		"from=ebs/eb-nothing@1&to=ebs/eb-nothing@1&what=calls": "Neither made a call",
		"from=ebs/eb-plain@1&to=ebs/eb-plain@2&what=calls":     "Same 11 steps, 1 extra, as fast",
	} {
		if got := s.verdict(t, "compare?"+at); got != want {
			t.Errorf("%s says %q, want %q", at, got, want)
		}
	}
	s.says(t, "compare?from=ebs/eb-plain@1&to=ebs/eb-bad@1", "10 equal steps", `scan(length=9)</p>`, `<p class="new failed">scan(length=9)<ins> → ERROR: dish 36 does not answer</ins></p>`,
		`<a href="./ebs/eb-plain?version=1&amp;call=11#timeline">`, `<a href="./ebs/eb-bad?call=11#timeline">`, "failed, 10.0 s", `href="compare?from=ebs/eb-plain@1&amp;to=ebs/eb-bad@1#step-11">1 failed</a>`)
	s.says(t, "compare?from=ebs/eb-plain@1&to=ebs/eb-again@1&with=results", `scan(scan_id=<del>1, subarray_id=1, length=9) → done</del>`)
	s.says(t, "compare?from=ebs/eb-plain@1&to=ebs/eb-slower@1", "scan 36.0 s longer: 46.0 s instead of 10.0 s", "11 calls that both made and that failed in neither took 1 min 06 s instead of 30.0 s.")
	s.says(t, "compare?from=ebs/eb-plain@1&to=ebs/eb-again@1", "Both made the same calls.")
	// Versions of a block are compared by their documents, unless calls are asked for.
	s.says(t, "compare?from=ebs/eb-plain@1&to=ebs/eb-plain@2", "Both documents are the same")
}

// Of long blocks a page has some steps, and what it says is of all of them.
func TestLongBlocksAreComparedPageByPage(t *testing.T) {
	s := emptySite(t)
	long := points(2500)
	s.store(t, "/ebs/eb-long", blockOf("", long...))
	long[2400] = observation("point", `"dish":2400`, "02", isBad)
	s.store(t, "/ebs/eb-longer", blockOf("", long...))
	const at = "compare?from=ebs/eb-long@1&to=ebs/eb-longer@1"
	if got, want := s.verdict(t, at), "Same 2\u202f500 steps, 1 failed, as fast"; got != want {
		t.Errorf("it says %q, want %q", got, want)
	}
	s.says(t, at, "Steps 1 to 500 of 2\u202f500", "500 equal steps", "These steps are the same in both. Others may differ.",
		`?after=2397&amp;from=ebs/eb-long@1&amp;to=ebs/eb-longer@1#step-2401">The next difference</a>`)
	s.says(t, at+"&after=2397", "Steps 2\u202f398 to 2\u202f500 of", `<tr id="step-2401" class="differs">`, `href="./ebs/eb-long?call=2401#timeline"`, `rel="prev"`)
	s.leads(t, at+"&after=9000", at)
	if page := s.get(t, at+"&after=2000").Text(); strings.Contains(page, `rel="next"`) || strings.Contains(page, "The next difference") {
		t.Error("the last page leads on")
	}
	// Calls that a version replaced have other numbers, but the same place.
	for i := range long {
		long[i] = strings.Replace(long[i], "18:00:00Z", "18:00:01Z", 1)
	}
	s.store(t, "/ebs/eb-long", blockOf("", long...))
	s.says(t, "compare?from=ebs/eb-long@1&to=ebs/eb-long@2&what=calls&after=2397", "1 failed", `href="./ebs/eb-long?call=4901#timeline"`, `href="./ebs/eb-long?version=1&amp;call=2401#timeline"`)
}

// The page of a block leads to the comparison with the last other run of its SBDefinition,
// and so does its identifier alone. A block may leave the SBDefinition to its SBInstance.
func TestABlockIsComparedWithTheLastOtherRun(t *testing.T) {
	s := emptySite(t)
	s.store(t, "/sbds/sbd-a", `{"name":"Centaurus A"}`)
	s.store(t, "/sbis/sbi-2", `{"sbd_ref":"sbd-a","eb_ref":"eb-2"}`)
	s.store(t, "/ebs/eb-1", blockOf(`"sbd_ref":"sbd-a",`, points(3)...))
	s.store(t, "/ebs/eb-2", blockOf(`"sbi_ref":"sbi-2",`, points(4)...))
	s.store(t, "/ebs/eb-3", blockOf(`"sbd_ref":"sbd-a",`, points(5)...))
	s.store(t, "/ebs/eb-of-another", blockOf(`"sbd_ref":"sbd-b",`, points(5)...))
	for block, want := range map[string]string{"eb-1": "from=ebs/eb-1@1&to=ebs/eb-3@1", "eb-2": "from=ebs/eb-2@1&to=ebs/eb-3@1", "eb-3": "from=ebs/eb-2@1&to=ebs/eb-3@1"} {
		s.leads(t, "compare?to="+block, "compare?"+want)
		s.leads(t, "compare?from="+block, "compare?"+want)
		s.says(t, "ebs/"+block, `href="./../compare?`+strings.ReplaceAll(want, "&", "&amp;")+`">Compare with the last other run</a> of 2026-01-31 18:00`)
	}
	if page := s.get(t, "ebs/eb-of-another").Text(); strings.Contains(page, "last other run") {
		t.Error("a block that is the only run is compared with another")
	}
	if answer := s.get(t, "compare?to=eb-of-another"); answer.Status != http.StatusBadRequest || !strings.Contains(answer.Text(), "no other run") {
		t.Errorf("%d %s", answer.Status, answer.Text())
	}
}

// What is different is seen at once, without a script and without colours, at any width.
func TestAComparisonOfRunsInABrowser(t *testing.T) {
	s := emptySite(t)
	s.store(t, "/ebs/eb-one", blockOf("", append(points(3), observation("scan", `"length":9`, "20", isOK), observation("end", "", "01", isOK))...))
	s.store(t, "/ebs/eb-two", blockOf("", append(points(3), observation("scan", `"length":8`, "40", isOK), observation("stop", "", "05", isBad), observation("end", "", "01", isOK))...))
	ctx := env.Browser(t)
	must.Get(chromedp.Call(ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true}))(t)
	for _, width := range []int64{390, 1280} {
		do(t, ctx, chromedp.EmulateViewport(width, 900), chromedp.Navigate(s.base+"/compare?from=ebs/eb-one@1&to=ebs/eb-two@1"))
		shows(t, ctx, `.verdict`, "Same 5 steps, 1 extra, 1 failed, 1 with other arguments, 74 % slower")
		shows(t, ctx, `#step-4`, "other arguments", "20.0 s", "40.0 s")
		shows(t, ctx, `#step-5`, "extra", "failed, 5.0 s")
		bars := evaluate[[]float64](t, ctx, `[...document.querySelectorAll("#step-4 rect")].map(r => r.getBoundingClientRect().width)`)
		if len(bars) != 2 || math.Abs(bars[1]-2*bars[0]) > 1 || bars[0] < 20 {
			t.Errorf("at %d px, the bars of 20 and 40 s are %v px wide", width, bars)
		}
		if evaluate[bool](t, ctx, `getComputedStyle(document.querySelector(".first rect")).fill === getComputedStyle(document.querySelector(".second rect")).fill`) {
			t.Error("the bars of both runs are drawn alike")
		}
		if over := evaluate[float64](t, ctx, `document.documentElement.scrollWidth - innerWidth`); over > 0 {
			t.Errorf("at %d px, the page is %v px too wide", width, over)
		}
	}
	follow(t, ctx, `.views a[href*="with=results"]`)
	shows(t, ctx, `#step-1`, "→ done")
	must.Get(chromedp.Call(ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: false}))(t)
	s.mustBeSound(t, ctx, "compare?from=ebs/eb-one@1&to=ebs/eb-two@1", "light", "dark")
}

// The address of a comparison says which versions it is of, however they were
// named, so that it means the same to everybody and forever.
func TestTheAddressOfAComparison(t *testing.T) {
	s := newSite(t, "/ns/x")
	s.store(t, "/sbds/sbd-a", `{"name":"1"}`, `{"name":"2"}`, `{"name":"3"}`)
	s.store(t, "/sbds/both", `{"name":"1"}`)
	s.store(t, "/prjs/both", `{"name":"1"}`)
	for asked, want := range map[string]string{
		"from=sbd-a":                      "from=sbds/sbd-a@2&to=sbds/sbd-a@3",
		"to=sbd-a":                        "from=sbds/sbd-a@2&to=sbds/sbd-a@3",
		"to=sbd-a@2":                      "from=sbds/sbd-a@1&to=sbds/sbd-a@2",
		"from=sbd-a@1":                    "from=sbds/sbd-a@1&to=sbds/sbd-a@3",
		"from=sbd-a@1&to=@2":              "from=sbds/sbd-a@1&to=sbds/sbd-a@2",
		"from=@3&to=sbd-a@2":              "from=sbds/sbd-a@3&to=sbds/sbd-a@2",
		"from=sbd-a&to=both&view=unified": "from=sbds/sbd-a@3&to=sbds/both@1&view=unified",
		"from=prjs/both&to=both":          "from=prjs/both@1&to=prjs/both@1",
		"from=&to=sbd-a":                  "to=sbd-a",
		"from=http%3A%2F%2Fhost%2Fns%2Fx%2Fsbds%2Fsbd-a%3Fversion%3D1%23document&to=/api/v1/sbds/sbd-a/versions/2": "from=sbds/sbd-a@1&to=sbds/sbd-a@2",
	} {
		s.leads(t, "compare?"+asked, "compare?"+want)
	}
	for asked, says := range map[string]string{
		"from=sbd-b":                      "There is nothing with the identifier",
		"from=sbd-a@4":                    "Version 4 of sbd-a could not be found",
		"from=sbd-a@1&to=@x":              "versions are numbers",
		"from=@1&to=@2":                   "an identifier on at least one side",
		"to=prjs/both":                    "no version before version 1",
		"from=sbds/sbd-a@1&to=sbis/sbi-b": "could not be found among the sbis",
	} {
		answer := s.get(t, "compare?"+asked)
		if answer.Status != http.StatusNotFound && answer.Status != http.StatusBadRequest || !strings.Contains(answer.Text(), says) || !strings.Contains(answer.Text(), `name="from"`) {
			t.Errorf("%s answers %d\n%s", asked, answer.Status, answer.Text())
		}
	}
}

// Of documents that are absurdly long the page shows some changes and counts all,
// or says that they are too long.
func TestAComparisonIsBounded(t *testing.T) {
	s := newSite(t, "")
	list := func(n int, from string) string {
		texts := make([]string, n)
		for i := range texts {
			texts[i] = fmt.Sprintf(`{"hash":"%s%016x"}`, from, uint64(i+1)*0x9e3779b97f4a7c15)
		}
		return `{"list":[` + strings.Join(texts, ",") + `]}`
	}
	s.store(t, "/sbds/sbd-long", list(9000, "a"), list(9000, "b"))
	page := s.get(t, "compare?to=sbds/sbd-long@2&from=sbds/sbd-long@1", "Accept-Encoding", "gzip")
	if !strings.Contains(page.Text(), "There is more") {
		t.Error("the page does not say that changes are left out")
	}
	if !strings.Contains(page.Text(), "−9\u202f000") {
		t.Error("the page does not count all changes")
	}
	if len(page.Raw) > pageBudget {
		t.Errorf("the page transfers %d bytes", len(page.Raw))
	}
	s.store(t, "/sbds/sbd-longer", list(60_000, "a"), list(60_000, "b"))
	if page := s.get(t, "compare?to=sbds/sbd-longer@2&from=sbds/sbd-longer@1"); page.Status != http.StatusOK || !strings.Contains(page.Text(), "too long to show side by side") {
		t.Errorf("%d %s", page.Status, page.Text())
	}
	// What differs in a long text is shown, wherever it is.
	text := func(word string) string {
		return `{"text":"` + strings.Repeat("é ", 9000) + word + strings.Repeat(" é", 9000) + `"}`
	}
	s.store(t, "/sbds/sbd-text", text("one"), text("other"))
	if page := s.get(t, "compare?to=sbds/sbd-text@2&from=sbds/sbd-text@1").Text(); !strings.Contains(page, "é <del>one</del> é") || !strings.Contains(page, "é <ins>other</ins> é") || len(page) > 20_000 {
		t.Errorf("the page has %d bytes:\n%s", len(page), page)
	}
}

// A long block beside a short one: what only one of them has is folded, without a script,
// and a browser shows the page soon.
func TestALongBlockIsComparedWithAShortOne(t *testing.T) {
	s := emptySite(t)
	var calls []string
	for i := range 3000 {
		calls = append(calls, fmt.Sprintf(`{"request":"m.point","request_args":{"kwargs":{"dish":%d,"azimuth":%d.25}},"status":"OK","response":{"result":"done %d"}}`, i%64, i%360, i))
	}
	s.storeCalls(t, "eb-long", calls)
	s.storeCalls(t, "eb-short", []string{`{"request":"m.point","status":"OK"}`})
	ctx := env.Browser(t)
	most := float64(env.AtMost(3 * time.Second).Milliseconds())
	for _, view := range []string{"", "&with=results"} {
		for _, at := range []string{"compare?from=ebs/eb-long@1&to=ebs/eb-short@1", "compare?from=ebs/eb-short@1&to=ebs/eb-long@1"} {
			do(t, ctx, chromedp.EmulateViewport(1280, 900), chromedp.Navigate(s.base+"/"+at+view))
			if shown := text(t, ctx, `#diff`); !regexp.MustCompile(`further (extra|missing) steps`).MatchString(shown) || strings.Count(shown, "point(") > 100 {
				t.Errorf("%s shows %d calls", at+view, strings.Count(shown, "point("))
			}
			took := math.Inf(1)
			for range 5 { // other programs may have the processors meanwhile
				took = min(took, evaluate[float64](t, ctx, `performance.getEntriesByType("navigation")[0].domComplete`))
				if took < most {
					break
				}
				do(t, ctx, chromedp.Navigate(s.base+"/"+at+view))
			}
			t.Logf("%s is there after %.0f ms", at+view, took)
			if took > most {
				t.Errorf("%s takes a browser %.0f ms", at+view, took)
			}
		}
	}
	do(t, ctx, chromedp.Click(chromedp.CSS(`#diff details > summary`)))
	if shown := text(t, ctx, `#diff`); strings.Count(shown, "point(") < 400 {
		t.Errorf("unfolded, it shows %d calls", strings.Count(shown, "point("))
	}
}

// Each side of a comparison has the name that its version had, not a later one.
func TestTheSidesOfAComparisonHaveTheirOwnNames(t *testing.T) {
	s := emptySite(t)
	s.store(t, "/sbds/sbd-a", `{"name":"Centaurus A"}`, `{"name":"Fornax A"}`)
	s.store(t, "/sbds/sbd-b", `{"telescope":"ska_mid"}`, `{"name":"Named later"}`)
	s.store(t, "/ebs/eb-c", `{"sbd_ref":"sbd-a"}`, `{"sbd_ref":"sbd-b"}`)
	heading := regexp.MustCompile(`<h2><a href="[^"]*">([^<]*)</a></h2>`)
	for at, want := range map[string][]string{
		"compare?from=sbds/sbd-a@1&to=sbds/sbd-a@2":        {"Centaurus A", "Fornax A"},
		"compare?from=sbds/sbd-b@1&to=sbds/sbd-b@2":        {"sbd-b", "Named later"},
		"compare?from=ebs/eb-c@1&to=ebs/eb-c@2":            {"Fornax A", "Named later"}, // of their SBDefinitions, as they are now
		"compare?from=ebs/eb-c@1&to=ebs/eb-c@2&what=calls": {"Fornax A", "Named later"},
	} {
		var got []string
		for _, found := range heading.FindAllStringSubmatch(s.get(t, at).Text(), -1) {
			got = append(got, found[1])
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s is about %q, want %q", at, got, want)
		}
	}
}
