package httpapi_test

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oda"
	"oda/internal/test/env"
)

// shelf returns an archive with four SBDefinitions: a and b by anna, c by Anna, d
// by 100%_*.
type shelf struct {
	*env.Archive
	meta map[string]metadata
}

func newShelf(t *testing.T) shelf {
	s := shelf{env.Start(t), map[string]metadata{}}
	for _, e := range []struct{ id, user string }{{"b", "anna"}, {"a", "anna"}, {"c", "Anna B"}, {"d", "100%_*"}} {
		s.meta[e.id] = store(t, s.Archive, "/sbds/"+e.id, `{}`, "X-Forwarded-User", e.user)
	}
	return s
}

func TestListByUser(t *testing.T) {
	s := newShelf(t)
	for _, test := range []struct {
		query string
		want  []string
	}{
		{"user=anna", []string{"b", "a"}},
		{"user=anna&user_match_type=equals", []string{"b", "a"}},
		{"user=Anna", nil},
		{"user=Anna&user_match_type=starts_with", []string{"c"}},
		{"user=nna&user_match_type=contains", []string{"b", "a", "c"}},
		{"user=nna&user_match_type=starts_with", nil},
		{"user=Anna+B", []string{"c"}},
		{"user=Anna%20B", []string{"c"}},
		{"user=%25", nil},
		{"user=%25&user_match_type=contains", []string{"d"}},
		{"user=_&user_match_type=contains", []string{"d"}},
		{"user=*&user_match_type=contains", []string{"d"}},
		{"user=1__&user_match_type=starts_with", nil},
		{"user=?&user_match_type=contains", nil},
		{"user=nobody", nil},
		{"user=anna'%20OR%201=1", nil},
	} {
		if got := list(t, s.Archive, "sbds", test.query); !slices.Equal(got, test.want) {
			t.Errorf("%s lists %v, want %v", test.query, got, test.want)
		}
	}
	if got := s.Do("GET", "/sbds?user=nobody", "").Text(); got != "[]" {
		t.Errorf("no match is %s", got)
	}
	if got := list(t, s.Archive, "sbis", "user=anna"); len(got) != 0 {
		t.Errorf("another collection lists %v", got)
	}
}

func TestListByTime(t *testing.T) {
	s := newShelf(t)
	s.meta["b"] = store(t, s.Archive, "/sbds/b", `{"metadata":`+s.meta["b"].text()+`}`)
	day := s.meta["a"].CreatedOn[:10]
	next := s.meta["a"].modifiedOn(t).AddDate(0, 0, 1).Format("2006-01-02")
	at := func(id string) string { return url.QueryEscape(s.meta[id].CreatedOn) }
	zoned := s.meta["a"].modifiedOn(t).Add(ofClock(5, 30)).Format("2006-01-02T15:04:05.000000") + "+05:30"
	west := s.meta["a"].modifiedOn(t).Add(ofClock(-2, 0)).Format("2006-01-02 15:04:05.000000") + "-02:00"
	all := []string{"b", "a", "c", "d"}
	for _, test := range []struct {
		query string
		want  []string
	}{
		{"created_after=1970-01-01", all},
		{"created_before=9999-12-31", all},
		{"created_after=" + day, all},
		{"created_before=" + day, nil}, // a date is midnight here too
		{"created_before=" + next, all},
		{"created_after=" + next, nil},
		{"created_after=" + at("a"), []string{"a", "c", "d"}}, // both ends are included
		{"created_before=" + at("a"), []string{"b", "a"}},
		{"created_after=" + at("a") + "&created_before=" + at("a"), []string{"a"}},
		{"created_after=" + at("a") + "&created_before=" + at("c"), []string{"a", "c"}},
		{"created_after=" + at("c") + "&created_before=" + at("a"), nil},
		{"created_after=" + url.QueryEscape(zoned), []string{"a", "c", "d"}},
		{"created_after=" + zoned, []string{"a", "c", "d"}}, // the plus arrives as a space
		{"created_after=" + strings.Replace(zoned, "T", "+", 1), []string{"a", "c", "d"}},
		{"created_after=" + url.QueryEscape(west), []string{"a", "c", "d"}},
		{"created_after=" + strings.TrimSuffix(at("a"), "Z"), []string{"a", "c", "d"}}, // no zone is UTC
		{"created_after=" + strings.TrimSuffix(at("a"), "Z") + "001Z", []string{"c", "d"}},
		{"created_before=" + strings.TrimSuffix(at("a"), "Z") + "999Z", []string{"b", "a"}},
		{"created_after=" + day + "T00:00", all},
		{"created_after=" + day + "+00:00", all},
		{"created_after=" + day + "%2000:00:00", all},
		{"last_modified_after=1970-01-01", []string{"a", "c", "d", "b"}},
		{"last_modified_after=" + url.QueryEscape(s.meta["b"].LastModifiedOn), []string{"b"}},
		{"last_modified_before=" + url.QueryEscape(s.meta["d"].LastModifiedOn), []string{"a", "c", "d"}},
	} {
		if got := list(t, s.Archive, "sbds", test.query); !slices.Equal(got, test.want) {
			t.Errorf("%s lists %v, want %v", test.query, got, test.want)
		}
	}
}

// Only one query field counts. The others are not even parsed.
func TestPrecedenceOfQueryFields(t *testing.T) {
	s := newShelf(t)
	s.meta["b"] = store(t, s.Archive, "/sbds/b", `{"metadata":`+s.meta["b"].text()+`}`)
	for _, test := range []struct {
		query string
		want  []string
	}{
		{"user=anna&created_after=9999-01-01", []string{"b", "a"}},
		{"created_after=rubbish&user=anna", []string{"b", "a"}},
		{"user=anna&created_before=&last_modified_after=", []string{"b", "a"}},
		{"user=anna&created_before=1&created_before=2", []string{"b", "a"}},
		{"created_after=1970-01-01&last_modified_after=9999-01-01", []string{"b", "a", "c", "d"}},
		{"created_before=9999-01-01&last_modified_before=rubbish", []string{"b", "a", "c", "d"}},
		{"created_after=1970-01-01&user_match_type=contains", []string{"b", "a", "c", "d"}},
		{"last_modified_before=9999-01-01&user_match_type=starts_with", []string{"a", "c", "d", "b"}},
	} {
		if got := list(t, s.Archive, "sbds", test.query); !slices.Equal(got, test.want) {
			t.Errorf("%s lists %v, want %v", test.query, got, test.want)
		}
	}
}

// illFormed matches what does not match the API description, whatever the query: a
// syntax error, a parameter that does not exist, a value that it cannot have.
var illFormed = regexp.MustCompile(`;|%zz|%$|unknown|^user(=|=%ff)?$|user_match_type=(like|Equals|x|$)|^cursor=$|^user=a&limit=([^1]|10001|1\.5|$)`)

func TestBadListQueries(t *testing.T) {
	s := newShelf(t)
	next := link(t, s.Do("GET", "/sbds?user=anna&limit=1", ""))
	cursor := next.Query().Get("cursor")
	for _, query := range []string{
		"", "user_match_type=equals", "unknown=1", "limit=5",
		"user=", "user", "user=a&user=b", "user=%ff", "user=a;b", "user=%zz", "created_after=%", "user=anna&x=%zz",
		"user=a&user_match_type=like", "user=a&user_match_type=", "user=a&user_match_type=Equals", "created_after=2026-01-01&user_match_type=x",
		"user=a&user_match_type=equals&user_match_type=equals",
		"created_after=", "created_before=", "last_modified_after=", "last_modified_before=",
		"created_after=yesterday", "created_after=2026-02-30", "created_after=2026-1-1", "created_before=20260101", "created_before=1767225600",
		"created_after=2026-01-01&created_before=x", "created_after=2026-01-01&created_after=2026-01-02",
		"last_modified_after=2026-01-01T24:00:00Z", "last_modified_before=2026-01-01T00:00:00+25:00", "last_modified_before=2026-01-01T00:00:00Zjunk",
		"created_after=2026-01-01&last_modified_before=2026-01-01&created_before=",
		"user=a&limit=0", "user=a&limit=-1", "user=a&limit=10001", "user=a&limit=ten", "user=a&limit=1.5", "user=a&limit=", "user=a&limit=1&limit=2",
		"user=a&limit=99999999999999999999",
		"cursor=", "cursor=rubbish", "cursor=e30", "user=anna&cursor=" + cursor + "x", "cursor=" + cursor + "&cursor=" + cursor,
		"user=bob&cursor=" + cursor, "created_after=1970-01-01&cursor=" + cursor, "user=anna&user_match_type=contains&cursor=" + cursor,
	} {
		r := s.Do("GET", "/sbds?"+query, "")
		if r.Status != 400 {
			t.Errorf("%s is answered %d %s", query, r.Status, r.Body)
			continue
		}
		code := oda.InvalidQuery
		if illFormed.MatchString(query) {
			code = oda.InvalidRequest
		}
		if p := refused(t, r, 400, code); len(p.Detail) < 30 {
			t.Errorf("%s: the detail %q does not help", query, p.Detail)
		}
	}
	refused(t, s.Do("GET", "/sbis?cursor="+cursor, ""), 400, oda.InvalidQuery)
	refused(t, s.Do("GET", "/sbds", ""), 400, oda.InvalidQuery, "user", "created_after", "last_modified_after")
	refused(t, s.Do("GET", "/sbds?user=a;b", ""), 400, oda.InvalidRequest, "%3B")
}

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
	at, err := url.Parse(a.URL() + path)
	if err != nil {
		t.Fatal(err)
	}
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

func TestPages(t *testing.T) {
	a := env.Start(t)
	var all []string
	for i := range 10 {
		id := fmt.Sprintf("sbd-%02d", (i*7)%10)
		store(t, a, "/sbds/"+id, `{}`, "X-Forwarded-User", "anna & co")
		all = append(all, id)
	}
	for _, query := range []string{"user=anna+%26+co", "user=%26&user_match_type=contains", "created_after=1970-01-01", "last_modified_before=9999-01-01&last_modified_after=1970-01-01"} {
		for limit, pages := range map[int]int{1: 10, 3: 4, 5: 2, 9: 2, 10: 1, 11: 1, 10000: 1} {
			ids, n := follow(t, a, fmt.Sprintf("/sbds?%s&limit=%d", query, limit))
			if diff := cmp.Diff(all, ids); diff != "" || n != pages {
				t.Errorf("%s by %d: %d pages (-want +got):\n%s", query, limit, n, diff)
			}
		}
	}
	t.Run("a cursor goes with its query, or alone, or with another limit", func(t *testing.T) {
		cursor := link(t, a.Do("GET", "/sbds?user=anna+%26+co&limit=4", "")).Query().Get("cursor")
		for _, query := range []string{"cursor=" + cursor, "user=anna+%26+co&cursor=" + cursor, "limit=6&cursor=" + cursor, "user=anna+%26+co&created_after=rubbish&cursor=" + cursor} {
			if got := list(t, a, "sbds", query); !slices.Equal(got, all[4:]) {
				t.Errorf("%s lists %v", query, got)
			}
		}
	})
	t.Run("an identifier that moves is not missed", func(t *testing.T) {
		r := a.Do("GET", "/sbds?last_modified_after=1970-01-01&limit=3", "")
		first := identifiers(t, r)
		for _, id := range []string{first[0], all[5]} {
			m := metadataOf(t, a.Do("GET", "/sbds/"+id, "").Body)
			store(t, a, "/sbds/"+id, `{"metadata":`+m.text()+`}`)
		}
		rest, _ := follow(t, a, "/"+link(t, r).String())
		got := append(first, rest...)
		slices.Sort(got)
		want := slices.Sorted(slices.Values(append(slices.Clone(all), first[0])))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
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
	ids, pages := follow(t, a, fmt.Sprintf("/prjs?%s&limit=%d", everything, longList/3))
	if !slices.Equal(ids, all) || pages != 3 {
		t.Errorf("%d identifiers on %d pages", len(ids), pages)
	}
}
