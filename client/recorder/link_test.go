package recorder_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"oda"
	"oda/client/recorder"
	"oda/internal/app"
	"oda/internal/test/env"
	"oda/internal/test/must"
)

// The archive waits half a second for a request, and the slow link needs much
// longer for the records that have gathered.
func TestASlowLinkDelaysRecordsAndLosesNone(t *testing.T) {
	t.Parallel()
	archive := env.Start(t, func(cfg *app.Config) { cfg.ReadTimeout = 500 * time.Millisecond })
	network := newRelay(t)
	network.point(archive.Addr())
	c := clientOf(t, network.address())
	dir := t.TempDir()
	rec, log := opened(t, c, recorder.Options{Dir: dir})
	network.narrow(128 << 10)
	const records = 100
	for n := 1; n <= records; n++ {
		record := numbered(n)
		record.Response = strings.Repeat("x", 4<<10)
		must.Do(t, rec.Record(record))
	}
	if err := rec.Flush(patient(t)); err != nil {
		t.Fatalf("%v\n%s", err, log)
	}
	timeouts := 0
	for _, line := range archive.Log() {
		if line["problem"] == string(oda.RequestTimeout) {
			timeouts++
		}
	}
	if timeouts == 0 {
		t.Error("no request took too long; the test shows nothing")
	}
	closeRecorder(t, rec)
	wantNumbers(t, c, rec.BlockID(), records)
	if left := sessionsIn(t, dir); rec.Refused() != 0 || len(left) > 0 {
		t.Errorf("%d records were refused, and these sessions are left: %v", rec.Refused(), left)
	}
}

// switchboard answers instead of an archive until it is told to connect.
type switchboard struct {
	*httptest.Server
	mu      sync.Mutex
	answer  http.HandlerFunc // nil if the archive answers
	archive http.Handler
	given   int
}

func newSwitchboard(t *testing.T, archive http.Handler) *switchboard {
	t.Helper()
	s := &switchboard{archive: archive}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *switchboard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	answer := s.answer
	if answer != nil {
		s.given++
	}
	s.mu.Unlock()
	if answer == nil {
		s.archive.ServeHTTP(w, r)
		return
	}
	answer(w, r)
}

func (s *switchboard) set(answer http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer, s.given = answer, 0
}

func (s *switchboard) answered() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.given
}

// Something between a script and the archive may answer instead, or the archive
// may not know the user. Neither says anything about a record.
func TestOnlyTheArchiveItselfRefusesARecord(t *testing.T) {
	t.Parallel()
	const page = "<html><body>no</body></html>"
	problem := func(code, more string) string {
		return `{"type":"urn:oda:problem:` + code + `","title":"x","status":400,"detail":"No."` + more + `}`
	}
	for name, answer := range map[string]http.HandlerFunc{
		"a gateway's 400":              env.Answering(400, page),
		"a gateway's 404":              env.Answering(404, page),
		"a gateway's 405":              env.Answering(405, page),
		"a gateway's 408":              env.Answering(408, page),
		"a gateway's 413":              env.Answering(413, page),
		"a gateway's 422":              env.Answering(422, `{"detail":[{"loc":["body"]}]}`),
		"401":                          env.Answering(401, problem("not-authenticated", "")),
		"403":                          env.Answering(403, problem("not-allowed", "")),
		"425":                          env.Answering(425, ""),
		"429":                          env.Answering(429, page),
		"500":                          env.Answering(500, page),
		"503 with another body":        env.Answering(503, `{"type":5,"detail":{"a":1},"errors":{"x":[]}}`),
		"504":                          env.Answering(504, ""),
		"a redirect":                   env.Answering(302, "", "Location", "/login"),
		"a portal's page":              env.Answering(200, page),
		"unrelated JSON":               env.Answering(200, `{"records":[],"sequence":1}`),
		"nothing":                      env.Answering(200, ""),
		"408 of the archive":           env.Answering(408, problem("request-timeout", "")),
		"a body that was cut off":      env.Answering(400, problem("invalid-request", "")),
		"an invalid parameter":         env.Answering(400, problem("invalid-request", `,"errors":[{"pointer":"query:x","detail":"No."}]`)),
		"a user that is refused":       env.Answering(400, problem("invalid-user", `,"errors":[{"pointer":"header:X-Forwarded-User","detail":"No."}]`)),
		"a problem of a newer release": env.Answering(422, problem("moon-phase", "")),
		"an unknown method":            env.Answering(405, problem("wrong-method", "")),
		"an unknown path":              env.Answering(404, problem("no-such-path", "")),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			between := newSwitchboard(t, env.Start(t).Forward())
			c := clientOf(t, between.URL)
			dir := t.TempDir()
			rec, log := opened(t, c, recorder.Options{Dir: dir})
			between.set(answer)
			recordNumbers(t, rec, 1, 3)
			env.Await(t, "a message about it", func() bool { return strings.Contains(log.String(), "wait in the spool") })
			if got := rec.Lag().Records; got != 3 || rec.Refused() != 0 {
				t.Errorf("%d records wait, %d are refused:\n%s", got, rec.Refused(), log)
			}
			between.set(nil)
			closeRecorder(t, rec)
			wantNumbers(t, c, rec.BlockID(), 3)
			wantSent(t, dir)
		})
	}
}

// Even behind a gateway that accepts only small requests, every record arrives.
func TestBatchesShrinkBehindAGatewayThatAcceptsLittle(t *testing.T) {
	t.Parallel()
	archive := env.Start(t).Forward()
	gateway := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength > 2000 {
			env.Answering(413, "<html>413 Request Entity Too Large</html>")(w, r)
			return
		}
		archive.ServeHTTP(w, r)
	})
	between := newSwitchboard(t, gateway)
	c := clientOf(t, between.URL)
	rec, log := opened(t, c, recorder.Options{})
	between.set(env.Answering(503, ""))
	recordNumbers(t, rec, 1, 300)
	env.Await(t, "an answer", func() bool { return between.answered() > 0 })
	between.set(nil)
	closeRecorder(t, rec)
	wantNumbers(t, c, rec.BlockID(), 300)
	if rec.Refused() != 0 {
		t.Errorf("%d records were refused:\n%s", rec.Refused(), log)
	}
}
