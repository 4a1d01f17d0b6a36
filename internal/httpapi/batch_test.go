package httpapi_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"oda"
	"oda/internal/test/env"
	"oda/internal/test/must"
)

// batch returns the body of a batch. Its arguments are key, record, key, record...
func batch(pairs ...string) string {
	var items []string
	for i := 0; i < len(pairs); i += 2 {
		items = append(items, fmt.Sprintf(`{"key":%q, "record": %s}`, pairs[i], pairs[i+1]))
	}
	return `{"records": [` + strings.Join(items, " , ") + `]}`
}

// batchAnswer is the answer to a batch.
type batchAnswer struct {
	ID      string `json:"eb_id"`
	Records []struct {
		Key      string
		Sequence int64
	}
	Metadata metadata
}

func recordBatch(t testing.TB, a *env.Archive, block, body string, headers ...string) batchAnswer {
	t.Helper()
	r := want(t, 200, a.Do("POST", "/ebs/"+block+"/request_responses", body, headers...))
	var answer batchAnswer
	must.Do(t, json.Unmarshal(r.Body, &answer))
	return answer
}

func (b batchAnswer) sequences() string {
	var s []string
	for _, r := range b.Records {
		s = append(s, fmt.Sprint(r.Key, "=", r.Sequence))
	}
	return strings.Join(s, " ")
}

func TestABatchOnTheWire(t *testing.T) {
	a := env.Start(t)
	store(t, a, "/ebs/eb", `{}`)
	record(t, a, "PATCH", "eb", `{"request":"c"}`, key, "k3")
	got := recordBatch(t, a, "eb", batch("k1", `{"request":"a"}`, "k3", `{"request":"c"}`), user, "anna")
	if got.ID != "eb" || got.sequences() != "k1=2 k3=1" || got.Metadata.LastModifiedBy != "anna" {
		t.Errorf("got %+v", got)
	}
	path := "/ebs/eb/request_responses"
	unchanged(t, a, func() {
		p := refused(t, a.Do("POST", path, batch("k0", `{"request":"z"}`, "k1", `{"request":"other"}`)), 422, oda.KeyReused, "another body")
		if len(p.Errors) != 1 || p.Errors[0].Pointer != "/records/1/key" {
			t.Errorf("the faults are %v", p.Errors)
		}
		refused(t, a.Do("POST", path, batch("k2", `{"request":"b"}`, "k4", `{"request":"c"}`, "k2", `{"request":"b"}`)), 422, oda.KeyReused, "twice")
		refused(t, a.Do("POST", "/ebs/unknown/request_responses", batch("k", `{"request":"b"}`)), 404, oda.NotFound, "could not be found")
		for _, body := range []string{
			`{}`, `[]`, `{"records":[]}`, `{"records":{}}`, `{"records":[{"record":{"request":"a"}}]}`, `{"records":[{"key":"k"}]}`,
			batch("", `{"request":"a"}`), batch("with space", `{"request":"a"}`), batch(strings.Repeat("k", 256), `{"request":"a"}`),
			`{"records":[{"key":"k","record":{"request":"a"}}],"more":1}`, `{"records":[{"key":"k","record":{"request":"a"},"more":1}]}`,
			`{"records":[{"key":7,"record":{"request":"a"}}]}`, batch("k2", `{"request":"b"}`, "k4", `{}`),
		} {
			refused(t, a.Do("POST", path, body), 400, oda.InvalidRequest, "")
		}
	})
}

func TestABatchMayHaveThousandsOfRecords(t *testing.T) {
	a := env.Start(t)
	store(t, a, "/ebs/eb", `{}`)
	var pairs []string
	for i := range 5000 {
		pairs = append(pairs, fmt.Sprint("k", i), `{"request":"a"}`)
	}
	if got := recordBatch(t, a, "eb", batch(pairs...)); len(got.Records) != 5000 || got.Records[4999].Sequence != 5000 {
		t.Errorf("got %d records", len(got.Records))
	}
	refused(t, a.Do("POST", "/ebs/eb/request_responses", batch(append(pairs, "one more", `{"request":"a"}`)...)), 400, oda.InvalidRequest, "")
}

func TestAPageOfRecordsLeadsToTheNext(t *testing.T) {
	a := env.Start(t)
	store(t, a, "/ebs/eb", `{}`)
	first := record(t, a, "POST", "eb", `{ "request":"a" }`)
	second := recordBatch(t, a, "eb", batch("k2", `{"request":"b"}`))
	r := want(t, 200, a.Do("GET", "/ebs/eb/request_responses?limit=1", ""))
	expected := `{"eb_id":"eb","records":[{"sequence":1,"recorded_at":"` + first.Metadata.LastModifiedOn + `","record":{ "request":"a" }}]}`
	if r.Text() != expected {
		t.Errorf("got %s, want %s", r.Body, expected)
	}
	r = want(t, 200, a.Do("GET", "/ebs/eb/"+link(t, r).String(), ""))
	expected = `{"eb_id":"eb","records":[{"sequence":2,"key":"k2","recorded_at":"` + second.Metadata.LastModifiedOn + `","record":{"request":"b"}}]}`
	if r.Text() != expected || link(t, r) != nil {
		t.Errorf("got %s, want %s", r.Body, expected)
	}
	refused(t, a.Do("GET", "/ebs/unknown/request_responses", ""), 404, oda.NotFound, "could not be found")
	for _, query := range []string{"after=-1", "after=x", "limit=0", "limit=5001", "limit=", "after=1.5"} {
		refused(t, a.Do("GET", "/ebs/eb/request_responses?"+query, ""), 400, oda.InvalidRequest, "")
	}
	refused(t, a.Do("GET", "/ebs/eb/request_responses?after=99999999999999999999", ""), 400, oda.InvalidRequest, "Must be at most 9223372036854775807")
}
