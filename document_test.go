package oda_test

import (
	"cmp"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	gocmp "github.com/google/go-cmp/cmp"

	"oda"
	"oda/internal/test/env"
	"oda/internal/test/suite"
)

// FuzzDocument treats any text as a body. A text that is accepted must be strict
// JSON, come back as sent, and be accepted again.
func FuzzDocument(f *testing.F) {
	for _, e := range env.OwnDocuments(f) {
		f.Add(e.Text, e.Kind == oda.ExecutionBlock, false)
	}
	for _, seed := range []string{
		`{}`, `{ }`, `{"metadata":null}`, `{"eb_id":null,"metadata":null}`, `{"request_responses":[]}`, `{"\u0065b_id":"x"}`,
		`{"metadata":{"version":1},"request_responses":[{"request":"a"}]}`, `[]`, `{"a":1,"a":2}`, `{`, "\xef\xbb\xbf{}", `{"metadata":{"version":1e0}}`,
		"\n{\r\n  \"metadata\": {\n    \"created_by\": \"mary\",\n    \"note\": \"\\u00e9é\"\n  }\n}\n", `{"sbd_id":"","eb_id":"e","x":{"sbd_id":"y"}}`,
		`{"metadata":{"version":null,"created_by":null,"created_on":null,"last_modified_by":null,"last_modified_on":null},"eb_id":null}`,
		`{"metadata": {"last_modified_on": "2020-01-01", "version" : 7.0, "p":{"version":1},"created_by":"\u0061" }, "request_responses": [ {"request":"a"} ] }`,
	} {
		f.Add([]byte(seed), true, true)
		f.Add([]byte(seed), false, false)
	}
	f.Fuzz(func(t *testing.T, text []byte, block, list bool) {
		kind := oda.SBDefinition
		if block {
			kind = oda.ExecutionBlock
		}
		for _, operation := range []string{"store", "create"} {
			d, err := suite.Read(operation, kind, text)
			if err != nil {
				if oda.CodeOf(err) == oda.Internal {
					t.Fatalf("%q: %v", text, err)
				}
				continue
			}
			if !jsontext.Value(text).IsValid() {
				t.Fatalf("%q was accepted, but is not strict JSON", text)
			}
			held := suite.Listed(kind, text)
			if list && block && held == nil {
				d.Listed, held = true, []string{}
			}
			id := "another"
			if operation == "store" {
				id = cmp.Or(d.ID, "x")
			}
			comesBack(t, d, text, id, held)
		}
	})
}

// comesBack compares what the archive answers for a document with the second
// implementation. The answer must be a document like any other: stored again as
// an update, it matches and comes back unchanged.
func comesBack(t *testing.T, d *oda.Document, text []byte, id string, held []string) {
	t.Helper()
	m := oda.Metadata{Version: 2, CreatedBy: "a", CreatedOn: 1, LastModifiedBy: "é\"\\", LastModifiedOn: 1_700_000_000_000_001}
	var records oda.Texts // nil means that there is no list, not an empty one
	if held != nil {
		texts := make([][]byte, len(held))
		for i, r := range held {
			texts[i] = []byte(r)
		}
		records = oda.TextsOf(texts)
	}
	got := suite.Render(t, &oda.Entity{Body: d.Body(id), Metadata: m, Records: records})
	if diff := gocmp.Diff(suite.Spliced(d.Kind, text, id, m, held), got); diff != "" {
		t.Fatalf("%s\n%s", text, diff)
	}
	if !jsontext.Value(got).IsValid() {
		t.Fatalf("%s\nis rendered as this, which is not strict JSON:\n%s", text, got)
	}
	update, err := suite.Read("store", d.Kind, []byte(got))
	if err != nil {
		t.Fatalf("%s\nis rendered as\n%s\nand then refused: %v", text, got, err)
	}
	put := oda.Put{Ref: oda.Ref{Kind: d.Kind, ID: id}, Expected: update.Metadata, Compare: oda.AllFields}
	if _, err := oda.Judge([]oda.Put{put}, []*oda.Metadata{&m}); err != nil || update.ID != id {
		t.Fatalf("%s\nis rendered as\n%s\nand then does not match: %v", text, got, err)
	}
	if update.Listed != (held != nil) || len(update.Records) != len(held) {
		t.Fatalf("%s\nhad %d records, but has %d when stored again", got, len(held), len(update.Records))
	}
	if again := suite.Render(t, &oda.Entity{Body: update.Body(id), Metadata: m, Records: records}); again != got {
		t.Fatalf("%s\nstored again is\n%s", got, again)
	}
}
