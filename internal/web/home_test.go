package web

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"oda"
	"oda/internal/test/must"
)

func TestTheExamplesUseTheAddressOfTheRequest(t *testing.T) {
	tests := map[string]struct {
		host, path, forwardedProto string
		tls                        bool
		want                       string
	}{
		"a host with a port":              {host: "archive.example:8443", want: "http://archive.example:8443/api/v1"},
		"a host without a port":           {host: "archive.example", want: "http://archive.example/api/v1"},
		"an IPv6 address":                 {host: "[2001:db8::1]:8080", want: "http://[2001:db8::1]:8080/api/v1"},
		"under a base path":               {host: "h", path: "/ns/oda/api/v1/", want: "http://h/ns/oda/api/v1"},
		"over TLS":                        {host: "h", tls: true, want: "https://h/api/v1"},
		"behind a proxy that ends TLS":    {host: "h", forwardedProto: "https", want: "https://h/api/v1"},
		"behind two proxies":              {host: "h", forwardedProto: "https, http", want: "https://h/api/v1"},
		"a proxy with another scheme":     {host: "h", forwardedProto: "javascript", want: "http://h/api/v1"},
		"no host":                         {host: "", want: "http://127.0.0.1:8080/api/v1"},
		"a host with markup":              {host: `"><script>alert(1)</script>`, want: "http://127.0.0.1:8080/api/v1"},
		"a host with a shell command":     {host: "h$(reboot)", want: "http://127.0.0.1:8080/api/v1"},
		"a host with a user":              {host: "h@evil", want: "http://127.0.0.1:8080/api/v1"},
		"a host with a path":              {host: "h/evil", want: "http://127.0.0.1:8080/api/v1"},
		"a very long host":                {host: strings.Repeat("a", 5000), want: "http://127.0.0.1:8080/api/v1"},
		"a port that is not a number":     {host: "h:80;reboot", want: "http://127.0.0.1:8080/api/v1"},
		"a host with a line break":        {host: "h\nreboot", want: "http://127.0.0.1:8080/api/v1"},
		"a base path with shell commands": {host: "h", path: "/$(reboot)/api/v1/", want: "http://h/api/v1"},
	}
	site := emptySite(t)
	address := regexp.MustCompile(`<span data-api>(.*?)</span>`)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodGet, "/api/v1/", nil)
			r.Host = test.host
			if test.path != "" {
				r.URL.Path = test.path
			}
			if test.forwardedProto != "" {
				r.Header.Set("X-Forwarded-Proto", test.forwardedProto)
			}
			if test.tls {
				r.TLS = &tls.ConnectionState{}
			}
			w := httptest.NewRecorder()
			must.Do(t, site.Home(w, r))
			found := address.FindAllStringSubmatch(w.Body.String(), -1)
			if len(found) != 4 {
				t.Fatalf("the page shows the address in %d places, want 4", len(found))
			}
			for _, f := range found {
				if f[1] != test.want {
					t.Errorf("an example has %q, want %q", f[1], test.want)
				}
			}
		})
	}
}

func TestTheHomePageShowsVersionAndEngine(t *testing.T) {
	page := homePage(t, emptySite(t))
	if want := "Version 1.2.3&lt;b&gt;, engine sqlite"; !strings.Contains(page, want) {
		t.Errorf("the footer does not say %q", want)
	}
}

// A link that begins with a slash or a host breaks behind a proxy that strips
// a prefix.
func TestEveryLinkIsRelative(t *testing.T) {
	site := emptySite(t)
	w := httptest.NewRecorder()
	must.Do(t, site.UI(w, httptest.NewRequest(http.MethodGet, "/api/v1/ui", nil)))
	link := regexp.MustCompile(`(?:href|src)="([^"]*)"`)
	for name, page := range map[string]string{"home": homePage(t, site), "ui": w.Body.String()} {
		links := link.FindAllStringSubmatch(page, -1)
		if len(links) < 5 {
			t.Errorf("the page %s has only %d links", name, len(links))
		}
		for _, l := range links {
			if strings.HasPrefix(l[1], "/") || strings.Contains(l[1], ":") {
				t.Errorf("the page %s has the link %q, which is not relative", name, l[1])
			}
		}
	}
}

func TestACardShowsTheCountOfItsKind(t *testing.T) {
	all := cards(map[oda.Kind]int64{oda.SBDefinition: 1234567, oda.SBInstance: 1, oda.ExecutionBlock: 45678})
	for i, want := range []string{"1\u202f234\u202f567 SBDefinitions", "1 SBInstance", "45\u202f678 ExecutionBlocks", "0 Projects"} {
		if got := all[i].Count + " " + all[i].Name; got != want {
			t.Errorf("card %d shows %q, want %q", i, got, want)
		}
	}
}

func TestThousandsAreSeparated(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0", 999: "999", 1000: "1\u202f000", 45678: "45\u202f678", 1234567: "1\u202f234\u202f567",
	} {
		if got := thousands(n); got != want {
			t.Errorf("thousands(%d) = %q, want %q", n, got, want)
		}
	}
}

// homePage returns the home page as a browser on this machine gets it.
func homePage(t *testing.T, site *Site) string {
	t.Helper()
	w := httptest.NewRecorder()
	must.Do(t, site.Home(w, httptest.NewRequest(http.MethodGet, "/api/v1/", nil)))
	return w.Body.String()
}
