package httpapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"oda"
	"oda/internal/test/env"
	"oda/internal/test/must"
)

const (
	revalidated = "private, no-cache"
	forever     = "private, max-age=31536000, immutable"
)

// change stores the next version of an entity, with one word replaced by another.
func change(t testing.TB, a *env.Archive, path, from, to string) *env.Reply {
	t.Helper()
	text := want(t, 200, a.Do("GET", path, "")).Text()
	return want(t, 200, a.Do("PUT", path, strings.Replace(text, from, to, 1), user, "bob"))
}

func TestAVersionIsByteForByteWhatAGetAnswered(t *testing.T) {
	a := env.Start(t)
	for _, k := range kinds {
		t.Run(k.collection, func(t *testing.T) {
			path := "/" + k.collection + "/x"
			store(t, a, path, "{\"n\" : 1.0,\n \"text\":\""+strings.Repeat("observe ", 200)+"\"}", user, "anna")
			answers := []*env.Reply{a.Do("GET", path, "")}
			for n := range 3 {
				change(t, a, path, fmt.Sprintf(": %d.0", n+1), fmt.Sprintf(": %d.0", n+2))
				if k.collection == "ebs" {
					record(t, a, "POST", "x", fmt.Sprintf(`{"request":"r%d"}`, n), user, "carl")
				}
				answers = append(answers, a.Do("GET", path, ""))
			}
			for i, then := range answers {
				place := fmt.Sprintf("%s/versions/%d", path, i+1)
				keeping := forever
				if i == len(answers)-1 {
					keeping = revalidated
				}
				r := want(t, 200, a.Do("GET", place, ""))
				tag := then.Header.Get("ETag")
				if r.Text() != then.Text() || r.Header.Get("ETag") != tag {
					t.Errorf("%s: got %s %s, want %s %s", place, r.Header.Get("ETag"), r.Text(), tag, then.Text())
				}
				head := want(t, 200, a.Do("HEAD", place, ""))
				zipped := want(t, 200, a.Do("GET", place, "", "Accept-Encoding", "zstd"))
				known := want(t, 304, a.Do("GET", place, "", "If-None-Match", tag))
				if zipped.Text() != then.Text() || zipped.Header.Get("ETag") != strings.TrimSuffix(tag, `"`)+`-zstd"` {
					t.Errorf("%s, compressed: %v", place, zipped.Header)
				}
				for _, one := range []*env.Reply{r, head, zipped, known} {
					if one.Header.Get("Cache-Control") != keeping || one.Header.Get("Vary") != "Accept-Encoding" {
						t.Errorf("%s: %d has %v", place, one.Status, one.Header)
					}
				}
				if known.Header.Get("ETag") != tag || head.Header.Get("Content-Length") != fmt.Sprint(len(r.Raw)) {
					t.Errorf("%s: 304 has %v, HEAD has %v", place, known.Header, head.Header)
				}
				want(t, 200, a.Do("GET", place, "", "If-Match", tag))
				refused(t, a.Do("GET", place, "", "If-Match", `"9-9"`), 412, oda.Precondition)
			}
		})
	}
}

func TestAnUnknownVersionCouldNotBeFound(t *testing.T) {
	a := env.Start(t)
	store(t, a, "/sbds/a", `{}`)
	for _, version := range []string{"0", "2", "-1", "01", "+1", "1.0", "1e0", "one", "%20", "current", "9223372036854775807", "9223372036854775808", strings.Repeat("9", 500)} {
		refused(t, a.Do("GET", "/sbds/a/versions/"+version, ""), 404, oda.NotFound, "could not be found")
	}
	for _, path := range []string{"/sbds/b/versions/1", "/sbds/-/versions/1", "/ebs/a/versions/1", "/sbds/b/versions", "/sbds/-/versions", "/sbds/b?at=2100-01-01", "/sbds/b/diff", "/sbds/-/diff?from=1"} {
		refused(t, a.Do("GET", path, ""), 404, oda.NotFound, "could not be found")
	}
	refused(t, a.Do("PUT", "/sbds/a/versions/1", `{}`), 405, oda.WrongMethod)
}

// told is a page of the list of versions.
type told struct {
	Versions []struct {
		metadata
		Bytes   int64
		Records *int64
	}
}

func versionsOf(t testing.TB, r *env.Reply) told {
	t.Helper()
	var answer told
	if err := json.Unmarshal(want(t, 200, r).Body, &answer); err != nil {
		t.Fatalf("%v: %s", err, r.Body)
	}
	return answer
}

func TestVersionsComeInPagesWhileOthersAreStored(t *testing.T) {
	a := env.Start(t)
	store(t, a, "/sbds/a", `{"n":1}`)
	const versions = 7
	for range versions - 1 {
		change(t, a, "/sbds/a", "1", "1")
	}
	place := must.Get(url.Parse(a.URL() + "/sbds/a/versions?limit=3"))(t)
	var seen []int64
	for next := (*url.URL)(nil); place != nil; place = next {
		r := want(t, 200, a.Do("GET", place.String(), ""))
		for _, v := range versionsOf(t, r).Versions {
			seen = append(seen, v.Version)
		}
		change(t, a, "/sbds/a", "1", "1")
		if next = link(t, r); next != nil {
			next = place.ResolveReference(next)
		}
	}
	if diff := cmp.Diff([]int64{7, 6, 5, 4, 3, 2, 1}, seen); diff != "" {
		t.Error(diff)
	}
}

func TestTheQueryOfVersionsIsChecked(t *testing.T) {
	a := env.Start(t)
	for _, id := range []string{"a", "b"} {
		store(t, a, "/sbds/"+id, `{}`)
		change(t, a, "/sbds/"+id, "{", "{")
	}
	r := a.Do("GET", "/sbds/a/versions?limit=1", "")
	_, cursor, _ := strings.Cut(strings.TrimSuffix(r.Header.Get("Link"), `&limit=1>; rel="next"`), "cursor=")
	want(t, 200, a.Do("GET", "/sbds/a/versions?cursor="+cursor, ""))
	for query, code := range map[string]oda.Code{
		"/sbds/b/versions?cursor=" + cursor:               oda.InvalidQuery,
		"/sbds/a/versions?cursor=x":                       oda.InvalidQuery,
		"/sbds/a/versions?cursor=e30":                     oda.InvalidQuery,
		"/sbds/a/versions?cursor=":                        oda.InvalidRequest,
		"/sbds/a/versions?limit=0":                        oda.InvalidRequest,
		"/sbds/a/versions?limit=1001":                     oda.InvalidRequest,
		"/sbds/a/versions?limit=x":                        oda.InvalidRequest,
		"/sbds/a/versions?limit=1&limit=2":                oda.InvalidRequest,
		"/sbds/a/versions?cursor=" + cursor + "&cursor=x": oda.InvalidRequest,
	} {
		refused(t, a.Do("GET", query, ""), 400, code)
	}
	want(t, 200, a.Do("GET", "/sbds/a/versions?limit=1000", ""))
}

func TestAnEntityAsOfATimeIsWhatItWasThen(t *testing.T) {
	a := env.Start(t)
	store(t, a, "/ebs/b", `{"n":1}`)
	first := a.Do("GET", "/ebs/b", "")
	m := metadataOf(t, first.Body)
	record(t, a, "POST", "b", `{"request":"a"}`)
	second := a.Do("GET", "/ebs/b", "")
	third := change(t, a, "/ebs/b", "1", "2")
	ask := func(at string, headers ...string) *env.Reply {
		return a.Do("GET", "/ebs/b?at="+url.QueryEscape(at), "", headers...)
	}
	on := m.modifiedOn(t)
	abroad := on.In(time.FixedZone("", 5*3600+1800)).Format("2006-01-02T15:04:05.000000-07:00")
	for _, at := range []string{
		m.LastModifiedOn,
		on.Format("2006-01-02T15:04:05.000000") + "999Z",
		abroad,
		strings.Replace(abroad, "+", " ", 1), // a plus that was not escaped arrives as a space
		on.Format("2006-01-02 15:04:05.000000"),
	} {
		r := want(t, 200, ask(at))
		if r.Text() != first.Text() || r.Header.Get("ETag") != first.Header.Get("ETag") || r.Header.Get("Cache-Control") != forever {
			t.Errorf("%s: got %v %s", at, r.Header, r.Text())
		}
	}
	if r := want(t, 200, ask(metadataOf(t, second.Body).LastModifiedOn)); r.Text() != second.Text() {
		t.Errorf("got %s", r.Text())
	}
	for _, at := range []string{metadataOf(t, third.Body).LastModifiedOn, "2100-01-01", "2100-01-01T12:00"} {
		if r := want(t, 200, ask(at)); r.Text() != third.Text() || r.Header.Get("Cache-Control") != revalidated {
			t.Errorf("%s: got %v %s", at, r.Header, r.Text())
		}
	}
	tag := first.Header.Get("ETag")
	if r := want(t, 304, ask(m.LastModifiedOn, "If-None-Match", tag)); r.Header.Get("ETag") != tag || r.Header.Get("Cache-Control") != forever {
		t.Errorf("304 has %v", r.Header)
	}
	refused(t, ask(m.LastModifiedOn, "If-Match", `"9-9"`), 412, oda.Precondition)
	for _, at := range []string{on.Add(-time.Microsecond).Format(time.RFC3339Nano), "1970-01-01", "0001-01-01T00:00:00Z"} {
		refused(t, ask(at), 404, oda.NotFound, "could not be found")
	}
	for _, query := range []string{"at=", "at=yesterday", "at=2026-13-01", "at=2026-01-01&at=2026-01-01", "at=1700000000"} {
		refused(t, a.Do("GET", "/ebs/b?"+query, ""), 400, oda.InvalidRequest)
	}
	refused(t, ask("2026-02-30"), 400, oda.InvalidQuery, "at is not a valid time")
}

// A version that is current when it is read may still change.
func TestAnAnswerThatMayChangeIsNotKeptForever(t *testing.T) {
	a := env.Start(t)
	store(t, a, "/ebs/b", `{}`)
	m := metadataOf(t, a.Do("GET", "/ebs/b", "").Body)
	record(t, a, "POST", "b", `{"request":"a"}`)
	for _, path := range []string{"/ebs/b/versions/1", "/ebs/b?at=" + m.LastModifiedOn, "/ebs/b?at=2100-01-01"} {
		if r := want(t, 200, a.Do("GET", path, "")); r.Header.Get("Cache-Control") != revalidated {
			t.Errorf("%s has %v", path, r.Header)
		}
	}
}

// An answer that is longer than what is held back has no length, because it is
// sent while it is being read.
func TestAnOldVersionOfALongBlockIsStreamed(t *testing.T) {
	a := env.Start(t)
	store(t, a, "/ebs/b", `{"request_responses":[]}`)
	for part := range 4 {
		var records []string
		for i := range 500 {
			records = append(records, fmt.Sprintf("k%d-%d", part, i), fmt.Sprintf(`{"request":"r%d","note":%q}`, i, strings.Repeat("x", 200)))
		}
		want(t, 200, a.Do("POST", "/ebs/b/request_responses", batch(records...)))
	}
	then := a.Do("GET", "/ebs/b", "")
	m := metadataOf(t, then.Body)
	store(t, a, "/ebs/b", `{"metadata":`+m.text()+`}`)
	for _, path := range []string{"/ebs/b/versions/1", "/ebs/b?at=" + m.LastModifiedOn} {
		for _, encoding := range []string{"", "gzip", "zstd"} {
			r := want(t, 200, a.Do("GET", path, "", "Accept-Encoding", encoding))
			if r.Text() != then.Text() || encoding == "" && r.Header.Get("Content-Length") != "" || r.Header.Get("Content-Encoding") != encoding || r.Header.Get("Cache-Control") != forever {
				t.Errorf("%s: %d bytes, %v", path, len(r.Body), r.Header)
			}
		}
		if r := want(t, 200, a.Do("HEAD", path, "")); r.Header.Get("ETag") != then.Header.Get("ETag") {
			t.Errorf("%s: HEAD has %v", path, r.Header)
		}
		want(t, http.StatusNotModified, a.Do("GET", path, "", "If-None-Match", then.Header.Get("ETag")))
	}
}
