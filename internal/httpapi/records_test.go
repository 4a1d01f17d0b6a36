package httpapi_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"oda"
	"oda/internal/test/env"
	"oda/internal/test/must"
)

// recorded is the answer to a record.
type recorded struct {
	ID       string `json:"eb_id"`
	Sequence int64
	Metadata metadata
}

// record adds a record that must be accepted.
func record(t testing.TB, a *env.Archive, method, block, body string, headers ...string) recorded {
	t.Helper()
	r := want(t, 200, a.Do(method, "/ebs/"+block+"/request_response", body, headers...))
	var answer recorded
	must.Do(t, json.Unmarshal(r.Body, &answer))
	return answer
}

// block reads an ExecutionBlock.
func block(t testing.TB, a *env.Archive, id string) string {
	t.Helper()
	return want(t, 200, a.Do("GET", "/ebs/"+id, "")).Text()
}

// A keep is asked for with records=keep, and then the document has no list.
func TestFormOfAKeep(t *testing.T) {
	a := env.Start(t)
	metadata := store(t, a, "/ebs/eb", `{"request_responses":[{"request":"a"}]}`).text()
	unchanged(t, a, func() {
		for _, test := range []struct{ query, list, pointer string }{
			{"records=keep", `"request_responses":[],`, "/request_responses"},
			{"records=keep", `"request_responses":null,`, "/request_responses"},
			{"records=drop", "", "query:records"},
			{"records=", "", "query:records"},
		} {
			p := refused(t, a.Do("PUT", "/ebs/eb?"+test.query, `{`+test.list+`"metadata":`+metadata+`}`), 400, oda.InvalidRequest)
			if !slices.Equal(p.pointers(), []string{test.pointer}) {
				t.Errorf("%s with %s: the faults are at %v", test.query, test.list, p.pointers())
			}
		}
	})
	if got := want(t, 200, a.Do("PUT", "/ebs/eb?records=keep", `{"metadata":`+metadata+`}`)); !strings.Contains(got.Text(), `[{"request":"a"}]`) {
		t.Errorf("the answer is %s", got.Body)
	}
}

func TestFormOfRecords(t *testing.T) {
	a := env.Start(t)
	store(t, a, "/ebs/eb", `{}`)
	for _, test := range []struct{ name, record, pointer string }{
		{"request alone", `{"request":"a"}`, ""},
		{"everything", `{"request":"a","request_args":{"kwargs":{}},"status":"OK","request_sent_at":"2026-03-01T20:00:00.5Z",` +
			`"response_received_at":"2026-03-01 20:00","response":{"result":"x"},"error":{"detail":"x"},"mine":[1]}`, ""},
		{"nulls", `{"request":"a","request_args":null,"status":null,"request_sent_at":null,"response_received_at":null,"response":null,"error":null}`, ""},
		{"arguments of an older caller", `{"request":"a","request_args":"{}"}`, ""},
		{"no request", `{"response":{}}`, ""},
		{"a list", `[]`, ""},
		{"a text", `"observe"`, ""},
		{"null", `null`, ""},
		{"empty request", `{"request":""}`, "/request"},
		{"request of null", `{"request":null}`, "/request"},
		{"request that is a number", `{"request":1}`, "/request"},
		{"arguments that are a list", `{"request":"a","request_args":[]}`, "/request_args"},
		{"status that is a number", `{"request":"a","status":1}`, "/status"},
		{"response that is a text", `{"request":"a","response":"done"}`, "/response"},
		{"error that is a text", `{"request":"a","error":"bad"}`, "/error"},
		{"time that cannot be read", `{"request":"a","request_sent_at":"noon"}`, "/request_sent_at"},
		{"time that is a number", `{"request":"a","response_received_at":12}`, "/response_received_at"},
	} {
		good := test.pointer == "" && strings.Contains(test.record, `"request":"a"`)
		t.Run(test.name, func(t *testing.T) {
			if good {
				record(t, a, "PATCH", "eb", test.record)
				record(t, a, "POST", "eb", test.record)
				created := want(t, 200, a.Do("POST", "/ebs", `{"request_responses":[`+test.record+`]}`))
				if !strings.Contains(created.Text(), `"request_responses":[`+test.record+`]`) {
					t.Errorf("the block is %s", created.Body)
				}
				return
			}
			unchanged(t, a, func() {
				for _, method := range []string{"PATCH", "POST"} {
					p := refused(t, a.Do(method, "/ebs/eb/request_response", test.record), 400, oda.InvalidRequest)
					if !slices.Equal(p.pointers(), []string{test.pointer}) {
						t.Errorf("the faults are at %q", p.pointers())
					}
				}
				list := `{"request_responses":[{"request":"x"},` + test.record + `]}`
				for _, r := range []*env.Reply{a.Do("PUT", "/ebs/new", list), a.Do("POST", "/ebs", list)} {
					p := refused(t, r, 400, oda.InvalidRequest)
					if !slices.Equal(p.pointers(), []string{"/request_responses/1" + test.pointer}) {
						t.Errorf("in a list, the faults are at %q", p.pointers())
					}
				}
			})
		})
	}
}

// A record needs an ExecutionBlock that exists.
func TestRecordingIntoAnUnknownBlock(t *testing.T) {
	a := env.Start(t)
	store(t, a, "/sbds/eb", `{}`)
	unchanged(t, a, func() {
		for _, id := range []string{"eb", "create", "search", "-x", "a%2Fb", "a%20b", strings.Repeat("a", 129)} {
			for _, method := range []string{"PATCH", "POST"} {
				refused(t, a.Do(method, "/ebs/"+id+"/request_response", `{"request":"a"}`), 404, oda.NotFound, "could not be found")
			}
		}
	})
}
