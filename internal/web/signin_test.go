package web_test

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"oda/internal/app"
	"oda/internal/test/env"
	"oda/internal/test/fault"
	"oda/internal/test/must"
)

// guarded is an archive whose people sign in at a provider.
type guarded struct {
	site
	provider *env.Provider
}

// newGuarded starts an archive under a base path, with a provider where ada edits,
// bo reads and eve may do nothing.
func newGuarded(t *testing.T, base string, configure ...func(*env.Provider, *app.Config)) guarded {
	t.Helper()
	address := must.Get(fault.FreeAddr())(t)
	p := env.NewProvider(t)
	p.People["ada"], p.People["bo"], p.People["eve"] = []string{"oda-editor"}, []string{"oda-reader"}, []string{"staff"}
	p.Redirects = []string{"http://" + address + base + "/signed-in"}
	configured := func(cfg *app.Config) {
		cfg.Listen, cfg.BasePath, cfg.PublicURL = address, base, "http://"+address
		cfg.OIDC.Issuer, cfg.OIDC.Audience = p.Issuer, "urn:archive"
		cfg.OIDC.ClientID, cfg.OIDC.ClientSecret = "pages", p.Secret
		for _, change := range configure {
			change(p, cfg)
		}
		p.Start()
	}
	a := env.Start(t, configured)
	return guarded{site{a, strings.TrimSuffix(a.URL(), "/api/v1")}, p}
}

// visitor is a browser without a screen. It keeps cookies and stays where it is.
type visitor struct {
	*http.Client
	t *testing.T
}

func newVisitor(t *testing.T) visitor {
	t.Helper()
	jar := must.Get(cookiejar.New(nil))(t)
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return visitor{&http.Client{Jar: jar, CheckRedirect: stay, Timeout: time.Minute, Transport: &http.Transport{DisableKeepAlives: true}}, t}
}

// send sends a request of a browser. Headers are pairs of name and value.
func (v visitor) send(method, address, body string, headers ...string) (*env.Reply, *http.Response) {
	v.t.Helper()
	r, err := http.NewRequestWithContext(v.t.Context(), method, address, strings.NewReader(body))
	if err != nil {
		v.t.Fatal(err)
	}
	r.Header.Set("Accept", "text/html,*/*;q=0.8")
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	response, err := v.Do(r)
	if err != nil {
		v.t.Fatal(err)
	}
	reply, err := env.Read(response)
	if err != nil {
		v.t.Fatal(err)
	}
	return reply, response
}

// location is where an answer leads.
func location(t *testing.T, response *http.Response) string {
	t.Helper()
	to, err := response.Location()
	if err != nil {
		t.Fatalf("%s leads nowhere: %s", response.Request.URL, response.Status)
	}
	return to.String()
}

// back begins to sign in on the page and returns where the provider sends the person
// back to.
func (g guarded) back(v visitor, person, page string) string {
	v.t.Helper()
	_, answer := v.send("GET", g.base+"/sign-in?to="+url.QueryEscape(page), "")
	return g.provider.Login(v.Client, location(v.t, answer), person)
}

// signIn signs a person in and returns where they end up.
func (g guarded) signIn(v visitor, person, page string) string {
	v.t.Helper()
	_, answer := v.send("GET", g.back(v, person, page), "")
	return location(v.t, answer)
}

func TestAPageAsksToSignInAndLeadsBack(t *testing.T) {
	g := newGuarded(t, "/ns/oda")
	v := newVisitor(t)
	page := g.base + "/ebs?telescope=ska_mid&limit=3"
	asked, _ := v.send("GET", page, "")
	if asked.Status != http.StatusUnauthorized || asked.Header.Get("WWW-Authenticate") != "Bearer" || asked.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("the page answers %d %v", asked.Status, asked.Header)
	}
	want := `href="./sign-in?to=ebs%3ftelescope%3dska_mid%26limit%3d3"`
	if !strings.Contains(asked.Text(), want) || strings.Contains(asked.Text(), "embedded (SQLite)") {
		t.Errorf("the page lacks %s, or tells too much:\n%s", want, asked.Body)
	}
	if got := g.signIn(v, "ada", "ebs?telescope=ska_mid&limit=3"); got != page {
		t.Errorf("ada ends up at %s, want %s", got, page)
	}
	shown, _ := v.send("GET", page, "")
	if shown.Status != http.StatusOK || !strings.Contains(shown.Text(), "<strong>ada</strong>") {
		t.Errorf("the page answers %d:\n%s", shown.Status, shown.Body)
	}
	if inside, outside := v.own(g.base+"/api/v1/ebs"), v.own(g.Origin()+"/other"); len(inside) != 1 || len(outside) != 0 {
		t.Errorf("the browser sends %v, and to others %v", inside, outside)
	}
}

// own returns the archive's cookies that a browser sends to an address.
func (v visitor) own(address string) []*http.Cookie {
	v.t.Helper()
	return slices.DeleteFunc(v.Jar.Cookies(mustParse(v.t, address)), func(c *http.Cookie) bool { return !strings.HasPrefix(c.Name, "oda-") })
}

// with changes a parameter of an address.
func with(t *testing.T, address, name, value string) string {
	t.Helper()
	u := mustParse(t, address)
	q := u.Query()
	q.Set(name, value)
	u.RawQuery = q.Encode()
	return u.String()
}

func mustParse(t *testing.T, address string) *url.URL {
	t.Helper()
	u := must.Get(url.Parse(address))(t)
	return u
}

func TestASessionReadsTheInterfaceAndWritesFromItsPages(t *testing.T) {
	g := newGuarded(t, "")
	ada, bo := newVisitor(t), newVisitor(t)
	g.signIn(ada, "ada", "")
	g.signIn(bo, "bo", "")
	prj := g.base + "/api/v1/prjs/prj-1"
	for name, test := range map[string]struct {
		v       visitor
		headers []string
		want    int
	}{
		"from nobody knows where": {ada, nil, http.StatusForbidden},
		"from another page":       {ada, []string{"Sec-Fetch-Site", "same-site", "Origin", "http://127.0.0.1:1"}, http.StatusForbidden},
		"by a reader":             {bo, []string{"Sec-Fetch-Site", "same-origin"}, http.StatusForbidden},
		"by nobody":               {newVisitor(t), []string{"Sec-Fetch-Site", "same-origin"}, http.StatusUnauthorized},
	} {
		if reply, _ := test.v.send("PUT", prj, `{"prj_id":"prj-1"}`, append(test.headers, "Content-Type", "application/json")...); reply.Status != test.want {
			t.Errorf("a write %s answers %d: %s", name, reply.Status, reply.Body)
		}
	}
	reply, _ := ada.send("PUT", prj, `{"prj_id":"prj-1"}`, "Content-Type", "application/json", "Origin", g.Origin(), "X-Forwarded-User", "mallory")
	if reply.Status != http.StatusOK || !strings.Contains(reply.Text(), `"created_by":"ada"`) {
		t.Errorf("the write of ada answers %d: %s", reply.Status, reply.Body)
	}
	for _, v := range []visitor{ada, bo} {
		if reply, _ := v.send("GET", prj, ""); reply.Status != http.StatusOK {
			t.Errorf("reading answers %d: %s", reply.Status, reply.Body)
		}
	}
}

func TestSigningOutEndsSessionAndStreams(t *testing.T) {
	g := newGuarded(t, "/ns/oda")
	v := newVisitor(t)
	g.signIn(v, "bo", "")
	kept := v.own(g.base + "/ebs")[0]
	r := must.Get(http.NewRequestWithContext(t.Context(), http.MethodGet, g.URL()+"/changes", nil))(t)
	r.Header.Set("Accept", "text/event-stream")
	stream, err := v.Do(r)
	if err != nil || stream.StatusCode != http.StatusOK {
		t.Fatalf("the stream: %v, %v", stream, err)
	}
	defer stream.Body.Close()

	if page, _ := v.send("GET", g.base+"/sign-out", ""); strings.Contains(page.Text(), "signed out") || !strings.Contains(page.Text(), `<form method="post" action="./sign-out">`) || !strings.Contains(page.Text(), "<strong>bo</strong>") {
		t.Errorf("who only opens the page is told to be signed out, or does not find the button:\n%s", page.Body)
	}
	if reply, _ := v.send("POST", g.base+"/sign-out", "", "Sec-Fetch-Site", "cross-site"); reply.Status != http.StatusForbidden {
		t.Errorf("another site signs people out: %d", reply.Status)
	}
	_, answer := v.send("POST", g.base+"/sign-out", "", "Sec-Fetch-Site", "same-origin")
	if got, want := location(t, answer), g.base+"/sign-out"; got != want {
		t.Errorf("signing out leads to %s, want %s", got, want)
	}
	if _, err := io.Copy(io.Discard, stream.Body); err != nil {
		t.Errorf("the stream does not end well: %v", err)
	}
	page, _ := v.send("GET", g.base+"/sign-out", "")
	if !strings.Contains(page.Text(), "signed out") || !strings.Contains(page.Text(), g.provider.Issuer+"/session/end") {
		t.Errorf("the page after it:\n%s", page.Body)
	}
	for name, cookie := range map[string]string{"the browser": "", "who kept the cookie": kept.String()} {
		if reply, _ := v.send("GET", g.base+"/ebs", "", "Cookie", cookie); reply.Status != http.StatusUnauthorized {
			t.Errorf("after signing out, %s gets %d", name, reply.Status)
		}
	}
}

// What comes back from the provider counts only once, in the browser that began, for
// the attempt that began.
func TestAnAnswerOfTheProviderCountsOnce(t *testing.T) {
	g := newGuarded(t, "")
	v, other := newVisitor(t), newVisitor(t)
	refused := func(name string, v visitor, address string) {
		t.Helper()
		reply, _ := v.send("GET", address, "")
		if reply.Status != http.StatusUnauthorized || !strings.Contains(reply.Text(), `role="alert"`) {
			t.Errorf("%s: %d\n%s", name, reply.Status, reply.Body)
		}
		if page, _ := v.send("GET", g.base+"/ebs", ""); page.Status != http.StatusUnauthorized {
			t.Errorf("%s: signed in", name)
		}
	}
	first := g.back(v, "ada", "")
	refused("in another browser", other, first)
	refused("with another state", v, with(t, first, "state", "AAAAAAAAAAAAAAAAAAAAAAAAAA"))
	refused("without a state", v, with(t, first, "state", ""))
	// Somebody else's code, put into this person's answer.
	theirs := mustParse(t, g.back(other, "bo", "")).Query().Get("code")
	refused("with the code of somebody else", v, with(t, first, "code", theirs))
	refused("again, after it failed", v, first)

	second := g.back(v, "ada", "")
	if _, answer := v.send("GET", second, ""); location(t, answer) != g.base+"/" {
		t.Fatalf("ada ends up at %s", location(t, answer))
	}
	newcomer := newVisitor(t)
	refused("a second time", newcomer, second)
	refused("from another provider", newcomer, with(t, g.back(newcomer, "ada", ""), "iss", "https://evil.example"))
	refused("denied", newcomer, with(t, g.back(newcomer, "ada", ""), "error", "access_denied"))
}

func TestWhoHasNoRoleIsToldSo(t *testing.T) {
	g := newGuarded(t, "")
	v := newVisitor(t)
	reply, _ := v.send("GET", g.back(v, "eve", "ebs"), "")
	if reply.Status != http.StatusForbidden || !strings.Contains(reply.Text(), "has no role") {
		t.Errorf("eve gets %d:\n%s", reply.Status, reply.Body)
	}
}

// Some providers tell roles only when they are asked.
func TestRolesMayComeFromTheProvidersAnswer(t *testing.T) {
	g := newGuarded(t, "", func(p *env.Provider, _ *app.Config) { p.UserInfo = true })
	v := newVisitor(t)
	g.signIn(v, "bo", "")
	if reply, _ := v.send("GET", g.base+"/ebs", ""); reply.Status != http.StatusOK || !strings.Contains(reply.Text(), "<strong>bo</strong>") {
		t.Errorf("bo gets %d:\n%s", reply.Status, reply.Body)
	}
}

func TestSigningInWhileTheProviderIsDown(t *testing.T) {
	g := newGuarded(t, "")
	v, waiting := newVisitor(t), newVisitor(t)
	g.signIn(v, "bo", "")
	back := g.back(waiting, "ada", "")
	g.provider.Stop()
	if reply, _ := v.send("GET", g.base+"/ebs", ""); reply.Status != http.StatusOK {
		t.Errorf("who is signed in gets %d", reply.Status)
	}
	if reply, _ := waiting.send("GET", back, ""); reply.Status != http.StatusServiceUnavailable {
		t.Errorf("who is on the way gets %d:\n%s", reply.Status, reply.Body)
	}
	g.provider.Start()
	g.signIn(waiting, "ada", "")
	if reply, _ := waiting.send("GET", g.base+"/ebs", ""); reply.Status != http.StatusOK {
		t.Errorf("when the provider is back, ada gets %d", reply.Status)
	}
}

func TestTheLogHasNoSecrets(t *testing.T) {
	g := newGuarded(t, "")
	v := newVisitor(t)
	back := g.back(v, "ada", "ebs")
	answer := mustParse(t, back).Query()
	var secrets []string
	for _, c := range v.own(g.base + "/") {
		secrets = append(secrets, c.Value)
	}
	v.send("GET", back, "")
	v.send("GET", back, "") // refused
	bearer := g.provider.Token("ada", "urn:archive")
	bad := g.provider.Token("ada", "urn:other")
	v.send("GET", g.base+"/ebs", "")
	for _, token := range []string{bearer, bad, "oda_not-a-token"} {
		v.send("GET", g.URL()+"/ebs", "", "Authorization", "Bearer "+token, "Cookie", "")
	}
	v.send("POST", g.base+"/sign-in", "token=misspelt-token", "Sec-Fetch-Site", "same-origin")
	for _, c := range v.own(g.base + "/") {
		secrets = append(secrets, c.Value)
	}
	v.send("POST", g.base+"/sign-out", "", "Sec-Fetch-Site", "same-origin")
	must.Do(t, g.Stop())
	log := g.LogText()
	if !strings.Contains(log, `"a person signed in"`) || !strings.Contains(log, "/signed-in") {
		t.Fatalf("the log does not show what happened:\n%s", log)
	}
	secrets = append(secrets, answer.Get("code"), answer.Get("state"), bearer, bad, "not-a-token", "misspelt-token", g.provider.Secret)
	for _, secret := range secrets {
		for _, part := range strings.Split(secret, ".") {
			if len(part) < 8 || strings.Contains(log, part) {
				t.Errorf("the log has %q", part)
			}
		}
	}
}

// Where only a proxy knows who is calling, the page that says so looks like the others.
func TestThePageForWhomTheProxyDoesNotName(t *testing.T) {
	a := env.Start(t, func(cfg *app.Config) { cfg.Auth.Proxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")} })
	v := newVisitor(t)
	page, _ := v.send("GET", a.Origin()+"/", "")
	if page.Status != http.StatusUnauthorized {
		t.Fatalf("the page is answered %d", page.Status)
	}
	files := regexp.MustCompile(`(?:src|href)="\./([^"]*ui/[^"]*)"`).FindAllStringSubmatch(page.Text(), -1)
	if len(files) < 2 {
		t.Fatalf("the page loads %v:\n%s", files, page.Text())
	}
	for _, file := range files {
		if got, _ := v.send("GET", a.Origin()+"/"+file[1], ""); got.Status != http.StatusOK {
			t.Errorf("%s is answered %d", file[1], got.Status)
		}
	}
	if got, _ := v.send("GET", a.Origin()+"/sign-in", ""); got.Status != http.StatusNotFound {
		t.Errorf("there is a page to sign in: %d", got.Status)
	}
}
