package search_test

import (
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oda"
	"oda/internal/test/must"
	"oda/search"
	"oda/sky"
)

// seek parses the raw query of a search.
func seek(t testing.TB, raw string) (search.Search, error) {
	t.Helper()
	params := must.Get(url.ParseQuery(raw))(t)
	return search.Parse(oda.SBDefinition, params)
}

func at(t testing.TB, text string) *oda.Instant {
	t.Helper()
	i := must.Get(oda.ParseTime(text))(t)
	return oda.SpanOf(i, i).After
}

func TestSearches(t *testing.T) {
	for _, test := range []struct {
		name, raw string
		want      search.Search
	}{
		{"nothing is everything", "", search.Search{}},
		{"a user", "user=mary", search.Search{User: "mary"}},
		{"a part of a user", "user=ar&user_match_type=contains", search.Search{User: "ar", Match: oda.UserContains}},
		{"the beginning of a user", "user_match_type=starts_with&user=m", search.Search{User: "m", Match: oda.UserStartsWith}},
		{
			"all times at once", "created_after=2026-01-01&created_before=2026-02-01+10:30&last_modified_after=2026-01-01T10:30:00+05:30&last_modified_before=2026-03-01",
			search.Search{
				Created:  oda.Span{After: at(t, "2026-01-01"), Before: at(t, "2026-02-01T10:30:00Z")},
				Modified: oda.Span{After: at(t, "2026-01-01T05:00:00Z"), Before: at(t, "2026-03-01")},
			},
		},
		{"a finer time is rounded into the range", "created_after=2026-02-01T00:00:00.0000001Z", search.Search{Created: oda.Span{After: at(t, "2026-02-01T00:00:00.000001Z")}}},
		{"a telescope", "telescope=ska_mid", search.Search{Telescope: "ska_mid"}},
		{"a reference", "ref=sbd-1", search.Search{Reference: "sbd-1"}},
		{"a reference with its version", "ref=sbd-1&ref_version=3", search.Search{Reference: "sbd-1", ReferenceVersion: 3}},
		{"words", "q=Centaurus+A,+CAL", search.Search{Words: "Centaurus A, CAL"}},
		{"a whole identifier", "q=eb-1j8w4r0q3t6m", search.Search{Words: "eb-1j8w4r0q3t6m"}},
		{"a cone", "cone=201.365,-43.019,0.5", search.Search{Cone: &sky.Cone{RA: 201.365, Dec: -43.019, Radius: 0.5}}},
		{
			"conditions", "where=" + url.QueryEscape(`/status = "x"`) + "&where=" + url.QueryEscape(`/n < 3`),
			search.Search{Where: []string{`/status = "x"`, `/n < 3`}},
		},
		{"an order", "sort=-modified", search.Search{Sort: oda.LastModifiedFirst}},
		{"the default order", "sort=-created", search.Search{}},
		{"what is wanted", "fields=document&limit=1000", search.Search{Fields: search.Documents, Limit: 1000}},
	} {
		got, err := seek(t, test.raw)
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		test.want.Kind = oda.SBDefinition
		if test.want.Limit == 0 {
			test.want.Limit = search.DefaultLimit
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: %s", test.name, diff)
		}
	}
}

func TestInvalidSearches(t *testing.T) {
	for _, test := range []struct{ raw, parameter, says string }{
		{"user=", "user", "is empty"},
		{"user=a&user=b", "user", "is given 2 times"},
		{"user=%ff", "user", "UTF-8"},
		{"user_match_type=equals", "user_match_type", "without user"},
		{"user=a&user_match_type=like", "user_match_type", "equals, starts_with or contains"},
		{"ref_version=1", "ref_version", "without ref"},
		{"ref=a&ref_version=0", "ref_version", "whole number"},
		{"ref=a&ref_version=x", "ref_version", "whole number"},
		{"ref=a&ref_version=99999999999999999999", "ref_version", "whole number"},
		{"ref=", "ref", "is empty"},
		{"telescope=", "telescope", "is empty"},
		{"telescope=a&telescope=b", "telescope", "is given 2 times"},
		{"telescope=" + strings.Repeat("x", 2000), "telescope", "longer than"},
		{"created_after=yesterday", "created_after", "not a valid time"},
		{"created_after=2026-01-01&last_modified_before=x", "last_modified_before", "not a valid time"}, // nothing is ignored
		{"q=", "q", "is empty"},
		{"q=%2D+_", "q", "no word"},
		{"cone=1,2", "cone", "three numbers"},
		{"cone=", "cone", "is empty"},
		{"where=", "where", "JSON pointer"},
		{"where=/a+%3D+b", "where", "double quotes"},
		{strings.Repeat("where=/a+%3D+1&", 17), "where", "at most 16"},
		{"where=/a+%3D+%22" + strings.Repeat("x", 5000) + "%22", "where", "longer than"},
		{"sort=name", "sort", "-created, created"},
		{"sort=", "sort", "is empty"},
		{"sort=id&sort=id", "sort", "is given 2 times"},
		{"fields=all", "fields", "summary, id, document"},
		{"limit=0", "limit", "from 1 to 1000"},
		{"limit=1001", "limit", "from 1 to 1000"},
		{"limit=ten", "limit", "from 1 to 1000"},
		{"cursor=", "cursor", "is empty"},
		{"cursor=x", "cursor", "is not a cursor"},
	} {
		got, err := seek(t, test.raw)
		e, _ := errors.AsType[*oda.Error](err)
		if e == nil || e.Code != oda.InvalidQuery || len(e.Faults) == 0 {
			t.Errorf("%.80s is read as %+v, %v", test.raw, got, err)
			continue
		}
		if e.Faults[0].Pointer != "query:"+test.parameter || !strings.Contains(e.Detail, test.says) {
			t.Errorf("%.80s: %q at %s does not say %q", test.raw, e.Detail, e.Faults[0].Pointer, test.says)
		}
	}
}

// everySearch lists a search with each filter, and one with all.
func everySearch() []string {
	all := []string{
		"user=m%22%C3%AB&user_match_type=contains", "created_after=2026-01-01&created_before=9999-12-31T23:59:59.9999999Z", "last_modified_before=0000-01-01T00:00%2B05:00",
		"telescope=ska_low", "ref=a%20b&ref_version=7", "q=%C8%BA%C8%BA+x", "cone=360,-90,0", "where=" + url.QueryEscape(`/a/*/~0~1 != {"<&>":[1e3,null]}`),
		"sort=id", "user=x",
	}
	return append(all, "", strings.Join(all[:9], "&"))
}

func TestACursorCarriesItsSearch(t *testing.T) {
	place := oda.Place{At: 1_700_000_000_000_001, ID: "sbd-1.x_Y"}
	for _, raw := range everySearch() {
		first, err := seek(t, raw+"&limit=7&fields=id")
		if err != nil {
			t.Fatalf("%s: %v", raw, err)
		}
		want := first
		want.Start = &place
		cursor := "cursor=" + first.Cursor(place)
		for _, with := range []string{cursor, raw + "&" + cursor, raw + "&limit=7&fields=id&" + cursor} {
			if got, err := seek(t, with); err != nil || !cmp.Equal(want, got) {
				t.Errorf("%s: %v, %s", with, err, cmp.Diff(want, got))
			}
		}
		// The limit and the fields may change from page to page.
		got, err := seek(t, cursor+"&limit=9&fields=document")
		if err != nil || got.Limit != 9 || got.Fields != search.Documents {
			t.Errorf("%s with another limit: %+v, %v", raw, got, err)
		}
	}
}

func TestACursorWithAnotherSearchIsRefused(t *testing.T) {
	for i, made := range everySearch() {
		q := must.Get(seek(t, made))(t)
		cursor := "cursor=" + q.Cursor(oda.Place{At: 1, ID: "x"})
		for j, sent := range everySearch() {
			_, err := seek(t, sent+"&"+cursor)
			if i != j && sent != "" && (oda.CodeOf(err) != oda.InvalidQuery || !strings.Contains(err.Error(), "another search")) {
				t.Errorf("a cursor of %q with %q: %v", made, sent, err)
			}
		}
		params := must.Get(url.ParseQuery(cursor))(t)
		if _, err := search.Parse(oda.Project, params); oda.CodeOf(err) != oda.InvalidQuery {
			t.Errorf("a cursor of another collection: %v", err)
		}
	}
}

func TestRubbishIsNotACursorOfASearch(t *testing.T) {
	listing := oda.Query{Kind: oda.SBDefinition, Order: oda.ByCreation, User: "mary"}
	place := oda.Place{At: 1, ID: "x"}
	all := []string{"x", "=", "!!!!", "eyJ9", " ", "\x00", "é", listing.Cursor(place)}
	for _, inside := range []oda.Cursor{
		{After: place},
		{Kind: oda.SBDefinition, Params: map[string][]string{"limit": {"50"}}, After: oda.Place{At: 1, ID: "../x"}},
	} {
		all = append(all, inside.String())
	}
	for _, params := range []string{
		"", "limit=0", "limit=1001", "limit=050", "limit=50&limit=50", "limit=50&other=1",
		"limit=50&user=a&user_match_type=like", "limit=50&user=a&user_match_type=equals", "limit=50&user_match_type=contains",
		"limit=50&ref_version=3", "limit=50&ref=a&ref_version=-3", "limit=50&q=-", "limit=50&q=", "limit=50&cone=361,0,1", "limit=50&cone=1.0,0,1",
		"limit=50&where=/a", "limit=50&sort=6", "limit=50&sort=-created", "limit=50&fields=all", "limit=50&fields=summary",
		"limit=50&created_after=x", "limit=50&created_after=2026-01-01", "limit=50&cursor=x",
	} {
		inside := must.Get(url.ParseQuery(params))(t)
		all = append(all, oda.Cursor{Kind: oda.SBDefinition, Params: inside, After: place}.String())
	}
	for _, text := range all {
		_, err := seek(t, "cursor="+url.QueryEscape(text))
		if oda.CodeOf(err) != oda.InvalidQuery || !strings.Contains(err.Error(), "is not a cursor of this archive") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// FuzzSearch parses any raw query. A search that is accepted is within its
// bounds, and its cursor, alone or with the search, asks for the same.
func FuzzSearch(f *testing.F) {
	for _, seed := range everySearch() {
		f.Add(seed)
		f.Add(seed + "&limit=3&fields=id&cursor=eyJ9")
	}
	f.Fuzz(func(t *testing.T, raw string) {
		params, err := url.ParseQuery(raw)
		if err != nil {
			return
		}
		q, err := search.Parse(oda.SBDefinition, params)
		if err != nil {
			if oda.CodeOf(err) != oda.InvalidQuery {
				t.Fatalf("%q: %v", raw, err)
			}
			return
		}
		if q.Limit < 1 || q.Limit > search.MaxLimit || q.User == "" && q.Match != oda.UserEquals || q.ReferenceVersion > 0 && q.Reference == "" {
			t.Fatalf("%q is read as %+v", raw, q)
		}
		want := q
		want.Start = &oda.Place{At: 1, ID: "sbd-1"}
		params.Set("cursor", q.Cursor(*want.Start))
		for _, with := range []map[string][]string{params, {"cursor": params["cursor"]}} {
			got, err := search.Parse(oda.SBDefinition, with)
			if err != nil || !cmp.Equal(want, got) {
				t.Fatalf("%q with its cursor is read as %+v, %v", raw, got, err)
			}
		}
	})
}
