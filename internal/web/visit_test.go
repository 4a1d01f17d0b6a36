package web_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"oda/client"
	"oda/internal/app"
	"oda/internal/demo"
	"oda/internal/test/env"
	"oda/internal/test/must"
)

// site is a running archive with something in it.
type site struct {
	*env.Archive
	base string // address of the pages, without a slash at its end
}

// week is the file of an archive with a week in it. The first test fills it, and
// each test has a copy.
var week struct {
	sync.Once
	file []byte
}

// newSite starts an archive under a base path, with a week in it.
func newSite(t *testing.T, base string) site {
	t.Helper()
	week.Do(func() { week.file = fillWeek(t) })
	file := filepath.Join(t.TempDir(), "archive.db")
	must.Do(t, os.WriteFile(file, week.file, 0o600))
	return open(t, base, file, "127.0.0.1:0")
}

// open starts an archive from a file.
func open(t *testing.T, base, file, listen string) site {
	t.Helper()
	a := env.Start(t, func(cfg *app.Config) { cfg.BasePath, cfg.Database, cfg.Listen = base, "sqlite:"+file, listen })
	return site{a, strings.TrimSuffix(a.URL(), "/api/v1")}
}

// fill stores a week in an archive.
func fill(t *testing.T, a *env.Archive) {
	t.Helper()
	acting := func(user string) (*client.Client, error) { return client.New(a.URL(), client.WithUser(user)) }
	must.Get(demo.Fill(t.Context(), acting, demo.Options{Seed: 3, Now: time.Now(), Longest: 350}))(t)
}

func fillWeek(t *testing.T) []byte {
	t.Helper()
	file := filepath.Join(t.TempDir(), "week.db")
	a := open(t, "", file, "127.0.0.1:0")
	fill(t, a.Archive)
	must.Do(t, a.Stop())
	content := must.Get(os.ReadFile(file))(t)
	return content
}

// behindProxy serves a site behind a proxy that strips a prefix, as a cluster
// does.
func (s site) behindProxy(t *testing.T, prefix string) site {
	t.Helper()
	to := must.Get(url.Parse(s.Origin()))(t)
	proxy := httptest.NewServer(http.StripPrefix(prefix, httputil.NewSingleHostReverseProxy(to)))
	t.Cleanup(proxy.Close)
	return site{s.Archive, proxy.URL + prefix}
}

// ids gives identifiers that a search finds.
func (s site) ids(t *testing.T, search string) []string {
	t.Helper()
	answer := s.Must("GET", search, "")
	return regexp.MustCompile(`(?:sbd|sbi|eb|prj|note)-[a-z0-9-]+`).FindAllString(strings.Split(answer.Text(), `"next"`)[0], -1)
}

// tour is an address of each page, in the ways in which it may look. The first of each
// kind has the most on it.
func (s site) tour(t *testing.T) []string {
	t.Helper()
	sbd := s.ids(t, "/sbds/search?fields=id&limit=1&sort=-modified")[0] // has several versions
	blocks := s.ids(t, "/ebs/search?fields=id&limit=2")
	return []string{
		"", "now", "api/v1/guide", "night?date=" + time.Now().AddDate(0, 0, -2).UTC().Format(time.DateOnly), "night?date=2001-01-01", "sbds?limit=3", "sbis?limit=3", "ebs?limit=3", "prjs?limit=3",
		"calls", "calls?from=2001-01-01&to=2999-01-01", "calls?outcome=ok", "calls?outcome=failed&device=nothinglikethis", "calls?at=" + s.busy(t), "calls?at=2001-01-01",
		"changes", "changes?before=300&kind=sbds", "changes?change=recorded&id=nothinglikethis", "changes?before=x",
		"ebs?telescope=ska_low&q=nothinglikethis",
		"ebs?created_after=2001-01-31T18:00&user=a:b&limit=3",
		"sbds?cone=1,2",
		"search?q=low+rep",
		"search?q=nothinglikethis",
		"sbds/" + sbd,
		"sbds/" + sbd + "?version=1",
		"sbis/" + s.ids(t, "/sbis/search?fields=id&limit=1")[0],
		"ebs/" + s.failing(t),
		"ebs/" + s.failing(t) + "?calls=failed",
		"prjs/" + s.ids(t, "/prjs/search?fields=id&limit=1")[0],
		"compare?from=sbds/" + sbd + "@1&to=sbds/" + sbd + "@2",
		"compare",
		"compare?from=sbds/" + sbd + "@1&to=sbds/" + sbd + "@2&view=unified",
		"compare?from=ebs/" + blocks[0] + "@1&to=ebs/" + blocks[1] + "@1",
		"compare?from=nothing",
		"ebs/eb-unknown",
		"nothing/here",
	}
}

// busy gives a time at which a call was in progress.
func (s site) busy(t *testing.T) string {
	t.Helper()
	long := s.get(t, "calls?from=2001-01-01&to=2999-01-01&longer_than=60").Text()
	found := regexp.MustCompile(`<time datetime="([^"]+)`).FindStringSubmatch(long)
	if found == nil {
		t.Fatal("no call took long")
	}
	return found[1]
}

// failing gives a block with few calls, some of which failed.
func (s site) failing(t *testing.T) string {
	t.Helper()
	for day := range 8 {
		for _, b := range s.blocksOf(t, time.Now().AddDate(0, 0, -day)) {
			if b.Calls >= 10 && b.Calls < 100 && b.Failures > 0 {
				return b.ID
			}
		}
	}
	t.Fatal("no block has failed calls")
	return ""
}

// nightBlock is a block in the report on a night.
type nightBlock struct {
	ID              string
	Calls, Failures int
}

// blocksOf gives the blocks of the night that began on a day.
func (s site) blocksOf(t *testing.T, day time.Time) []nightBlock {
	t.Helper()
	var report struct{ Blocks []nightBlock }
	must.Do(t, json.Unmarshal(s.Do("GET", "/night?date="+day.UTC().Format(time.DateOnly), "").Body, &report))
	return report.Blocks
}

// long gives a block with many calls.
func (s site) long(t *testing.T) string {
	t.Helper()
	for _, id := range s.ids(t, "/ebs/search?fields=id&limit=1000") {
		if strings.Contains(s.Do("GET", "/ebs/"+id+"/request_responses?after=300&limit=1", "").Text(), `"sequence":`) {
			return id
		}
	}
	t.Fatal("no block has many calls")
	return ""
}

// get asks for a page as a browser does, without running it.
func (s site) get(t *testing.T, path string, headers ...string) *env.Reply {
	t.Helper()
	r := must.Get(http.NewRequestWithContext(t.Context(), http.MethodGet, s.base+"/"+path, nil))(t)
	r.Header.Set("Accept", "text/html,application/xhtml+xml,*/*;q=0.8")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	browser := &http.Client{
		Timeout: time.Minute, Transport: &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	response := must.Get(browser.Do(r))(t)
	reply := must.Get(env.Read(response))(t)
	if strings.Contains(reply.Text(), "ZgotmplZ") {
		t.Errorf("%s has a link that the template took for unsafe", path)
	}
	return reply
}

// says fails the test unless a page has these texts in it. It returns the page.
func (s site) says(t *testing.T, at string, want ...string) string {
	t.Helper()
	page := s.get(t, at).Text()
	for _, text := range want {
		if !strings.Contains(page, text) {
			t.Errorf("/%s lacks %s:\n%s", at, text, page)
		}
	}
	return page
}

// walk reads a page, those that its links lead to, one after another, and returns their
// texts and the address of the last.
func (s site) walk(t *testing.T, at, rel string) (pages []string, last string) {
	t.Helper()
	link := regexp.MustCompile(`href="([^"#]*)[^"]*" rel="` + rel + `"`)
	for page := mustParse(t, s.base+"/"+at); len(pages) < 100; {
		last = strings.TrimPrefix(page.String(), s.base+"/")
		pages = append(pages, s.get(t, last).Text())
		further := link.FindStringSubmatch(pages[len(pages)-1])
		if further == nil {
			break
		}
		page = page.ResolveReference(mustParse(t, strings.ReplaceAll(further[1], "&amp;", "&")))
	}
	return pages, last
}

// leads fails the test unless an address leads to another page.
func (s site) leads(t *testing.T, at, want string) {
	t.Helper()
	reply := s.get(t, at)
	if to := reply.Header.Get("Location"); reply.Status != http.StatusSeeOther || to != "./"+want {
		t.Errorf("/%s is answered %d and leads to %q, want %q", at, reply.Status, to, want)
	}
}

// scheme makes the browser prefer a colour scheme.
func scheme(t *testing.T, ctx context.Context, name string) {
	t.Helper()
	_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}},
	})
	must.Do(t, err)
}

// mustBeUsable fails the test if somebody cannot use the page that is open, in one of
// some colour schemes: axe has serious findings.
func mustBeUsable(t *testing.T, ctx context.Context, schemes ...string) {
	t.Helper()
	source, err := os.ReadFile("testdata/axe/node_modules/axe-core/axe.min.js")
	if err != nil {
		t.Fatalf("this test needs axe-core: run \"make setup\" (%v)", err)
	}
	evaluate[bool](t, ctx, string(source)+"; true")
	for _, name := range schemes {
		scheme(t, ctx, name)
		for _, found := range evaluate[[]string](t, ctx, `axe.run({resultTypes: ["violations"]}).then((results) => results.violations
			.filter(v => v.impact === "serious" || v.impact === "critical")
			.flatMap(v => v.nodes.map(n => v.id + ": " + n.target + ": " + n.failureSummary)))`) {
			t.Errorf("%s, %s: %s", evaluate[string](t, ctx, `location.href`), name, found)
		}
	}
}
