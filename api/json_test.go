package api

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTheJSONKeepsOrderAndTypes(t *testing.T) {
	got, err := toJSON([]byte("b: [1, 1.5, true, null, \"1\", a<b]\na: {}\n\"200\": x\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := `{
  "b": [
    1,
    1.5,
    true,
    null,
    "1",
    "a<b"
  ],
  "a": {},
  "200": "x"
}
`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Error(diff)
	}
}

func TestWhatJSONCannotExpressIsRefused(t *testing.T) {
	for name, source := range map[string]string{
		"a key that is no string": "200: x",
		"an alias":                "a: &x 1\nb: *x",
		"an empty file":           "",
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := toJSON([]byte(source)); err == nil {
				t.Errorf("got %s, want an error", got)
			}
		})
	}
}

func BenchmarkJSON(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := toJSON(YAML); err != nil {
			b.Fatal(err)
		}
	}
}
