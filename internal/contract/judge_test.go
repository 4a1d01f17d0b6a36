package contract_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"pgregory.net/rapid"

	"oda"
	"oda/internal/test/judge"
)

// An independent validator must reach the same verdict on every body. The
// bodies are generated from the description as that validator reads it, so the
// compiler is not tested against itself.
func TestIndependentValidatorAgrees(t *testing.T) {
	openapi3.DefineStringFormatValidator("timestamp", openapi3.NewCallbackValidator(judge.IsTimestamp))
	doc, err := judge.Description()
	if err != nil {
		t.Fatal(err)
	}
	for _, op := range load(t).Operations() {
		if !op.HasBody() {
			continue
		}
		t.Run(op.ID, func(t *testing.T) {
			described := doc.Paths.Value(op.Path).GetOperation(op.Method).RequestBody.Value
			if described.Required != op.BodyRequired() {
				t.Error("the validators disagree on whether the body is required")
			}
			schema := described.Content["application/json"].Schema.Value
			var accepted, refused int
			rapid.Check(t, func(t *rapid.T) {
				wrongness := rapid.SampledFrom([]int{0, 0, 10, 40}).Draw(t, "wrongness")
				g := generator{t: t, wrongness: wrongness}
				body, err := json.Marshal(g.value(schema))
				if err != nil {
					t.Fatal(err)
				}
				_, got := op.CheckBody(body, maxDepth)
				want := verdict(t, schema, body)
				if !described.Required && string(body) == "null" {
					want = nil // the description says in words that it is no body
				}
				if (got == nil) != (want == nil) {
					t.Fatalf("%s\ncontract: %v\nvalidator: %v", body, got, want)
				}
				if want == nil {
					accepted++
					return
				}
				refused++
				if oda.CodeOf(got) != oda.InvalidRequest {
					t.Fatalf("%s: %v", body, got)
				}
			})
			if accepted < 3 || refused < 3 {
				t.Errorf("%d bodies were accepted and %d refused: the test proves little", accepted, refused)
			}
		})
	}
}

func verdict(t *rapid.T, schema *openapi3.Schema, body []byte) error {
	var value any
	if err := json.Unmarshal(body, &value); err != nil {
		t.Fatal(err)
	}
	return schema.VisitJSON(value, openapi3.VisitAsRequest(), openapi3.EnableFormatValidation())
}

// generator makes bodies that mostly match a schema; wrongness is the
// percentage of values that do not.
type generator struct {
	t         *rapid.T
	wrongness int
	full      bool // omit no member, and leave no list empty unnecessarily
}

func (g generator) chance(percent int) bool {
	return rapid.IntRange(1, 100).Draw(g.t, "chance") <= percent
}

func (g generator) wrong() bool { return g.wrongness > 0 && g.chance(g.wrongness) }

func (g generator) pick(from ...any) any { return rapid.SampledFrom(from).Draw(g.t, "value") }

func (g generator) value(s *openapi3.Schema) any {
	switch {
	case g.wrong():
		return g.anything()
	case len(s.AllOf) == 1:
		if s.Nullable && g.chance(20) {
			return nil
		}
		return g.value(s.AllOf[0].Value)
	case len(s.AllOf) > 0:
		narrower := g
		narrower.full = true
		return overlay(g.value(s.AllOf[0].Value), narrower.value(s.AllOf[1].Value))
	case len(s.OneOf) > 0:
		return g.value(rapid.SampledFrom(s.OneOf).Draw(g.t, "alternative").Value)
	case s.Nullable && g.chance(20):
		return nil
	case s.Type.Is("object"), len(s.Properties) > 0:
		return g.object(s)
	case s.Type.Is("array"), s.Items != nil:
		return g.array(s)
	case s.Type.Is("integer"):
		return g.pick(json.Number("1"), json.Number("2.0"), json.Number("3e0"), json.Number("1e20"))
	case s.Type.Is("number"):
		return g.pick(json.Number("0"), json.Number("2400.5"), json.Number("1e3"))
	case s.Type.Is("boolean"):
		return g.pick(true, false)
	case len(s.Enum) > 0:
		return g.pick(s.Enum...)
	case s.Type.Is("string"):
		return g.text(s)
	}
	return g.anything()
}

// overlay merges a narrower value into another, so that the result mostly
// matches both schemas.
func overlay(value, narrower any) any {
	switch value := value.(type) {
	case map[string]any:
		if members, ok := narrower.(map[string]any); ok {
			for name, member := range members {
				value[name] = overlay(value[name], member)
			}
		}
		return value
	case []any:
		if elements, ok := narrower.([]any); ok && len(elements) > 0 {
			for i := range value {
				value[i] = overlay(value[i], elements[i%len(elements)])
			}
		}
		return value
	}
	return narrower
}

func (g generator) object(s *openapi3.Schema) any {
	object := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		needed := g.full || slices.Contains(s.Required, name)
		if needed && !g.wrong() || !needed && g.chance(60) {
			object[name] = g.value(s.Properties[name].Value)
		}
	}
	if open := s.AdditionalProperties.Schema != nil; open && g.chance(30) || g.wrong() {
		object["other"] = g.anything()
	}
	return object
}

func (g generator) array(s *openapi3.Schema) any {
	least, most := 0, 3
	if !g.wrong() {
		least = int(s.MinItems)
		if s.MaxItems != nil {
			most = min(most, int(*s.MaxItems))
		}
		if g.full && most > 0 {
			least = max(least, 1)
		}
	}
	array := []any{}
	for range rapid.IntRange(least, most).Draw(g.t, "length") {
		array = append(array, g.value(s.Items.Value))
	}
	return array
}

func (g generator) text(s *openapi3.Schema) any {
	switch {
	case s.Format == "timestamp":
		return g.pick("2026-03-01", "2026-03-01T20:59:58.25Z", "2026-03-01 22:59", "2026-03-01T22:59:58+05:30")
	case strings.HasPrefix(s.Pattern, "^https?:"):
		return g.pick("https://tickets.example.org/REC-17", "http://x")
	case strings.HasPrefix(s.Pattern, "^[!-~]"):
		return g.pick("k", "5f0c7b1e-scan-0042", "~", strings.Repeat("!", 255))
	case s.Not != nil:
		return g.pick("sbd-1", "A", "0._-", "creates", strings.Repeat("a", 128))
	}
	return g.pick("mary", "é\U0001f600", `"\`, strings.Repeat("é", 256))
}

func (g generator) anything() any {
	return g.pick(
		nil, true, "", "mary", "create", "search", "-a", "a/b", "a\n", "\x7f", "\u0085", "\u202e", "é",
		strings.Repeat("a", 129), strings.Repeat("é", 257),
		"2026-02-30", "2026-3-1", "2026-03-01T25:00:00Z", "2026-03-01T20:59:58,5Z", "soon",
		json.Number("0"), json.Number("-1"), json.Number("1.5"), json.Number("0.1e1"), json.Number("-1e20"),
		[]any{}, []any{nil}, []any{map[string]any{"request": "observe"}},
		map[string]any{}, map[string]any{"request": 1, "version": 0, "sbd_ids": "x"},
	)
}
