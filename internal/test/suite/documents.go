package suite

import (
	"fmt"
	"strings"
	"testing"

	"oda"
	"oda/internal/test/must"
)

var documents = []scenario{
	{"a document is returned byte for byte, with the server's values spliced in", func(t *testing.T, d *desk) {
		for i, test := range splices {
			ref := oda.Ref{Kind: test.kind, ID: fmt.Sprintf("entity-%d", i)}
			e := d.mustPut(ref, fill(test.sent, ref.ID, oda.Metadata{}))
			want := fill(test.want, ref.ID, e.Metadata)
			same(t, test.name+": the answer", Render(t, e), want)
			same(t, test.name+": the document", d.text(ref), want)
			// Storing what was read changes nothing but the metadata.
			again := d.as("bob").mustPut(ref, want)
			want = fill(test.want, ref.ID, again.Metadata)
			same(t, test.name+": the answer to an update", Render(t, again), want)
			same(t, test.name+": the document after an update", d.text(ref), want)
		}
	}},
	{"members that only look like the server's values stay", func(t *testing.T, d *desk) {
		text := `{"sbd_id":"s","a":{"metadata":{"version":99},"sbd_id":"x"},"request_responses":"of no block",` +
			`"Metadata":1,"metadata ":null,"metadata":{"Version":"v","a":{"version":1},%s}}`
		e := d.mustPut(sbd("s"), strings.Replace(text, ",%s", "", 1))
		same(t, "the document", d.text(sbd("s")), strings.Replace(text, "%s", fill("<M>", "", e.Metadata), 1))
	}},
	{"user names are written as JSON", func(t *testing.T, d *desk) {
		for i, user := range []string{`Åsa "the" O'Neill \ 100%`, "日本 😀", "<script>&", strings.Repeat("ü", 256), "a\u00a0b"} {
			ref := sbd(fmt.Sprintf("s%d", i))
			e := d.as(user).mustPut(ref, `{"n":1}`)
			same(t, "the user", e.Metadata.CreatedBy, user)
			same(t, "the user as stored", d.mustGet(ref).Metadata, e.Metadata)
			// The document that was read must be valid for an update.
			d.as(user).mustPut(ref, d.text(ref))
		}
	}},
	{"large and deep documents are returned unchanged", func(t *testing.T, d *desk) {
		for id, value := range map[string]string{
			"large": `"` + strings.Repeat("0123456789 é\\n ", 200_000) + `"`,
			"deep":  strings.Repeat("[", 98) + " 1.50 " + strings.Repeat("]", 98),
			"long":  "[" + strings.Repeat(`{"k": 1e-7},`, 50_000) + "null]",
		} {
			e := d.mustPut(sbd(id), `{"sbd_id":"`+id+`","v":`+value+`}`)
			want := `{"sbd_id":"` + id + `","v":` + value + fill(`,"metadata":{<M>}}`, "", e.Metadata)
			if got := d.text(sbd(id)); got != want {
				t.Fatalf("%s: got %d bytes, want %d, or different ones", id, len(got), len(want))
			}
		}
	}},
	{"every version has its own text", func(t *testing.T, d *desk) {
		d.mustPut(sbd("s"), `{"a":1}`)
		for i, members := range []string{`"a": 2 `, `"b":null`, `"long":"` + strings.Repeat("x", 5000) + `"`, ``, `"c":[ ]`} {
			e := d.mustUpdate(sbd("s"), members)
			same(t, fmt.Sprintf("version %d", i+2), d.text(sbd("s")), `{"sbd_id":"s",`+document(e.Metadata, members)[1:])
		}
	}},
	{"an answer does not change when the entity does", func(t *testing.T, d *desk) {
		first := d.mustPut(eb("b"), `{"n":1,`+listing(`{"request":"one"}`)+`}`)
		read := d.mustGet(eb("b"))
		want := Render(t, first)
		d.mustRecord("b", `{"request":"two"}`)
		d.mustUpdate(eb("b"), `"n":2`)
		same(t, "the first answer", Render(t, first), want)
		same(t, "the first reading", Render(t, read), want)
	}},
}

// documentsInside need an engine itself.
var documentsInside = []scenario{
	{"the archive knows how much room it takes", func(t *testing.T, d *desk) {
		d.mustPut(sbd("a"), `{"text":"`+strings.Repeat("long ", 10_000)+`"}`)
		usage := must.Get(d.engine.Usage(d.ctx))(t)
		if usage.Bytes < 10_000 || usage.Free != nil && *usage.Free <= 0 {
			t.Errorf("it takes %d bytes, and %v are free", usage.Bytes, usage.Free)
		}
	}},
}

// splices has what is sent and what is returned. <ID> is the identifier, <V>,
// <CB>, <CO>, <MB>, <MO> are the values of the managed fields, <M> is all five
// of them with their keys.
var splices = []struct {
	name, sent, want string
	kind             oda.Kind
}{
	{"nothing", `{}`, `{"sbd_id":"<ID>","metadata":{<M>}}`, oda.SBDefinition},
	{"white space only", "{ \r\n\t}", "{\"prj_id\":\"<ID>\",\"metadata\":{<M>} \r\n\t}", oda.Project},
	{
		"white space", "  {\n  \"a\" : 1 ,\t\"b\":[ 1,\r\n2 ]\n}\n",
		"  {\"sbi_id\":\"<ID>\",\n  \"a\" : 1 ,\t\"b\":[ 1,\r\n2 ],\"metadata\":{<M>}\n}\n", oda.SBInstance,
	},
	{
		"numbers", `{"sbd_id":"<ID>","n":[0.35e9,1E+2,-0,-0.0,3.6E+6,123456789012345678901234567890.123456789012345678901234567890,1e400]}`,
		`{"sbd_id":"<ID>","n":[0.35e9,1E+2,-0,-0.0,3.6E+6,123456789012345678901234567890.123456789012345678901234567890,1e400],"metadata":{<M>}}`,
		oda.SBDefinition,
	},
	{
		"escapes", `{"sbd_id":"<ID>","\u0061\/b":"\u00e9é\ud83d\ude00😀\"\\\/\b\f\n\r\t\u0000\u2028"}`,
		`{"sbd_id":"<ID>","\u0061\/b":"\u00e9é\ud83d\ude00😀\"\\\/\b\f\n\r\t\u0000\u2028","metadata":{<M>}}`, oda.SBDefinition,
	},
	{
		"unknown members, nulls, order", `{"z":null,"y":{"x":null,"w":[]},"sbd_id":"<ID>","a":{}, "": true}`,
		`{"z":null,"y":{"x":null,"w":[]},"sbd_id":"<ID>","a":{}, "": true,"metadata":{<M>}}`, oda.SBDefinition,
	},
	{"identifier null", `{"a":1, "sbd_id": null }`, `{"a":1, "sbd_id": "<ID>","metadata":{<M>} }`, oda.SBDefinition},
	{"identifier spelled with escapes", `{"sbd\u005fid":"\u0065ntity-7"}`, `{"sbd\u005fid":"\u0065ntity-7","metadata":{<M>}}`, oda.SBDefinition},
	{"metadata null", `{"metadata" : null,"a":1}`, `{"sbd_id":"<ID>","metadata" : {<M>},"a":1}`, oda.SBDefinition},
	{"metadata empty", `{"metadata":{ },"a":1}`, `{"sbd_id":"<ID>","metadata":{<M> },"a":1}`, oda.SBDefinition},
	{
		"metadata with other members", "{\"sbd_id\":\"<ID>\",\"metadata\":{\"pdm_version\" : \"17.0\", \"x\":[1]\n}}",
		"{\"sbd_id\":\"<ID>\",\"metadata\":{\"pdm_version\" : \"17.0\", \"x\":[1],<M>\n}}", oda.SBDefinition,
	},
	{
		"metadata in part, out of order", `{"sbd_id":"<ID>","metadata":{ "last_modified_by":null, "a":1, "version" : 4 ,"created_on":"2020-01-01"}}`,
		`{"sbd_id":"<ID>","metadata":{ "last_modified_by":<MB>, "a":1, "version" : <V> ,"created_on":<CO>,"created_by":<CB>,"last_modified_on":<MO>}}`,
		oda.SBDefinition,
	},
	{
		"metadata in full, with escapes", `{"sbd_id":"<ID>","met\u0061data":{"last_modified_on":null,"last_modified_by":null,"created_on":null,"cre\u0061ted_by":"x","version":null}}`,
		`{"sbd_id":"<ID>","met\u0061data":{"last_modified_on":<MO>,"last_modified_by":<MB>,"created_on":<CO>,"cre\u0061ted_by":<CB>,"version":<V>}}`,
		oda.SBDefinition,
	},
	{"a block without a list", `{"eb_id":"<ID>","a":1}`, `{"eb_id":"<ID>","a":1,"metadata":{<M>}}`, oda.ExecutionBlock},
	{"a block with an empty list", `{"eb_id":"<ID>","request_responses":[ ],"a":1}`, `{"eb_id":"<ID>","request_responses":[],"a":1,"metadata":{<M>}}`, oda.ExecutionBlock},
	{
		"a block with records", "{ \"request_responses\" : [ {\"request\" : \"a\\u0062\", \"x\":1.0}\n,{\"request\":\"b\",\"status\":null} ] ,\"a\":1}",
		"{\"eb_id\":\"<ID>\", \"request_responses\" : [{\"request\" : \"a\\u0062\", \"x\":1.0},{\"request\":\"b\",\"status\":null}] ,\"a\":1,\"metadata\":{<M>}}",
		oda.ExecutionBlock,
	},
}

// fill replaces the placeholders in a text of splices.
func fill(template, id string, m oda.Metadata) string {
	object := string(m.AppendJSON(nil))
	return strings.NewReplacer(
		"<ID>", id, "<M>", object[1:len(object)-1], "<V>", fmt.Sprint(m.Version),
		"<CB>", quote(m.CreatedBy), "<CO>", quote(m.CreatedOn.String()),
		"<MB>", quote(m.LastModifiedBy), "<MO>", quote(m.LastModifiedOn.String()),
	).Replace(template)
}
