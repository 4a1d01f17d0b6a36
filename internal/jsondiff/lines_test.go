package jsondiff

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// beside writes two texts next to each other.
func beside(from, to []Line) (text string) {
	at := func(lines []Line, i int) string {
		if i < 0 {
			return ""
		}
		return strings.Repeat(" ", lines[i].Indent) + lines[i].Text
	}
	for _, r := range Align(from, to) {
		sign := "≠"
		switch {
		case r.Same:
			sign = "="
		case r.Kin:
			sign = "~"
		}
		text += fmt.Sprintf("%s %s %s\n", at(from, r.From), sign, at(to, r.To))
	}
	return text
}

func TestLinesWithTheSameKeyStandBesideEachOther(t *testing.T) {
	from, _ := Lines([]byte(`{"name":"a","list":[1,2],"old":true,"ra":1.0,"metadata":{"version":1}}`), 100, "/metadata/version")
	to, _ := Lines([]byte(`{"name":"b","list":[1,2,3],"ra":1,"new":{},"metadata":{"version":2}}`), 100, "/metadata/version")
	want := `{ = {
 "name": "a" ~  "name": "b"
 "list": [ =  "list": [
  1 =   1
  2 =   2
 ≠   3
 ] =  ]
 "old": true ≠ 
 "ra": 1.0 ~  "ra": 1
 ≠  "new": {}
 "metadata": {} =  "metadata": {}
} = }
`
	if diff := cmp.Diff(want, beside(from, to)); diff != "" {
		t.Errorf("- wanted, + got:\n%s", diff)
	}
}

func TestADocumentWithTooManyLinesIsLeftAlone(t *testing.T) {
	document := []byte(`[1,2,3]`)
	if lines, ok := Lines(document, 5); !ok || len(lines) != 5 {
		t.Errorf("of five lines there are %d", len(lines))
	}
	if lines, ok := Lines(document, 4); ok {
		t.Errorf("five lines are %d", len(lines))
	}
}

// Every line of both texts stands in one row, in order, and what is called the
// same is the same.
func TestNoLineIsLost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		line := rapid.Custom(func(t *rapid.T) Line {
			key := rapid.SampledFrom([]string{"", "a", "b", "c"}).Draw(t, "key")
			return Line{Text: key + rapid.SampledFrom([]string{"1", "2", "3"}).Draw(t, "text"), Key: key, Indent: rapid.IntRange(0, 2).Draw(t, "indent")}
		})
		texts := rapid.SliceOfN(line, 0, 30)
		from, to := texts.Draw(t, "from"), texts.Draw(t, "to")
		i, j := 0, 0
		for _, r := range Align(from, to) {
			if r.From >= 0 {
				if r.From != i {
					t.Fatalf("after line %d comes %d", i-1, r.From)
				}
				i++
			}
			if r.To >= 0 {
				if r.To != j {
					t.Fatalf("after line %d comes %d", j-1, r.To)
				}
				j++
			}
			if r.Same && !from[r.From].same(to[r.To]) {
				t.Fatalf("%+v are not the same", r)
			}
			if r.Kin && from[r.From].Key != to[r.To].Key {
				t.Fatalf("%+v are no kin", r)
			}
		}
		if i != len(from) || j != len(to) {
			t.Fatalf("%d of %d lines, and %d of %d", i, len(from), j, len(to))
		}
	})
}

// Where everything has changed, the lines still stand next to each other.
func TestLongTextsAreComparedPlaceByPlace(t *testing.T) {
	long := func(of string) []Line {
		lines, _ := Lines([]byte("["+strings.Repeat(`{"a":`+of+`},`, 2000)+"0]"), 10_000)
		return lines
	}
	same, kin := 0, 0
	for _, r := range Align(long("1"), long("2")) {
		if r.Same {
			same++
		}
		if r.Kin {
			kin++
		}
	}
	if same != 4003 || kin != 2000 {
		t.Errorf("%d lines are the same and %d have changed, want 4003 and 2000", same, kin)
	}
}
