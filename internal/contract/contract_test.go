package contract_test

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oda"
	"oda/api"
	"oda/internal/contract"
	"oda/internal/rawjson"
	"oda/internal/test/env"
	"oda/summary"
)

const maxDepth = 100

func load(t testing.TB) *contract.Description {
	t.Helper()
	d, err := contract.Load(api.JSON(), "Record")
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// describe returns a description with one operation whose body has this schema.
func describe(schema string) []byte {
	return fmt.Appendf(nil, `{"paths": {"/x": {"put": {"operationId": "x", "requestBody":
		{"required": true, "content": {"application/json": {"schema": %s}}}}}},
		"components": {"schemas": {"Tree": {"type": "object", "properties":
			{"children": {"type": "array", "items": {"$ref": "#/components/schemas/Tree"}}}}}}}`, schema)
}

func TestEveryKeywordIsEnforced(t *testing.T) {
	tests := []struct{ schema, good, bad, fault string }{
		{`{"type": "object"}`, `{}`, `[]`, ` Must be an object, not an array.`},
		{`{"type": "array", "items": {}}`, `[1]`, `{}`, ` Must be an array, not an object.`},
		{`{"type": "string"}`, `""`, `1`, ` Must be a string, not a number.`},
		{`{"type": "boolean"}`, `true`, `null`, ` Must be a boolean, not null.`},
		{`{"type": "number"}`, `1.5e-9`, `"1"`, ` Must be a number, not a string.`},
		{`{"type": "integer"}`, `-0`, `1.5`, ` Must be an integer.`},
		{`{"type": "integer"}`, `1.0`, `1e-1`, ` Must be an integer.`},
		{`{"type": "integer"}`, `1e0`, `true`, ` Must be an integer, not a boolean.`},
		{`{"type": "integer"}`, `1e999999999999`, `1e-999999999999`, ` Must be an integer.`},
		{`{"type": "integer"}`, `123456789012345678901234567890`, `9007199254740993.5`, ` Must be an integer.`},
		{`{"type": "integer"}`, `0.00e-9`, `0.001e2`, ` Must be an integer.`},
		{`{"type": "string", "nullable": true}`, `null`, `{}`, ` Must be a string or null, not an object.`},
		{`{"description": "anything"}`, `null`, ``, ``},
		{`{"properties": {"a": {"type": "string"}}}`, `{"a": ""}`, `{"a": 1}`, `/a Must be a string, not a number.`},
		{`{"properties": {"a": {"type": "string"}}}`, `[1]`, `{"\u0061": 1}`, `/a Must be a string, not a number.`},
		{`{"required": ["a"], "properties": {"a": {}}}`, `{"a": null}`, `{"b": 1}`, ` The member "a" is missing.`},
		{
			`{"properties": {"b": {}, "a": {}}, "additionalProperties": false}`,
			`{"a": 1, "b": 2}`, `{"c/d": 1}`, `/c~1d This member is unknown. Known members: a, b.`,
		},
		{`{"additionalProperties": true}`, `{"a": 1}`, ``, ``},
		{`{"additionalProperties": {}}`, `{"a": 1}`, ``, ``},
		{`{"minProperties": 1}`, `{"a": 1}`, `{}`, ` Must have at least 1 member.`},
		{`{"maxProperties": 2}`, `{"a": 1, "b": 2}`, `{"a": 1, "b": 2, "c": 3}`, ` Must have at most 2 members.`},
		{`{"items": {"type": "string"}}`, `["a"]`, `["a", 1]`, `/1 Must be a string, not a number.`},
		{`{"minItems": 2}`, `[1, 2]`, `[1]`, ` Must have at least 2 elements.`},
		{`{"maxItems": 0, "items": {}}`, `[]`, `[1]`, ` Must have at most 0 elements.`},
		{`{"minLength": 2}`, `"éé"`, `"é"`, ` Must have at least 2 characters.`},
		{`{"maxLength": 2}`, `"\ud83d\ude00é"`, `"abc"`, ` Must have at most 2 characters.`},
		{`{"pattern": "^a+$", "x-rule": "all a"}`, `"\u0061a"`, `"ab"`, ` Must be all a.`},
		{`{"enum": ["a", "b"]}`, `"b"`, `"c"`, ` Must be one of: a, b.`},
		{`{"enum": ["a"]}`, `"a"`, `null`, ` Must be a string, not null.`},
		{`{"type": "string", "not": {"enum": ["a"]}}`, `"b"`, `"\u0061"`, ` Must not be one of: a.`},
		{`{"minimum": 1}`, `1`, `0.999`, ` Must be at least 1.`},
		{`{"minimum": -2}`, `-2.0`, `-2.5`, ` Must be at least -2.`},
		{`{"minimum": -2}`, `99999999999999999999`, `-99999999999999999999`, ` Must be at least -2.`},
		{`{"minimum": 0}`, `-0.0`, `-1e-9`, ` Must be at least 0.`},
		{`{"maximum": 10}`, `1e1`, `10.01`, ` Must be at most 10.`},
		{`{"maximum": -9223372036854775808}`, `-9223372036854775808`, `-9223372036854775807`, ` Must be at most -9223372036854775808.`},
		{`{"maximum": 10}`, `-5`, `1e99`, ` Must be at most 10.`},
		{`{"format": "timestamp"}`, `"2026-01-31 12:30"`, `"soon"`, ` Must be a time, such as 2026-01-31T12:30:00Z or 2026-01-31.`},
		{`{"oneOf": [{"type": "object", "nullable": true}, {"type": "string"}]}`, `null`, `1`, ` Must be an object or a string or null, not a number.`},
		{`{"oneOf": [{"type": "object", "nullable": true, "additionalProperties": {}}, {"type": "string"}]}`, `null`, `1`, ` Must be an object or a string or null, not a number.`},
		{`{"allOf": [{"$ref": "#/components/schemas/Tree"}]}`, `{}`, `null`, ` Must be an object, not null.`},
		{`{"type": "object", "allOf": [{"$ref": "#/components/schemas/Tree"}], "nullable": true}`, `null`, `{"children": 1}`, `/children Must be an array, not a number.`},
		{`{"anyOf": [{"type": "integer"}, {"type": "string"}]}`, `"a"`, `1.5`, ` Must be an integer.`},
		{`{"anyOf": [{"type": "integer"}, {"type": "number"}]}`, `1.5`, `"a"`, ` Must be a number, not a string.`},
		{
			`{"$ref": "#/components/schemas/Tree"}`, `{"children": [{"children": []}]}`,
			`{"children": [{}, {"children": [1]}]}`, `/children/1/children/0 Must be an object, not a number.`,
		},
	}
	for _, test := range tests {
		t.Run(test.schema, func(t *testing.T) {
			d, err := contract.Load(describe(test.schema))
			if err != nil {
				t.Fatal(err)
			}
			wantFault(t, d.Operation("x"), test.good, test.bad, test.fault)
		})
	}
}

// wantFault checks a good body, and a bad one, if there is one, which has one fault.
func wantFault(t *testing.T, op *contract.Operation, good, bad, fault string) {
	t.Helper()
	if _, err := op.CheckBody([]byte(good), maxDepth); err != nil {
		t.Errorf("%s: %v", good, err)
	}
	if bad == "" {
		return
	}
	_, err := op.CheckBody([]byte(bad), maxDepth)
	e, _ := errors.AsType[*oda.Error](err)
	if e == nil || e.Code != oda.InvalidRequest || len(e.Faults) != 1 {
		t.Fatalf("%s: got %v, want one fault", bad, err)
	}
	if got := e.Faults[0].Pointer + " " + e.Faults[0].Detail; got != fault {
		t.Errorf("%s:\n got %s\nwant %s", bad, got, fault)
	}
}

func TestLoadRefusesKeywordsThatItDoesNotEnforce(t *testing.T) {
	for _, schema := range []string{
		`{"multipleOf": 2}`,
		`{"uniqueItems": true}`,
		`{"type": "integer", "exclusiveMinimum": true, "minimum": 1}`,
		`{"allOf": [{"type": "string"}, {"minLength": 1}]}`,
		`{"allOf": [{"type": "string"}], "minLength": 1}`,
		`{"oneOf": [{"type": "object", "additionalProperties": false}]}`,
		`{"type": "string", "format": "date-time"}`,
		`{"type": "text"}`,
		`{"type": "string", "nullable": true, "enum": ["a"]}`,
		`{"enum": [1]}`,
		`{"minimum": 0.5}`,
		`{"additionalProperties": {"type": "string"}}`,
		`{"additionalProperties": 1}`,
		`{"nullable": true}`,
		`{"oneOf": [{"type": "object"}, {"type": "string"}], "nullable": true}`,
		`{"allOf": [{"$ref": "#/components/schemas/Tree"}], "nullable": true}`,
		`{"type": "string", "allOf": [{"$ref": "#/components/schemas/Tree"}]}`,
		`{"required": ["a"]}`,
		`{"not": {"type": "string"}}`,
		`{"pattern": "(", "x-rule": "a parenthesis"}`,
		`{"pattern": "^a+$"}`,
		`{"oneOf": [{"type": "string", "minLength": 1}]}`,
		`{"oneOf": [{"type": "string"}, {"type": "string"}]}`,
		`{"oneOf": [{"type": "integer"}, {"type": "number"}]}`,
		`{"oneOf": [{"type": "string"}], "minLength": 1}`,
		`{"oneOf": [{"type": "string"}], "anyOf": [{"type": "string"}]}`,
		`{"properties": {"a": {"items": {"const": 1}}}}`,
		`{"$ref": "#/components/schemas/None"}`,
		`{"$ref": "other.json"}`,
		`{"$ref": "#/components/schemas/Tree", "nullable": true}`,
	} {
		t.Run(schema, func(t *testing.T) {
			if _, err := contract.Load(describe(schema)); err == nil {
				t.Error("the schema was loaded")
			}
		})
	}
	t.Run("an unknown leaf", func(t *testing.T) {
		if _, err := contract.Load(api.JSON(), "Nothing"); err == nil {
			t.Error("the description was loaded")
		}
	})
	for name, description := range map[string]string{
		"not JSON":                   `{`,
		"parameters below a path":    `{"paths": {"/x": {"parameters": []}}}`,
		"no operationId":             `{"paths": {"/x": {"get": {}}}}`,
		"a repeated operationId":     `{"paths": {"/x": {"get": {"operationId": "a"}, "put": {"operationId": "a"}}}}`,
		"a body that is not JSON":    `{"paths": {"/x": {"put": {"operationId": "a", "requestBody": {"content": {"text/plain": {"schema": {}}}}}}}}`,
		"a parameter in a cookie":    withParameter(`{"name": "a", "in": "cookie", "schema": {"type": "string"}}`),
		"a list as a parameter":      withParameter(`{"name": "a", "in": "query", "schema": {"type": "array", "items": {}}}`),
		"a style of a parameter":     withParameter(`{"name": "a", "in": "query", "style": "form", "schema": {"type": "string"}}`),
		"a parameter without schema": withParameter(`{"name": "a", "in": "query"}`),
		"an unknown parameter":       withParameter(`{"$ref": "#/components/parameters/None"}`),
		"a parameter that is empty":  withParameter(`{"name": "a", "in": "query", "allowEmptyValue": true, "schema": {"type": "string"}}`),
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := contract.Load([]byte(description)); err == nil {
				t.Error("the description was loaded")
			}
		})
	}
}

func withParameter(parameter string) string {
	return `{"paths": {"/x": {"get": {"operationId": "a", "parameters": [` + parameter + `]}}}}`
}

func TestSyntaxErrorsTakePrecedenceOverFaults(t *testing.T) {
	op := load(t).Operation("storeSBD")
	for _, body := range []string{
		``, ` `, `{"metadata": 5`, `{"metadata": 5, "metadata": 6}`, `{"metadata": 5} x`,
		`{"sbd_id": 1, "other": [01]}`, "\xef\xbb\xbf{}", "{\"a\": \"\xff\"}", `[NaN]`,
		`{"metadata": 5, "a": ` + strings.Repeat("[", maxDepth) + strings.Repeat("]", maxDepth) + `}`,
	} {
		_, err := op.CheckBody([]byte(body), maxDepth)
		if got := oda.CodeOf(err); got != oda.InvalidJSON {
			t.Errorf("%.40s: got %v", body, err)
		}
	}
}

func TestTheNumberAndSizeOfFaultsAreBounded(t *testing.T) {
	op := load(t).Operation("storeSeveral")
	long := strings.Repeat("é", 5000)
	body := `{"` + long + `": 1, "ebs": [` + strings.Repeat(`{"eb_id": "`+long+`"},`, 500) + `{}]}`
	_, err := op.CheckBody([]byte(body), maxDepth)
	e, _ := errors.AsType[*oda.Error](err)
	if e == nil || len(e.Faults) != 20 || !strings.HasSuffix(e.Detail, "There are 502 errors.") {
		t.Fatalf("got %.300v", err)
	}
	for _, fault := range e.Faults {
		if len(fault.Pointer) > 70 || len(fault.Detail) > 200 {
			t.Errorf("too long: %s %s", fault.Pointer, fault.Detail)
		}
	}
}

// The rest of a body is still read, since it may not be JSON at all, but only the
// faults that are listed take memory.
func TestABodyThatIsRefusedTakesLittleMemory(t *testing.T) {
	const n = 200_000
	for name, test := range map[string]struct{ operation, body string }{
		"elements of a wrong type": {"storeEB", `{"request_responses":[` + strings.Repeat("0,", n) + `0]}`},
		"elements after a fault":   {"storeEB", `{"eb_id":0,"request_responses":[` + strings.Repeat(`{"request":"a"},`, n) + `{"request":"a"}]}`},
		"empty objects":            {"storeEB", `{"request_responses":[` + strings.Repeat("{},", n) + `{}]}`},
		"notes after a fault":      {"storeSeveral", `{"sbds":[0` + strings.Repeat(`,{"sbd_id":"a","name":"b","title":"c"}`, n) + `]}`},
		"unknown members":          {"recordBatch", `{"records":[` + strings.Repeat(`{"x":0},`, n) + `{"x":0}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			op, body := load(t).Operation(test.operation), []byte(test.body)
			before := allocated()
			_, err := op.CheckWatched(body, maxDepth, summary.Watched)
			took := allocated() - before
			if oda.CodeOf(err) != oda.InvalidRequest {
				t.Fatalf("got %.300v", err)
			}
			if took > n {
				t.Errorf("the refusal of %d bytes took %d bytes of memory", len(body), took)
			}
		})
	}
}

// allocated is how many bytes of memory were taken so far.
func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

func TestTheIndexContainsTheDeclaredValues(t *testing.T) {
	body := `{
		"ebs": [
			{"eb_id": "eb-1", "other": {"eb_id": "x"}, "request_responses": [{"request": "a"}, {"request": "b"}],
				"metadata": {"version": 2, "pdm_version": "1"}},
			{"eb_id": "eb-2"}
		],
		"prjs": [{"obs_blocks": [{"sbd_ids": ["sbd-1"]}], "prj_id": "prj-1"}]
	}`
	nodes, err := load(t).Operation("storeSeveral").CheckBody([]byte(body), maxDepth)
	if err != nil {
		t.Fatal(err)
	}
	want := `object
 ebs array
  - object
   eb_id string "eb-1"
   request_responses array
    - object
    - object
   metadata object
    version number 2
  - object
   eb_id string "eb-2"
 prjs array
  - object
   obs_blocks array
    - object
     sbd_ids array
      - string "sbd-1"
   prj_id string "prj-1"
`
	var got strings.Builder
	outline(&got, body, nodes, 0, "")
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Error(diff)
	}
	if nodes[0].Next != len(nodes) || nodes[0].Start != 0 || nodes[0].End != len(body) {
		t.Errorf("the root is %+v", nodes[0])
	}
}

func outline(out *strings.Builder, body string, nodes []rawjson.Node, i int, indent string) {
	n := nodes[i]
	name := n.Name + " "
	if i == 0 {
		name = ""
	} else if n.Name == "" {
		name = "- "
	}
	fmt.Fprintf(out, "%s%s%s", indent, name, n.Kind)
	if n.Kind != rawjson.Object && n.Kind != rawjson.Array {
		out.WriteString(" " + body[n.Start:n.End])
	}
	out.WriteString("\n")
	for j := i + 1; j < n.Next; j = nodes[j].Next {
		outline(out, body, nodes, j, indent+" ")
	}
}

func TestAnOptionalBodyMayBeEmpty(t *testing.T) {
	op := load(t).Operation("createEmptyEB")
	if !op.HasBody() || op.BodyRequired() {
		t.Error("the body of createEmptyEB is optional")
	}
	for _, none := range []string{"", "null", " null\r\n"} {
		if nodes, err := op.CheckBody([]byte(none), maxDepth); nodes != nil || err != nil {
			t.Errorf("%q: got %v, %v", none, nodes, err)
		}
		if _, err := load(t).Operation("createEB").CheckBody([]byte(none), maxDepth); err == nil {
			t.Errorf("%q was accepted where a body is required", none)
		}
	}
	if _, err := op.CheckBody([]byte(`{"eb_id": "any text/", "metadata": null, "request_responses": null}`), maxDepth); err != nil {
		t.Error(err)
	}
	for _, body := range []string{`{"eb_id": 5}`, `{"metadata": []}`} {
		if _, err := op.CheckBody([]byte(body), maxDepth); err == nil {
			t.Errorf("%s was accepted, but members that are replaced must be valid too", body)
		}
	}
	if _, err := op.CheckBody([]byte(`{"request_responses": [{"request": "a"}]}`), maxDepth); err == nil {
		t.Error("an empty block with a record was accepted")
	}
}

func TestOperationsAreListedByPathAndMethod(t *testing.T) {
	var got []string
	for _, op := range load(t).Operations() {
		got = append(got, op.Method+" "+op.Path+" "+op.ID)
	}
	want := []string{
		"GET / home", "PUT / storeSeveral", "GET /backup backup", "GET /calls findCalls", "GET /calls/tally tallyCalls", "GET /changes changes",
		"GET /ebs listEBs", "POST /ebs createEB", "POST /ebs/create createEmptyEB",
		"GET /ebs/search searchEBs", "GET /ebs/{eb_id} getEB", "PUT /ebs/{eb_id} storeEB", "GET /ebs/{eb_id}/diff diffEB", "GET /ebs/{eb_id}/provenance provenanceOfEB",
		"PATCH /ebs/{eb_id}/request_response recordPatch", "POST /ebs/{eb_id}/request_response recordPost",
		"GET /ebs/{eb_id}/request_responses readRecords", "POST /ebs/{eb_id}/request_responses recordBatch",
		"GET /ebs/{eb_id}/running runningInEB", "DELETE /ebs/{eb_id}/running/{key} withdrawCall", "PUT /ebs/{eb_id}/running/{key} beginCall",
		"GET /ebs/{eb_id}/status getStatusOfEB", "POST /ebs/{eb_id}/status sayStatusOfEB", "GET /ebs/{eb_id}/status/history listStatusesOfEB",
		"GET /ebs/{eb_id}/versions listEBVersions", "GET /ebs/{eb_id}/versions/{version} getEBVersion",
		"GET /export export",
		"GET /guide guide",
		"GET /night night",
		"GET /notes listNotes", "POST /notes createNote", "GET /notes/search searchNotes", "GET /notes/{note_id} getNote", "PUT /notes/{note_id} storeNote",
		"GET /notes/{note_id}/diff diffNote", "GET /notes/{note_id}/provenance provenanceOfNote", "GET /notes/{note_id}/status getStatusOfNote",
		"POST /notes/{note_id}/status sayStatusOfNote", "GET /notes/{note_id}/status/history listStatusesOfNote",
		"GET /notes/{note_id}/versions listNoteVersions", "GET /notes/{note_id}/versions/{version} getNoteVersion",
		"GET /openapi.json descriptionJSON", "GET /openapi.yaml descriptionYAML",
		"GET /prjs listPRJs", "POST /prjs createPRJ", "GET /prjs/search searchPRJs", "GET /prjs/{prj_id} getPRJ", "PUT /prjs/{prj_id} storePRJ",
		"GET /prjs/{prj_id}/diff diffPRJ", "GET /prjs/{prj_id}/progress progressOfPRJ", "GET /prjs/{prj_id}/provenance provenanceOfPRJ", "GET /prjs/{prj_id}/status getStatusOfPRJ", "POST /prjs/{prj_id}/status sayStatusOfPRJ", "GET /prjs/{prj_id}/status/history listStatusesOfPRJ",
		"GET /prjs/{prj_id}/versions listPRJVersions", "GET /prjs/{prj_id}/versions/{version} getPRJVersion",
		"GET /problems problems", "GET /problems/{code} problem",
		"GET /running running",
		"GET /sbds listSBDs", "POST /sbds createSBD", "GET /sbds/search searchSBDs", "GET /sbds/{sbd_id} getSBD", "PUT /sbds/{sbd_id} storeSBD",
		"GET /sbds/{sbd_id}/diff diffSBD", "GET /sbds/{sbd_id}/provenance provenanceOfSBD", "GET /sbds/{sbd_id}/status getStatusOfSBD", "POST /sbds/{sbd_id}/status sayStatusOfSBD", "GET /sbds/{sbd_id}/status/history listStatusesOfSBD",
		"GET /sbds/{sbd_id}/versions listSBDVersions", "GET /sbds/{sbd_id}/versions/{version} getSBDVersion",
		"GET /sbis listSBIs", "POST /sbis createSBI", "GET /sbis/search searchSBIs", "GET /sbis/{sbi_id} getSBI", "PUT /sbis/{sbi_id} storeSBI",
		"GET /sbis/{sbi_id}/diff diffSBI", "GET /sbis/{sbi_id}/provenance provenanceOfSBI", "GET /sbis/{sbi_id}/status getStatusOfSBI", "POST /sbis/{sbi_id}/status sayStatusOfSBI", "GET /sbis/{sbi_id}/status/history listStatusesOfSBI",
		"GET /sbis/{sbi_id}/versions listSBIVersions", "GET /sbis/{sbi_id}/versions/{version} getSBIVersion",
		"GET /ui ui", "GET /ui/{file} uiAsset",
		"GET /whoami whoami",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if load(t).Operation("nothing") != nil {
		t.Error("there is an operation named nothing")
	}
}

func TestParametersAreCheckedAgainstTheDescription(t *testing.T) {
	const ident = "Must be 1 to 128 characters of A-Z a-z 0-9 . _ -, beginning with a letter or digit, and not create or search."
	const user = "Must be " + oda.UserRule + "."
	tests := []struct {
		name, operation string
		values          map[string]string
		code            oda.Code
		faults          []oda.Fault
	}{
		{"a good list query", "listSBDs", map[string]string{"query:user": "é%", "query:user_match_type": "contains", "query:limit": "10000"}, "", nil},
		{"nothing at all", "listSBDs", nil, "", nil},
		{"times are left to the list query", "listSBDs", map[string]string{"query:created_before": "", "query:last_modified_after": "soon"}, "", nil},
		{"no user", "listEBs", map[string]string{"query:user": ""}, oda.InvalidRequest, []oda.Fault{{Pointer: "query:user", Detail: "Must have at least 1 character."}}},
		{"a limit of 0 and a match type", "listEBs", map[string]string{"query:limit": "0", "query:user_match_type": "like"}, oda.InvalidRequest, []oda.Fault{
			{Pointer: "query:user_match_type", Detail: "Must be one of: equals, starts_with, contains."},
			{Pointer: "query:limit", Detail: "Must be at least 1."},
		}},
		{"too large a limit", "listEBs", map[string]string{"query:limit": "10001"}, oda.InvalidRequest, []oda.Fault{{Pointer: "query:limit", Detail: "Must be at most 10000."}}},
		{"a limit in words", "listEBs", map[string]string{"query:limit": "1e1"}, oda.InvalidRequest, []oda.Fault{{Pointer: "query:limit", Detail: "Must be an integer."}}},
		{"an empty limit", "listEBs", map[string]string{"query:limit": ""}, oda.InvalidRequest, []oda.Fault{{Pointer: "query:limit", Detail: "Must be an integer."}}},
		{"any identifier may be read", "getSBD", map[string]string{"path:sbd_id": "../\xff", "header:If-None-Match": "\xff"}, "", nil},
		{"a good identifier to store", "storeSBD", map[string]string{"path:sbd_id": "sbd-1"}, "", nil},
		{"a reserved identifier", "storeSBD", map[string]string{"path:sbd_id": "search"}, oda.InvalidIdentifier, []oda.Fault{{Pointer: "path:sbd_id", Detail: ident}}},
		{"a bad identifier", "storeSBD", map[string]string{"path:sbd_id": "a/b"}, oda.InvalidIdentifier, []oda.Fault{{Pointer: "path:sbd_id", Detail: ident}}},
		{"a bad user", "storeSeveral", map[string]string{"header:X-Forwarded-User": "a\u0085b"}, oda.InvalidUser, []oda.Fault{{Pointer: "header:X-Forwarded-User", Detail: user}}},
		{"a user that is not UTF-8", "storeSeveral", map[string]string{"header:X-Forwarded-User": "a\xff"}, oda.InvalidUser, []oda.Fault{{Pointer: "header:X-Forwarded-User", Detail: "Must be valid UTF-8."}}},
		{"a key with a space", "recordPost", map[string]string{"path:eb_id": "e", "header:Idempotency-Key": "a b"}, oda.InvalidRequest, []oda.Fault{{Pointer: "header:Idempotency-Key", Detail: "Must be 1 to 255 visible ASCII characters."}}},
		{"an unknown treatment of records", "storeEB", map[string]string{"path:eb_id": "e", "query:records": "drop"}, oda.InvalidRequest, []oda.Fault{{Pointer: "query:records", Detail: "Must be one of: keep."}}},
		{"no identifier", "getEB", nil, oda.InvalidRequest, []oda.Fault{{Pointer: "path:eb_id", Detail: "This parameter is missing."}}},
	}
	d := load(t)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			err := d.Operation(test.operation).CheckParameters(func(in, name string) (string, bool) {
				value, given := test.values[in+":"+name]
				return value, given
			})
			if got := oda.CodeOf(err); got != test.code {
				t.Fatalf("got %v, want the code %q", err, test.code)
			}
			if e, ok := errors.AsType[*oda.Error](err); ok {
				if diff := cmp.Diff(test.faults, e.Faults); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

// The description and the rule say the same about each character of a user name.
func TestUserNamesAreDescribedAsTheRuleIs(t *testing.T) {
	operation := load(t).Operation("storeSeveral")
	for r := rune(0); r <= 0x2100; r++ {
		name := "a" + string(r)
		err := operation.CheckParameters(func(_, parameter string) (string, bool) { return name, parameter == "X-Forwarded-User" })
		if (err == nil) != oda.ValidUser(name) {
			t.Errorf("%q: the description says %v, the rule %v", name, err, oda.ValidUser(name))
		}
	}
}

// The description must accept all existing documents, or it is too strict.
func TestOurDocumentsMatchTheDescription(t *testing.T) { fit(t, env.OwnDocuments(t)) }

func TestRealDocumentsMatchTheDescription(t *testing.T) { fit(t, env.RealDocuments(t)) }

func fit(t *testing.T, documents []env.Document) {
	d := load(t)
	create := map[oda.Kind]string{oda.SBDefinition: "createSBD", oda.SBInstance: "createSBI", oda.ExecutionBlock: "createEB", oda.Project: "createPRJ"}
	for _, document := range documents {
		if _, err := d.Operation(create[document.Kind]).CheckBody(document.Text, maxDepth); err != nil {
			t.Errorf("%s: %v", document.Name, err)
		}
	}
}

// also returns a description with one operation whose body must match both
// schemas.
func also(schema, also string) []byte {
	return bytes.Replace(describe(schema), []byte(`{"application/json": {`), []byte(`{"application/json": {"x-also": `+also+`, `), 1)
}

func TestABodyMustAlsoMatchXAlso(t *testing.T) {
	const entity = `{"type": "object", "required": ["a"], "additionalProperties": true, "properties": {
		"a": {"type": "string", "nullable": true, "maxLength": 3},
		"n": {"type": "number", "minimum": 0, "maximum": 9},
		"l": {"type": "array", "items": {"type": "object", "properties": {"x": {"type": "string"}}}}}}`
	tests := []struct{ also, good, bad, fault string }{
		{`{}`, `{"a": null}`, `{}`, ` The member "a" is missing.`},
		{`{"required": ["l"], "properties": {"l": {}}}`, `{"a": null, "l": []}`, `{"a": null}`, ` The member "l" is missing.`},
		{`{"required": ["b"], "properties": {"b": {}}}`, `{"a": null, "b": 1}`, `{"b": 1}`, ` The member "a" is missing.`},
		{`{"properties": {"a": {"type": "string"}}}`, `{"a": ""}`, `{"a": null}`, `/a Must be a string, not null.`},
		{`{"properties": {"a": {"pattern": "^x", "x-rule": "an x"}}}`, `{"a": "xy"}`, `{"a": "y"}`, `/a Must be an x.`},
		{`{"properties": {"a": {"minLength": 2}}}`, `{"a": "xy"}`, `{"a": "y"}`, `/a Must have at least 2 characters.`},
		{`{"properties": {"a": {"maxLength": 5}}}`, `{"a": "xyz"}`, `{"a": "four"}`, `/a Must have at most 3 characters.`},
		{`{"properties": {"n": {"type": "integer"}}}`, `{"a": "", "n": 9}`, `{"a": "", "n": 1.5}`, `/n Must be an integer.`},
		{`{"properties": {"n": {"minimum": 5, "maximum": 50}}}`, `{"a": "", "n": 5}`, `{"a": "", "n": 4}`, `/n Must be at least 5.`},
		{`{"properties": {"l": {"maxItems": 1, "items": {}}}}`, `{"a": "", "l": [{}]}`, `{"a": "", "l": [{}, {}]}`, `/l Must have at most 1 element.`},
		{
			`{"properties": {"l": {"items": {"required": ["x"], "properties": {"x": {}}}}}}`,
			`{"a": "", "l": [{"x": ""}]}`, `{"a": "", "l": [{"x": ""}, {}]}`, `/l/1 The member "x" is missing.`,
		},
	}
	for _, test := range tests {
		t.Run(test.also, func(t *testing.T) {
			d, err := contract.Load(also(entity, test.also))
			if err != nil {
				t.Fatal(err)
			}
			wantFault(t, d.Operation("x"), test.good, test.bad, test.fault)
		})
	}
	for _, pair := range [][2]string{
		{`{"pattern": "a", "x-rule": "an a"}`, `{"pattern": "b", "x-rule": "a b"}`},
		{`{"enum": ["a"]}`, `{"enum": ["a", "b"]}`},
		{`{}`, `{"properties": {"a": {}}, "additionalProperties": false}`},
		{`{"additionalProperties": false}`, `{"properties": {"a": {}}}`},
		{`{}`, `{"multipleOf": 2}`},
	} {
		if _, err := contract.Load(also(pair[0], pair[1])); err == nil {
			t.Errorf("%s with x-also %s was loaded", pair[0], pair[1])
		}
	}
	const tree = `{"$ref": "#/components/schemas/Tree"}`
	if _, err := contract.Load(also(tree, tree)); err != nil {
		t.Errorf("a schema that refers to itself, with itself as x-also: %v", err)
	}
}
