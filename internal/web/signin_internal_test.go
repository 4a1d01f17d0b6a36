package web

import (
	"net/url"
	"strings"
	"testing"

	"oda/internal/test/must"
)

// Whatever a link to the page to sign in says, it leads to a page of this archive.
func TestSigningInLeadsToNoOtherHost(t *testing.T) {
	from := must.Get(url.Parse("https://archive.example/ns/oda/sign-in"))(t)
	for to, want := range map[string]string{
		"":                             "/ns/oda/",
		"ebs/eb-1?view=calls&x=%2F#c3": "/ns/oda/ebs/eb-1?view=calls&x=%2F#c3",
		"search?q=a%20b":               "/ns/oda/search?q=a%20b",
		"https://evil.example/":        "",
		"//evil.example/":              "",
		`/\evil.example`:               "",
		`\\evil.example`:               "",
		"/\t/evil.example":             "",
		"javascript:alert(1)":          "",
		"../../../other":               "/ns/oda/",
		"a/%2e%2e/%2e%2e/%2e%2e/other": "/ns/oda/",
		"x\r\nSet-Cookie: a=b":         "/ns/oda/",
		strings.Repeat("long", 1000):   "/ns/oda/",
	} {
		back := here(here(to))
		at, err := from.Parse(back)
		if err != nil || at.Host != from.Host || at.Scheme != from.Scheme || !strings.HasPrefix(at.Path, "/ns/oda/") || !strings.HasPrefix(back, "./") {
			t.Errorf("%q leads to %q (%v)", to, back, err)
			continue
		}
		if want != "" && at.RequestURI()+map[bool]string{true: "#" + at.Fragment}[at.Fragment != ""] != want {
			t.Errorf("%q leads to %s, want %s", to, at, want)
		}
	}
}
