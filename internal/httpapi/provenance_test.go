package httpapi_test

import (
	"testing"

	"oda"
	"oda/internal/test/env"
)

func TestProvenanceOnTheWire(t *testing.T) {
	a := env.Start(t)
	for path, body := range map[string]string{
		"/sbds/sbd-1": `{"name":"Plan \"A\" <1>","ob_ref":"ob-1"}`,
		"/sbis/sbi-1": `{"sbd_ref":"sbd-1","sbd_version":1,"eb_ref":"eb-1"}`,
		"/ebs/eb-1":   `{"sbi_ref":"sbi-1"}`,
	} {
		want(t, 200, a.Do("PUT", path, body))
	}
	r := want(t, 200, a.Do("GET", "/sbis/sbi-1/provenance", ""))
	const answer = `{"nodes":[{"kind":"sbis","id":"sbi-1","version":1,"exists":true,"name":null},` +
		`{"kind":"sbds","id":"sbd-1","version":1,"exists":true,"name":"Plan \"A\" <1>"},` +
		`{"kind":"ebs","id":"eb-1","version":1,"exists":true,"name":null},` +
		`{"kind":"prjs","id":"ob-1","version":null,"exists":false,"name":null}],` +
		`"edges":[{"from":{"kind":"sbis","id":"sbi-1"},"to":{"kind":"sbds","id":"sbd-1","version":1},"field":"sbd_ref"},` +
		`{"from":{"kind":"sbis","id":"sbi-1"},"to":{"kind":"ebs","id":"eb-1","version":null},"field":"eb_ref"},` +
		`{"from":{"kind":"sbds","id":"sbd-1"},"to":{"kind":"prjs","id":"ob-1","version":null},"field":"ob_ref"},` +
		`{"from":{"kind":"ebs","id":"eb-1"},"to":{"kind":"sbis","id":"sbi-1","version":null},"field":"sbi_ref"}],"truncated":false}`
	if r.Text() != answer {
		t.Errorf("got  %s\nwant %s", r.Text(), answer)
	}
	for _, path := range []string{"/sbds/sbi-1/provenance", "/prjs/ob-1/provenance", "/sbds/x%20y/provenance"} {
		refused(t, a.Do("GET", path, ""), 404, oda.NotFound, "could not be found")
	}
	refused(t, a.Do("GET", "/sbds/sbd-1/provenance?limit=3", ""), 400, oda.InvalidRequest, "limit")
	refused(t, a.Do("PUT", "/sbds/sbd-1/provenance", "{}"), 405, oda.WrongMethod, "GET")
}
