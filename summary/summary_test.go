package summary_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oda"
	"oda/internal/test/env"
	"oda/internal/test/suite"
	"oda/summary"
)

// summaryOf returns the summary of a document as received. It checks that the
// stored document has the same summary.
func summaryOf(t *testing.T, kind oda.Kind, text string) oda.Summary {
	t.Helper()
	d, err := suite.Read("store", kind, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	x := summary.OfDocument(d)
	again, err := summary.OfBody(kind, d.Body("the-identifier"))
	if err != nil {
		t.Fatal(err)
	}
	if again.Hash() != x.Hash() {
		t.Errorf("the stored document has another hash: %.200s", text)
	}
	if diff := cmp.Diff(x.Summary(), again.Summary()); diff != "" {
		t.Errorf("the stored document has another summary (- as received):\n%s", diff)
	}
	unpacked, err := oda.UnpackSummary(x.Summary().Pack())
	if diff := cmp.Diff(*x.Summary(), unpacked); diff != "" || err != nil {
		t.Errorf("the summary does not survive packing, %v:\n%s", err, diff)
	}
	return *x.Summary()
}

func TestReferencesAreFoundInTheirFields(t *testing.T) {
	sbd := func(id string, version int64, field string) oda.Reference {
		return oda.Reference{Kind: oda.SBDefinition, ID: id, Version: version, Field: field}
	}
	for _, test := range []struct {
		name string
		kind oda.Kind
		text string
		want []oda.Reference
	}{
		{"an SBInstance", oda.SBInstance, `{"sbd_ref":"sbd-1","sbd_version":3,"eb_ref":"eb-1"}`, []oda.Reference{
			sbd("sbd-1", 3, "sbd_ref"), {Kind: oda.ExecutionBlock, ID: "eb-1", Field: "eb_ref"},
		}},
		{"the older name in an SBInstance", oda.SBInstance, `{"sbd_version":1,"sbd_id":"sbd-1"}`, []oda.Reference{sbd("sbd-1", 1, "sbd_id")}},
		{"the newer name goes first", oda.SBInstance, `{"sbd_id":"old","sbd_ref":"new"}`, []oda.Reference{sbd("new", 0, "sbd_ref")}},
		{"the older name where the newer is null", oda.SBInstance, `{"sbd_id":"old","sbd_ref":null}`, []oda.Reference{sbd("old", 0, "sbd_id")}},
		{"the older name where the newer is empty", oda.SBInstance, `{"sbd_id":"old","sbd_ref":""}`, []oda.Reference{sbd("old", 0, "sbd_id")}},
		{"an ExecutionBlock", oda.ExecutionBlock, `{"sbd_ref":"sbd-1","sbd_version":2,"sbi_ref":"sbi-1"}`, []oda.Reference{
			sbd("sbd-1", 2, "sbd_ref"), {Kind: oda.SBInstance, ID: "sbi-1", Field: "sbi_ref"},
		}},
		{"the older name in an ExecutionBlock", oda.ExecutionBlock, `{"sbd_id":"sbd-1"}`, []oda.Reference{sbd("sbd-1", 0, "sbd_id")}},
		{"an SBDefinition", oda.SBDefinition, `{"sbd_id":"the-identifier","prj_ref":"prj-1","ob_ref":"ob-1"}`, []oda.Reference{
			{Kind: oda.Project, ID: "prj-1", Field: "prj_ref"}, {Kind: oda.Project, ID: "ob-1", Field: "ob_ref"},
		}},
		{"lists of a Project", oda.Project, `{"obs_blocks":[{"sbd_ids":[]},{"sbd_ids":["a","b"]},{"name":"x"}],"obs_programmes":[{"sbd_ids":["a"]}]}`, []oda.Reference{
			sbd("a", 0, "obs_blocks/1/sbd_ids/0"), sbd("b", 0, "obs_blocks/1/sbd_ids/1"), sbd("a", 0, "obs_programmes/0/sbd_ids/0"),
		}},
		{
			"nulls and empty texts in lists", oda.Project, `{"obs_blocks":[{"sbd_ids":["","x y","a"]},{"sbd_ids":null}],"obs_programmes":null}`,
			[]oda.Reference{sbd("x y", 0, "obs_blocks/0/sbd_ids/1"), sbd("a", 0, "obs_blocks/0/sbd_ids/2")},
		},
		{"keys with escapes", oda.SBInstance, `{"sbd\u005fref":"sbd-\u0031"}`, []oda.Reference{sbd("sbd-1", 0, "sbd_ref")}},
		{"a text that is no identifier", oda.ExecutionBlock, `{"sbi_ref":"not an id/ü"}`, []oda.Reference{{Kind: oda.SBInstance, ID: "not an id/ü", Field: "sbi_ref"}}},
		{"nulls and empty texts", oda.ExecutionBlock, `{"sbi_ref":null,"sbd_ref":"","sbd_id":null,"sbd_version":4}`, nil},
		{"fields of other kinds", oda.SBDefinition, `{"sbi_ref":"a","eb_ref":"b","sbd_ref":"c","obs_blocks":[{"sbd_ids":["d"],"obs_block_id":"e"}]}`, nil},
		{"fields further down", oda.SBInstance, `{"x":{"sbd_ref":"a","eb_ref":"b"},"obs_blocks":[{"sbd_ids":["c"]}]}`, nil},
		{"lists in other places", oda.Project, `{"sbd_ids":["a"],"x":{"obs_blocks":[{"sbd_ids":["b"]}]},"y":[{"sbd_ids":["c"]}],"obs_blocks":[{"x":{"sbd_ids":["d"]}}]}`, nil},
		{"records", oda.ExecutionBlock, `{"request_responses":[{"request":"x","sbd_ref":"a","name":"b","request_args":{"kwargs":{"ra":1,"dec":2}}}]}`, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, summaryOf(t, test.kind, test.text).References); diff != "" {
				t.Errorf("- wanted, + found:\n%s", diff)
			}
		})
	}
}

// An archive may hold documents that a request could not store today, from before
// the API description forbade them.
func TestFieldsOfAnotherTypeAreNotReferences(t *testing.T) {
	for kind, text := range map[oda.Kind]string{
		oda.SBInstance:     `{"sbd_ref":7,"eb_ref":["a"],"sbd_version":"3","sbd_id":{"x":"y"}}`,
		oda.ExecutionBlock: `{"sbd_ref":true,"sbi_ref":{},"sbd_id":["a"]}`,
		oda.SBDefinition:   `{"prj_ref":["a"],"ob_ref":1.5}`,
		oda.Project:        `{"obs_blocks":{"sbd_ids":["a"]},"obs_programmes":["x",[{"sbd_ids":["b"]}],{"sbd_ids":"c"},{"sbd_ids":[["d"],{"e":"f"},7]}]}`,
	} {
		x, err := summary.OfBody(kind, oda.Body{Text: []byte(text)})
		if err != nil {
			t.Fatal(err)
		}
		if got := x.Summary().References; got != nil {
			t.Errorf("%s %s: found %+v", kind, text, got)
		}
	}
	for version, want := range map[string]int64{
		"3": 3, "3.0": 3, "3e0": 3, "0": 0, "-1": 0, "1.5": 0, `"3"`: 0, "null": 0, "1e400": 0, "9223372036854775807": 9223372036854775807, "9223372036854775808": 0, "1e19": 0,
	} {
		x, err := summary.OfBody(oda.SBInstance, oda.Body{Text: []byte(`{"sbd_ref":"a","sbd_version":` + version + `}`)})
		if err != nil {
			t.Fatal(err)
		}
		if got := x.Summary().References[0].Version; got != want {
			t.Errorf("the version %s is parsed as %d", version, got)
		}
	}
}

func TestTargetsAreObjectsWithCoordinates(t *testing.T) {
	target := func(name string, ra, dec float64) oda.Target { return oda.Target{Name: name, RA: ra, Dec: dec} }
	for _, test := range []struct {
		name, text string
		want       []oda.Target
	}{
		{"sexagesimal texts", `{"targets":[{"target_id":"a","reference_coordinate":{"kind":"icrs","ra_str":"06:00:00","dec_str":"-30:30:00"}}]}`, []oda.Target{target("a", 90, -30.5)}},
		{"numbers are degrees", `{"ra":6,"dec":-30.5}`, []oda.Target{target("", 6, -30.5)}},
		{"decimal texts are degrees", `{"ra":"6.5","dec":"+30"}`, []oda.Target{target("", 6.5, 30)}},
		{"blanks between", `{"ra":"6 30 00.0","dec":"- 30 30"}`, []oda.Target{target("", 97.5, -30.5)}},
		{"blanks between and around", `{"ra":" 6 30 00.0 ","dec":"-30 30"}`, []oda.Target{target("", 97.5, -30.5)}},
		{"a declination just south", `{"ra":"0:00:00","dec":"-00:30:00"}`, []oda.Target{target("", 0, -0.5)}},
		{"a plus sign", `{"ra":"+1:00:00","dec":"+01:00:00"}`, []oda.Target{target("", 15, 1)}},
		{"a unit that some tools write", `{"ra":"06:00:00 degrees","dec":"-30:30:00 degrees"}`, []oda.Target{target("", 90, -30.5)}},
		{"one of each spelling", `{"ra":1.5,"dec_str":"1:30:00"}`, []oda.Target{target("", 1.5, 1.5)}},
		{"ra before ra_str", `{"ra_str":"1:00:00","ra":2,"dec":"x","dec_str":"3"}`, []oda.Target{target("", 2, 3)}},
		{"an exponent", `{"ra":1e2,"dec":"1e1"}`, []oda.Target{target("", 100, 10)}},
		{"zero with a sign", `{"ra":-0.0,"dec":"-00:00:00"}`, []oda.Target{target("", 0, 0)}},
		{"without a declination", `{"ra":1,"x":{"dec":2}}`, nil},
		{"in azimuth and elevation", `{"reference_coordinate":{"kind":"altaz","az":180.0,"el":60.0}}`, nil},
		{"the whole circle", `[{"ra":360,"dec":1},{"ra":"24:00:00","dec":2}]`, []oda.Target{target("", 0, 1), target("", 0, 2)}},
		{"out of range", `[{"ra":360.001,"dec":0},{"ra":-1,"dec":0},{"ra":0,"dec":90.1},{"ra":0,"dec":-91},{"ra":"24:00:01","dec":0},{"ra":"1:60:00","dec":0},{"ra":"1:00:60","dec":0}]`, nil},
		{"not numbers", `[{"ra":"NaN","dec":0},{"ra":"Inf","dec":0},{"ra":"0x10","dec":0},{"ra":"1_0","dec":0},{"ra":"","dec":0},{"ra":"1:2:3:4","dec":0},{"ra":"1.5:00:00","dec":0},{"ra":"--1","dec":0},{"ra":"1e5:0","dec":0},{"ra":null,"dec":0},{"ra":[1],"dec":0},{"ra":true,"dec":0}]`, nil},
		{"at the poles", `[{"ra":0,"dec":90},{"ra":"0","dec":"-90:00:00"}]`, []oda.Target{target("", 0, 90), target("", 0, -90)}},
		{
			"the nearest name", `{"name":"far","targets":[{"name":"near","c":{"ra":1,"dec":1}},{"name":"","target_id":"id","c":[{"ra":2,"dec":2}]},{"c":{"ra":3,"dec":3}}]}`,
			[]oda.Target{target("near", 1, 1), target("id", 2, 2), target("far", 3, 3)},
		},
		{"a name behind the coordinates", `{"t":{"c":{"ra":1,"dec":1},"target_name":"behind","target_id":"id"}}`, []oda.Target{target("behind", 1, 1)}},
	} {
		t.Run(test.name, func(t *testing.T) {
			text := test.text
			if strings.HasPrefix(text, "[") {
				text = `{"list":` + text + `}`
			}
			if diff := cmp.Diff(test.want, summaryOf(t, oda.SBDefinition, text).Targets); diff != "" {
				t.Errorf("- wanted, + found:\n%s", diff)
			}
		})
	}
}

func TestNamesTelescopesWordsAndBlocksAreFound(t *testing.T) {
	for _, test := range []struct {
		name string
		kind oda.Kind
		text string
		want oda.Summary
	}{
		{"nothing", oda.SBDefinition, `{}`, oda.Summary{}},
		{"a name before a title", oda.Project, `{"title":"The title","name":"The name"}`, oda.Summary{Name: "The name", Words: []string{"name", "the", "title"}}},
		{"a title", oda.Project, `{"title":"A","name":""}`, oda.Summary{Name: "A", Words: []string{"a"}}},
		{"not a name further down", oda.Project, `{"x":{"name":"B","title":"C"},"name":null}`, oda.Summary{Words: []string{"b", "c"}}},
		{
			"keys that end so", oda.SBDefinition, `{"file_name":"a","subtitle":"b","long_description":"c","my_target_id":"d","names":"e","Name":"f","name_x":"g"}`,
			oda.Summary{Words: []string{"a", "b", "c", "d"}},
		},
		{"lists under such a key", oda.SBDefinition, `{"description":["one",["two"],{"x":"three","name":"four"}]}`, oda.Summary{Words: []string{"four", "one", "two"}}},
		{
			"runs of letters and digits", oda.SBDefinition, `{"name":"M83, PSR B0329+54: ÆRØ-straße Σίσυφος 2²x"}`,
			oda.Summary{Name: "M83, PSR B0329+54: ÆRØ-straße Σίσυφος 2²x", Words: []string{"2", "54", "b0329", "m83", "psr", "straße", "x", "ærø", "σίσυφοσ"}},
		},
		{"no numbers", oda.SBDefinition, `{"name":12,"title":true,"description":{"a":"b"}}`, oda.Summary{}},
		{"a telescope", oda.SBDefinition, `{"telescope":"ska_mid","x":{"telescope":"other"}}`, oda.Summary{Telescope: "ska_mid"}},
		{"a status", oda.SBInstance, `{"status":"Fully Observed","x":{"status":"other"}}`, oda.Summary{Status: "Fully Observed"}},
		{"no status", oda.SBInstance, `{"status":{"code":1}}`, oda.Summary{}},
		{"a status that is none", oda.SBInstance, `{"status":"a\u0000b"}`, oda.Summary{}},
		{"no telescope", oda.SBDefinition, `{"telescope":7}`, oda.Summary{}},
		{"a telescope that is no name", oda.SBDefinition, `{"telescope":"a\u0000b"}`, oda.Summary{}},
		{
			"blocks of a Project", oda.Project, `{"obs_blocks":[{"obs_block_id":"ob-1"},{"obs_block_id":null},{"obs_block_id":""},{"obs_block_id":"ob-2"}]}`,
			oda.Summary{Blocks: []string{"ob-1", "ob-2"}},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, summaryOf(t, test.kind, test.text)); diff != "" {
				t.Errorf("- wanted, + found:\n%s", diff)
			}
		})
	}
}

// The telescope, the name and the references of a document are found even if they
// follow a lot of other content.
func TestTheEndOfALargeDocumentIsSummarizedToo(t *testing.T) {
	objects := make([]string, 60_000)
	for i := range objects {
		objects[i] = fmt.Sprintf(`{"name":"aaa%d aab%d aac%d","target_id":"b","ra":1,"dec":2,"telescope":"x","sbd_ref":"y","sbd_ids":["z"]}`, i, i, i)
	}
	s := summaryOf(t, oda.SBInstance, `{"list":[`+strings.Join(objects, ",")+
		`],"telescope":"ska_mid","name":"findme please","sbd_ref":"sbd-1","sbd_version":3,"eb_ref":"eb-1"}`)
	references := []oda.Reference{
		{Kind: oda.SBDefinition, ID: "sbd-1", Version: 3, Field: "sbd_ref"}, {Kind: oda.ExecutionBlock, ID: "eb-1", Field: "eb_ref"},
	}
	if s.Telescope != "ska_mid" || s.Name != "findme please" || !slices.Equal(s.References, references) {
		t.Errorf("got telescope %q, name %q, references %v", s.Telescope, s.Name, s.References)
	}
	if !slices.Contains(s.Words, "findme") || !slices.Contains(s.Words, "please") || !slices.IsSorted(s.Words) {
		t.Errorf("the words of the name are not among its %d words", len(s.Words))
	}
}

// A document is stored whatever it holds, and its summary is bounded.
func TestASummaryIsBounded(t *testing.T) {
	list := func(n int, item string) string {
		return "[" + strings.TrimSuffix(strings.Repeat(item+",", n), ",") + "]"
	}
	long := strings.Repeat("ü", 100_000)
	var words strings.Builder
	for i := range 30_000 {
		words.WriteString(strings.Repeat("x", i%7) + " " + strings.Repeat("y", i%250) + string(rune('a'+i%26)) + " ")
	}
	for _, text := range []string{
		`{"list":` + list(5_000, `{"name":"n","ra":1,"dec":2}`) + `}`,
		`{"obs_blocks":[{"sbd_ids":` + list(50_000, `"sbd-1"`) + `}]}`,
		`{"obs_blocks":` + list(5_000, `{"obs_block_id":"`+strings.Repeat("x", 1000)+`"}`) + `}`,
		`{"name":"` + long + `","title":"` + words.String() + `","telescope":"` + long + `"}`,
		`{"list":` + list(200_000, `{"name":"a"}`) + `}`,
	} {
		s := summaryOf(t, oda.Project, text)
		size := 0
		for _, term := range s.Terms(oda.Ref{Kind: oda.Project, ID: "prj-1"}) {
			size += len(term)
			if len(term) > 255 {
				t.Errorf("a term has %d bytes", len(term))
			}
		}
		if len(s.Targets) > 1_000 || len(s.References) > 10_000 || len(s.Words) > 10_000 || size > 900_000 || len(s.Name) > 1024 || len(s.Telescope) > 1024 {
			t.Errorf("%.40s… keeps %d targets, %d references, %d words, terms of %d bytes", text, len(s.Targets), len(s.References), len(s.Words), size)
		}
	}
}

func TestTheHashChangesOnlyWithTheSummary(t *testing.T) {
	hash := func(text string) int64 {
		d, err := suite.Read("store", oda.SBInstance, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return summary.OfDocument(d).Hash()
	}
	const text = `{"sbd_ref":"a","sbd_version":1,"name":"b","x":{"name":"c","y":{"ra":1,"dec":2}}}`
	for _, same := range []string{
		`{ "sbd_ref" :"a", "sbd_version":1,"name":"b", "more":[1,2,{"z":"c"}],"x":{"name":"c","y":{"ra":1,"dec":2}},"sbi_id":"i","metadata":{"version":7}}`,
	} {
		if hash(same) != hash(text) {
			t.Errorf("%s has another hash", same)
		}
	}
	for _, other := range []string{
		`{"sbd_ref":"A","sbd_version":1,"name":"b","x":{"name":"c","y":{"ra":1,"dec":2}}}`,
		`{"sbd_ref":"a","sbd_version":2,"name":"b","x":{"name":"c","y":{"ra":1,"dec":2}}}`,
		`{"sbd_id":"a","sbd_version":1,"name":"b","x":{"name":"c","y":{"ra":1,"dec":2}}}`,
		`{"sbd_ref":"a","sbd_version":1,"name":"b","x":{"name":"c"},"y":{"y":{"ra":1,"dec":2}}}`,
		`{"sbd_ref":"a","sbd_version":1,"name":"b","x":{"name":"c","y":{"ra":1,"dec":3}}}`,
		`{"sbd_ref":"a","sbd_version":1,"name":"b","x":{"name":"c","y":{"ra":1},"z":{"dec":2}}}`,
	} {
		if hash(other) == hash(text) {
			t.Errorf("%s has the same hash", other)
		}
	}
}

func TestRealDocumentsHaveSummaries(t *testing.T) {
	targets, references := 0, 0
	for _, d := range env.RealDocuments(t) {
		s := summaryOf(t, d.Kind, string(d.Text))
		if s.Telescope == "" && d.Kind != oda.Project {
			t.Errorf("%s has no telescope", d.Name)
		}
		if n := strings.Count(string(d.Text), `"dec"`) + strings.Count(string(d.Text), `"dec_str"`); n != len(s.Targets) {
			t.Errorf("%s has %d declinations, and %d targets were found", d.Name, n, len(s.Targets))
		}
		targets += len(s.Targets)
		references += len(s.References)
	}
	if targets == 0 || references == 0 {
		t.Errorf("found %d targets and %d references", targets, references)
	}
}
