package httpapi_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"oda"
	"oda/internal/test/env"
	"oda/internal/test/must"
)

// link parses the Link header of a page; nil if there is none. It must be
// relative, so that it works behind a proxy.
func link(t testing.TB, r *env.Reply) *url.URL {
	t.Helper()
	value := r.Header.Get("Link")
	if value == "" {
		return nil
	}
	target, ok := strings.CutSuffix(strings.TrimPrefix(value, "<"), `>; rel="next"`)
	u, err := url.Parse(target)
	if !ok || err != nil || u.IsAbs() || u.Host != "" || strings.HasPrefix(u.Path, "/") {
		t.Fatalf("the link is %q", value)
	}
	return u
}

// follow reads all pages as a client does that only follows links.
func follow(t testing.TB, a *env.Archive, path string) (ids []string, pages int) {
	t.Helper()
	at := must.Get(url.Parse(a.URL() + path))(t)
	for pages = 1; pages < 100; pages++ {
		r := want(t, http.StatusOK, a.Do("GET", at.String(), ""))
		ids = append(ids, identifiers(t, r)...)
		next := link(t, r)
		if next == nil {
			return ids, pages
		}
		at = at.ResolveReference(next)
	}
	t.Fatal("the pages do not end")
	return nil, 0
}

// How queries are read is tested with package oda, and what they list with the engines.
func TestListQueriesOnTheWire(t *testing.T) {
	a := env.Start(t)
	for _, id := range []string{"c", "a", "b"} {
		store(t, a, "/sbds/"+id, `{}`, user, "anna & co")
	}
	on := metadataOf(t, a.Do("GET", "/sbds/a", "").Body).modifiedOn(t).Add(ofClock(5, 30)).Format("2006-01-02T15:04:05.000000") + "+05:30"
	next := link(t, a.Do("GET", "/sbds?user=anna+%26+co&limit=1", ""))
	cursor := next.Query().Get("cursor")
	for query, want := range map[string][]string{
		"user=anna+%26%20co":                        {"c", "a", "b"},
		"user=%26&user_match_type=contains&limit=3": {"c", "a", "b"},
		"user=anna":           {},
		"created_after=" + on: {"a", "b"}, // the plus arrives as a space
		"created_before=" + url.QueryEscape(on) + "&limit=7":      {"c", "a"},
		"created_after=rubbish&user=anna+%26+co":                  {"c", "a", "b"},
		"cursor=" + cursor:                                        {"a", "b"},
		"limit=2&cursor=" + cursor:                                {"a", "b"},
		"user=anna+%26+co&created_after=rubbish&cursor=" + cursor: {"a", "b"},
	} {
		if got := list(t, a, "sbds", query); !slices.Equal(got, want) {
			t.Errorf("%s lists %v, want %v", query, got, want)
		}
	}
	if ids, pages := follow(t, a, "/sbds?user=anna+%26+co&limit=1"); !slices.Equal(ids, []string{"c", "a", "b"}) || pages != 3 {
		t.Errorf("by 1 there are %v on %d pages", ids, pages)
	}
	if got := a.Do("GET", "/sbds?user=nobody", "").Text(); got != "[]" {
		t.Errorf("no match is %s", got)
	}
	for code, queries := range map[oda.Code][]string{
		oda.InvalidRequest: { // whatever the rest of the query says
			"unknown=1", "user=", "user", "user=%ff", "user=a;b", "user=%zz", "created_after=%", "user=a&user_match_type=like",
			"user=a&user_match_type=Equals", "created_after=2026-01-01&user_match_type=x", "user=a&limit=0", "user=a&limit=10001",
			"user=a&limit=1.5", "user=a&limit=", "cursor=",
		},
		oda.InvalidQuery: {
			"", "user_match_type=equals", "limit=5", "user=a&user=b", "created_after=", "created_after=2026-02-30",
			"created_after=2026-01-01&created_after=2026-01-02", "user=a&limit=1&limit=2", "cursor=rubbish",
			"user=bob&cursor=" + cursor, "user=anna+%26+co&user_match_type=contains&cursor=" + cursor,
		},
	} {
		for _, query := range queries {
			if p := refused(t, a.Do("GET", "/sbds?"+query, ""), 400, code); len(p.Detail) < 30 {
				t.Errorf("%s: the detail %q does not help", query, p.Detail)
			}
		}
	}
	refused(t, a.Do("GET", "/sbis?cursor="+cursor, ""), 400, oda.InvalidQuery)
	refused(t, a.Do("GET", "/sbds", ""), 400, oda.InvalidQuery, "user", "created_after", "last_modified_after")
	refused(t, a.Do("GET", "/sbds?user=a;b", ""), 400, oda.InvalidRequest, "%3B")
}

// A long list is complete and in order, whatever its encoding.
func TestLongList(t *testing.T) {
	t.Parallel()
	a := env.Start(t)
	const batch = longList / 6
	var all []string
	for len(all) < longList {
		var entities []string
		for range batch {
			all = append(all, fmt.Sprintf("prj-%0100d", len(all)))
			entities = append(entities, fmt.Sprintf(`{"prj_id":%q}`, all[len(all)-1]))
		}
		want(t, 200, a.Do("PUT", "/", `{"prjs":[`+strings.Join(entities, ",")+`]}`))
	}
	for _, encoding := range []string{"identity", "zstd"} {
		r := want(t, 200, a.Do("GET", "/prjs?"+everything, "", "Accept-Encoding", encoding))
		if got := identifiers(t, r); !slices.Equal(got, all) {
			t.Errorf("%s: %d identifiers, want %d in order", encoding, len(got), len(all))
		}
		if r.Header.Get("Content-Length") != "" {
			t.Errorf("%s: the list has a length, so it was not streamed", encoding)
		}
	}
}
