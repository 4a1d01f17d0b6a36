package httpapi_test

import (
	"net/http"
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"oda"
	"oda/api"
	"oda/internal/app"
	"oda/internal/auth"
	"oda/internal/test/env"
	"oda/internal/test/must"
)

func TestACallerThatSendsTooMuchIsToldToWait(t *testing.T) {
	a := env.Start(t, func(cfg *app.Config) { cfg.Limits.Rate = 5 })
	store(t, a, "/sbds/a", `{}`)
	r := a.Do("GET", "/sbds/a", "")
	for r.Status == 200 {
		r = a.Do("GET", "/sbds/a", "")
	}
	refused(t, r, 429, oda.RateLimited, "5 requests per second", "Nothing was done")
	if seconds, err := strconv.Atoi(r.Header.Get("Retry-After")); err != nil || seconds != 1 {
		t.Errorf("Retry-After is %q", r.Header.Get("Retry-After"))
	}
	// Probes are never limited.
	for range 20 {
		want(t, 200, a.Do("GET", a.Origin()+"/readyz", ""))
	}
	env.Await(t, "the caller may send again", func() bool { return a.Do("GET", "/sbds/a", "").Status == 200 })
}

// Whoever calls, and however the archive knows them, they are told when to come back,
// and no other caller is held up by them.
func TestEachKindOfCallerIsLimited(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens")
	ada := newToken(t, file, auth.Token{Name: "ada", Role: auth.Reader})
	bo := newToken(t, file, auth.Token{Name: "bo", Role: auth.Reader})
	room := newToken(t, file, auth.Token{Name: "control room", Role: auth.Reader, MayNameUser: true})
	proxied := func(cfg *app.Config) { cfg.Auth.Proxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")} }
	user := func(name string, more ...string) []string {
		return append([]string{"X-Forwarded-User", name, "X-Forwarded-Groups", "oda-reader"}, more...)
	}
	from := func(address string) []string { return []string{"X-Forwarded-For", address} }
	for name, test := range map[string]struct {
		configure    func(*app.Config)
		many, others []string // who sends too much, and who does not
	}{
		"a token":                             {tokensOf(file), ada, bo},
		"a token that names users":            {tokensOf(file), append(room, "X-Forwarded-User", "x"), ada},
		"a user of a proxy":                   {proxied, user("ada"), user("bo")},
		"an address behind a proxy":           {proxied, from("192.0.2.1"), from("192.0.2.2")},
		"a stranger with a bad token":         {tokensOf(file), []string{"Authorization", "Bearer " + auth.Prefix + "x"}, ada},
		"a stranger without a token":          {tokensOf(file), nil, ada},
		"a stranger in a network of IPv6":     {proxied, from("2001:db8::1"), from("2001:db8:0:1::1")},
		"a user of a proxy, from anywhere":    {proxied, user("ada", from("192.0.2.1")...), user("bo", from("192.0.2.1")...)},
		"a token beside the header of a user": {tokensOf(file), append(ada, "X-Forwarded-User", "bo"), bo},
	} {
		a := env.Start(t, test.configure, func(cfg *app.Config) { cfg.Limits.Rate = .5 })
		r := a.Do("GET", "/guide", "", test.many...)
		good := r.Status
		for n := 0; r.Status != 429; n++ {
			if n > 20 {
				t.Fatalf("%s: still answered %d", name, r.Status)
			}
			r = a.Do("GET", "/guide", "", test.many...)
		}
		refused(t, r, 429, oda.RateLimited, "0.5 requests per second")
		if seconds, err := strconv.Atoi(r.Header.Get("Retry-After")); err != nil || seconds < 1 || seconds > 2 {
			t.Errorf("%s: Retry-After is %q", name, r.Header.Get("Retry-After"))
		}
		if got := a.Do("GET", "/guide", "", test.others...).Status; got == 429 {
			t.Errorf("%s: another caller is answered %d", name, got)
		}
		if want := map[bool]int{true: 200, false: 401}[!strings.Contains(name, "stranger") && !strings.Contains(name, "address")]; good != want {
			t.Errorf("%s: the first request is answered %d", name, good)
		}
	}
}

// Streams count too, until they end.
func TestACallerHasAFewRequestsInProgress(t *testing.T) {
	a := env.Start(t, func(cfg *app.Config) { cfg.Limits.Concurrent = 2 })
	stream := a.Events("/changes")
	waiting := make(chan *env.Reply, 1)
	go func() { waiting <- a.Do("GET", "/changes?wait=60", "") }()
	a.AwaitFollowers(2)
	refused(t, a.Do("PUT", "/sbds/a", `{}`), 429, oda.RateLimited, "2 requests of yours are in progress")
	stream.Close()
	env.Await(t, "the stream no longer counts", func() bool { return a.Do("PUT", "/sbds/a", `{}`).Status == 200 })
	want(t, 200, <-waiting)
}

func TestWebPagesOfOtherOrigins(t *testing.T) {
	const origin, other = "https://tools.example.org", "https://elsewhere.example.org"
	// The API description does not have what browsers ask for themselves.
	preflight := func(a *env.Archive, from string) *env.Reply {
		request := must.Get(http.NewRequest("OPTIONS", a.URL()+"/sbds/a", nil))(t)
		request.Header = http.Header{"Origin": {from}, "Access-Control-Request-Method": {"PUT"}}
		response := must.Get(http.DefaultTransport.RoundTrip(request))(t)
		r := must.Get(env.Read(response))(t)
		return r
	}
	allowed := func(r *env.Reply) string { return r.Header.Get("Access-Control-Allow-Origin") }

	t.Run("none by default", func(t *testing.T) {
		a := env.Start(t)
		store(t, a, "/sbds/a", `{}`)
		want(t, 405, preflight(a, origin))
		if r := a.Do("GET", "/sbds/a", "", "Origin", origin); allowed(r) != "" || strings.Contains(r.Header.Get("Vary"), "Origin") {
			t.Errorf("the answer has %v", r.Header)
		}
	})
	t.Run("named", func(t *testing.T) {
		a := env.Start(t, func(cfg *app.Config) { cfg.Origins = []string{origin} })
		r := want(t, 204, preflight(a, origin))
		if allowed(r) != origin || !strings.Contains(r.Header.Get("Access-Control-Allow-Methods"), "PUT") ||
			!strings.Contains(r.Header.Get("Access-Control-Allow-Headers"), "Authorization") || r.Header.Get("Access-Control-Allow-Credentials") != "" {
			t.Errorf("the browser is told %v", r.Header)
		}
		for _, name := range describedHeaders(t) {
			if !slices.Contains(strings.Split(r.Header.Get("Access-Control-Allow-Headers"), ", "), name) {
				t.Errorf("the browser is not told that a page may send %s", name)
			}
		}
		r = want(t, 200, a.Do("PUT", "/sbds/a", `{}`, "Origin", origin, "Sec-Fetch-Site", "cross-site"))
		if allowed(r) != origin || !strings.Contains(r.Header.Get("Access-Control-Expose-Headers"), "ETag") || !strings.Contains(r.Header.Get("Vary"), "Origin") {
			t.Errorf("the answer has %v", r.Header)
		}
		// A refusal can be read too.
		if r := want(t, 404, a.Do("GET", "/sbds/none", "", "Origin", origin)); allowed(r) != origin {
			t.Errorf("the problem has %v", r.Header)
		}
		want(t, 405, preflight(a, other))
		refused(t, a.Do("PUT", "/sbds/b", `{}`, "Origin", other, "Sec-Fetch-Site", "cross-site"), 403, oda.CrossOrigin)
		if r := a.Do("GET", "/sbds/a", "", "Origin", other); allowed(r) != "" || !strings.Contains(r.Header.Get("Vary"), "Origin") {
			t.Errorf("another origin gets %v", r.Header)
		}
		events := a.Events("/changes", "Origin", origin)
		if got := events.Response.Header.Get("Access-Control-Allow-Origin"); got != origin {
			t.Errorf("a stream has %v", events.Response.Header)
		}
		events.Close()
	})
	t.Run("any may read", func(t *testing.T) {
		a := env.Start(t, func(cfg *app.Config) { cfg.Origins = []string{"*"} })
		store(t, a, "/sbds/a", `{}`)
		if r := want(t, 204, preflight(a, other)); r.Header.Get("Access-Control-Allow-Methods") != "GET, HEAD" {
			t.Errorf("the browser is told %v", r.Header)
		}
		if r := want(t, 200, a.Do("GET", "/sbds/a", "", "Origin", other)); allowed(r) != other {
			t.Errorf("the answer has %v", r.Header)
		}
		refused(t, a.Do("PUT", "/sbds/a", `{}`, "Origin", other, "Sec-Fetch-Site", "cross-site"), 403, oda.CrossOrigin)
	})
}

// describedHeaders returns the headers that the API description lets callers send.
func describedHeaders(t *testing.T) []string {
	t.Helper()
	description := must.Get(openapi3.NewLoader().LoadFromData(api.JSON()))(t)
	var names []string
	for _, p := range description.Components.Parameters {
		if p.Value.In == "header" {
			names = append(names, p.Value.Name)
		}
	}
	if len(names) < 5 {
		t.Fatalf("the description has only the headers %v", names)
	}
	return names
}

func TestPagesAreProtected(t *testing.T) {
	a, client := secured(t, func(*app.Config) {})
	for path, hsts := range map[string]string{"/": "max-age=31536000", "/ebs": "max-age=31536000", "/nothing": "max-age=31536000", "/api/v1/ui": "max-age=31536000", "/api/v1/sbds/a": ""} {
		request := must.Get(http.NewRequest("GET", "https://"+a.Addr()+path, nil))(t)
		request.Header.Set("Accept", "text/html")
		response := must.Get(client.Do(request))(t)
		response.Body.Close()
		h := response.Header
		if got := h.Get("Strict-Transport-Security"); got != hsts {
			t.Errorf("%s: Strict-Transport-Security is %q", path, got)
		}
		if hsts == "" {
			continue
		}
		if h.Get("X-Frame-Options") != "DENY" || h.Get("Cross-Origin-Opener-Policy") != "same-origin" || h.Get("X-Content-Type-Options") != "nosniff" ||
			!strings.Contains(h.Get("Content-Security-Policy"), "frame-ancestors 'none'") || h.Get("Referrer-Policy") != "same-origin" {
			t.Errorf("%s has %v", path, h)
		}
	}
	plain := env.Start(t)
	if r := plain.Do("GET", plain.Origin()+"/", ""); r.Header.Get("Strict-Transport-Security") != "" {
		t.Error("a page without TLS asks for HTTPS")
	}
}
