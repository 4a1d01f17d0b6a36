package web_test

import (
	"context"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"oda/internal/test/env"
	"oda/internal/test/must"
	"oda/internal/web"
)

// Every page, as a person sees it: under a base path and behind a proxy, on a phone, a
// desk and a wall; usable by all, in both colour schemes and with the keyboard alone;
// complete in the binary. Apart from "make proof", only one page of each kind is judged in
// all respects, in one of the schemes.
func TestEveryPageIsSound(t *testing.T) {
	s := newSite(t, "/ns/x").behindProxy(t, "/cluster/oda")
	s.base += "/ns/x"
	leak := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, `<!DOCTYPE html><img src="http://elsewhere.invalid/x.png">`)
	}))
	defer leak.Close()
	ctx, stop := env.BrowserWithLog(t)
	do(t, ctx, chromedp.Navigate(leak.URL)) // or the log might see nothing
	judged := map[string]bool{}
	for _, at := range s.tour(t) {
		schemes := []string{"light", "dark"}
		kind, asked, _ := strings.Cut(at, "?")
		if strings.HasPrefix(asked, "at=") {
			kind += "?at" // a page of its own
		}
		if !env.InProof() && judged[kind] {
			schemes = nil
		} else if !env.InProof() {
			schemes = schemes[len(judged)%2:][:1]
		}
		judged[kind] = true
		t.Run(at, func(t *testing.T) { s.mustBeSound(t, ctx, at, schemes...) })
	}
	s.connected(t, ctx, "changes")
	onlyHere(t, stop(), "http://elsewhere.invalid/x.png", strings.TrimSuffix(s.base, "/")+"/api/v1/changes?after=now")
}

// mustBeSound opens a page, and judges it on every screen; and in colour schemes, if there
// are any, whether everybody can use it.
func (s site) mustBeSound(t *testing.T, ctx context.Context, at string, schemes ...string) {
	t.Helper()
	watch := env.NewWatch(ctx)
	do(t, ctx, chromedp.Navigate(s.base+"/"+at))
	for _, screen := range []string{"wall", "phone", "desk at 200 %", "desk"} {
		do(t, ctx, chromedp.EmulateViewport(screens[screen].width, screens[screen].height))
		mustFit(t, ctx, screen)
	}
	if got := evaluate[string](t, ctx, `document.querySelector("h1").textContent`); got == "" {
		t.Error("it has no heading")
	}
	if len(schemes) > 0 {
		mustBeUsable(t, ctx, schemes...)
		s.mustNeedNoPointer(t, ctx, at)
	}
	noComplaints(t, ctx, watch)
}

// mustNeedNoPointer tries with the keyboard alone to get everywhere on a page, and to see
// where one is.
func (s site) mustNeedNoPointer(t *testing.T, ctx context.Context, at string) {
	t.Helper()
	const reachable = `[...document.querySelectorAll("a[href], button, input:not([type=hidden]), select, summary, [tabindex='0']")]
		.filter((e) => !e.disabled && (e.checkVisibility?.() ?? true))`
	var missed []string
	for range 3 { // a page may renew itself meanwhile
		do(t, ctx, chromedp.Navigate(s.base+"/"+at))
		evaluate[bool](t, ctx, `window.visited = new Set(); window.unseen = [];
			document.addEventListener("focusin", ({ target }) => {
				visited.add(target);
				if (getComputedStyle(target).outlineStyle === "none" && !target.closest("svg")) unseen.push(target.outerHTML.slice(0, 80));
			}); true`)
		do(t, ctx, chromedp.KeyEvent(strings.Repeat(kb.Tab, evaluate[int](t, ctx, reachable+`.length`)+3)))
		if missed = evaluate[[]string](t, ctx, reachable+`.filter((e) => !visited.has(e)).map((e) => e.outerHTML.slice(0, 80))`); len(missed) == 0 {
			break
		}
	}
	if len(missed) > 0 {
		t.Errorf("the Tab key does not reach\n%s", strings.Join(missed, "\n"))
	}
	if unseen := evaluate[[]string](t, ctx, `unseen`); len(unseen) > 0 {
		t.Errorf("nothing shows that these have the focus:\n%s", strings.Join(unseen, "\n"))
	}
}

// onlyHere judges a browser's log of the network: pages and their workers have asked this
// host alone, and besides it for the addresses that are known to be in the log.
func onlyHere(t *testing.T, log []byte, known ...string) {
	t.Helper()
	var all struct {
		Events []struct {
			Params struct{ URL, Initiator string }
		}
	}
	must.Do(t, json.Unmarshal(log, &all))
	asked := map[string]bool{}
	for _, e := range all.Events {
		// Without a page as its initiator, a request is the browser's own, or the
		// navigation of a test.
		if strings.HasPrefix(e.Params.Initiator, "http://127.0.0.1:") {
			asked[e.Params.URL] = true
		}
	}
	for _, address := range known {
		if !asked[address] {
			t.Errorf("the log does not have %s", address)
		}
		delete(asked, address)
	}
	for address := range asked {
		if to, err := url.Parse(address); err != nil || to.Hostname() != "127.0.0.1" {
			t.Errorf("the browser asked for %s", address)
		}
	}
}

func evaluate[T any](t *testing.T, ctx context.Context, script string) T {
	t.Helper()
	got := must.Get(chromedp.Run(ctx, chromedp.Evaluate[T](script, chromedp.EvalAwaitPromise)))(t)
	return got
}

var (
	linkTo  = regexp.MustCompile(`(?:href|src|action)="([^"]*)"`)
	inline  = regexp.MustCompile(`(?i)<script>|<style|\sstyle=|\son[a-z]+=`)
	payload = regexp.MustCompile(`(?i)<script>(?:window|alert)`)
)

// Every link of a page is relative and leads to something; a page that links to
// another can be read to the end of the archive. From Home, every page is reached.
func TestEveryLinkLeadsSomewhere(t *testing.T) {
	s := newSite(t, "/ns/x").behindProxy(t, "/outer")
	s.base += "/ns/x"
	at := must.Get(url.Parse(s.base + "/"))(t)
	seen := map[string]bool{at.String(): true}
	forms := map[string]int{} // how many of each kind of address are visited
	mux, missing := http.NewServeMux(), map[string]bool{}
	for pattern := range web.New(web.Config{}).Pages() {
		missing["/outer/ns/x"+pattern] = !strings.Contains(pattern, "/timeline") && !strings.HasSuffix(pattern, "/status") // which are parts of the page of an entity
		mux.Handle("/outer/ns/x"+pattern, http.NotFoundHandler())
	}
	for queue := []*url.URL{at}; len(queue) > 0; queue = queue[1:] {
		page := queue[0]
		_, pattern := mux.Handler(&http.Request{Method: http.MethodGet, URL: page, Host: page.Host})
		missing[pattern] = false
		reply := s.get(t, strings.TrimPrefix(page.String(), s.base+"/"))
		if reply.Status >= 400 {
			t.Errorf("%s answers %d", page, reply.Status)
			continue
		}
		if to := reply.Header.Get("Location"); to != "" {
			queue = append(queue, must.Get(page.Parse(to))(t))
		}
		if !strings.HasPrefix(reply.Header.Get("Content-Type"), "text/html") {
			continue
		}
		if found := inline.FindString(reply.Text()); found != "" {
			t.Errorf("%s has %q in it, which the policy forbids", page, found)
		}
		for _, found := range linkTo.FindAllStringSubmatch(reply.Text(), -1) {
			to, err := page.Parse(strings.NewReplacer("&amp;", "&", "&#34;", `"`, "&#43;", "+").Replace(found[1]))
			if err != nil || strings.HasPrefix(found[1], "/") || !strings.HasPrefix(to.String(), s.base+"/") {
				t.Errorf("%s links to %s", page, found[1])
				continue
			}
			to.Fragment = ""
			form := path.Dir(to.Path) + "?" + strings.Join(slices.Sorted(keys(to.Query())), "&")
			if strings.Contains(to.Path, "/api/v1/") && !strings.HasSuffix(to.Path, "/api/v1/") {
				form = path.Base(path.Dir(to.Path)) // the interface is tested elsewhere
			}
			most := 20
			if strings.HasSuffix(to.Path, "/calls") && to.RawQuery != "" {
				most = 3 // its many filters go together in many ways
			}
			if strings.HasSuffix(to.Path, "/night") {
				most = 40 // each leads to those of the weeks around it, and most have no calls
			}
			if forms[form]++; !seen[to.String()] && forms[form] < most {
				seen[to.String()] = true
				queue = append(queue, to)
			}
		}
	}
	if len(seen) < 60 {
		t.Errorf("only %d addresses were found", len(seen))
	}
	for pattern, never := range missing {
		if never {
			t.Errorf("no link leads to %s", pattern)
		}
	}
}

func keys(v url.Values) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range v {
			if !yield(k) {
				return
			}
		}
	}
}

// Without JavaScript everything is there.
func TestPagesNeedNoJavaScript(t *testing.T) {
	s := newSite(t, "")
	ctx := env.Browser(t)
	must.Get(chromedp.Call(ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true}))(t)
	do(t, ctx, chromedp.Navigate(s.base+"/ebs?limit=10"))
	if got := strings.Count(text(t, ctx, `.entities tbody`), "SKA-"); got != 10 {
		t.Fatalf("the list has %d rows, want 10", got)
	}
	follow(t, ctx, `a[rel=next]`)
	follow(t, ctx, `.entities .what a`)
	shows(t, ctx, `.json`, `"sbd_ref"`)
	shows(t, ctx, `.calls tbody`, "assign_resources")
	for at, row := range map[string]string{"ebs/" + s.long(t): `.calls tbody tr`, "changes": `.changes tbody tr`} {
		do(t, ctx, chromedp.Navigate(s.base+"/"+at))
		first := text(t, ctx, row)
		follow(t, ctx, `a[rel=next]`)
		if got := text(t, ctx, row); got == first {
			t.Errorf("the second page of %s begins as the first, with %s", at, got)
		}
	}
	do(t, ctx, chromedp.Navigate(s.base+"/ebs"))
	follow(t, ctx, `.entities .what a`)
	// Folding works without a script.
	follow(t, ctx, `.facts a.id`)
	before := text(t, ctx, `.json`)
	do(t, ctx, chromedp.Click(chromedp.CSS(`.json summary`)))
	if after := text(t, ctx, `.json`); len(after) >= len(before) || !strings.Contains(after, "members") {
		t.Errorf("folded, the document is shown as\n%s", after)
	}
}

func TestSearchNarrows(t *testing.T) {
	s := newSite(t, "/ns/x")
	ctx := env.Browser(t)
	do(t, ctx, chromedp.Navigate(s.base+"/sbds"))
	rows := func() int { return evaluate[int](t, ctx, `document.querySelectorAll(".entities tbody tr").length`) }
	all := rows()
	do(t, ctx, chromedp.SetValue(chromedp.CSS(`#q`), "band low"))
	must.Get(chromedp.RunResponse(ctx, chromedp.Click(chromedp.CSS(`.submit button`))))(t)
	narrowed := rows()
	if narrowed == 0 || narrowed >= all {
		t.Errorf("of %d rows, %d are left", all, narrowed)
	}
	if got := evaluate[string](t, ctx, `location.search`); got != "?q=band+low" {
		t.Errorf("the address to share has %q", got)
	}
	follow(t, ctx, `.chips a`)
	if got := rows(); got != all {
		t.Errorf("without the filter there are %d rows, want %d", got, all)
	}

	// The box at the top understands identifiers, words and positions.
	id := s.ids(t, "/ebs/search?fields=id&limit=1")[0]
	for asked, leads := range map[string]string{
		id:                        "/ns/x/ebs/" + id,
		"band":                    "/ns/x/search?q=band",
		"operator-mid":            "/ns/x/search?q=operator-mid",
		"13:25:27.62 -43:01:08.8": "/ns/x/sbds?cone=201.365083,-43.019111,1",
	} {
		do(t, ctx, chromedp.Navigate(s.base+"/prjs"), chromedp.SetValue(chromedp.CSS(`.find input`), asked))
		must.Get(chromedp.RunResponse(ctx, chromedp.Click(chromedp.CSS(`.find button`))))(t)
		if got := evaluate[string](t, ctx, `location.pathname + location.search`); got != leads {
			t.Errorf("%q leads to %s, want %s", asked, got, leads)
		}
	}

	// What has no name of its own is found by that of its SBDefinition, and by who
	// created it.
	ofBlock := regexp.MustCompile(`"sbd_ref":"([^"]+)"`).FindStringSubmatch(s.Do("GET", "/ebs/"+id, "").Text())[1]
	name := regexp.MustCompile(`"name":"([^"]+)"`).FindStringSubmatch(s.Do("GET", "/sbds/"+ofBlock, "").Text())[1]
	for asked, finds := range map[string][]string{
		name:               {"SBDefinitions", "ExecutionBlocks made of these SBDefinitions", "SBInstances made of these SBDefinitions", id},
		name[:len(name)-2]: {"SBDefinitions", name},
		"operator-mid":     {"ExecutionBlocks created by this user", "operator-mid"},
		"nothinglikeit":    {"Nothing has all these words"},
		id[:len(id)-3]:     {"ExecutionBlocks", id},
	} {
		s.says(t, "search?q="+url.QueryEscape(asked), finds...)
	}
}

// An ExecutionBlock is shown with the name of its SBDefinition, by which its list cannot be
// searched, but all documents can.
func TestAListOfBlocksLeadsToTheSearchForNames(t *testing.T) {
	s := emptySite(t)
	s.store(t, "/ebs/eb-1", `{}`)
	const link = `href="./search?q=abell">Search all documents for “abell”</a>`
	for at, want := range map[string]bool{"ebs?q=abell": true, "sbis?q=abell": true, "ebs": false, "sbds?q=abell": false} {
		if page := s.get(t, at).Text(); strings.Contains(page, link) != want {
			t.Errorf("/%s: a link to the search is there: %v", at, !want)
		}
	}
}

// Page after page, a list has every entity once.
func TestAListIsReadPageByPage(t *testing.T) {
	s := newSite(t, "")
	row := regexp.MustCompile(`class="what"><a href="\./sbis/([^"]+)"`)
	found := map[string]int{}
	pages, _ := s.walk(t, "sbis?limit=30&telescope=ska_mid", "next")
	for _, id := range row.FindAllStringSubmatch(strings.Join(pages, ""), -1) {
		found[id[1]]++
	}
	want := s.ids(t, "/sbis/search?fields=id&limit=1000&telescope=ska_mid")
	for _, id := range want {
		if found[id] != 1 {
			t.Errorf("%s is on %d pages", id, found[id])
		}
	}
	if len(found) != len(want) || len(pages) < 2 {
		t.Errorf("%d of %d entities are on %d pages", len(found), len(want), len(pages))
	}
}

// Whatever a document gives as a reference, a list leads to it or searches for it.
func TestAnOddReferenceIsSearchedFor(t *testing.T) {
	s := emptySite(t)
	s.store(t, "/sbis/sbi-odd", `{"sbd_ref":"a b/../../changes?x=<b>#y"}`)
	s.store(t, "/sbis/sbi-plain", `{"sbd_ref":"sbd-1"}`)
	s.says(t, "sbis", `href="./search?q=a&#43;b/../../changes%3Fx%3D%3Cb%3E%23y"`, `href="./sbds/sbd-1"`)
}

// The fields for conditions are told apart by their numbers, from 1.
func TestConditionsAreNumbered(t *testing.T) {
	page := emptySite(t).get(t, "sbds?where=/a+%3D+1").Text()
	if !strings.Contains(page, `aria-label="Condition 1"`) || !strings.Contains(page, `aria-label="Condition 2"`) || strings.Contains(page, `aria-label="Condition 0"`) {
		t.Errorf("the page is\n%s", page)
	}
}

// A document whose every string and key is a script is harmless on every page.
func TestScriptsInDocumentsAreHarmless(t *testing.T) {
	const script = `"><script>window.harmed = 1</script><img src=x onerror="window.harmed = 1">'{{7*7}}</title></details>javascript:window.harmed=1`
	quoted := must.Get(json.Marshal(script))(t)
	q := string(quoted)
	s := newSite(t, "/ns/x")
	target := `{"name":` + q + `,"target_id":` + q + `,"ra":201.4,"dec":-43.0}`
	for at, body := range map[string]string{
		"/prjs/prj-bad": `{"name":` + q + `,` + q + `:` + q + `,"obs_blocks":[{"obs_block_id":` + q + `,"name":` + q + `,"sbd_ids":["sbd-bad",` + q + `]}]}`,
		"/sbds/sbd-bad": `{"name":` + q + `,"description":` + q + `,"status":` + q + `,"telescope":` + q + `,"ob_ref":` + q + `,"activities":{` + q + `:{}},"targets":[` + target + `],` + q + `:{` + q + `:[` + q + `]}}`,
		"/sbis/sbi-bad": `{"telescope":` + q + `,"sbd_ref":` + q + `,"eb_ref":"eb-bad","status":` + q + `}`,
		"/ebs/eb-bad": `{"telescope":` + q + `,"sbd_ref":"sbd-bad","sbi_ref":` + q + `,"request_responses":[{"request":"<script>alert</script>","status":"ERROR"},{"request":` + q + `,"status":` + q + `,` + q + `:1,"request_args":{"args":[` + q + `],"kwargs":{` + q + `:` + q +
			`}},"response":{"result":` + q + `},"error":{"detail":` + q + `,"stacktrace":` + q + `}}]}`,
	} {
		for range 2 { // in two versions
			answer := s.Do("PUT", at, body, "X-Forwarded-User", script)
			if answer.Status == http.StatusUnprocessableEntity {
				stored := s.Do("GET", at, "").Text()
				answer = s.Do("PUT", at, stored, "X-Forwarded-User", script)
			}
			if answer.Status != http.StatusOK {
				t.Fatalf("%s: %d %s", at, answer.Status, answer.Body)
			}
		}
	}
	escaped := url.QueryEscape(script)
	ctx := env.Browser(t)
	watch := env.NewWatch(ctx)
	for _, at := range []string{
		"", "changes", "changes?id=" + escaped, "changes?by=" + escaped, "changes?kind=" + escaped, "changes?change=" + escaped, "changes?before=" + escaped,
		"prjs", "sbds", "sbis", "ebs", "prjs/prj-bad", "sbds/sbd-bad", "sbds/sbd-bad?version=1", "sbis/sbi-bad", "ebs/eb-bad", "ebs/eb-bad?calls=failed",
		"compare?from=sbds/sbd-bad@1&to=sbds/sbd-bad@2", "compare?from=prjs/prj-bad@1&to=sbds/sbd-bad@2", "compare?from=prjs/prj-bad@1&to=sbds/sbd-bad@2&view=unified",
		"compare?from=ebs/eb-bad@1&to=ebs/eb-bad@2&what=calls", "compare?from=ebs/eb-bad@1&to=sbds/sbd-bad@1", "compare?from=" + escaped + "&to=" + escaped,
		"compare?from=sbd-bad&to=@" + escaped + "&view=" + escaped + "&what=" + escaped + "&after=" + escaped,
		"calls", "calls?outcome=failed", "calls?eb=eb-bad", "calls?outcome=failed&q=" + escaped, "calls?outcome=failed&error=" + escaped, "calls?from=" + escaped, "calls?cursor=" + escaped,
		"calls?at=2026-03-01T20:00Z", "calls?at=" + escaped, "night", "night?date=" + escaped, "night?date=2026-01-01&telescope=" + escaped, "night?date=2026-01-01&zone=" + escaped,
		"search?q=window", "search?q=" + escaped, "sbds?q=" + escaped, "sbds?telescope=" + escaped, "sbds?user=" + escaped + "&user_match_type=contains",
		"sbds?cone=" + escaped, "sbds?where=" + escaped, "sbds?sort=" + escaped, "sbds?limit=" + escaped, "sbds?cursor=" + escaped,
		"sbds/sbd-bad?at=" + escaped, "sbds/sbd-bad?version=" + escaped, "ebs/eb-bad?after=" + escaped + "&calls=" + escaped,
		"ebs/" + url.PathEscape(script), url.PathEscape(script),
	} {
		if !strings.Contains(at, escaped) || env.InProof() {
			do(t, ctx, chromedp.Navigate(s.base+"/"+at))
			if evaluate[bool](t, ctx, `"harmed" in window`) {
				t.Errorf("%s runs a script of a document", at)
			}
		}
		if found := payload.FindString(s.get(t, at).Text()); found != "" {
			t.Errorf("%s has %q in it", at, found)
		}
	}
	noComplaints(t, ctx, watch)
}

// A browser gets a page about an error, and a program a problem.
func TestErrorsArePagesForBrowsers(t *testing.T) {
	s := newSite(t, "/ns/x")
	for at, want := range map[string]struct {
		status int
		says   string
	}{
		"ebs/eb-unknown":               {404, "could not be found"},
		"ebs/%20":                      {404, "could not be found"},
		"sbds/" + "x?version=1":        {404, "could not be found"},
		"nothing/at/all":               {404, "There is no such page"},
		"ebs/eb-unknown?at=yesterday":  {400, "is not a valid time"},
		"sbds?cone=1,2":                {400, "the radius is missing"},
		"sbds?created_after=yesterday": {400, "is not a valid time"},
	} {
		page := s.get(t, at)
		if page.Status != want.status || !strings.Contains(page.Text(), want.says) || !strings.Contains(page.Text(), `role="search"`) {
			t.Errorf("%s answers %d\n%s", at, page.Status, page.Text())
		}
		if got := page.Header.Get("Content-Security-Policy"); !strings.Contains(got, "script-src 'self';") || strings.Contains(got, "unsafe") {
			t.Errorf("%s has the policy %q", at, got)
		}
		if strings.HasPrefix(at, "sbds?") {
			continue // the page with the form
		}
		problem := s.get(t, at, "Accept", "*/*")
		if problem.Status != want.status || problem.Header.Get("Content-Type") != "application/problem+json" || problem.Header.Get("Vary") != "Accept" {
			t.Errorf("for a program %s answers %d, %v", at, problem.Status, problem.Header)
		}
	}
}

// Who asks for an entity as it never was is told once what is wrong, since when it is
// there, and where.
func TestAStateThatNeverWasLeadsToTheCurrentOne(t *testing.T) {
	s := emptySite(t)
	s.store(t, "/sbds/sbd-v", `{"n":1}`, `{"n":2}`)
	for query, want := range map[string]struct {
		status int
		says   string
	}{
		"?at=foo":        {400, `<p class="lead">at is not a valid time`},
		"?at=2020-01-01": {404, "could not be found among the sbds as of 2020-01-01"},
		"?version=501":   {404, "Version 501 of sbd-v could not be found"},
		"?version=x":     {404, "versions are numbers"},
	} {
		page := s.get(t, "sbds/sbd-v"+query)
		if page.Status != want.status || strings.Count(page.Text(), want.says) != 1 {
			t.Errorf("%s answers %d:\n%s", query, page.Status, page.Text())
		}
		for _, text := range []string{`<a href="sbd-v">sbd-v as it is now</a>`, "sbd-v has been in the archive since <time", "Version 2 is current", `name="at"`} {
			if !strings.Contains(page.Text(), text) {
				t.Errorf("%s does not say %s", query, text)
			}
		}
	}
	for _, at := range []string{"sbds/sbd-w?version=2", "sbds/sbd-w?at=foo", "sbds/sbd-w"} {
		if page := s.get(t, at).Text(); strings.Contains(page, "as it is now") {
			t.Errorf("%s leads to an entity that is not there", at)
		}
	}
}

// A call that took thousands of years, because a clock was wrong, says so.
func TestACallMayTakeThousandsOfYears(t *testing.T) {
	s := emptySite(t)
	s.storeCalls(t, "eb-slow", []string{
		`{"request":"m.f","request_sent_at":"2026-03-01T20:00:00Z","response_received_at":"9999-12-31T20:00:00Z"}`,
		callIn("m.f", 0, 1, false),
	})
	for at, want := range map[string]int{"ebs/eb-slow": 1, "night?date=2026-03-01": 3} {
		if page := s.get(t, at).Text(); strings.Count(page, "2\u202f912\u202f383 d 00 h") < want {
			t.Errorf("/%s does not say how long it took: %s", at, page)
		}
	}
}

// A page is sent once, as long as nothing has changed, and is never kept without
// asking.
func TestAPageIsSentOnce(t *testing.T) {
	s := newSite(t, "")
	at := "sbds/" + s.ids(t, "/sbds/search?fields=id&limit=1")[0]
	first := s.get(t, at)
	if got := first.Header.Get("Cache-Control"); got != "private, no-cache" {
		t.Errorf("Cache-Control is %q", got)
	}
	if again := s.get(t, at, "If-None-Match", first.Header.Get("Etag")); again.Status != http.StatusNotModified {
		t.Errorf("asked again, it answers %d", again.Status)
	}
	changed := strings.Replace(s.Do("GET", "/"+at, "").Text(), `"name":"`, `"name":"Changed `, 1)
	s.Must("PUT", "/"+at, changed)
	if again := s.get(t, at, "If-None-Match", first.Header.Get("Etag")); again.Status != http.StatusOK || !strings.Contains(again.Text(), "Changed ") {
		t.Errorf("after a change it answers %d", again.Status)
	}
}

// pageBudget is what a page may transfer, with all that it loads.
const pageBudget = 200 << 10

func TestAPageTransfersLittle(t *testing.T) {
	s := newSite(t, "")
	// A document as long as real ones get, and one that is absurd.
	s.Do("PUT", "/sbds/sbd-long", `{"name":"long","list":[`+strings.Repeat(`{"a":1,"b":"some text","c":[1,2,3]},`, 20_000)+`0]}`)
	s.says(t, "sbds/sbd-long", "The document is long", "not shown here")
	s.Do("PUT", "/sbds/sbd-string", `{"name":"`+strings.Repeat("long ", 100_000)+`"}`)
	s.Do("PUT", "/sbds/sbd-deep", strings.Repeat(`{"a":[`, 49)+`1`+strings.Repeat(`]}`, 49))
	// What hardly compresses, in many short and in a few long texts; and many short
	// values.
	random := rand.New(rand.NewPCG(1, 2))
	noise := func(texts, length int) string {
		var list []string
		for range texts {
			text := make([]byte, length)
			for i := range text {
				text[i] = byte('0' + random.IntN(75))
			}
			list = append(list, strconv.Quote(string(text)))
		}
		return strings.Join(list, ",")
	}
	s.store(t, "/sbds/sbd-noise", `{"list":[`+noise(20_000, 40)+`]}`, `{"list":[`+noise(10_000, 80)+`]}`)
	s.store(t, "/sbds/sbd-texts", `{"list":[`+noise(200, 5000)+`]}`, `{"list":[`+noise(200, 3000)+`]}`)
	s.store(t, "/sbds/sbd-flat", `{"list":[`+strings.Repeat("1,", 300_000)+`1]}`)
	var records []string
	for range 200 {
		records = append(records, `{"request":`+noise(1, 300)+`,"request_args":{"args":[`+noise(1, 3000)+`]},"response":{"result":`+noise(1, 3000)+`},"error":{"detail":`+noise(1, 3000)+`,"stacktrace":`+noise(1, 3000)+`}}`)
	}
	s.store(t, "/ebs/eb-noise", `{"request_responses":[`+strings.Join(records, ",")+`]}`)
	for _, at := range append(s.tour(t), "sbds/sbd-long", "sbds/sbd-string", "sbds/sbd-deep", "sbds/sbd-noise", "sbds/sbd-texts", "sbds/sbd-flat", "ebs/eb-noise",
		"sbis?limit=1000", "compare?from=sbds/sbd-noise@1&to=sbds/sbd-noise@2", "compare?from=sbds/sbd-texts@1&to=sbds/sbd-texts@2&view=unified",
		"compare?from=ebs/eb-noise@1&to=ebs/"+s.failing(t)+"@1") {
		page := s.get(t, at, "Accept-Encoding", "gzip")
		size := len(page.Raw)
		for _, found := range regexp.MustCompile(`(?:src|rel="stylesheet" href)="([^"]*)"`).FindAllStringSubmatch(page.Text(), -1) {
			size += len(s.get(t, path.Join(path.Dir(strings.Split(at, "?")[0]), found[1]), "Accept-Encoding", "gzip").Raw)
		}
		if size > pageBudget {
			t.Errorf("%s transfers %d bytes, more than %d", at, size, pageBudget)
		}
	}
}
