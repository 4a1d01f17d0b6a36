package httpapi_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"oda"
	"oda/internal/app"
	"oda/internal/test/env"
	"oda/internal/test/must"
)

func TestUnknownPaths(t *testing.T) {
	a := env.Start(t)
	unchanged(t, a, func() {
		for _, path := range []string{
			"/nothing", "/sbd", "/SBDS", "/sbds/", "/sbds/a/", "/sbds/a/b", "/ebs/a/request_response/",
			"/ui/a/b", "/openapi", "/openapi.json/", a.Origin() + "/api", a.Origin() + "/api/", a.Origin() + "/api/v2/sbds",
			a.Origin() + "/sbd", a.Origin() + "/sbds/a/b", a.Origin() + "/livez/", a.Origin() + "/favicon.ico", a.Origin() + "/debug/pprof/", a.Origin() + "/metrics/", a.URL() + "/metrics",
		} {
			for _, method := range []string{"GET", "PUT", "POST", "PATCH", "DELETE"} {
				if path == "/sbds/" && method == "PUT" {
					continue // an empty identifier
				}
				refused(t, a.Do(method, path, ""), 404, oda.NoSuchPath, "api/v1/")
			}
		}
		for _, kind := range oda.Kinds {
			refused(t, a.Do("PUT", "/"+kind.Collection()+"/", `{}`), 400, oda.InvalidIdentifier, "has no identifier")
		}
	})
}

func TestMethodsThatAPathDoesNotSupport(t *testing.T) {
	a := env.Start(t)
	store(t, a, "/ebs/a", `{}`)
	for _, test := range []struct{ path, allow string }{
		{"/", "GET, HEAD, PUT"},
		{"", "GET, HEAD, PUT"},
		{"/sbds", "GET, HEAD, POST"},
		{"/sbis", "GET, HEAD, POST"},
		{"/ebs", "GET, HEAD, POST"},
		{"/prjs", "GET, HEAD, POST"},
		{"/sbds/a", "GET, HEAD, PUT"},
		{"/ebs/a", "GET, HEAD, PUT"},
		{"/ebs/a/request_response", "PATCH, POST"},
		{"/ui", "GET, HEAD"},
		{"/ui/", "GET, HEAD"},
		{"/ui/ui.css", "GET, HEAD"},
		{"/openapi.json", "GET, HEAD"},
		{"/openapi.yaml", "GET, HEAD"},
		{a.Origin() + "/", "GET, HEAD"},
		{a.Origin() + "/sbds", "GET, HEAD"},
		{a.Origin() + "/sbds/a", "GET, HEAD"},
		{a.Origin() + "/livez", "GET, HEAD"},
		{a.Origin() + "/readyz", "GET, HEAD"},
		{a.Origin() + "/metrics", "GET, HEAD"},
	} {
		t.Run(test.path, func(t *testing.T) {
			unchanged(t, a, func() {
				for _, method := range []string{"GET", "HEAD", "PUT", "POST", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND", "get"} {
					if strings.Contains(", "+test.allow+",", ", "+method+",") {
						continue
					}
					r := want(t, 405, a.Do(method, test.path, ""))
					if got := r.Header.Get("Allow"); got != test.allow {
						t.Errorf("%s: Allow is %q, want %q", method, got, test.allow)
					}
					if method != "HEAD" {
						refused(t, r, 405, oda.WrongMethod, method, test.allow)
					}
				}
			})
		})
	}
}

// No block can have the identifier "create", so reading or storing it never
// succeeds, and Allow does not list GET or PUT.
func TestAllowOfEmptyBlocks(t *testing.T) {
	a := env.Start(t)
	for _, method := range []string{"DELETE", "PATCH", "OPTIONS"} {
		r := a.Do(method, "/ebs/create", "")
		refused(t, r, 405, oda.WrongMethod, "It supports: POST.")
		if got := r.Header.Get("Allow"); got != "POST" {
			t.Errorf("%s: Allow is %q", method, got)
		}
	}
	refused(t, a.Do("GET", "/ebs/create", ""), 404, oda.NotFound, "could not be found")
	refused(t, a.Do("PUT", "/ebs/create", `{}`), 400, oda.InvalidIdentifier)
}

// These requests have no path, or one that is not in normal form.
func TestTargetsThatAreNotPaths(t *testing.T) {
	a := env.Start(t, func(cfg *app.Config) { cfg.BasePath = "/deep/namespace" })
	send := func(line string) *env.Reply {
		return raw(t, a, line+" HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")
	}
	const methods = "DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT"
	r := want(t, 200, send("OPTIONS *"))
	if r.Header.Get("Allow") != methods || len(r.Raw) != 0 {
		t.Errorf("OPTIONS * is answered %v %q", r.Header, r.Raw)
	}
	r = send("CONNECT elsewhere.example:443")
	refused(t, r, 405, oda.WrongMethod, "not a proxy")
	if r.Header.Get("Allow") != methods {
		t.Errorf("CONNECT is answered %v", r.Header)
	}
	refused(t, send("GET *"), 400, oda.InvalidRequest, "OPTIONS only")
	refused(t, send("DELETE *"), 400, oda.InvalidRequest, "OPTIONS only")
	const root = "/deep/namespace/api/v1"
	for _, method := range []string{"GET", "PUT", "POST", "PATCH", "DELETE", "OPTIONS"} {
		for _, path := range []string{root + "/sbds/../sbds/a", root + "/sbds/./a", root + "//sbds/../sbds//a", root + "//..//v1/sbds/a", "//"} {
			refused(t, send(method+" "+path), 404, oda.NoSuchPath, "is at "+root+"/ ", root+"/openapi.json")
		}
	}
	for _, id := range []string{".", ".."} { // a client may use them as identifiers
		refused(t, send("PUT "+root+"/sbds/"+id), 400, oda.InvalidIdentifier)
		refused(t, send("GET "+root+"/sbds/"+id), 404, oda.NoSuchPath)
	}
	// Escaped, they are part of an identifier, though an invalid one.
	for _, id := range []string{"a%2F%2Fb", "%2e%2e", "%2e", "a%2F..%2Fb"} {
		refused(t, send("PUT "+root+"/sbds/"+id), 400, oda.InvalidIdentifier)
		refused(t, send("GET "+root+"/sbds/"+id), 404, oda.NotFound, "could not be found")
	}
	// As a client sends it to a proxy.
	want(t, 404, send("GET http://archive"))
	want(t, 307, send("GET http://archive"+root))
}

// A client that writes a path with a slash after an address that ends in one reaches
// the same resource, and a write is not redirected.
func TestSlashesThatFollowOneAnother(t *testing.T) {
	for _, base := range []string{"", "/deep/namespace"} {
		t.Run(base, func(t *testing.T) {
			a := env.Start(t, func(cfg *app.Config) { cfg.BasePath = base })
			root := base + "/api/v1"
			send := func(line, body string) *env.Reply {
				return raw(t, a, fmt.Sprintf("%s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", line, len(body), body))
			}
			for _, path := range []string{root + "//sbds/a", root + "/sbds//b", "/" + root + "/sbds/c", "////" + root + "////sbds////d"} {
				stored := want(t, 200, send("PUT "+path, `{}`))
				id := path[len(path)-1:]
				for _, path := range []string{path, root + "/sbds/" + id} {
					if got := want(t, 200, send("GET "+path, "")); got.Text() != stored.Text() {
						t.Errorf("GET %s answers %s, want %s", path, got.Body, stored.Body)
					}
				}
				refused(t, send("DELETE "+path, ""), 405, oda.WrongMethod, "It supports: GET, HEAD, PUT.")
			}
			block := want(t, 200, send("POST "+root+"//ebs/create", "")).Header.Get("ETag")
			if block == "" {
				t.Error("a block was not created")
			}
			store(t, a, "/ebs/eb", `{}`)
			want(t, 200, send("PATCH "+root+"//ebs//eb//request_response", `{"request":"observe"}`))
			want(t, 200, send("PUT "+root+"//", `{"sbds":[]}`))
			want(t, 200, send("GET "+root+"//sbds?created_after=1970-01-01", ""))
			for _, probe := range []string{"//livez", "//readyz", "/" + base + "//livez"} {
				want(t, 200, send("GET "+probe, ""))
			}
			refused(t, send("PUT "+root+"/sbds//", `{}`), 400, oda.InvalidIdentifier, "has no identifier")
			refused(t, send("PUT "+root+"/sbds//..", `{}`), 400, oda.InvalidIdentifier)
			refused(t, send("PUT "+root+"//sbds/a%2F%2Fb", `{}`), 400, oda.InvalidIdentifier)
			// The identifier is missing, and what follows is taken for it.
			unchanged(t, a, func() {
				refused(t, send("POST "+root+"/ebs//request_response", `{"request":"observe"}`), 405, oda.WrongMethod)
				refused(t, send("POST "+root+"/ebs//request_responses", `{"records":[]}`), 405, oda.WrongMethod)
				refused(t, send("GET "+root+"/sbds//versions", ""), 404, oda.NotFound)
			})
		})
	}
}

// The links of a page are relative, so a browser is led to its address with single
// slashes, by a path that leads to no other host.
func TestSlashesThatFollowOneAnotherInTheAddressOfAPage(t *testing.T) {
	a := env.Start(t, func(cfg *app.Config) { cfg.BasePath = "/ns" })
	store(t, a, "/sbds/a", `{}`)
	for from, to := range map[string]string{
		"//ns/":             "/ns/",
		"/ns//":             "/ns/",
		"/ns//sbds//a":      "/ns/sbds/a",
		"//ns///sbds?q=a":   "/ns/sbds?q=a",
		"/ns/api/v1//guide": "/ns/api/v1/guide",
		"//ns//api//v1//":   "/ns/api/v1/",
	} {
		r := want(t, 307, raw(t, a, "GET "+from+" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"))
		at := must.Get(url.Parse("http://x" + from))(t)
		if got, err := at.Parse(r.Header.Get("Location")); err != nil || got.String() != "http://x"+to {
			t.Errorf("%s leads to %v, want %s (%v)", from, got, to, err)
		}
		want(t, 200, a.Do("GET", a.Origin()+to, ""))
	}
	for _, path := range []string{"//elsewhere.example", "//elsewhere.example/..", "///elsewhere.example//"} {
		refused(t, raw(t, a, "GET "+path+" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"), 404, oda.NoSuchPath)
	}
}

// Tricks with paths reach nothing. They are sent as raw bytes, because HTTP
// clients would clean the paths.
func TestPathTricks(t *testing.T) {
	a := env.Start(t)
	store(t, a, "/sbds/a", `{}`)
	store(t, a, "/ebs/a", `{}`)
	for _, path := range []string{
		"/api/v1/../v1/sbds/a", "/api/v1/./sbds/a", "/api/v1/sbds/../sbds/a", "/api/v1//./sbds/a", "//api/v1/../v1/sbds/a", "/api/v1/sbds//../sbds//a",
		"/api/v1/%2e%2e/v1/sbds/a", "/api/v1/%2E/sbds/a", "/api/v1/sbds/%2e%2e", "/api/v1/sbds/..", "/api/v1/sbds/.", "/api/v1/sbds/%2e%2e%2fsbds%2fa",
		"/api/v1/sbds%2Fa", "/api/v1/sbds/..%2fsbds%2fa", "/api/v1/sbds/a%2f..%2fa", "/api/v1/sbds/%2Fa", "/api/v1/sbds/a%2F", "/api/v1/sbds/a%00", "/api/v1/sbds/%00",
		"/api/v1/sbds/a%5c..", "/api/v1/sbds/a%ff", "/api/v1/sbds/a;b", "/api/v1/sbds/%61%20", "/api/v1/ui/..%2f..%2fetc%2fpasswd", "/api/v1/ui/%2e%2e",
		"/api/v1/ui/..", "/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/..", "/.", "/api/v1/ebs/create/", "/api/v1/ebs/a%2Frequest_response",
		"/api/v1/ebs/a/request_response/..", "/api/v1/sbds/" + strings.Repeat("a", 20_000), "/api/v1/" + strings.Repeat("../", 5_000),
	} {
		name := path[:min(len(path), 60)]
		t.Run(name, func(t *testing.T) {
			unchanged(t, a, func() {
				for _, method := range []string{"GET", "PUT", "POST", "PATCH", "DELETE"} {
					r := raw(t, a, method+" "+path+" HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 15\r\nConnection: close\r\n\r\n{\"request\":\"x\"}")
					switch {
					case r.Status == 404, r.Status == 405 && r.Header.Get("Allow") != "", r.Status == 400:
					default:
						t.Errorf("%s is answered %d %v %.200s", method, r.Status, r.Header, r.Body)
					}
					if strings.Contains(r.Text(), "root:") || strings.Contains(r.Text(), `"metadata"`) {
						t.Errorf("%s reaches something: %.200s", method, r.Body)
					}
				}
			})
		})
	}
}

// An identifier may be escaped; it is still the same identifier.
func TestEscapedIdentifier(t *testing.T) {
	a := env.Start(t)
	store(t, a, "/sbds/ab", `{}`)
	r := raw(t, a, "GET /api/v1/sbds/%61%62 HTTP/1.1\r\nHost: x\r\n\r\n")
	if want(t, 200, r).Text() != a.Do("GET", "/sbds/ab", "").Text() {
		t.Errorf("the answer is %s", r.Body)
	}
}

// A browser page of another origin may read, but never write.
func TestOtherOrigins(t *testing.T) {
	a := env.Start(t)
	store(t, a, "/ebs/eb", `{}`)
	host := a.Addr()
	for _, test := range []struct {
		name    string
		headers []string
		allowed bool
	}{
		{"a program", nil, true},
		{"a page of this archive", []string{"Sec-Fetch-Site", "same-origin", "Origin", "http://" + host}, true},
		{"a page of this archive in an older browser", []string{"Origin", "http://" + host}, true},
		{"the address bar", []string{"Sec-Fetch-Site", "none"}, true},
		{"a page of another site", []string{"Sec-Fetch-Site", "cross-site", "Origin", "http://evil.example"}, false},
		{"a page of the same site", []string{"Sec-Fetch-Site", "same-site", "Origin", "http://other." + host}, false},
		{"a page of another site in an older browser", []string{"Origin", "http://evil.example"}, false},
		{"a page of another port", []string{"Origin", "http://127.0.0.1:1"}, false},
		{"a page without an origin", []string{"Origin", "null"}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, place := range append(keyed[:len(keyed):len(keyed)], struct{ name, method, path, body, other string }{"", "PUT", "/", `{"sbds":[]}`, ""}) {
				if test.allowed {
					want(t, 200, a.Do(place.method, place.path, place.body, test.headers...))
					continue
				}
				unchanged(t, a, func() {
					refused(t, a.Do(place.method, place.path, place.body, test.headers...), 403, oda.CrossOrigin, "another origin")
				})
			}
			for _, path := range []string{"/", "/ebs/eb", "/ebs?" + everything, "/openapi.json"} {
				want(t, 200, a.Do("GET", path, "", test.headers...))
			}
		})
	}
}

// A problem and the log do not grow with the method that they repeat.
func TestALongMethod(t *testing.T) {
	a := env.Start(t)
	r := a.Do(strings.Repeat("X", 9000), "/sbds/n", "")
	refused(t, r, 405, oda.WrongMethod, "XXX", "It supports: GET, HEAD, PUT.")
	if len(r.Body) > 1000 {
		t.Errorf("the problem has %d bytes", len(r.Body))
	}
	if method := a.Logged(r.Header.Get("X-Request-Id"))["method"].(string); len(method) > 100 {
		t.Errorf("the log has a method of %d bytes", len(method))
	}
}
