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

// Two blocks are compared by what they called and what came of it.
func TestTwoBlocksAreComparedByTheirCalls(t *testing.T) {
	s := newSite(t, "")
	record := func(request, args, rest string) string {
		return `{"request":"control.` + request + `","request_args":{"kwargs":{` + args + `}},"request_sent_at":"2026-01-31T18:00:00Z","response_received_at":"2026-01-31T18:00:02Z",` + rest + `}`
	}
	const ok, bad = `"status":"OK","response":{"result":"done"}`, `"status":"ERROR","error":{"detail":"dish 36 does not answer"}`
	var same []string
	for i := range 30 {
		same = append(same, record("point", fmt.Sprintf(`"dish":%d`, i), ok))
	}
	block := func(last ...string) string {
		return `{"request_responses":[` + strings.Join(append(same, last...), ",") + `]}`
	}
	s.store(t, "/ebs/eb-one", block(record("scan", `"id":1`, ok)), block(record("scan", `"id":1`, ok), record("end", "", ok)))
	s.store(t, "/ebs/eb-two", block(record("scan", `"id":1`, bad), record("abort", "", ok)))
	s.says(t, "compare?from=ebs/eb-one@2&to=ebs/eb-two@1",
		"27 equal calls", ">1 change<", `scan(id=1) → <del>done</del>`, `scan(id=1) → <ins>ERROR: dish 36 does not answer</ins>`, `class="new failed"`,
		`<a href="./ebs/eb-two?call=31#timeline">31</a>`, ">2.0 s<", `abort()`, `end()`,
	)
	// Versions of a block are compared by their documents, or by their calls.
	s.says(t, "compare?from=ebs/eb-one@1&to=ebs/eb-one@2", "Both documents are the same")
	s.says(t, "compare?from=ebs/eb-one@1&to=ebs/eb-one@2&what=calls", "end()", ">1 change<")
	// Longer blocks are compared page by page.
	long := make([]string, 2500)
	for i := range long {
		long[i] = record("point", fmt.Sprintf(`"dish":%d`, i), ok)
	}
	s.store(t, "/ebs/eb-long", `{"request_responses":[`+strings.Join(long, ",")+`]}`)
	long[2400] = record("point", `"dish":2400`, bad)
	s.store(t, "/ebs/eb-longer", `{"request_responses":[`+strings.Join(long, ",")+`]}`)
	first := s.get(t, "compare?from=ebs/eb-long@1&to=ebs/eb-longer@1").Text()
	next := regexp.MustCompile(`href="([^"]+)" rel="next"`).FindStringSubmatch(first)
	if next == nil || !strings.Contains(first, "These calls are the same in both, with the same outcome. Others may differ.") || strings.Contains(first, "Both made the same calls") {
		t.Fatalf("the first calls are not the same, or all are said to be:\n%s", first)
	}
	if !strings.Contains(first, "Calls 1 to 2\u202f000 of each block") {
		t.Errorf("the first page does not say which calls it has:\n%s", first)
	}
	s.says(t, "compare?from=ebs/eb-long@1&to=ebs/eb-longer@1&after=2000", "Calls 2\u202f001 to 2\u202f500 of each block")
	s.leads(t, "compare?from=ebs/eb-long@1&to=ebs/eb-longer@1&after=9000", "compare?from=ebs/eb-long@1&to=ebs/eb-longer@1")
	if page := s.get(t, strings.ReplaceAll(next[1], "&amp;", "&")).Text(); !strings.Contains(page, "?call=2401#timeline") || strings.Contains(page, `rel="next"`) {
		t.Errorf("the next page does not show the call that failed:\n%s", page)
	}
	// Calls that a version replaced have other numbers, but the same place.
	for i := range long {
		long[i] = strings.Replace(long[i], "18:00:00Z", "18:00:01Z", 1)
	}
	s.store(t, "/ebs/eb-long", `{"request_responses":[`+strings.Join(long, ",")+`]}`)
	if page := s.get(t, "compare?from=ebs/eb-long@1&to=ebs/eb-long@2&what=calls&after=2000").Text(); !strings.Contains(page, ">1 change<") || !strings.Contains(page, "?call=4901#timeline") || strings.Contains(page, `rel="next"`) {
		t.Errorf("the calls of both versions behind the first 2,000 are compared as\n%s", page)
	}
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
	for _, view := range []string{"", "&view=unified"} {
		for _, at := range []string{"compare?from=ebs/eb-long@1&to=ebs/eb-short@1", "compare?from=ebs/eb-short@1&to=ebs/eb-long@1"} {
			do(t, ctx, chromedp.EmulateViewport(1280, 900), chromedp.Navigate(s.base+"/"+at+view))
			if shown := text(t, ctx, `#diff`); !regexp.MustCompile(`further calls that only eb-long has`).MatchString(shown) || strings.Count(shown, "point(") > 100 {
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
	if shown := text(t, ctx, `#diff`); strings.Count(shown, "point(") < 500 {
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
