package oda_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"oda"
)

func instant(t testing.TB, text string) oda.Instant {
	t.Helper()
	at, err := oda.ParseTime(text)
	if err != nil {
		t.Fatal(err)
	}
	return oda.InstantOf(at)
}

// sample is the metadata that the table splices in. In the expected texts, M
// stands for all five of its members, and V, CB, CO, LB, LO for their values.
func sample(t testing.TB) (oda.Metadata, *strings.Replacer) {
	m := oda.Metadata{
		Version: 3, CreatedBy: `Zoë "Z"`, CreatedOn: instant(t, "2026-03-01T20:59:58Z"),
		LastModifiedBy: "john", LastModifiedOn: instant(t, "2026-03-01T22:15:00.25Z"),
	}
	const cb, co, lb, lo = `"Zoë \"Z\""`, `"2026-03-01T20:59:58.000000Z"`, `"john"`, `"2026-03-01T22:15:00.250000Z"`
	return m, strings.NewReplacer(
		"‹M›", `"version":3,"created_by":`+cb+`,"created_on":`+co+`,"last_modified_by":`+lb+`,"last_modified_on":`+lo,
		"‹V›", "3", "‹CB›", cb, "‹CO›", co, "‹LB›", lb, "‹LO›", lo,
	)
}

func TestAnAnswerIsTheDocumentAsSentWithTheServersValues(t *testing.T) {
	const sbd, eb = oda.SBDefinition, oda.ExecutionBlock
	tests := []struct {
		name      string
		operation string
		kind      oda.Kind
		document  string
		list      bool
		records   []string
		want      string
	}{
		// The identifier x.
		{"nothing", "storeSBD", sbd, `{}`, false, nil, `{"sbd_id":"x","metadata":{‹M›}}`},
		{"nothing but white space", "storeSBD", sbd, "{ \n\t}", false, nil, "{\"sbd_id\":\"x\",\"metadata\":{‹M›} \n\t}"},
		{"no identifier", "storeSBD", sbd, `{ "a": 0.35e9 }`, false, nil, `{"sbd_id":"x", "a": 0.35e9,"metadata":{‹M›} }`},
		{"identifier null, last", "storeSBD", sbd, `{"a":1, "sbd_id" : null}`, false, nil, `{"a":1, "sbd_id" : "x","metadata":{‹M›}}`},
		{"the same identifier", "storeSBD", sbd, `{"sbd_id": "x"}`, false, nil, `{"sbd_id": "x","metadata":{‹M›}}`},
		{"the same identifier, escaped", "storeSBD", sbd, `{"sbd\u005fid": "\u0078"}`, false, nil, `{"sbd\u005fid": "\u0078","metadata":{‹M›}}`},
		{"another identifier on creation", "createSBD", sbd, `{"sbd_id": "old one!", "a": [ ]}`, false, nil, `{"sbd_id": "x", "a": [ ],"metadata":{‹M›}}`},
		{"an empty identifier on creation", "createSBD", sbd, `{"sbd_id":"","metadata":{}}`, false, nil, `{"sbd_id":"x","metadata":{‹M›}}`},
		{"the identifier of another kind", "storeSBD", sbd, `{"eb_id":"e","x":{"sbd_id":"y"}}`, false, nil, `{"sbd_id":"x","eb_id":"e","x":{"sbd_id":"y"},"metadata":{‹M›}}`},

		// The metadata.
		{"metadata empty", "storeSBD", sbd, `{"sbd_id":"x","metadata":{}}`, false, nil, `{"sbd_id":"x","metadata":{‹M›}}`},
		{"metadata of white space", "storeSBD", sbd, `{"metadata": { } ,"sbd_id":"x"}`, false, nil, `{"metadata": {‹M› } ,"sbd_id":"x"}`},
		{"metadata null, first", "storeSBD", sbd, `{"metadata": null, "sbd_id": "x"}`, false, nil, `{"metadata": {‹M›}, "sbd_id": "x"}`},
		{"metadata null, last", "storeSBD", sbd, `{"sbd_id": "x", "metadata": null }`, false, nil, `{"sbd_id": "x", "metadata": {‹M›} }`},
		{
			"only the caller's metadata", "storeSBD", sbd, `{"sbd_id":"x","metadata":{ "pdm_version": "1" }}`, false, nil,
			`{"sbd_id":"x","metadata":{ "pdm_version": "1",‹M› }}`,
		},
		{
			"fields null", "storeSBD", sbd,
			`{"sbd_id":"x","metadata":{"version":null,"created_by":null,"created_on":null,"last_modified_by":null,"last_modified_on":null}}`, false, nil,
			`{"sbd_id":"x","metadata":{‹M›}}`,
		},
		{
			"fields in another order, with others between", "storeSBD", sbd,
			`{"metadata": {"last_modified_on": "2020-01-01", "version" : 7.0, "p":{"version":1}, "created_on": null,"created_by":"\u0061", "last_modified_by": "b"},"sbd_id":"x"}`, false, nil,
			`{"metadata": {"last_modified_on": ‹LO›, "version" : ‹V›, "p":{"version":1}, "created_on": ‹CO›,"created_by":‹CB›, "last_modified_by": ‹LB›},"sbd_id":"x"}`,
		},
		{
			"some fields missing", "storeSBD", sbd, `{"sbd_id":"x","metadata":{"created_on":"2020-01-01","version":1}}`, false, nil,
			`{"sbd_id":"x","metadata":{"created_on":‹CO›,"version":‹V›,"created_by":‹CB›,"last_modified_by":‹LB›,"last_modified_on":‹LO›}}`,
		},
		{
			"a document of several lines", "storeSBD", sbd,
			"\n{\r\n  \"a\": {\n    \"metadata\": 1e+05\n  },\n  \"metadata\": {\n    \"created_by\": \"mary\",\n    \"note\": \"\\u00e9é\"\n  }\n}\n", false, nil,
			"\n{\"sbd_id\":\"x\",\r\n  \"a\": {\n    \"metadata\": 1e+05\n  },\n  \"metadata\": {\n    \"created_by\": ‹CB›,\n    \"note\": \"\\u00e9é\"," +
				"\"version\":‹V›,\"created_on\":‹CO›,\"last_modified_by\":‹LB›,\"last_modified_on\":‹LO›\n  }\n}\n",
		},
		{"records of another kind are the caller's", "storeSBD", sbd, `{"sbd_id":"x","request_responses": [ 1 ],"metadata":null}`, false, nil, `{"sbd_id":"x","request_responses": [ 1 ],"metadata":{‹M›}}`},

		// The records of an ExecutionBlock.
		{"list in the middle", "storeEB", eb, `{"eb_id":"x","request_responses" : [ {"request":"a"} , {"request":"b"} ], "metadata":{}}`, false, []string{`{"request":"a"}`, `{ "request": "c" }`}, `{"eb_id":"x","request_responses" : [{"request":"a"},{ "request": "c" }], "metadata":{‹M›}}`},
		{"list first, no record", "storeEB", eb, `{"request_responses": [ ] , "eb_id": null}`, false, []string{}, `{"request_responses": [] , "eb_id": "x","metadata":{‹M›}}`},
		{"a list is there even if nothing is said of records", "storeEB", eb, `{"eb_id":"x","request_responses":[],"metadata":{}}`, false, nil, `{"eb_id":"x","request_responses":[],"metadata":{‹M›}}`},
		{"no list, before the first record", "storeEB", eb, `{"eb_id":"x","metadata":{} }`, false, nil, `{"eb_id":"x","metadata":{‹M›} }`},
		{"no list, after the first record", "storeEB", eb, `{"eb_id":"x","metadata":{} }`, false, []string{`{"request":"a"}`}, `{"eb_id":"x","metadata":{‹M›},"request_responses":[{"request":"a"}] }`},
		{"no list and no metadata, after the first record", "storeEB", eb, `{"eb_id":"x"}`, false, []string{`{"request":"a"}`}, `{"eb_id":"x","request_responses":[{"request":"a"}],"metadata":{‹M›}}`},
		{"no list and metadata null, last, before the first record", "storeEB", eb, `{"eb_id":"x","metadata":null}`, false, nil, `{"eb_id":"x","metadata":{‹M›}}`},
		{"no list and metadata null, last, after the first record", "storeEB", eb, `{"eb_id":"x","metadata":null}`, false, []string{`{"request":"a"}`}, `{"eb_id":"x","metadata":{‹M›},"request_responses":[{"request":"a"}]}`},
		{"nothing, after the first record", "storeEB", eb, `{}`, false, []string{`{"request":"a"}`}, `{"eb_id":"x","request_responses":[{"request":"a"}],"metadata":{‹M›}}`},

		// An empty ExecutionBlock.
		{"empty block of nothing", "createEmptyEB", eb, `{}`, true, nil, `{"eb_id":"x","request_responses":[],"metadata":{‹M›}}`},
		{"empty block with a member", "createEmptyEB", eb, `{ "sbi_ref": "s" }`, true, nil, `{"eb_id":"x", "sbi_ref": "s","request_responses":[],"metadata":{‹M›} }`},
		{"empty block with a list", "createEmptyEB", eb, `{"request_responses":[ ],"a":1}`, true, nil, `{"eb_id":"x","request_responses":[],"a":1,"metadata":{‹M›}}`},
		{"empty block with a null for a list", "createEmptyEB", eb, `{"request_responses":null}`, true, nil, `{"eb_id":"x","request_responses":[],"metadata":{‹M›}}`},
		{"empty block, metadata null, last", "createEmptyEB", eb, `{"metadata":null}`, true, nil, `{"eb_id":"x","metadata":{‹M›},"request_responses":[]}`},
		{"empty block with an identifier and metadata", "createEmptyEB", eb, `{"eb_id": "y", "metadata": {"version": 7, "p": 1}}`, true, nil, `{"eb_id": "x", "metadata": {"version": ‹V›, "p": 1,"created_by":‹CB›,"created_on":‹CO›,"last_modified_by":‹LB›,"last_modified_on":‹LO›},"request_responses":[]}`},
	}
	m, words := sample(t)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			document := mustRead(t, test.operation, test.kind, test.document)
			document.Listed = document.Listed || test.list
			got := render(t, document.Body("x"), m, recordsOf(test.records))
			if diff := cmp.Diff(words.Replace(test.want), got); diff != "" {
				t.Error(diff)
			}
			if !jsontext.Value(got).IsValid() {
				t.Errorf("this is not strict JSON: %s", got)
			}
		})
	}
}

// A document in a body with several is stored without what surrounds it.
func TestADocumentIsCutOutOfABodyWithSeveral(t *testing.T) {
	text := []byte(`{"sbds": [ {"sbd_id": "a", "n": 1} , {"n": 2, "sbd_id": "x" } ]}`)
	d, err := description()
	if err != nil {
		t.Fatal(err)
	}
	index, err := d.Operation("storeSeveral").CheckWatched(text, maxDepth, oda.Watched)
	if err != nil {
		t.Fatal(err)
	}
	second := index.Nodes[2].Next // the list is followed by its first document, then the second
	document := oda.NewDocument(oda.SBDefinition, text, index, second, "/sbds/1")
	m, words := sample(t)
	got := render(t, document.Body(document.ID), m, nil)
	if want := words.Replace(`{"n": 2, "sbd_id": "x","metadata":{‹M›} }`); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestMetadataAsAnObjectOfItsOwn(t *testing.T) {
	m, words := sample(t)
	if got, want := string(m.AppendJSON([]byte("x"))), words.Replace("x{‹M›}"); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestReceivedMetadataSaysWhichFieldsWereSent(t *testing.T) {
	tests := map[string]struct {
		has     oda.Fields
		version int64
	}{
		`{}`:                              {0, 0},
		`{"metadata":null}`:               {0, 0},
		`{"metadata":{}}`:                 {0, 0},
		`{"metadata":{"version":null}}`:   {0, 0},
		`{"metadata":{"version":7}}`:      {oda.FieldVersion, 7},
		`{"metadata":{"version":7.0}}`:    {oda.FieldVersion, 7},
		`{"metadata":{"version":70e-1}}`:  {oda.FieldVersion, 7},
		`{"metadata":{"version":1e99}}`:   {oda.FieldVersion, 1<<63 - 1},
		`{"metadata":{"version":1e999}}`:  {oda.FieldVersion, 1<<63 - 1},
		`{"metadata":{"created_by":"a"}}`: {oda.FieldCreatedBy, 0},
		`{"metadata":{"created_on":"2026-01-01","last_modified_on":null}}`:                                                             {oda.FieldCreatedOn, 0},
		`{"metadata":{"last_modified_on":"2026-01-01 10:00","last_modified_by":"b"}}`:                                                  {oda.FieldLastModifiedOn | oda.FieldLastModifiedBy, 0},
		`{"a":{"metadata":{"version":7}},"x":{"version":8}}`:                                                                           {0, 0},
		`{"metadata":{"version":2,"created_by":"a","created_on":"2026-01-01","last_modified_by":"a","last_modified_on":"2026-01-01"}}`: {oda.AllFields, 2},
	}
	for text, want := range tests {
		got := mustRead(t, "storeSBD", oda.SBDefinition, text).Metadata
		if got.Has != want.has || got.Version != want.version {
			t.Errorf("%s: has %b, version %d; want %b, %d", text, got.Has, got.Version, want.has, want.version)
		}
	}
}

var errBroken = errors.New("broken")

// brokenWriter accepts so many bytes and then fails.
type brokenWriter struct{ left int }

func (w *brokenWriter) Write(p []byte) (int, error) {
	if w.left -= len(p); w.left < 0 {
		return 0, errBroken
	}
	return len(p), nil
}

func TestRenderingStopsIfTheWriterOrTheRecordsFail(t *testing.T) {
	body := mustRead(t, "storeEB", oda.ExecutionBlock, `{"eb_id":"x","request_responses":[],"metadata":{}}`).Body("x")
	records := recordsOf([]string{`{"request":"a"}`, `{"request":"b"}`})
	whole := len(render(t, body, oda.Metadata{}, records))
	for room := range whole {
		if err := body.WriteTo(&brokenWriter{room}, oda.Metadata{}, records); !errors.Is(err, errBroken) {
			t.Errorf("with room for %d of %d bytes: %v", room, whole, err)
		}
	}
	lost := func(yield func([]byte, error) bool) {
		_ = yield([]byte(`{"request":"a"}`), nil) && yield(nil, errBroken)
	}
	if err := body.WriteTo(io.Discard, oda.Metadata{}, lost); !errors.Is(err, errBroken) {
		t.Errorf("records that cannot be read: %v", err)
	}
}

func TestAnEntryOfTheLogIsCheckedBeforeItIsMoved(t *testing.T) {
	body := func(text string) oda.Body { return oda.Body{Text: []byte(text), Digest: oda.DigestOf([]byte(text))} }
	edited := oda.Body{Text: []byte(`{"name":"edited"}`), Digest: oda.DigestOf([]byte(`{"name":"stored"}`))}
	sbd, eb := oda.Ref{Kind: oda.SBDefinition, ID: "sbd-1"}, oda.Ref{Kind: oda.ExecutionBlock, ID: "eb-1"}
	early, late := instant(t, "0000-01-01T00:00:00Z"), instant(t, "9999-01-01T00:00:00Z")
	for name, test := range map[string]struct {
		entry oda.LogEntry
		want  string // that the error names; empty: no error
	}{
		"a version":                  {oda.LogEntry{Ref: sbd, Version: 2, By: "ann", CreatedBy: "ann", Body: body(`{"name":"stored"}`)}, ""},
		"its text is edited":         {oda.LogEntry{Ref: sbd, Version: 2, By: "ann", CreatedBy: "ann", Body: edited}, "Version 2 of SBDefinition sbd-1"},
		"its slots are lost":         {oda.LogEntry{Ref: sbd, Version: 2, By: "ann", CreatedBy: "ann", Body: body(`{"metadata":{"version":}}`)}, "Version 2 of SBDefinition sbd-1"},
		"a record":                   {oda.LogEntry{Ref: eb, Version: 1, Sequence: 7, By: "ann", Body: body(`{"request":"x"}`)}, ""},
		"a record is edited":         {oda.LogEntry{Ref: eb, Version: 1, Sequence: 7, By: "ann", Body: edited}, "Record 7 in version 1"},
		"a record that came with it": {oda.LogEntry{Ref: sbd, Version: 1, Before: 4, After: 6, Body: body(`{}`), Came: []oda.Body{body(`{}`), edited}}, "Record 6 in version 1"},
		"a time without room":        {oda.LogEntry{Ref: sbd, Version: 2, By: "ann", On: late, CreatedBy: "ann", Body: body(`{}`)}, "Version 2 of SBDefinition sbd-1"},
		"a record without room":      {oda.LogEntry{Ref: eb, Version: 1, Sequence: 7, By: "ann", On: late, Body: body(`{"request":"x"}`)}, "Record 7 in version 1"},
		"the latest time":            {oda.LogEntry{Ref: sbd, Version: 2, By: "ann", On: late - 1, CreatedBy: "ann", Body: body(`{}`)}, ""},
		"a time that nobody writes":  {oda.LogEntry{Ref: sbd, Version: 2, By: "ann", CreatedBy: "ann", CreatedOn: early - 1, Body: body(`{}`)}, "Version 2 of SBDefinition sbd-1"},
		"the earliest time":          {oda.LogEntry{Ref: sbd, Version: 2, By: "ann", CreatedBy: "ann", CreatedOn: early, Body: body(`{}`)}, ""},
		"no archive stores this":     {oda.LogEntry{Ref: sbd, Version: 2, By: "ann", CreatedBy: "ann", CreatedOn: 1, Body: body(`{}`)}, "Version 2 of SBDefinition sbd-1"},
	} {
		err := test.entry.Check()
		if (err == nil) != (test.want == "") || err != nil && (oda.CodeOf(err) != oda.DamagedText || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}
