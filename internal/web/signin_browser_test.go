package web_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"oda/internal/app"
	"oda/internal/auth"
	"oda/internal/test/env"
	"oda/internal/test/must"
)

// login fills in the form of the provider and waits for the page behind it.
func login(t *testing.T, ctx context.Context, person string) {
	t.Helper()
	do(t, ctx,
		chromedp.WaitVisible(chromedp.CSS(`input[name="login"]`)),
		chromedp.SendKeys(chromedp.CSS(`input[name="login"]`), person),
		chromedp.SendKeys(chromedp.CSS(`input[name="password"]`), "any"),
		chromedp.Click(chromedp.CSS(`button[type="submit"]`)),
		chromedp.WaitVisible(chromedp.CSS(`.who`)))
}

func at(t *testing.T, ctx context.Context) string {
	t.Helper()
	got := must.Get(chromedp.Run(ctx, chromedp.Location()))(t)
	return got
}

// follows makes the page follow the archive, and counts in the page how its stream
// does.
const follows = `new Promise((resolve) => {
	window.stream = new EventSource(new URL("api/v1/changes", root), {withCredentials: true});
	stream.onopen = () => resolve(true);
	stream.onerror = () => { window.broken = (window.broken ?? 0) + 1; };
})`

// A person signs in and out behind a proxy that strips a prefix.
func TestAPersonSignsInAndOut(t *testing.T) {
	proxied := httptest.NewUnstartedServer(nil)
	g := newGuarded(t, "", func(p *env.Provider, cfg *app.Config) {
		cfg.PublicURL = "http://" + proxied.Listener.Addr().String() + "/archive"
		p.Redirects = []string{cfg.PublicURL + "/signed-in"}
	})
	proxied.Config.Handler = http.StripPrefix("/archive", httputil.NewSingleHostReverseProxy(mustParse(t, g.Origin())))
	proxied.Start()
	t.Cleanup(proxied.Close)
	g.base = proxied.URL + "/archive"
	ctx := env.Browser(t)
	page := g.base + "/ebs?telescope=ska_mid#main"
	do(t, ctx, chromedp.Navigate(page))
	mustBeUsable(t, ctx, "light")
	do(t, ctx, chromedp.Click(chromedp.CSS(`a.button`)))
	login(t, ctx, "ada")
	if got := at(t, ctx); got != page {
		t.Errorf("ada ends up at %s, want %s", got, page)
	}
	if got := text(t, ctx, `.who strong`); got != "ada" {
		t.Errorf("the page says that %q is signed in", got)
	}

	// The page may read, write and follow.
	if got := evaluate[int](t, ctx, `fetch(new URL("api/v1/prjs/prj-1", root), {method: "PUT", headers: {"Content-Type": "application/json"},
		body: '{"prj_id":"prj-1"}'}).then(a => a.status)`); got != http.StatusOK {
		t.Errorf("a write from the page answers %d", got)
	}
	evaluate[bool](t, ctx, follows)

	tab, done := chromedp.NewContext(ctx) // another tab
	defer done()
	do(t, tab, chromedp.Navigate(g.base+"/prjs/prj-1"), chromedp.WaitVisible(chromedp.CSS(`.who`)),
		chromedp.Click(chromedp.CSS(`.who button`)), chromedp.WaitVisible(`//h1[text()="You are signed out"]`))
	mustBeUsable(t, tab, "dark")
	eventually(t, ctx, `window.broken > 0 && stream.readyState !== EventSource.OPEN`)
	do(t, ctx, chromedp.Navigate(g.base+"/night"), chromedp.WaitVisible(chromedp.CSS(`.signin`)))
}

// tokenSite is an archive whose people sign in with a token.
type tokenSite struct {
	site
	file string
}

// newTokenSite starts an archive with a token of desk, who edits.
func newTokenSite(t *testing.T) (s tokenSite, desk string) {
	t.Helper()
	s.file = filepath.Join(t.TempDir(), "tokens")
	desk = must.Get(auth.CreateToken(s.file, auth.Token{Name: "desk", Role: auth.Editor}))(t)
	a := env.Start(t, func(cfg *app.Config) { cfg.Auth.Tokens, cfg.BasePath = s.file, "/ns/oda" })
	s.site = site{a, strings.TrimSuffix(a.URL(), "/api/v1")}
	return s, desk
}

// visitorToken makes a token that ends, and waits until the archive knows it.
func (s tokenSite) visitorToken(t *testing.T, life time.Duration) string {
	t.Helper()
	secret := must.Get(auth.CreateToken(s.file, auth.Token{Name: "visitor", Role: auth.Reader, Expires: time.Now().Add(life)}))(t)
	for s.Do("GET", "/ebs?user=x", "", "Authorization", "Bearer "+secret).Status != http.StatusOK {
		time.Sleep(50 * time.Millisecond)
	}
	return secret
}

// enterToken signs in with a token, on the page that is open.
func enterToken(t *testing.T, ctx context.Context, token string) {
	t.Helper()
	do(t, ctx, chromedp.WaitVisible(chromedp.CSS(`#token`)), chromedp.SendKeys(chromedp.CSS(`#token`), token))
	follow(t, ctx, `.signin button`)
}

// A session that ends on an open page leaves everything on it as it is, and leads the
// person back to it.
func TestASessionEndsOnAnOpenPage(t *testing.T) {
	t.Parallel() // it mostly waits
	s, desk := newTokenSite(t)
	ctx := env.Browser(t)
	page := s.base + "/ebs?telescope=ska_low#main"
	do(t, ctx, chromedp.Navigate(page))
	enterToken(t, ctx, "oda_misspelt")
	shows(t, ctx, `[role="alert"]`, "not valid")
	enterToken(t, ctx, s.visitorToken(t, 15*time.Second))
	if got := at(t, ctx); got != page {
		t.Errorf("signing in leads to %s, want %s", got, page)
	}
	do(t, ctx, chromedp.SetValue(chromedp.CSS(`.find input`), "what I was typing"))
	eventually(t, ctx, `document.querySelector(".ended a") !== null`)
	if got := evaluate[string](t, ctx, `document.querySelector(".find input").value`); got != "what I was typing" {
		t.Errorf("the page has lost its content: %q", got)
	}
	follow(t, ctx, `.ended a`)
	enterToken(t, ctx, desk)
	if got := at(t, ctx); got != page {
		t.Errorf("signing in again leads to %s, want %s", got, page)
	}
	if got := text(t, ctx, `.who strong`); got != "desk" {
		t.Errorf("the page says that %q is signed in", got)
	}
}

// A page that follows the archive notices that the token was revoked.
func TestARevokedTokenEndsTheSessionOfAnOpenPage(t *testing.T) {
	s, _ := newTokenSite(t)
	ctx := env.Browser(t)
	do(t, ctx, chromedp.Navigate(s.base+"/changes"))
	enterToken(t, ctx, s.visitorToken(t, time.Hour))
	for s.Followers() == 0 {
		time.Sleep(20 * time.Millisecond)
	}
	must.Do(t, auth.RevokeToken(s.file, "visitor"))
	eventually(t, ctx, `document.querySelector(".ended a") !== null`)
	if s.Followers() != 0 {
		t.Errorf("%d streams go on", s.Followers())
	}
}

// Another port of the same host is another origin, but the same site: the browser
// sends it the cookie, so only the archive can tell.
func TestAPageOfAnotherOriginCannotWrite(t *testing.T) {
	s, desk := newTokenSite(t)
	target := s.URL() + "/prjs/prj-forged"
	evil := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprintf(w, `<!DOCTYPE html><form method="post" enctype="text/plain" action="%s/prjs">
			<input name='{"name":"forged","x":"' value='"}'><button>Win</button></form>
			<form method="post" action="%s/sign-out"><button id="out">Out</button></form>`, s.URL(), s.base)
	}))
	defer evil.Close()
	ctx := env.Browser(t)
	do(t, ctx, chromedp.Navigate(s.base+"/"))
	enterToken(t, ctx, desk)
	do(t, ctx, chromedp.Navigate(evil.URL))
	for name, script := range map[string]string{
		"a write as JSON":   `fetch("` + target + `", {method: "PUT", credentials: "include", headers: {"Content-Type": "application/json"}, body: "{}"})`,
		"a write in secret": `fetch("` + s.URL() + `/prjs", {method: "POST", mode: "no-cors", credentials: "include", body: "{}"})`,
		"reading":           `fetch("` + s.URL() + `/prjs", {credentials: "include"})`,
		"following":         `new Promise((yes, no) => { const e = new EventSource("` + s.URL() + `/changes", {withCredentials: true}); e.onopen = () => yes({type: "open"}); e.onerror = no; })`,
	} {
		// A page sees nothing of an answer in secret, whatever it is.
		if got := evaluate[string](t, ctx, script+`.then(a => a.type, () => "refused")`); got != "refused" && got != "opaque" {
			t.Errorf("%s from another origin: %s", name, got)
		}
	}
	follow(t, ctx, `button`)
	do(t, ctx, chromedp.Navigate(evil.URL))
	follow(t, ctx, `#out`)
	do(t, ctx, chromedp.Navigate(s.base+"/prjs"))
	if got := text(t, ctx, `.who strong`); got != "desk" {
		t.Errorf("after the form to sign out, %q is signed in", got)
	}
	if got := evaluate[string](t, ctx, `fetch(new URL("api/v1/prjs?created_after=1970-01-01", root)).then(a => a.text())`); strings.TrimSpace(got) != "[]" {
		t.Errorf("another page has written: %s", got)
	}
	refused := 0
	for _, line := range s.Log() {
		if line["msg"] == "request" && line["method"] != "GET" && line["status"] == float64(http.StatusForbidden) && line["problem"] == "cross-origin" {
			refused++
		}
	}
	if refused < 3 { // the write as JSON fails before it is sent
		t.Errorf("the archive has refused %d requests of the other page", refused)
	}
}
