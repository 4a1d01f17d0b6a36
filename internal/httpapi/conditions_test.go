package httpapi_test

import (
	"fmt"
	"strings"
	"testing"

	"oda"
	"oda/internal/test/env"
)

func TestETagNamesTheState(t *testing.T) {
	a := env.Start(t)
	for _, k := range kinds {
		path := "/" + k.collection + "/x"
		put := want(t, 200, a.Do("PUT", path, `{}`))
		m := metadataOf(t, put.Body)
		if got, want := put.Header.Get("ETag"), fmt.Sprintf(`"1-%d"`, m.modifiedOn(t).UnixMicro()); got != want {
			t.Errorf("%s: the tag is %s, want %s", path, got, want)
		}
		get := a.Do("GET", path, "")
		if get.Header.Get("ETag") != put.Header.Get("ETag") || get.Header.Get("Vary") != "Accept-Encoding" {
			t.Errorf("%s: GET has %v", path, get.Header)
		}
	}
	before := a.Do("GET", "/ebs/x", "").Header.Get("ETag")
	record(t, a, "POST", "x", `{"request":"a"}`)
	if after := a.Do("GET", "/ebs/x", "").Header.Get("ETag"); after == before {
		t.Error("a record does not change the tag")
	}
}

func TestGetIfNoneMatch(t *testing.T) {
	a := env.Start(t)
	m := store(t, a, "/sbds/a", `{}`)
	tag := fmt.Sprintf(`"1-%d"`, m.modifiedOn(t).UnixMicro())
	bare := strings.Trim(tag, `"`)
	for _, test := range []struct {
		value  string
		status int
	}{
		{tag, 304},
		{"W/" + tag, 304},
		{`"` + bare + `-gzip"`, 304},
		{`"` + bare + `-zstd"`, 304},
		{`W/"` + bare + `-gzip"`, 304},
		{`"other", ` + tag, 304},
		{`"other",` + tag + `,"third"`, 304},
		{"*", 304},
		{`"other"`, 200},
		{`"1-0"`, 200},
		{`"` + bare + `-br"`, 200},
		{``, 200},
	} {
		r := want(t, test.status, a.Do("GET", "/sbds/a", "", "If-None-Match", test.value))
		if test.status == 304 && (r.Header.Get("ETag") != tag || r.Header.Get("Vary") != "Accept-Encoding" || len(r.Raw) > 0) {
			t.Errorf("%s: 304 has %v %q", test.value, r.Header, r.Raw)
		}
	}
	refused(t, a.Do("GET", "/sbds/b", "", "If-None-Match", "*"), 404, oda.NotFound)
	want(t, 304, a.Do("HEAD", "/sbds/a", "", "If-None-Match", tag))
	twice := want(t, 304, a.Do("GET", "/sbds/a", "", "If-None-Match", `"other"`, "If-None-Match", tag))
	if twice.Header.Get("ETag") != tag {
		t.Error("only one of two lines of the header is read")
	}
}

func TestPutConditions(t *testing.T) {
	a := env.Start(t)
	m := store(t, a, "/sbds/a", `{}`)
	tag := func() string { return a.Do("GET", "/sbds/a", "").Header.Get("ETag") }
	good := func() string { return a.Do("GET", "/sbds/a", "").Text() }
	stale := `{"metadata":` + strings.Replace(m.text(), `"version":1`, `"version":9`, 1) + `}`
	zipped := func(name string) string { return strings.TrimSuffix(tag(), `"`) + "-" + name + `"` }
	for _, test := range []struct {
		name, path, header, value, body string
		status                          int
		code                            oda.Code
	}{
		{"If-Match of the current state", "/sbds/a", "If-Match", tag(), good(), 200, ""},
		{"If-Match of an older state", "/sbds/a", "If-Match", tag(), good(), 412, oda.Precondition},
		{"If-Match before the metadata", "/sbds/a", "If-Match", `"1-1"`, stale, 412, oda.Precondition},
		{"If-Match of an unknown entity", "/sbds/new", "If-Match", `"1-1"`, `{}`, 412, oda.Precondition},
		{"If-Match of anything", "/sbds/new", "If-Match", `*`, `{}`, 412, oda.Precondition},
		{"If-Match of nothing", "/sbds/a", "If-Match", ``, `CURRENT`, 412, oda.Precondition},
		{"If-Match of a weak tag", "/sbds/a", "If-Match", `W/TAG`, `CURRENT`, 412, oda.Precondition},
		{"If-Match of a compressed state", "/sbds/a", "If-Match", zipped("gzip"), "", 412, oda.Precondition},
		{"If-Match of any state", "/sbds/a", "If-Match", "*", `CURRENT`, 200, ""},
		{"If-Match of a tag with commas", "/sbds/a", "If-Match", `"a,*,b"`, `CURRENT`, 412, oda.Precondition},
		{"If-Match of a tag that is not closed", "/sbds/a", "If-Match", `"*`, `CURRENT`, 412, oda.Precondition},
		{"If-Match after a tag with commas", "/sbds/a", "If-Match", `"a,b" ,TAG`, `CURRENT`, 200, ""},
		{"If-Match of the compressed current state", "/sbds/a", "If-Match", `ZSTD`, `CURRENT`, 200, ""},
		{"If-Match among others", "/sbds/a", "If-Match", `"1-1", TAG`, `CURRENT`, 200, ""},
		{"If-Match and stale metadata", "/sbds/a", "If-Match", "TAG", stale, 422, oda.MetadataMismatch},
		{"If-None-Match of anything creates", "/sbds/created", "If-None-Match", "*", `{}`, 200, ""},
		{"If-None-Match of anything never updates", "/sbds/a", "If-None-Match", "*", `CURRENT`, 412, oda.Precondition},
		{"If-None-Match goes before the metadata", "/sbds/a", "If-None-Match", "*", `{}`, 412, oda.Precondition},
		{"If-None-Match of the state", "/sbds/a", "If-None-Match", "TAG", `CURRENT`, 412, oda.Precondition},
		{"If-None-Match of the state, weak", "/sbds/a", "If-None-Match", "W/TAG", `CURRENT`, 412, oda.Precondition},
		{"If-None-Match of another state", "/sbds/a", "If-None-Match", `"1-1"`, `CURRENT`, 200, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			value := strings.NewReplacer("TAG", tag(), "ZSTD", zipped("zstd")).Replace(test.value)
			body := strings.ReplaceAll(test.body, "CURRENT", good())
			if body == "" {
				body = good()
			}
			if test.name == "If-Match of a compressed state" {
				store(t, a, "/sbds/a", good()) // the tag is that of the previous state
				body = good()
			}
			send := func() *env.Reply { return a.Do("PUT", test.path, body, test.header, value) }
			if test.status == 200 {
				want(t, 200, send())
				return
			}
			unchanged(t, a, func() { refused(t, send(), test.status, test.code) })
		})
	}
}

func TestGetIfMatch(t *testing.T) {
	a := env.Start(t)
	store(t, a, "/sbds/a", `{}`)
	tag := a.Do("GET", "/sbds/a", "").Header.Get("ETag")
	zipped := strings.TrimSuffix(tag, `"`) + `-gzip"`
	for _, value := range []string{tag, "*", zipped, `"1-1", ` + tag} {
		want(t, 200, a.Do("GET", "/sbds/a", "", "If-Match", value))
	}
	want(t, 304, a.Do("GET", "/sbds/a", "", "If-Match", tag, "If-None-Match", tag))
	for _, value := range []string{`"1-1"`, "W/" + tag, ""} {
		refused(t, a.Do("GET", "/sbds/a", "", "If-Match", value), 412, oda.Precondition, "If-Match failed")
		want(t, 412, a.Do("HEAD", "/sbds/a", "", "If-Match", value))
	}
	refused(t, a.Do("GET", "/sbds/a", "", "If-Match", `"1-1"`, "If-None-Match", tag), 412, oda.Precondition)
	refused(t, a.Do("GET", "/sbds/b", "", "If-Match", "*"), 404, oda.NotFound)
}

// An operation that does not support a condition must not be carried out as if the
// condition held.
func TestUnsupportedConditionsAreRefused(t *testing.T) {
	a := env.Start(t)
	store(t, a, "/ebs/eb", `{}`)
	places := []struct{ method, path, body string }{
		{"PUT", "/", `{"sbds":[{"sbd_id":"n"}]}`},
		{"PUT", "", `{"sbds":[{"sbd_id":"n"}]}`},
		{"POST", "/ebs/eb/request_responses", batch("k", `{"request":"a"}`)},
		{"POST", "/ebs/create", ""},
	}
	for _, place := range keyed {
		places = append(places, struct{ method, path, body string }{place.method, place.path, place.body})
	}
	for _, place := range places {
		unchanged(t, a, func() {
			for _, condition := range []string{"If-Match", "If-None-Match"} {
				for _, value := range []string{"*", `"1-1"`, ""} {
					p := refused(t, a.Do(place.method, place.path, place.body, condition, value), 400, oda.InvalidRequest, condition, "Nothing was stored")
					if len(p.Errors) != 1 || p.Errors[0].Pointer != "header:"+condition {
						t.Errorf("%s %s: the faults are %v", place.method, place.path, p.Errors)
					}
				}
			}
		})
	}
	refused(t, a.Do("GET", "/ebs?"+everything, "", "If-Match", "*"), 400, oda.InvalidRequest)
	refused(t, a.Do("GET", "/ebs/eb/request_responses", "", "If-Match", "*"), 400, oda.InvalidRequest)
	// Their answers have no tag, so no tag matches.
	want(t, 200, a.Do("GET", "/ebs?"+everything, "", "If-None-Match", `"1-1"`))
	want(t, 200, a.Do("GET", "/ebs/eb/request_responses", "", "If-None-Match", `"1-1"`))
}

// No cache between client and server may serve an old state.
func TestAnswersAboutEntitiesAreRevalidated(t *testing.T) {
	a := env.Start(t)
	store(t, a, "/ebs/eb", `{}`)
	tag := a.Do("GET", "/ebs/eb", "").Header.Get("ETag")
	for name, r := range map[string]*env.Reply{
		"GET":         want(t, 200, a.Do("GET", "/ebs/eb", "")),
		"HEAD":        want(t, 200, a.Do("HEAD", "/ebs/eb", "")),
		"304":         want(t, 304, a.Do("GET", "/ebs/eb", "", "If-None-Match", tag)),
		"list":        want(t, 200, a.Do("GET", "/ebs?"+everything, "")),
		"page":        want(t, 200, a.Do("GET", "/ebs?limit=1&"+everything, "")),
		"records":     want(t, 200, a.Do("GET", "/ebs/eb/request_responses", "")),
		"status":      want(t, 200, a.Do("GET", "/ebs/eb/status", "")),
		"statuses":    want(t, 200, a.Do("GET", "/ebs/eb/status/history", "")),
		"say":         want(t, 200, a.Do("POST", "/ebs/eb/status", `{"status":"Observed"}`)),
		"PUT":         want(t, 200, a.Do("PUT", "/sbds/a", `{}`)),
		"POST":        want(t, 200, a.Do("POST", "/prjs", `{}`)),
		"create":      want(t, 200, a.Do("POST", "/ebs/create", "")),
		"several":     want(t, 200, a.Do("PUT", "/", `{"sbis":[{"sbi_id":"a"}]}`)),
		"record":      want(t, 200, a.Do("PATCH", "/ebs/eb/request_response", `{"request":"a"}`)),
		"recordBatch": want(t, 200, a.Do("POST", "/ebs/eb/request_responses", batch("k", `{"request":"a"}`))),
	} {
		vary := "Accept-Encoding"
		if name == "records" {
			vary = "Accept, Accept-Encoding" // there is a stream of them, too
		}
		if r.Header.Get("Cache-Control") != "private, no-cache" || r.Header.Get("Vary") != vary {
			t.Errorf("%s has Cache-Control: %q, Vary: %q", name, r.Header.Get("Cache-Control"), r.Header.Get("Vary"))
		}
	}
}
