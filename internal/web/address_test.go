package web_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"oda"
)

// The search box takes what people have in their clipboard.
func TestTheSearchBoxUnderstandsWhatPeoplePaste(t *testing.T) {
	s := emptySite(t)
	s.store(t, "/sbds/sbd-1", `{"name":"First","telescope":"ska_mid","targets":[{"name":"J0918-1205","ra":139.5,"dec":-12.1}]}`, `{"name":"Second"}`)
	s.storeCalls(t, "eb-1", []string{callIn("m.f", 0, 1, false)})
	for text, want := range map[string]string{
		"eb-1":                             "ebs/eb-1",
		" eb-1 ":                           "ebs/eb-1",
		"sbd-1@1":                          "sbds/sbd-1?version=1",
		"sbds/sbd-1@2":                     "sbds/sbd-1?version=2",
		s.base + "/ebs/eb-1":               "ebs/eb-1",
		s.base + "/sbds/sbd-1/?":           "sbds/sbd-1",
		"/ebs/eb-1?call=1#timeline":        "ebs/eb-1?call=1#timeline",
		"https://archive.example/ebs/eb-1": "ebs/eb-1",
		"archive.example:8080/ns/x/sbds/sbd-1?version=1":        "sbds/sbd-1?version=1",
		"/sbds/sbd-1?at=2026-01-31 18:00":                       "sbds/sbd-1?at=2026-01-31+18%3A00",
		s.URL() + "/sbds/sbd-1":                                 "sbds/sbd-1",
		s.URL() + "/sbds/sbd-1/versions/2":                      "sbds/sbd-1?version=2",
		s.URL() + "/sbds/sbd-1?at=2026-01-31T18:00:00Z&pretty":  "sbds/sbd-1?at=2026-01-31T18%3A00%3A00Z",
		s.URL() + "/ebs/eb-1/request_responses?after=1&limit=1": "ebs/eb-1",
		s.URL() + "/ebs/search?telescope=ska_mid":               "ebs?telescope=ska_mid",
		s.URL() + "/night?date=2026-03-01":                      "night?date=2026-03-01",
		s.base + "/ebs?telescope=ska_mid":                       "ebs?telescope=ska_mid",
		"/ebs":                                                  "ebs",
		s.base + "/changes?kind=ebs":                            "changes?kind=ebs",
		"/prjs/prj-not-there":                                   "prjs/prj-not-there",
		"2026-03-01":                                            "night?date=2026-03-01",
		"2026-03-02T03:00:00Z":                                  "calls?at=2026-03-02T03%3A00%3A00Z",
		"2026-03-02 13:00":                                      "calls?at=2026-03-02T13%3A00%3A00Z",
		"2026-03-02T15:00:00+02:00":                             "calls?at=2026-03-02T13%3A00%3A00Z",
		s.URL() + "/calls?outcome=failed&error=E":               "calls?error=E&outcome=failed",
		"13:25:27.6 -43:01:08.8":                                "sbds?cone=201.365,-43.019111,1",
		"13:25:27.6 -43:01:08.8 30'":                            "sbds?cone=201.365,-43.019111,0.5",
		"//evil.example/ebs/eb-1":                               "ebs/eb-1",
		"javascript:alert(1)/ebs/e 1":                           "",
		"someone@example.org":                                   "",
		"day/night":                                             "",
		"night":                                                 "",
		"@":                                                     "", "/": "", "?": "", "#": "", "%": "", "%%/%zz?%&#%": "",
	} {
		reply := s.get(t, "search?q="+url.QueryEscape(text))
		if got := strings.TrimPrefix(reply.Header.Get("Location"), "./"); got != want || want == "" && reply.Status != http.StatusOK {
			t.Errorf("%q leads to %q with %d, want %q", text, got, reply.Status, want)
		}
	}

	for text, want := range map[string][]string{
		"ska_mid":        {"ExecutionBlocks of this telescope", "eb-1"},
		"SKA-Mid":        {"ExecutionBlocks of this telescope", "eb-1"},
		"PKS J0918-1205": {`href="sbds?cone=139.5,-12.083333,1"`, "09h 18m 00.0s, −12° 05′ 00.0″"},
	} {
		s.says(t, "search?q="+url.QueryEscape(text), want...)
	}
	// A name with a position in it is a name first.
	s.store(t, "/sbds/sbd-2", `{"name":"J0918-1205 again"}`)
	s.says(t, "search?q=J0918-1205", "sbds/sbd-2", "cone=")
}

// Whatever stands where the identifier should, an address leads to no other host.
func TestAnOddIdentifierLeadsToNoOtherHost(t *testing.T) {
	s := emptySite(t)
	for _, kind := range oda.Kinds {
		for _, id := range []string{"%2F%2Fevil.example", "https:%2F%2Fevil.example%2Fa", "javascript:alert(1)", "%5C%5Cevil.example", "%09%2F%2Fevil.example", "%2E%2F%2Fevil.example", "a%3Fb", "eb-1"} {
			for _, query := range []string{"?x=", "?sort=-created"} {
				at := mustParse(t, s.base+"/"+kind.Collection()+"/"+id)
				reply := s.get(t, kind.Collection()+"/"+id+query)
				location := reply.Header.Get("Location")
				to, err := at.Parse(location)
				if reply.Status != http.StatusSeeOther || err != nil || to.Host != at.Host || to.Path != at.Path || !strings.HasPrefix(location, "./") {
					t.Errorf("%s%s answers %d and leads to %q (%v)", at, query, reply.Status, location, err)
				}
			}
		}
	}
}

// A very long text in the search box does not fill the page, which names it only.
func TestALongSearchIsNamedBriefly(t *testing.T) {
	s := emptySite(t)
	page := s.get(t, "search?q="+strings.Repeat("endless", 400)).Text()
	for _, part := range []string{"title", "h1"} {
		_, name, _ := strings.Cut(page, "<"+part+">")
		if name, _, _ = strings.Cut(name, "</"+part+">"); len(name) > 200 || !strings.HasPrefix(name, "Search: endless") {
			t.Errorf("its %s has %d bytes: %.100s", part, len(name), name)
		}
	}
}
