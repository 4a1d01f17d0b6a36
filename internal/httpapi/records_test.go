package httpapi_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"oda"
	"oda/internal/test/env"
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
	if err := json.Unmarshal(r.Body, &answer); err != nil {
		t.Fatal(err)
	}
	return answer
}

// block reads an ExecutionBlock.
func block(t testing.TB, a *env.Archive, id string) string {
	t.Helper()
	return want(t, 200, a.Do("GET", "/ebs/"+id, "")).Text()
}

func TestRecordingIsSmallAndKeepsOrder(t *testing.T) {
	a := env.Start(t)
	before := store(t, a, "/ebs/eb", `{"note":1}`, "X-Forwarded-User", "anna")
	if strings.Contains(block(t, a, "eb"), "request_responses") {
		t.Error("a block without a list of records gets one before its first record")
	}
	first := before
	texts := []string{`{"request":"a"}`, `{ "request" : "\u0062", "n": 1.0e3 }`, `{"request":"a"}`, `{"request":"c","other":[null]}`}
	for i, text := range texts {
		method := []string{"POST", "PATCH"}[i%2]
		got := record(t, a, method, "eb", text+"\n", "X-Forwarded-User", "bob")
		switch {
		case got.ID != "eb" || got.Sequence != int64(i+1):
			t.Errorf("the answer is %+v, want eb and %d", got, i+1)
		case got.Metadata.Version != 1 || got.Metadata.CreatedBy != "anna" || got.Metadata.CreatedOn != first.CreatedOn:
			t.Errorf("recording changes %+v into %+v", first, got.Metadata)
		case got.Metadata.LastModifiedBy != "bob" || !got.Metadata.modifiedOn(t).After(before.modifiedOn(t)):
			t.Errorf("recording does not change last_modified_on: %+v", got.Metadata)
		}
		before = got.Metadata
	}
	text := block(t, a, "eb")
	if want := `"request_responses":[` + strings.Join(texts, ",") + `]`; !strings.Contains(text, want) {
		t.Errorf("the block is %s, want %s in it", text, want)
	}
	if got := metadataOf(t, []byte(text)); got != before {
		t.Errorf("the block has %+v, the last answer had %+v", got, before)
	}
}

// A PUT whose document was read before a record was added would drop that record
// unnoticed.
func TestAPutWithMetadataFromBeforeARecordIsRefused(t *testing.T) {
	a := env.Start(t)
	store(t, a, "/ebs/eb", `{"request_responses":[]}`)
	reading := block(t, a, "eb")
	record(t, a, "POST", "eb", `{"request":"a"}`)
	unchanged(t, a, func() {
		p := refused(t, a.Do("PUT", "/ebs/eb", reading), 422, oda.MetadataMismatch)
		if !slices.Equal(p.pointers(), []string{"/metadata/last_modified_on"}) {
			t.Errorf("the faults are at %v", p.pointers())
		}
	})
	want(t, 200, a.Do("PUT", "/ebs/eb", block(t, a, "eb")))
}

// A PUT says which records the new version holds, and no sequence number is used
// twice.
func TestPutSaysWhichRecordsTheNewVersionHolds(t *testing.T) {
	a := env.Start(t)
	store(t, a, "/ebs/eb", `{"request_responses":[{"request":"a"},{"request":"b"}]}`)
	if got := record(t, a, "POST", "eb", `{"request":"c"}`); got.Sequence != 3 {
		t.Errorf("after two records that came with the document, the sequence is %d", got.Sequence)
	}
	steps := []struct{ name, records string }{
		{"edit", `[{"request":"a"},{"request":"B"},{"request":"c"}]`},
		{"drop", `[{"request":"c"}]`},
		{"reorder and repeat", `[{"request":"x"},{"request":"c"},{"request":"c"}]`},
		{"empty", `[]`},
		{"omit", ``},
	}
	highest := int64(3)
	for _, step := range steps {
		t.Run(step.name, func(t *testing.T) {
			m := metadataOf(t, []byte(block(t, a, "eb")))
			body := `{"metadata":` + m.text() + `}`
			if step.records != "" {
				body = `{"request_responses":` + step.records + `,"metadata":` + m.text() + `}`
			}
			want(t, 200, a.Do("PUT", "/ebs/eb", body))
			text := block(t, a, "eb")
			if step.records == "" && strings.Contains(text, "request_responses") || !strings.Contains(text, step.records) {
				t.Errorf("the block is %s", text)
			}
			got := record(t, a, "POST", "eb", `{"request":"next"}`)
			if got.Sequence <= highest {
				t.Errorf("the sequence is %d after %d", got.Sequence, highest)
			}
			highest = got.Sequence
		})
	}
}

func TestRecordsKeep(t *testing.T) {
	a := env.Start(t)
	read := store(t, a, "/ebs/eb", `{"n":1,"request_responses":[{"request":"a"}]}`, "X-Forwarded-User", "anna")
	record(t, a, "POST", "eb", `{"request":"b"}`)
	record(t, a, "POST", "eb", `{"request":"c"}`)
	const path = "/ebs/eb?records=keep"

	t.Run("carries records over that came after the read", func(t *testing.T) {
		got := want(t, 200, a.Do("PUT", path, `{"n":2,"metadata":`+read.text()+`}`))
		if !strings.Contains(got.Text(), `"request_responses":[{"request":"a"},{"request":"b"},{"request":"c"}]`) || !strings.Contains(got.Text(), `"n":2`) {
			t.Errorf("the answer is %s", got.Body)
		}
		if m := metadataOf(t, got.Body); m.Version != 2 {
			t.Errorf("the version is %d", m.Version)
		}
		if block(t, a, "eb") != got.Text() {
			t.Error("GET does not answer what PUT answered")
		}
	})
	t.Run("continues the sequence", func(t *testing.T) {
		if got := record(t, a, "POST", "eb", `{"request":"d"}`); got.Sequence != 4 {
			t.Errorf("the sequence is %d", got.Sequence)
		}
	})
	current := metadataOf(t, []byte(block(t, a, "eb")))
	for _, test := range []struct {
		name, path, body string
		status           int
		code             oda.Code
		pointer          string
	}{
		{"a list is refused", path, `{"request_responses":[],"metadata":` + current.text() + `}`, 400, oda.InvalidRequest, "/request_responses"},
		{"a list of null is refused", path, `{"request_responses":null,"metadata":` + current.text() + `}`, 400, oda.InvalidRequest, "/request_responses"},
		{"another version is refused", path, `{"metadata":` + read.text() + `}`, 422, oda.MetadataMismatch, "/metadata/version"},
		{"another creator is refused", path, `{"metadata":` + strings.Replace(current.text(), "anna", "bob", 1) + `}`, 422, oda.MetadataMismatch, "/metadata/created_by"},
		{"any other word is refused", "/ebs/eb?records=drop", `{"metadata":` + current.text() + `}`, 400, oda.InvalidRequest, "query:records"},
		{"an empty word is refused", "/ebs/eb?records=", `{"metadata":` + current.text() + `}`, 400, oda.InvalidRequest, "query:records"},
	} {
		t.Run(test.name, func(t *testing.T) {
			unchanged(t, a, func() {
				p := refused(t, a.Do("PUT", test.path, test.body), test.status, test.code)
				if !slices.Contains(p.pointers(), test.pointer) {
					t.Errorf("the faults are at %v", p.pointers())
				}
			})
		})
	}
	t.Run("compares only version and creation", func(t *testing.T) {
		want(t, 200, a.Do("PUT", path, fmt.Sprintf(`{"metadata":{"version":%d,"created_by":%q,"created_on":%q}}`,
			current.Version, current.CreatedBy, current.CreatedOn)))
	})
	t.Run("creates a new block", func(t *testing.T) {
		if got := want(t, 200, a.Do("PUT", "/ebs/fresh?records=keep", `{}`)); strings.Contains(got.Text(), "request_responses") {
			t.Errorf("the new block is %s", got.Body)
		}
	})
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
