package judge_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"oda/internal/test/judge"
	"oda/internal/test/must"
)

const (
	goodMetadata = `{"version":1,"created_by":"a","created_on":"2026-01-01T00:00:00.000000Z",` +
		`"last_modified_by":"a","last_modified_on":"2026-01-01T00:00:00.000000Z"}`
	goodEntity  = `{"sbd_id":"x","metadata":` + goodMetadata + `}`
	goodProblem = `{"type":"urn:oda:problem:invalid-request","title":"t","status":400,"detail":"Do this.","instance":"urn:oda:request:1"}`
)

// A judge that never complains proves nothing. Here a server breaks each rule that
// the judge checks, and once it breaks none.
func TestTheJudgeCatches(t *testing.T) {
	tests := []struct {
		name                string
		method, path, sent  string
		status              int
		contentType, answer string
		header              map[string]string
		complaint           string // empty: nothing is wrong
	}{
		{name: "nothing in a true answer", method: "GET", path: "/sbds/x", status: 200, answer: goodEntity},
		{
			name: "nothing in a true problem", method: "PUT", path: "/sbds/x", sent: `[]`, status: 400,
			contentType: "application/problem+json", answer: goodProblem,
		},
		{name: "a body that lacks a member", method: "GET", path: "/sbds/x", status: 200, answer: `{"sbd_id":"x"}`, complaint: "metadata"},
		{
			name: "a time spelled otherwise", method: "GET", path: "/sbds/x", status: 200,
			answer: strings.ReplaceAll(goodEntity, ".000000Z", "Z"), complaint: "created_on",
		},
		{name: "a status that is not described", method: "GET", path: "/sbds/x", status: 201, answer: goodEntity, complaint: "status"},
		{name: "a wrong content type", method: "GET", path: "/sbds/x", status: 200, contentType: "text/plain", answer: goodEntity, complaint: "Content-Type"},
		{name: "a missing ETag", method: "GET", path: "/sbds/x", status: 200, answer: goodEntity, header: map[string]string{"ETag": ""}, complaint: "ETag"},
		{
			name: "a stale answer that may be kept", method: "GET", path: "/sbds/x", status: 200, answer: goodEntity,
			header: map[string]string{"Cache-Control": "max-age=60"}, complaint: "Cache-Control",
		},
		{name: "a missing request id", method: "GET", path: "/sbds/x", status: 200, answer: goodEntity, header: map[string]string{"X-Request-Id": ""}, complaint: "X-Request-Id"},
		{name: "a 304 without ETag", method: "GET", path: "/sbds/x", status: 304, header: map[string]string{"ETag": ""}, complaint: "ETag"},
		{name: "a list of something else", method: "GET", path: "/sbds?user=a", status: 200, answer: `[1]`, complaint: "schema"},
		{
			name: "an encoding that is none", method: "GET", path: "/sbds/x", status: 200, answer: goodEntity,
			header: map[string]string{"Content-Encoding": "gzip"}, complaint: "decoded",
		},
		{name: "a wrong body that succeeds", method: "PUT", path: "/sbds/x", sent: `{"metadata":1}`, status: 200, answer: goodEntity, complaint: "but succeeds"},
		{
			name: "a wrong time that succeeds", method: "PUT", path: "/sbds/x", sent: `{"metadata":{"created_on":"soon"}}`, status: 200,
			answer: goodEntity, complaint: "but succeeds",
		},
		{name: "a wrong parameter that succeeds", method: "GET", path: "/sbds?user=a&limit=0", status: 200, answer: `[]`, complaint: "but succeeds"},
		{name: "loose JSON that succeeds", method: "PUT", path: "/sbds/x", sent: `{"a":1,"a":2}`, status: 200, answer: goodEntity, complaint: "succeeds"},
		{
			name: "a right body that is refused", method: "PUT", path: "/sbds/x", sent: `{}`, status: 400,
			contentType: "application/problem+json", answer: goodProblem, complaint: "fits the description, but is refused",
		},
		{
			name: "a right method that is refused", method: "PUT", path: "/sbds/x", sent: `{}`, status: 405,
			contentType: "application/problem+json", answer: strings.ReplaceAll(goodProblem, "400", "405"), complaint: "method",
		},
		{name: "a path that nobody described", method: "GET", path: "/secret", status: 200, answer: `{}`, complaint: "undescribed"},
		{name: "a redirect that leads away", method: "GET", path: "", status: 307, header: map[string]string{"Location": "/api/v1/"}, complaint: "relative"},
		{
			name: "a 405 without Allow", method: "DELETE", path: "/sbds/x", status: 405, contentType: "application/problem+json",
			answer: strings.NewReplacer("400", "405", "invalid-request", "wrong-method").Replace(goodProblem), complaint: "Allow",
		},
		{
			name: "a problem of an unknown type", method: "PUT", path: "/sbds/x", sent: `[]`, status: 400,
			contentType: "application/problem+json", answer: strings.ReplaceAll(goodProblem, "invalid-request", "oops"), complaint: "type",
		},
		{
			name: "a problem with another status inside", method: "PUT", path: "/sbds/x", sent: `[]`, status: 400,
			contentType: "application/problem+json", answer: strings.ReplaceAll(goodProblem, "400", "422"), complaint: "status 422",
		},
		{
			name: "a problem that shows the inside", method: "PUT", path: "/sbds/x", sent: `[]`, status: 400,
			contentType: "application/problem+json", answer: strings.ReplaceAll(goodProblem, "Do this", "open /tmp/x"), complaint: "internals",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			liar := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				h := w.Header()
				h.Set("Content-Type", "application/json")
				h.Set("X-Request-Id", "1")
				h.Set("ETag", `"1-1"`)
				h.Set("Vary", "Accept-Encoding")
				h.Set("Cache-Control", "private, no-cache")
				if test.contentType != "" {
					h.Set("Content-Type", test.contentType)
				}
				for name, value := range test.header {
					if h.Set(name, value); value == "" {
						h.Del(name)
					}
				}
				w.WriteHeader(test.status)
				_, _ = io.WriteString(w, test.answer)
			}))
			defer liar.Close()
			var complaints []string
			connections := &http.Transport{DisableCompression: true}
			defer connections.CloseIdleConnections()
			transport := must.Get(judge.New(liar.URL+"/api/v1", 100, connections, func(c string) { complaints = append(complaints, c) }))(t)
			request := must.Get(http.NewRequestWithContext(t.Context(), test.method, liar.URL+"/api/v1"+test.path, strings.NewReader(test.sent)))(t)
			response := must.Get(transport.RoundTrip(request))(t)
			if got, err := io.ReadAll(response.Body); err != nil || string(got) != test.answer {
				t.Errorf("the judge passes on %q, %v", got, err)
			}
			switch got := strings.Join(complaints, "\n"); {
			case test.complaint == "" && got != "":
				t.Errorf("the judge complains without cause: %s", got)
			case test.complaint != "" && !strings.Contains(got, test.complaint):
				t.Errorf("the judge does not complain about %q, but says: %s", test.complaint, got)
			}
		})
	}
}
