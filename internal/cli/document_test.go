package cli

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"oda/internal/test/must"
)

// What a document says in YAML is what it says in JSON, however odd its texts are.
func TestYAMLSaysWhatTheDocumentSays(t *testing.T) {
	t.Parallel()
	pieces := []string{"", "\n", "\r", "\t", " ", "x", "#", ":", "-", "=", "\u0085", "\u2028", "\ufeff"}
	texts := map[string]bool{}
	for _, a := range pieces {
		for _, b := range pieces {
			for _, c := range pieces {
				texts[a+b+c] = true
			}
		}
	}
	for text := range texts {
		want := map[string]any{"list": []any{text}, text + "0": text}
		document := must.Get(json.Marshal(want))(t)
		var out bytes.Buffer
		if err := (look{}).printYAML(&out, document); err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		var got map[string]any
		if err := yaml.Unmarshal(out.Bytes(), &got); err != nil {
			t.Errorf("%q is printed as\n%sand cannot be read: %v", text, &out, err)
		} else if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%q is printed as\n%s%s", text, &out, d)
		}
	}
}

// Readers of YAML 1.1, as most in Python are, take these for a merge and a default value.
func TestYAMLQuotesWhatIsSpecialToReaders(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := (look{}).printYAML(&out, []byte(`["<<","=","=="]`)); err != nil || out.String() != "- \"<<\"\n- \"=\"\n- ==\n" {
		t.Errorf("printed as\n%s%v", &out, err)
	}
}

// Numbers are printed as they are spelled, white space is kept, and no text looks like
// another type, to readers of YAML 1.1 either.
func TestYAMLConvertsNothing(t *testing.T) {
	t.Parallel()
	const document = `{"n":[0.35e9,1.10,1e400,-0,123456789012345678901234567890.5],"on":"yes","off":["no","y","~","null","1_000","0x1f","12:30:45","2026-01-01"],"text":"  a  b\n c \n","none":null}`
	const want = `"n":
  - 0.35e9
  - 1.10
  - 1e400
  - -0
  - 123456789012345678901234567890.5
"on": "yes"
"off":
  - "no"
  - "y"
  - "~"
  - "null"
  - "1_000"
  - "0x1f"
  - "12:30:45"
  - "2026-01-01"
text: "  a  b\n c \n"
none: null
`
	var out bytes.Buffer
	must.Do(t, (look{}).printYAML(&out, []byte(document)))
	if d := cmp.Diff(want, out.String()); d != "" {
		t.Error(d)
	}
}
