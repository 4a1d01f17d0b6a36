package oda_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"oda"
	"oda/internal/test/env"
)

// The generators write JSON text, not values, because the archive must not touch
// the order of members, white space, escapes and the spelling of numbers.

var (
	spaces = rapid.SampledFrom([]string{"", "", "", " ", "\n", "\t", "\r\n  "})
	keys   = rapid.SampledFrom([]string{
		`a`, `b`, `\u0063`, `é`, `prj_id`, `version`, `created_by`, `request`, `request_responses`, `Metadata`, ``, `x\"y`, `\ud83d\ude00`,
		`\u006detadata`, `eb\u005fid`, `sbd\u005Fid`, `\u0076ersion`,
	})
	scalars = rapid.SampledFrom([]string{
		`null`, `true`, `false`, `0`, `-0.0`, `0.35e9`, `20e3`, `1E+400`, `123456789012345678901234567890.123456789012345678901234567890`,
		`""`, `"a"`, `"\u00e9\/"`, `"é, }]"`, `"\\\""`, `{}`, `[]`, `[ ]`, `{ }`,
	})
	times = rapid.SampledFrom([]string{
		`null`, `"2024-07-07T19:44:55.432642Z"`, `"2024-07-08T01:14:55.432642+05:30"`, `"2022-03-28T15:43:53.971548"`, `"2024-07-07"`,
		`"2024-07-07 19:44"`, `"2024-07-07T19:44:55.1234567Z"`, `"\u0032024-07-07"`,
	})
	userTexts    = rapid.SampledFrom([]string{`null`, `"mary"`, `"M\u00e4ry \"M\""`, `"248091c7-cd6f"`})
	versionTexts = rapid.SampledFrom([]string{`null`, `1`, `2.0`, `30e-1`, `12345678901234567890`})
)

// fields maps members that have a meaning to the values that they may have.
type fields map[string]*rapid.Generator[string]

// anyValue writes a JSON value, nested up to depth.
func anyValue(t *rapid.T, depth int) string {
	shape := rapid.IntRange(0, 4).Draw(t, "shape")
	switch {
	case shape == 0 && depth > 0:
		return object(t, nil, depth-1)
	case shape == 1 && depth > 0:
		return array(t, rapid.Custom(func(t *rapid.T) string { return anyValue(t, depth-1) }))
	}
	return scalars.Draw(t, "scalar")
}

func array(t *rapid.T, elements *rapid.Generator[string]) string {
	texts := rapid.SliceOfN(elements, 0, 3).Draw(t, "elements")
	if len(texts) == 0 {
		return "[" + spaces.Draw(t, "space") + "]"
	}
	for i := range texts {
		texts[i] = spaces.Draw(t, "space") + texts[i] + spaces.Draw(t, "space")
	}
	return "[" + strings.Join(texts, ",") + "]"
}

// object writes an object with some of the fields, or all if they are required,
// mixed with other members.
func object(t *rapid.T, own fields, depth int, required ...string) string {
	names := slices.Clone(required)
	for name := range own {
		if !slices.Contains(required, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	names = append(names, rapid.SliceOfN(keys, 0, 4).Draw(t, "other keys")...)
	used := map[string]bool{}
	var members []string
	for _, key := range rapid.Permutation(names).Draw(t, "order") {
		name, err := jsontext.AppendUnquote(nil, `"`+key+`"`)
		if err != nil {
			t.Fatal(err)
		}
		if used[string(name)] || !slices.Contains(required, string(name)) && rapid.Bool().Draw(t, "left out") {
			continue
		}
		used[string(name)] = true
		var text string
		if field, ok := own[string(name)]; ok {
			text = field.Draw(t, string(name))
		} else {
			text = anyValue(t, depth)
		}
		members = append(members, spaces.Draw(t, "space")+`"`+key+`"`+spaces.Draw(t, "space")+":"+
			spaces.Draw(t, "space")+text+spaces.Draw(t, "space"))
	}
	if len(members) == 0 {
		return "{" + spaces.Draw(t, "space") + "}"
	}
	return "{" + strings.Join(members, ",") + "}"
}

var metadataTexts = rapid.Custom(func(t *rapid.T) string {
	if rapid.IntRange(0, 5).Draw(t, "null metadata") == 0 {
		return "null"
	}
	return object(t, fields{
		"version": versionTexts, "created_by": userTexts, "created_on": times, "last_modified_by": userTexts, "last_modified_on": times,
	}, 1)
})

var recordTexts = rapid.Custom(func(t *rapid.T) string {
	return object(t, fields{
		"request":         rapid.SampledFrom([]string{`"observe"`, `"a.b\u002ec"`}),
		"status":          rapid.SampledFrom([]string{`null`, `"OK"`, `"\u004fK"`}),
		"request_args":    rapid.SampledFrom([]string{`null`, `{}`, `{"kwargs": {"a": 1}}`, `"{'args': None}"`}),
		"response":        rapid.SampledFrom([]string{`null`, `{ }`, `{"result": "ok"}`}),
		"error":           rapid.SampledFrom([]string{`null`, `{"detail": "]"}`}),
		"request_sent_at": times,
	}, 1, "request")
})

var listTexts = rapid.Custom(func(t *rapid.T) string { return array(t, recordTexts) })

// documentText writes a document that matches the description of its kind.
func documentText(t *rapid.T, kind oda.Kind) string {
	own := fields{kind.IDField(): rapid.SampledFrom([]string{`null`, `"x"`, `"\u0078"`}), "metadata": metadataTexts}
	if kind == oda.ExecutionBlock {
		own["request_responses"] = listTexts
		own["sbd_id"] = rapid.SampledFrom([]string{`null`, `"sbd-1"`})
	}
	return spaces.Draw(t, "before") + object(t, own, 3) + spaces.Draw(t, "after")
}

// The years that RFC 3339 can write, in microseconds.
const firstInstant, lastInstant = -62135596800000000, 253402300799999999

var metadataValues = rapid.Custom(func(t *rapid.T) oda.Metadata {
	user := rapid.StringN(1, 8, -1).Filter(oda.ValidUser)
	at := rapid.Int64Range(firstInstant, lastInstant)
	return oda.Metadata{
		Version:   rapid.Int64Range(1, 1<<62).Draw(t, "version"),
		CreatedBy: user.Draw(t, "created by"), CreatedOn: oda.Instant(at.Draw(t, "created on")),
		LastModifiedBy: user.Draw(t, "last modified by"), LastModifiedOn: oda.Instant(at.Draw(t, "last modified on")),
	}
})

func TestAnyDocumentComesBackAsSent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom([]oda.Kind{oda.SBDefinition, oda.ExecutionBlock}).Draw(t, "kind")
		text := documentText(t, kind)
		operation, id := operations[kind].store, "x"
		if rapid.Bool().Draw(t, "create") {
			operation, id = operations[kind].create, "another"
		}
		d, err := read(operation, kind, []byte(text))
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		held := listed(kind, []byte(text))
		if kind == oda.ExecutionBlock && rapid.Bool().Draw(t, "list") && held == nil {
			d.Listed, held = true, []string{}
		}
		if kind == oda.ExecutionBlock && rapid.Bool().Draw(t, "recorded") {
			held = append(held, recordTexts.Draw(t, "recorded later"))
		}
		checkSplice(t, d, []byte(text), id, metadataValues.Draw(t, "metadata"), held)
	})
}

// checkSplice compares what the archive answers for a document with the second
// implementation. The answer must be a document like any other: stored again as
// an update, it matches and comes back unchanged.
func checkSplice(t interface{ Fatalf(string, ...any) }, d *oda.Document, text []byte, id string, m oda.Metadata, held []string) {
	fatal := fataler{t}
	body := d.Body(id)
	got := render(fatal, body, m, recordsOf(held))
	if diff := cmp.Diff(spliced(d.Kind, text, id, m, held), got); diff != "" {
		t.Fatalf("%s\n%s", text, diff)
	}
	if !jsontext.Value(got).IsValid() {
		t.Fatalf("%s\nis rendered as this, which is not strict JSON:\n%s", text, got)
	}
	update, err := read(operations[d.Kind].store, d.Kind, []byte(got))
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
	if again := render(fatal, update.Body(id), m, recordsOf(held)); again != got {
		t.Fatalf("%s\nstored again is\n%s", got, again)
	}
}

// fataler lets the tests of rapid and of Go use the same helpers.
type fataler struct {
	t interface{ Fatalf(string, ...any) }
}

func (f fataler) Fatal(args ...any) { f.t.Fatalf("%v", args...) }

// FuzzDocument treats any text as a body. A text that is accepted must be strict
// JSON, come back as sent, and be accepted again.
func FuzzDocument(f *testing.F) {
	for _, e := range env.OwnDocuments(f) {
		f.Add(e.Text, e.Kind == oda.ExecutionBlock, false)
	}
	for _, seed := range []string{
		`{}`, `{ }`, `{"metadata":null}`, `{"eb_id":null,"metadata":null}`, `{"request_responses":[]}`, `{"\u0065b_id":"x"}`,
		`{"metadata":{"version":1},"request_responses":[{"request":"a"}]}`, `[]`, `{"a":1,"a":2}`, `{`, "\xef\xbb\xbf{}", `{"metadata":{"version":1e0}}`,
	} {
		f.Add([]byte(seed), true, true)
		f.Add([]byte(seed), false, false)
	}
	f.Fuzz(func(t *testing.T, text []byte, block, list bool) {
		kind := oda.SBDefinition
		if block {
			kind = oda.ExecutionBlock
		}
		d, err := read(operations[kind].store, kind, text)
		if err != nil {
			if oda.CodeOf(err) == oda.Internal {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		if !jsontext.Value(text).IsValid() {
			t.Fatalf("%q was accepted, but is not strict JSON", text)
		}
		held := listed(kind, text)
		if list && block && held == nil {
			d.Listed, held = true, []string{}
		}
		id := d.ID
		if id == "" {
			id = "x"
		}
		m := oda.Metadata{Version: 2, CreatedBy: "a", CreatedOn: 1, LastModifiedBy: "é\"\\", LastModifiedOn: 1_700_000_000_000_001}
		checkSplice(t, d, text, id, m, held)
	})
}
