package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"oda"
	"oda/client"
	"oda/internal/test/env"
	"oda/internal/test/must"
	"oda/search"
)

// bg is for calls that need no deadline of their own.
var bg = context.Background()

func TestAProblemBecomesAnErrorOfTheArchive(t *testing.T) {
	t.Parallel()
	c := start(t)
	_, err := c.Store(t.Context(), oda.ExecutionBlock, "eb-1", []byte(`{"request_responses":[{"request":1}],"metadata":{"version":0}}`))
	problem, ok := errors.AsType[*oda.Error](err)
	if !ok || problem.Code != oda.InvalidRequest || len(problem.Faults) != 2 || problem.Detail == "" {
		t.Fatalf("the error is %#v", err)
	}
	answer, ok := errors.AsType[*client.Answer](err)
	if !ok || answer.Status != 400 || answer.RequestID == "" {
		t.Errorf("the answer is %+v", answer)
	}
	if client.Temporary(err) {
		t.Error("a refusal is temporary")
	}
	if client.Temporary(nil) || client.Status(nil) != 0 {
		t.Error("a nil error has a status or is temporary")
	}
}

// A problem that the client does not know would look like a fault of the server.
func TestTheClientKnowsEveryProblem(t *testing.T) {
	t.Parallel()
	text := must.Get(os.ReadFile("../docs/problems.md"))(t)
	codes := regexp.MustCompile("(?m)^`"+oda.CodePrefix+"([a-z-]+)`, status").FindAllStringSubmatch(string(text), -1)
	if len(codes) < 20 {
		t.Fatalf("docs/problems.md has %d problems", len(codes))
	}
	for _, code := range codes {
		f := front(t, http.NotFoundHandler(), env.Answering(400, `{"type":"`+oda.CodePrefix+code[1]+`"}`))
		_, err := dialing(t, f.URL).Get(t.Context(), oda.Project, "prj-1")
		if oda.CodeOf(err) != oda.Code(code[1]) {
			t.Errorf("%s becomes %s", code[1], oda.CodeOf(err))
		}
	}
}

func TestAnotherServerIsNotMistakenForAnArchive(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		answer http.HandlerFunc
		status int
		words  string
	}{
		"a page":                       {env.Answering(200, "<html>Log in</html>"), 200, "Is this the address of an archive?"},
		"nothing":                      {env.Answering(200, ""), 200, "is not valid"},
		"another document":             {env.Answering(200, `{"name":"x"}`), 200, "has no prj_id"},
		"an array":                     {env.Answering(200, `[]`), 200, "not a JSON object"},
		"half a document":              {env.Answering(200, `{"prj_id":"prj-1","metadata":{"version":1`), 200, "is not valid"},
		"no metadata":                  {env.Answering(200, `{"prj_id":"prj-1"}`), 200, "metadata has no"},
		"no times":                     {env.Answering(200, `{"prj_id":"prj-1","metadata":{"version":1,"created_by":"a","created_on":"x","last_modified_by":"a","last_modified_on":"x"}}`), 200, "is not a valid time"},
		"a status of its own":          {env.Answering(418, "I am a teapot"), 418, "418"},
		"another server's 404":         {env.Answering(404, "404 page not found"), 404, "Is this the address of an archive?"},
		"a problem of another kind":    {env.Answering(404, `{"type":"about:blank","detail":"x"}`), 404, "does not come from an archive"},
		"a problem of a newer archive": {env.Answering(400, `{"type":"urn:oda:problem:moon-phase","detail":"Wait."}`), 400, `does not know, "moon-phase": Wait.`},
		"a large page":                 {env.Answering(500, strings.Repeat("x", 3<<20)), 500, "500"},
	} {
		t.Run(name, func(t *testing.T) {
			f := front(t, http.NotFoundHandler(), test.answer)
			_, err := dialing(t, f.URL).Get(t.Context(), oda.Project, "prj-1")
			refused(t, err, oda.Internal, test.status)
			if !strings.Contains(err.Error(), test.words) {
				t.Errorf("the error is %q, want %q", err, test.words)
			}
			if !client.Temporary(err) {
				t.Error("an error that the archive did not send is final")
			}
		})
	}
}

func TestEveryCallRefusesAnInvalidAnswer(t *testing.T) {
	t.Parallel()
	const metadata = `{"version":1,"created_by":"a","created_on":"2026-01-01","last_modified_by":"a","last_modified_on":"2026-01-01"}`
	for name, test := range map[string]struct {
		call  func(*client.Client) error
		body  string
		words string
	}{
		"record":                {record, `[]`, "cannot unmarshal"},
		"record, no metadata":   {record, `{"sequence":1}`, "metadata has no"},
		"batch":                 {recordOne, `x`, "invalid character"},
		"batch, other length":   {recordOne, `{"records":[],"metadata":` + metadata + `}`, "sequences of 0 records instead of 1"},
		"records":               {records, `x`, "invalid character"},
		"records, not a time":   {records, `{"records":[{"sequence":1,"recorded_at":"x","record":{}}]}`, "is not a valid time"},
		"records, not in order": {records, `{"records":[{"sequence":2,"recorded_at":"2026-01-01","record":{}},{"sequence":2,"recorded_at":"2026-01-01","record":{}}]}`, "not in order"},
		"records, never ending": {records, `{"records":[]}`, "says there are more"},
		"list":                  {list(0), `{"a":1}`, "where [ should be"},
		"list of numbers":       {list(0), `[1]`, "cannot unmarshal number"},
		"list, and more":        {list(0), `["a"]["b"]`, "follows the list"},
		"list, not JSON":        {list(0), `["a" "b"]`, "expected comma"},
		"page":                  {list(1), `["a"`, "EOF"},
		"page, going nowhere":   {list(1), `["a"]`, "not lead to a next page"},
	} {
		t.Run(name, func(t *testing.T) {
			f := front(t, http.NotFoundHandler(), env.Answering(200, test.body, "Link", `<ebs?limit=1>; rel="next"`))
			err := test.call(dialing(t, f.URL))
			if oda.CodeOf(err) != oda.Internal || client.Status(err) != 200 || !strings.Contains(err.Error(), test.words) {
				t.Errorf("the error is %v, want %q", err, test.words)
			}
		})
	}
	f := front(t, http.NotFoundHandler(), env.Answering(200, `["a",`))
	if err := list(0)(dialing(t, f.URL)); !errors.Is(err, client.ErrNoAnswer) {
		t.Errorf("a list that ends early: %v", err)
	}
}

// A search goes on after what is damaged, and ends after every other error.
func TestASearchGoesOnBehindDamage(t *testing.T) {
	t.Parallel()
	const link = `<search?cursor=c&fields=id&limit=50>; rel="next"`
	found := env.Answering(200, `{"items":["sbd-2"],"next":null}`)
	for name, test := range map[string]struct {
		answer http.HandlerFunc
		found  []string
	}{
		"damaged":          {env.Answering(500, `{"type":"urn:oda:problem:damaged","detail":"sbd-1"}`, "Link", link), []string{"sbd-2"}},
		"damaged, the end": {env.Answering(500, `{"type":"urn:oda:problem:damaged","detail":"sbd-1"}`), nil},
		"refused":          {env.Answering(404, `{"type":"urn:oda:problem:no-such-path","detail":"x"}`, "Link", link), nil},
		"of a gateway":     {env.Answering(500, `<html>`, "Link", link), nil},
	} {
		var got []string
		failed := 0
		for id, err := range dialing(t, front(t, found, test.answer).URL).SearchIDs(bg, search.Search{Kind: oda.SBDefinition}) {
			if err != nil {
				failed++
			} else {
				got = append(got, id)
			}
		}
		if failed != 1 || !slices.Equal(got, test.found) {
			t.Errorf("%s: %d errors and %v", name, failed, got)
		}
	}
	f := front(t, env.Answering(500, `{"type":"urn:oda:problem:damaged","detail":"x"}`, "Link", link))
	failed := 0
	for range dialing(t, f.URL).SearchIDs(bg, search.Search{Kind: oda.SBDefinition}) {
		failed++
	}
	if failed != 2 {
		t.Errorf("a link that leads to itself is followed %d times", failed)
	}
}

func record(c *client.Client) error {
	_, err := c.Record(bg, "eb-1", []byte(`{"request":"a"}`), "")
	return err
}

func recordOne(c *client.Client) error {
	_, err := c.RecordBatch(bg, "eb-1", []oda.NewRecord{{Text: []byte(`{"request":"a"}`)}})
	return err
}

func records(c *client.Client) (last error) {
	for _, err := range c.Records(bg, "eb-1", 0) {
		last = err
	}
	return last
}

func list(page int) func(*client.Client) error {
	return func(c *client.Client) (last error) {
		for _, err := range c.List(bg, oda.Query{Kind: oda.ExecutionBlock, User: "a", Limit: page}) {
			last = err
		}
		return last
	}
}

func TestTheSizeOfAnAnswerIsBounded(t *testing.T) {
	t.Parallel()
	archive := env.Start(t)
	c := connect(t, archive, client.WithMaxBody(1000))
	_, err := c.Store(t.Context(), oda.Project, "prj-1", []byte(`{"name":"`+strings.Repeat("x", 1000)+`"}`))
	refused(t, err, oda.BodyTooLarge, 200)
	must.Get(c.Store(t.Context(), oda.Project, "prj-2", []byte(`{}`)))(t)
	unbounded := connect(t, archive, client.WithMaxBody(math.MaxInt64))
	if d := must.Get(unbounded.Get(t.Context(), oda.Project, "prj-1"))(t); len(d.Body) <= 1000 {
		t.Errorf("without a bound the answer has %d bytes", len(d.Body))
	}
}

func TestAWriteIsNotRedirected(t *testing.T) {
	t.Parallel()
	archive := env.Start(t)
	f := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, archive.Origin()+r.URL.RequestURI(), http.StatusMovedPermanently)
	}))
	t.Cleanup(f.Close)
	c := dialing(t, f.URL)
	_, err := c.Create(t.Context(), oda.Project, []byte(`{}`), "")
	refused(t, err, oda.Internal, 301)
	if !strings.Contains(err.Error(), "redirects to \""+archive.URL()) {
		t.Errorf("the error does not say where to: %v", err)
	}
	must.Get(connect(t, archive).Store(t.Context(), oda.Project, "prj-1", []byte(`{}`)))(t)
	must.Get(c.Get(t.Context(), oda.Project, "prj-1"))(t)
}

func TestConnectionsAreReused(t *testing.T) {
	t.Parallel()
	archive := env.Start(t)
	f := front(t, archive.Forward())
	c := dialing(t, f.URL, client.WithRetries(0))
	fresh := 0
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
		if !info.Reused {
			fresh++
		}
	}})
	must.Get(c.Store(ctx, oda.Project, "prj-1", []byte(`{}`)))(t)
	block := must.Get(c.CreateBlock(ctx, nil, ""))(t).ID
	for range 3 {
		_, err := c.Get(ctx, oda.Project, "prj-none")
		refused(t, err, oda.NotFound, 404)
		must.Get(c.Record(ctx, block, []byte(`{"request":"a"}`), ""))(t)
		collect(t, c.List(ctx, everything(oda.Project)))
		collect(t, c.Records(ctx, block, 0))
	}
	if fresh != 1 {
		t.Errorf("%d connections were made", fresh)
	}
}

func ExampleClient_Get() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"type":"urn:oda:problem:not-found","detail":"The requested identifier sbd-1 could not be found among the sbds."}`)
	}))
	defer server.Close()
	archive, err := client.New(server.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := archive.Get(bg, oda.SBDefinition, "sbd-1"); oda.CodeOf(err) == oda.NotFound {
		fmt.Println("there is no sbd-1")
	}
	// Output: there is no sbd-1
}
