package httpapi_test

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"oda"
	"oda/internal/test/env"
	"oda/internal/test/must"
)

// called returns an archive with calls of two telescopes, some of which failed.
func called(t *testing.T) *env.Archive {
	a := env.Start(t)
	store(t, a, "/ebs/eb-1", `{"telescope":"ska_mid","request_responses":[
		{"request":"observe.scan","status":"OK","request_sent_at":"2026-03-01T20:00:00Z","response_received_at":"2026-03-01T20:10:00.5Z"},
		{"request":"dish.read_wind_speed","request_args":{"kwargs":{"receptor":"SKA001"}},"request_sent_at":"2026-03-01T20:05:00Z","response_received_at":"2026-03-01T20:05:02.5Z",
			"status":"ERROR","error":{"detail":"no answer, \"really\"\nnone","stacktrace":"Traceback:\n  a\ntango.ConnectionError: no answer"}},
		{"request":"=1+1","status":"failed","request_sent_at":"2026-03-01T21:00:00Z","error":{"detail":"@x"},"request_args":{"device":"-dish"}}
	]}`, "X-Forwarded-User", "ada")
	store(t, a, "/ebs/eb-2", `{"request_responses":[
		{"request":"low.scan","error":{"detail":"ValueError: a"},"response_received_at":"2026-03-02T01:00:00Z"},
		{"request":"low.scan","request_sent_at":"2026-03-02T02:00:00Z","response_received_at":"2026-03-02T01:59:59Z"}
	]}`, "X-Forwarded-User", "+bob")
	return a
}

// requests returns what a page of calls has, as block and sequence.
func requests(t *testing.T, r *env.Reply) (found []string, next *string) {
	t.Helper()
	var page struct {
		Calls []oda.CallEntry
		Next  *string
	}
	must.Do(t, json.Unmarshal(want(t, 200, r).Body, &page))
	for _, e := range page.Calls {
		found = append(found, fmt.Sprint(e.Block, "/", e.Sequence))
	}
	return found, page.Next
}

func TestCallsAreFound(t *testing.T) {
	a := called(t)
	for _, test := range [][2]string{
		{"outcome=failed", "eb-2/1 eb-1/3 eb-1/2"},
		{"outcome=failed&sort=sent", "eb-1/2 eb-1/3 eb-2/1"},
		{"outcome=failed&sort=sent&telescope=ska_mid", "eb-1/2 eb-1/3"},
		{"outcome=failed&request=read_wind_speed", "eb-1/2"},
		{"outcome=failed&request=wind_speed", ""},
		{"outcome=failed&device=SKA001", "eb-1/2"},
		{"outcome=failed&error=ConnectionError", "eb-1/2"},
		{"outcome=failed&q=answer%20no", "eb-1/2"},
		{"outcome=failed&from=2026-03-02", "eb-2/1"},
		{"outcome=failed&to=2026-03-01T20:06:00%2B00:00", "eb-1/2"},
		{"eb=eb-1", "eb-1/3 eb-1/2 eb-1/1"},
		{"eb=unknown", ""},
		{"eb=eb-1&outcome=ok", "eb-1/1"},
		{"eb=eb-1&longer_than=2.5", "eb-1/1"},
		{"eb=eb-1&longer_than=2.499999", "eb-1/2 eb-1/1"},
		{"at=2026-03-01T20:05:01Z", "eb-1/2 eb-1/1"},
		{"at=2026-03-01T20:05:01Z&outcome=ok", "eb-1/1"},
		{"at=2026-03-01T20:10:00.5Z", ""},
		{"from=2026-03-01&to=2026-03-03", "eb-2/2 eb-2/1 eb-1/3 eb-1/2 eb-1/1"},
		{"from=2026-03-01T20:05&to=2026-03-02T01:00:01&sort=sent", "eb-1/2 eb-1/3 eb-2/1"},
		{"from=2026-03-02T01:00:00Z&to=2026-03-02T01:00:00Z", ""},
	} {
		if found, next := requests(t, a.Do("GET", "/calls?"+test[0], "")); strings.Join(found, " ") != test[1] || next != nil {
			t.Errorf("%s finds %v, want %s, and goes on at %v", test[0], found, test[1], next)
		}
	}
	const whole = `{"calls":[{"eb_id":"eb-1","sequence":2,"request":"dish.read_wind_speed","sent_at":"2026-03-01T20:05:00.000000Z","received_at":"2026-03-01T20:05:02.500000Z",` +
		`"seconds":2.5,"outcome":"failed","error":{"type":"ConnectionError","detail":"no answer, \"really\"\nnone"},"device":"SKA001","telescope":"ska_mid","by":"ada"}],"next":null}`
	r := a.Do("GET", "/calls?outcome=failed&error=ConnectionError", "")
	equalJSON(t, want(t, 200, r).Body, whole)
	if r.Header.Get("Etag") != "" || r.Header.Get("Cache-Control") != "private, no-cache" || r.Header.Get("Vary") != "Accept, Accept-Encoding" || r.Header.Get("Link") != "" {
		t.Errorf("the headers are %v", r.Header)
	}
	head := want(t, 200, a.Do("HEAD", "/calls?outcome=failed&error=ConnectionError", ""))
	if len(head.Raw) != 0 || head.Header.Get("Content-Length") != fmt.Sprint(len(r.Body)) {
		t.Errorf("HEAD answers %d bytes and says %s", len(head.Raw), head.Header.Get("Content-Length"))
	}
}

// Links lead through all pages, in both representations.
func TestPagesOfCallsAreLinked(t *testing.T) {
	a := called(t)
	for _, media := range []string{"application/json", "text/csv"} {
		var rows []string
		path, pages := "/calls?from=2026-03-01&to=2026-03-03&limit=2", 0
		for ; path != ""; pages++ {
			r := want(t, 200, a.Do("GET", path, "", "Accept", media))
			if media == "text/csv" {
				for _, row := range must.Get(csv.NewReader(strings.NewReader(r.Text())).ReadAll())(t)[1:] {
					rows = append(rows, row[0]+"/"+row[1])
				}
			} else {
				found, _ := requests(t, r)
				rows = append(rows, found...)
			}
			link, rest, _ := strings.Cut(strings.TrimPrefix(r.Header.Get("Link"), "<"), ">")
			if path = ""; link != "" {
				path = "/" + link
			}
			if link != "" && (rest != `; rel="next"` || !strings.HasPrefix(link, "calls?cursor=") || !strings.HasSuffix(link, "&limit=2")) {
				t.Errorf("the link is %s", r.Header.Get("Link"))
			}
		}
		if want := []string{"eb-2/2", "eb-2/1", "eb-1/3", "eb-1/2", "eb-1/1"}; !slices.Equal(rows, want) || pages != 3 {
			t.Errorf("%s: %d pages have %v", media, pages, rows)
		}
	}
}

func TestTablesHaveNoFormulas(t *testing.T) {
	a := called(t)
	r := want(t, 200, a.Do("GET", "/calls?outcome=failed&sort=sent", "", "Accept", "text/csv, application/json;q=0.5"))
	table := "eb_id,sequence,request,sent_at,received_at,seconds,outcome,error_type,error_detail,device,telescope,by\r\n" +
		"eb-1,2,dish.read_wind_speed,2026-03-01T20:05:00.000000Z,2026-03-01T20:05:02.500000Z,2.5,failed,ConnectionError,\"no answer, \"\"really\"\"\nnone\",SKA001,ska_mid,ada\r\n" +
		"eb-1,3,'=1+1,2026-03-01T21:00:00.000000Z,,,failed,,'@x,'-dish,ska_mid,ada\r\n" +
		"eb-2,1,low.scan,,2026-03-02T01:00:00.000000Z,,failed,ValueError,ValueError: a,,,'+bob\r\n"
	if r.Text() != table || r.Header.Get("Content-Type") != "text/csv; charset=utf-8; header=present" || r.Header.Get("Vary") != "Accept, Accept-Encoding" {
		t.Errorf("the table is %s\n%s", r.Header.Get("Content-Type"), r.Body)
	}
	head := want(t, 200, a.Do("HEAD", "/calls?outcome=failed&sort=sent", "", "Accept", "text/csv"))
	if len(head.Raw) != 0 || head.Header.Get("Content-Length") != fmt.Sprint(len(table)) || head.Header.Get("Content-Type") != r.Header.Get("Content-Type") {
		t.Errorf("HEAD of a table answers %v", head.Header)
	}
	if r := want(t, 200, a.Do("GET", "/calls/tally?by=error&outcome=failed", "", "Accept", "text/*")); r.Text() != "key,calls,failures,seconds\r\n,1,1,0\r\nConnectionError,1,1,2.5\r\nValueError,1,1,0\r\n" {
		t.Errorf("the tally is %s", r.Body)
	}
	packed := want(t, 200, a.Do("GET", "/calls?from=2026-03-01&to=2026-03-03", "", "Accept", "text/csv", "Accept-Encoding", "gzip"))
	if packed.Header.Get("Content-Encoding") != "" && !strings.HasPrefix(packed.Text(), "eb_id,") {
		t.Errorf("a compressed table is %s", packed.Body)
	}
}

func TestCallsAreCounted(t *testing.T) {
	a := called(t)
	for query, want := range map[string]string{
		"by=request&outcome=failed":            `{"tally":[{"key":"=1+1","calls":1,"failures":1,"seconds":0},{"key":"dish.read_wind_speed","calls":1,"failures":1,"seconds":2.5},{"key":"low.scan","calls":1,"failures":1,"seconds":0}],"complete":true}`,
		"by=eb&from=2026-03-01&to=2026-03-03":  `{"tally":[{"key":"eb-1","calls":3,"failures":2,"seconds":603},{"key":"eb-2","calls":2,"failures":1,"seconds":0}],"complete":true}`,
		"by=day&from=2026-03-01&to=2026-03-03": `{"tally":[{"key":"2026-03-01","calls":3,"failures":2,"seconds":603},{"key":"2026-03-02","calls":2,"failures":1,"seconds":0}],"complete":true}`,
		"by=telescope&eb=eb-2":                 `{"tally":[{"key":null,"calls":2,"failures":1,"seconds":0}],"complete":true}`,
		"by=device&outcome=failed&eb=eb-2":     `{"tally":[{"key":null,"calls":1,"failures":1,"seconds":0}],"complete":true}`,
		"by=device&eb=unknown":                 `{"tally":[],"complete":true}`,
	} {
		equalJSON(t, must200(t, a, "/calls/tally?"+query).Body, want)
	}
}

func must200(t *testing.T, a *env.Archive, path string) *env.Reply {
	t.Helper()
	return want(t, 200, a.Do("GET", path, ""))
}

func TestInvalidQuestionsAboutCallsAreRefused(t *testing.T) {
	a := called(t)
	_, next := requests(t, a.Do("GET", "/calls?outcome=failed&limit=1", ""))
	if next == nil {
		t.Fatal("one of three calls has no next page")
	}
	for query, test := range map[string]struct {
		code  oda.Code
		words string
	}{
		"?":                                                  {oda.InvalidQuery, "eb, at, or outcome=failed"},
		"?outcome=ok":                                        {oda.InvalidQuery, "eb, at, or outcome=failed"},
		"?from=2026-03-01":                                   {oda.InvalidQuery, "eb, at, or outcome=failed"},
		"?at=2026-03-01&to=2026-03-02":                       {oda.InvalidQuery, "cannot be combined"},
		"?outcome=bad":                                       {oda.InvalidQuery, "ok, failed"},
		"?outcome=failed&from=noon":                          {oda.InvalidQuery, "a time"},
		"?outcome=failed&longer_than=1h":                     {oda.InvalidQuery, "number"},
		"?outcome=failed&longer_than=-1":                     {oda.InvalidQuery, "at least 0"},
		"?outcome=failed&longer_than=1e300":                  {oda.InvalidQuery, "at most"},
		"?outcome=failed&limit=1001":                         {oda.InvalidQuery, "at most 1000"},
		"?outcome=failed&q=--":                               {oda.InvalidQuery, "no words"},
		"?outcome=failed&sort=time":                          {oda.InvalidQuery, "-sent"},
		"?outcome=failed&device=":                            {oda.InvalidQuery, "at least 1 character"},
		"?outcome=failed&device=a&device=b":                  {oda.InvalidQuery, "2 times"},
		"?outcome=failed&device=%FF":                         {oda.InvalidQuery, "UTF-8"},
		"?outcome=failed&error=" + strings.Repeat("e", 1025): {oda.InvalidQuery, "1024 bytes"},
		"?cursor=abc":                                        {oda.InvalidQuery, "not a cursor"},
		"?error=E&cursor=" + url.QueryEscape(*next):          {oda.InvalidQuery, "another question"},
		"?outcome=failed&errors=E":                           {oda.InvalidRequest, "Did you mean error?"},
		"?outcome=failed&telescop=E":                         {oda.InvalidRequest, "Did you mean telescope?"},
		"/tally?outcome=failed":                              {oda.InvalidQuery, "missing"},
		"/tally?outcome=failed&by=function":                  {oda.InvalidQuery, "request"},
		"/tally?by=error":                                    {oda.InvalidQuery, "eb, at, or outcome=failed"},
		"/tally?by=error&outcome=failed&limit=3":             {oda.InvalidRequest, "unknown"},
	} {
		refused(t, a.Do("GET", "/calls"+query, ""), 400, test.code, test.words)
	}
	refused(t, a.Do("GET", "/calls?outcome=failed", "", "If-Match", `"1-1"`), 400, oda.InvalidRequest)
	refused(t, a.Do("POST", "/calls?outcome=failed", "{}"), 405, oda.WrongMethod, "GET, HEAD")
}

func TestASearchCanBeATable(t *testing.T) {
	a := env.Start(t)
	m := store(t, a, "/sbds/a", `{"telescope":"ska_mid","name":"=cmd|x","prj_ref":"p","targets":[{"name":"T","ra":1.5,"dec":-2.5}]}`, "X-Forwarded-User", "anna")
	store(t, a, "/sbds/b", `{}`)
	want(t, 200, a.Do("POST", "/sbds/a/status", `{"status":"Ready","at":"2026-03-01T00:00:00Z"}`))
	const header = "kind,id,version,created_by,created_on,last_modified_by,last_modified_on,telescope,name,targets,references,status,class,status_at\r\n"
	first := want(t, 200, a.Do("GET", "/sbds/search?sort=id&limit=1", "", "Accept", "text/csv"))
	row := fmt.Sprintf("sbds,a,1,anna,%s,anna,%s,ska_mid,'=cmd|x,\"[{\"\"name\"\":\"\"T\"\",\"\"ra\"\":1.5,\"\"dec\"\":-2.5}]\","+
		"\"[{\"\"kind\"\":\"\"prjs\"\",\"\"id\"\":\"\"p\"\",\"\"version\"\":null,\"\"field\"\":\"\"prj_ref\"\"}]\",Ready,planned,2026-03-01T00:00:00.000000Z\r\n", m.CreatedOn, m.LastModifiedOn)
	if first.Text() != header+row {
		t.Errorf("the table is\n%s, want\n%s", first.Body, header+row)
	}
	link, _, _ := strings.Cut(strings.TrimPrefix(first.Header.Get("Link"), "<"), ">")
	second := want(t, 200, a.Do("GET", "/sbds/"+link, "", "Accept", "text/csv"))
	if rows := must.Get(csv.NewReader(strings.NewReader(second.Text())).ReadAll())(t); len(rows) != 2 || rows[1][1] != "b" || second.Header.Get("Link") != "" {
		t.Errorf("the second page is %s", second.Body)
	}
	if r := want(t, 200, a.Do("GET", "/sbis/search", "", "Accept", "text/csv")); r.Text() != header {
		t.Errorf("an empty table is %s", r.Body)
	}
	for _, fields := range []string{"id", "document"} {
		refused(t, a.Do("GET", "/sbds/search?fields="+fields, "", "Accept", "text/csv"), 400, oda.InvalidQuery, "text/csv")
	}
}
