package skuid

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"oda"
	"oda/internal/test/must"
)

func TestTheClientAsksForTheTypeOfTheKind(t *testing.T) {
	for _, c := range []struct {
		address string // %s is host:port
		types   map[oda.Kind]string
		kind    oda.Kind
		path    string
	}{
		{"http://%s", nil, oda.SBDefinition, "/skuid/ska_id/sbd"},
		{"%s", nil, oda.SBInstance, "/skuid/ska_id/sbi"},
		{" %s/ ", nil, oda.ExecutionBlock, "/skuid/ska_id/eb"},
		{"http://%s/", nil, oda.Project, "/skuid/ska_id/prj"},
		{"http://%s", map[oda.Kind]string{oda.Project: "opj"}, oda.Project, "/skuid/ska_id/opj"},
		{"http://%s", map[oda.Kind]string{oda.Project: "opj"}, oda.SBDefinition, "/skuid/ska_id/sbd"},
		{"http://%s/name/space", nil, oda.SBDefinition, "/name/space/skuid/ska_id/sbd"},
		{"%s/name/space/", nil, oda.SBDefinition, "/name/space/skuid/ska_id/sbd"},
		{"http://me:secret@%s", nil, oda.SBDefinition, "/skuid/ska_id/sbd"},
	} {
		t.Run(c.address+c.path, func(t *testing.T) {
			var asked string
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked = r.URL.Path
				word := asked[strings.LastIndex(asked, "/")+1:]
				w.Write([]byte(`{"ska_uid":"` + word + `-1"}`))
			}))
			defer server.Close()
			client := newClient(t, strings.ReplaceAll(c.address, "%s", server.Listener.Addr().String()), c.types)
			id := must.Get(client.Mint(context.Background(), c.kind))(t)
			if want := c.path[strings.LastIndex(c.path, "/")+1:] + "-1"; asked != c.path || id != want {
				t.Errorf("asked %s and got %s, want %s and %s", asked, id, c.path, want)
			}
		})
	}
}

func TestAddressesThatCannotBeUsedAreRefusedWithoutRepeatingThem(t *testing.T) {
	for address, want := range map[string]string{
		"":                            "http://HOST:PORT",
		"http://":                     "http://HOST:PORT",
		"http://:9870":                "http://HOST:PORT",
		"http://u:secret@bad host":    "http://HOST:PORT",
		"http://u:secret@host:port":   "http://HOST:PORT",
		"ftp://u:secret@host":         "only http and https",
		"http://u:secret@host/?a=b":   "query or a fragment",
		"http://u:secret@host/#there": "query or a fragment",
	} {
		_, err := NewClient(address, nil)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: got %v", address, err)
		}
	}
	if _, err := NewClient("host", map[oda.Kind]string{oda.Project: "../x"}); err == nil {
		t.Error("a type that is not a word was accepted")
	}
}

func TestTheDefaultBoundsAreShort(t *testing.T) {
	c := newClient(t, "host", nil)
	if c.Tries != 3 || c.TryTimeout != 2*time.Second || c.Timeout != 5*time.Second {
		t.Errorf("got %d tries, %s each, %s together", c.Tries, c.TryTimeout, c.Timeout)
	}
}

// answers returns a handler that gives every request the same answer.
func answers(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		w.Write([]byte(body))
	}
}

func silent(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

func reset(w http.ResponseWriter, _ *http.Request) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	conn.(*net.TCPConn).SetLinger(0)
	conn.Close()
}

// dripping sends its headers and then nothing more.
func dripping(w http.ResponseWriter, r *http.Request) {
	w.Write([]byte(`{"ska_uid":`))
	http.NewResponseController(w).Flush()
	<-r.Context().Done()
}

func TestTheErrorNamesAServiceThatDoesNotAnswerOrAnswersWrongly(t *testing.T) {
	good := `{"ska_uid":"sbd-1","generator_id":"1"}`
	for _, c := range []struct {
		about   string
		handler http.HandlerFunc
		reason  string
	}{
		{"silent", silent, "did not answer"},
		{"stops in the middle", dripping, "did not answer"},
		{"resets the connection", reset, "did not answer"},
		{"status 500", answers(500, good), "answered with status 500"},
		{"status 202", answers(202, good), "answered with status 202"},
		{"unknown type", answers(404, ""), "does not know that type"},
		{"another type", answers(200, `{"ska_uid":"sbi-1"}`), "sent an invalid answer"},
		{"another type that begins alike", answers(200, `{"ska_uid":"sbdx-1"}`), "sent an invalid answer"},
		{"the type in capitals", answers(200, `{"ska_uid":"SBD-1"}`), "sent an invalid answer"},
		{"nothing after the type", answers(200, `{"ska_uid":"sbd-"}`), "sent an invalid answer"},
		{"a colon", answers(200, `{"ska_uid":"sbd-T0001:1"}`), "sent an invalid answer"},
		{"a slash", answers(200, `{"ska_uid":"sbd-1/../2"}`), "sent an invalid answer"},
		{"too long an identifier", answers(200, `{"ska_uid":"sbd-`+strings.Repeat("1", 125)+`"}`), "sent an invalid answer"},
		{"a number", answers(200, `{"ska_uid":1}`), "sent an invalid answer"},
		{"null", answers(200, `{"ska_uid":null}`), "sent an invalid answer"},
		{"no member", answers(200, `{"uid":"sbd-1"}`), "sent an invalid answer"},
		{"a list", answers(200, `["sbd-1"]`), "sent an invalid answer"},
		{"a bare identifier", answers(200, `"sbd-1"`), "sent an invalid answer"},
		{"encoded three times", answers(200, twiceEncoded(twiceEncoded(good))), "sent an invalid answer"},
		{"trailing text", answers(200, good+"x"), "sent an invalid answer"},
		{"rubbish", answers(200, "<html>hello"), "sent an invalid answer"},
		{"empty", answers(200, ""), "sent an invalid answer"},
		{"too large", answers(200, `{"ska_uid":"sbd-1","more":"`+strings.Repeat("x", 5000)+`"}`), "sent an invalid answer"},
		{"much too large", answers(200, strings.Repeat(" ", 10<<20)+good), "sent an invalid answer"},
	} {
		t.Run(c.about, func(t *testing.T) {
			t.Parallel()
			var asked atomic.Int32
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked.Add(1)
				c.handler(w, r)
			}))
			defer server.Close()
			client := newClient(t, "http://me:secret@"+server.Listener.Addr().String(), nil)
			if c.reason == "did not answer" {
				client.TryTimeout = 100 * time.Millisecond
			}
			begin := time.Now()
			id, err := client.Mint(context.Background(), oda.SBDefinition)
			if took := time.Since(begin); took >= client.Timeout {
				t.Errorf("Mint took %s", took)
			}
			if n := asked.Load(); n != 3 {
				t.Errorf("the service was asked %d times, want 3", n)
			}
			checkProblem(t, id, err, "identifier service at "+server.Listener.Addr().String(), c.reason, "nothing was stored", "Try again")
		})
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	var strayed atomic.Int32
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		strayed.Add(1)
		w.Write([]byte(`{"ska_uid":"sbd-1"}`))
	}))
	defer elsewhere.Close()
	server := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusFound))
	defer server.Close()
	id, err := newClient(t, server.URL, nil).Mint(context.Background(), oda.SBDefinition)
	checkProblem(t, id, err, "answered with status 302")
	if strayed.Load() != 0 {
		t.Error("the other server was asked")
	}
}

func TestMintFailsIfNobodyListens(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	address := server.Listener.Addr().String()
	server.Close()
	id, err := newClient(t, address, nil).Mint(context.Background(), oda.SBDefinition)
	checkProblem(t, id, err, "identifier service at "+address+" did not answer")
}

func TestMintSucceedsIfTheServiceRecovers(t *testing.T) {
	for about, bad := range map[string]http.HandlerFunc{
		"silent": silent, "stops in the middle": dripping, "resets the connection": reset,
		"status 503": answers(503, ""), "wrong type": answers(200, `{"ska_uid":"sbi-1"}`),
	} {
		t.Run(about, func(t *testing.T) {
			t.Parallel()
			var asked atomic.Int32
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if asked.Add(1) < 3 {
					bad(w, r)
					return
				}
				w.Write([]byte(`{"ska_uid":"sbd-1"}`))
			}))
			defer server.Close()
			client := newClient(t, server.URL, nil)
			client.TryTimeout = time.Second
			id, err := client.Mint(context.Background(), oda.SBDefinition)
			if id != "sbd-1" || err != nil {
				t.Errorf("got %q, %v", id, err)
			}
		})
	}
}

func TestTheTimeForAllTriesIsBounded(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(silent))
	defer server.Close()
	client := newClient(t, server.URL, nil)
	client.TryTimeout, client.Timeout = time.Minute, 150*time.Millisecond
	begin := time.Now()
	id, err := client.Mint(context.Background(), oda.SBDefinition)
	if took := time.Since(begin); took < client.Timeout || took >= client.TryTimeout {
		t.Errorf("Mint took %s", took)
	}
	checkProblem(t, id, err, "did not answer")
}

func TestMintEndsWithItsContext(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(silent))
	defer server.Close()
	client := newClient(t, server.URL, nil)
	client.TryTimeout, client.Timeout = time.Minute, time.Minute
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(50*time.Millisecond, cancel)
	begin := time.Now()
	id, err := client.Mint(ctx, oda.SBDefinition)
	if took := time.Since(begin); took >= client.Timeout {
		t.Errorf("Mint took %s", took)
	}
	checkProblem(t, id, err)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("the cause is hidden: %v", err)
	}
}

func TestOneConnectionServesManyCalls(t *testing.T) {
	var connections atomic.Int32
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Write([]byte(`{"ska_uid":"sbd-1"}` + strings.Repeat("\n", 3000)))
	}))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	server.Start()
	defer server.Close()
	client := newClient(t, server.URL, nil)
	for range 50 {
		must.Get(client.Mint(context.Background(), oda.SBDefinition))(t)
	}
	if n := connections.Load(); n != 1 {
		t.Errorf("%d connections were made", n)
	}
}

func TestTypesAreReadFromAList(t *testing.T) {
	for list, want := range map[string]map[oda.Kind]string{
		"":                 {oda.SBDefinition: "sbd", oda.SBInstance: "sbi", oda.ExecutionBlock: "eb", oda.Project: "prj"},
		"prj=opj":          {oda.SBDefinition: "sbd", oda.SBInstance: "sbi", oda.ExecutionBlock: "eb", oda.Project: "opj"},
		" eb=e , sbi = i ": {oda.SBDefinition: "sbd", oda.SBInstance: "i", oda.ExecutionBlock: "e", oda.Project: "prj"},
	} {
		got, err := ParseTypes(list)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%q: %v %s", list, err, diff)
		}
	}
	for list, want := range map[string]string{
		"prj":                     "KIND=TYPE",
		"prj=opj,":                "KIND=TYPE",
		"prjs=opj":                "not one of sbd, sbi, eb, prj",
		"=opj":                    "not one of sbd, sbi, eb, prj",
		"prj=":                    "1 to 16 lower-case letters",
		"prj=OPJ":                 "1 to 16 lower-case letters",
		"prj=a/b":                 "1 to 16 lower-case letters",
		"prj=abcdefghijklmnopq":   "1 to 16 lower-case letters",
		"prj=opj,sbd=sbd,prj=prj": "named twice",
	} {
		if _, err := ParseTypes(list); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want a message with %q", list, err, want)
		}
	}
}

func TestEveryValidIdentifierOfTheTypeIsAccepted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := "sbd-" + rapid.StringMatching(`[A-Za-z0-9._-]{1,124}`).Draw(t, "rest")
		text, err := json.Marshal(map[string]any{"generator_id": rapid.String().Draw(t, "generator"), "ska_uid": want})
		if err != nil {
			t.Fatal(err)
		}
		body := string(text)
		if rapid.Bool().Draw(t, "twice") {
			body = twiceEncoded(body)
		}
		if got, err := parseAnswer([]byte(body), "sbd"); got != want || err != nil {
			t.Errorf("%s: got %q, %v", body, got, err)
		}
	})
}

func FuzzAnswer(f *testing.F) {
	for _, body := range []string{
		`{"ska_uid":"sbd-6txs9jhxnk7","generator_id":"986"}`,
		`"{\"ska_uid\":\"sbd-mvp01-20240426-5781\"}"`,
		`{"ska_uid":"sbd-\u0000"}`, `{"ska_uid":"sbd-\ud800"}`, `"\"sbd-1\""`, `[]`, `null`, ``, "\xef\xbb\xbf{}",
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		id, err := parseAnswer(body, "sbd")
		if err != nil {
			if _, ok := errors.AsType[*wrongAnswer](err); !ok || id != "" {
				t.Errorf("%q: got %q, %v", body, id, err)
			}
			return
		}
		if !strings.HasPrefix(id, "sbd-") || !oda.ValidID(id) {
			t.Errorf("%q: accepted %q", body, id)
		}
	})
}

func newClient(t *testing.T, address string, types map[oda.Kind]string) *Client {
	t.Helper()
	client := must.Get(NewClient(address, types))(t)
	t.Cleanup(client.Close)
	return client
}

func checkProblem(t *testing.T, id string, err error, words ...string) {
	t.Helper()
	problem, ok := errors.AsType[*oda.Error](err)
	if !ok || id != "" || problem.Code != oda.IdentifierService {
		t.Fatalf("got %q, %v; want a problem of the identifier service", id, err)
	}
	for _, word := range words {
		if !strings.Contains(problem.Detail, word) {
			t.Errorf("the detail lacks %q: %s", word, problem.Detail)
		}
	}
	if problem.Err == nil {
		t.Error("the log gets no cause")
	}
	if strings.Contains(err.Error(), "secret") {
		t.Errorf("the password is shown: %v", err)
	}
}

func twiceEncoded(text string) string {
	again, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(again)
}
