package summary_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	gocmp "github.com/google/go-cmp/cmp"

	"oda"
	"oda/internal/test/env"
	"oda/summary"
)

// FuzzSummary compares the summary that the scan of a document makes with one
// that a plain walk makes from what encoding/json decodes.
func FuzzSummary(f *testing.F) {
	for _, d := range env.OwnDocuments(f) {
		f.Add(uint8(d.Kind), d.Text)
	}
	for _, text := range []string{
		`{"targets":[{"target_id":"a","name":"","reference_coordinate":{"ra":"-1:0:0","dec":"+88:57:22.9 degrees"}}]}`,
		`{"sbd_id":"x","sbd_ref":null,"sbd_version":3,"eb_ref":"e","sbi_ref":"i","prj_ref":"p","ob_ref":"o","telescope":"t","status":"Draft"}`,
		`{"obs_blocks":[{"obs_block_id":"b","sbd_ids":["a",""],"name":["x",["y"]]}],"obs_programmes":[{"sbd_ids":["c"]}],"title":"T Ünï"}`,
		`{"na\u006de":"\ud83d\ude00 caf\u00e9","x":[{"ra":1.5e2,"dec_str":"-00 30"}],"request_responses":[{"name":"no"}]}`,
	} {
		for kind := range uint8(4) {
			f.Add(kind+1, []byte(text))
		}
	}
	f.Fuzz(func(t *testing.T, k uint8, text []byte) {
		kind := oda.Kind(k%4 + 1)
		x, err := summary.OfBody(kind, oda.Body{Text: text})
		if err != nil {
			t.Skip("not a strict document")
		}
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.UseNumber()
		var document any
		if err := decoder.Decode(&document); err != nil {
			t.Fatalf("encoding/json refuses it: %v", err)
		}
		if _, ok := document.(map[string]any); !ok {
			t.Skip("not an object")
		}
		want := modelSummary(kind, document.(map[string]any))
		got := *x.Summary()
		got.Targets, got.References, got.Blocks = slices.Clone(got.Targets), slices.Clone(got.References), slices.Clone(got.Blocks)
		for _, s := range []*oda.Summary{&want, &got} { // a map has no order
			slices.SortFunc(s.Targets, func(a, b oda.Target) int {
				return cmp.Or(cmp.Compare(a.RA, b.RA), cmp.Compare(a.Dec, b.Dec), cmp.Compare(a.Name, b.Name))
			})
			slices.SortFunc(s.References, func(a, b oda.Reference) int { return cmp.Compare(a.Field, b.Field) })
			slices.Sort(s.Blocks)
		}
		if diff := gocmp.Diff(want, got); diff != "" {
			t.Errorf("- the model, + the extract:\n%s", diff)
		}
	})
}

// modelSummary makes the summary of a document in the plainest way, without
// bounds.
func modelSummary(kind oda.Kind, document map[string]any) oda.Summary {
	var s oda.Summary
	if t, ok := document["telescope"].(string); ok && !strings.ContainsFunc(t, unicode.IsControl) && len(t) <= 1024 {
		s.Telescope = t
	}
	if t, ok := document["status"].(string); ok && !strings.ContainsFunc(t, unicode.IsControl) && utf8.RuneCountInString(t) <= 64 {
		s.Status = t
	}
	for _, key := range []string{"title", "name"} {
		if name, ok := document[key].(string); ok && name != "" {
			s.Name = name
		}
	}
	refer := func(to oda.Kind, fields ...string) {
		for _, field := range fields {
			if id, ok := document[field].(string); ok && id != "" {
				r := oda.Reference{Kind: to, ID: id, Field: field}
				if n, ok := document["sbd_version"].(json.Number); ok && to == oda.SBDefinition {
					if v, err := strconv.ParseFloat(string(n), 64); err == nil && v >= 1 && v < 1e15 && v == float64(int64(v)) {
						r.Version = int64(v)
					}
				}
				s.References = append(s.References, r)
				return
			}
		}
	}
	switch kind {
	case oda.SBInstance:
		refer(oda.SBDefinition, "sbd_ref", "sbd_id")
		refer(oda.ExecutionBlock, "eb_ref")
	case oda.ExecutionBlock:
		refer(oda.SBDefinition, "sbd_ref", "sbd_id")
		refer(oda.SBInstance, "sbi_ref")
	case oda.SBDefinition:
		refer(oda.Project, "prj_ref")
		refer(oda.Project, "ob_ref")
	case oda.Project:
		for _, field := range []string{"obs_blocks", "obs_programmes"} {
			groups, _ := document[field].([]any)
			for i, group := range groups {
				members, _ := group.(map[string]any)
				ids, _ := members["sbd_ids"].([]any)
				for j, id := range ids {
					if id, ok := id.(string); ok && id != "" {
						s.References = append(s.References, oda.Reference{Kind: oda.SBDefinition, ID: id, Field: fmt.Sprintf("%s/%d/sbd_ids/%d", field, i, j)})
					}
				}
			}
		}
	}
	m := modelWalk{summary: &s, isProject: kind == oda.Project}
	m.value(document, "", nil)
	slices.Sort(s.Words)
	s.Words = slices.Compact(s.Words)
	return s
}

// modelWalk goes through a document.
type modelWalk struct {
	summary   *oda.Summary
	isProject bool
}

var wordKey = regexp.MustCompile(`(name|title|description|target_id)$`)

// value reads the value of a key. Around lists the objects that hold it, the
// outermost first.
func (m *modelWalk) value(v any, key string, around []map[string]any) {
	switch v := v.(type) {
	case map[string]any:
		around = append(slices.Clone(around), v)
		m.target(v, around)
		if id, ok := v["obs_block_id"].(string); ok && m.isProject && id != "" {
			m.summary.Blocks = append(m.summary.Blocks, id)
		}
		for k, below := range v {
			if k != "request_responses" {
				m.value(below, k, around)
			}
		}
	case []any:
		for _, below := range v {
			m.value(below, key, around)
		}
	case string:
		if wordKey.MatchString(key) && !strings.HasSuffix(key, "\n") {
			m.summary.Words = append(m.summary.Words, strings.FieldsFunc(folded(v), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })...)
		}
	}
}

func folded(text string) string {
	return strings.Map(func(r rune) rune { return unicode.ToLower(unicode.ToUpper(r)) }, text)
}

// target adds the object if it has coordinates.
func (m *modelWalk) target(v map[string]any, around []map[string]any) {
	ra, ok1 := modelAngle(v["ra"], 15, 0, 360.0000001)
	if !ok1 {
		ra, ok1 = modelAngle(v["ra_str"], 15, 0, 360.0000001)
	}
	dec, ok2 := modelAngle(v["dec"], 1, -90, 90.0000001)
	if !ok2 {
		dec, ok2 = modelAngle(v["dec_str"], 1, -90, 90.0000001)
	}
	if !ok1 || !ok2 {
		return
	}
	t := oda.Target{RA: math.Mod(ra, 360), Dec: dec}
	for _, object := range slices.Backward(around) {
		for _, key := range []string{"name", "target_name", "target_id"} {
			if name, ok := object[key].(string); ok && name != "" && t.Name == "" {
				t.Name = name
			}
		}
	}
	m.summary.Targets = append(m.summary.Targets, t)
}

var (
	decimalAngle     = regexp.MustCompile(`^([+-]?)(\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)$`)
	sexagesimalAngle = regexp.MustCompile(`^([+-]?)[: ]*(\d+)[: ]+(?:(\d+)[: ]+)?(\d+\.?\d*|\.\d+)[: ]*$`)
)

func modelAngle(v any, hour, low, top float64) (float64, bool) {
	text, ok := v.(string)
	if n, isNumber := v.(json.Number); isNumber {
		text, ok = string(n), true
	}
	if !ok {
		return 0, false
	}
	text = strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(text), "degrees"))
	var value float64
	sign := ""
	if m := decimalAngle.FindStringSubmatch(strings.Trim(text, ": ")); m != nil && !strings.ContainsAny(text, ": ") {
		n, err := strconv.ParseFloat(m[2], 64)
		if err != nil {
			return 0, false
		}
		sign, value = m[1], n
	} else if m := sexagesimalAngle.FindStringSubmatch(text); m != nil {
		number := func(text string) float64 { n, _ := strconv.ParseFloat(text, 64); return n } // it has digits
		minutes, seconds := number(m[4]), 0.0
		if m[3] != "" {
			minutes, seconds = number(m[3]), number(m[4])
		}
		if minutes >= 60 || seconds >= 60 {
			return 0, false
		}
		sign, value = m[1], number(m[2])
		value += minutes / 60
		value += seconds / 3600
		value *= hour
	} else {
		return 0, false
	}
	if sign == "-" && value != 0 {
		value = -value
	}
	return value, value >= low && value < top
}
