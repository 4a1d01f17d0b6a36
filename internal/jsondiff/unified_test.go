package jsondiff

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"oda/internal/rawjson"
)

func strict(text []byte) bool {
	s := rawjson.NewScanner(text, 100)
	_, _, err := s.Skip()
	return err == nil && s.End() == nil
}

// printed gives the lines of a document.
func printed(text []byte, hidden ...string) []string {
	p := pretty{read(text), hide(hidden)}
	var all []string
	for l := range p.lines() {
		all = append(all, string(p.append(nil, l)))
	}
	return all
}

func TestADocumentIsPrintedAsPeopleReadIt(t *testing.T) {
	got := printed([]byte("{\"b\" :1.0,\"a\":[ ],\"metadata\":{\"version\":1,\"pdm\":\"\\u00e9\",\"created_by\":\"x\"},\n\"l\":[{ },[1,{\"version\":2}]], \"n\":null}"),
		"/metadata/version", "/metadata/created_by")
	want := []string{
		`{`, `  "b": 1.0,`, `  "a": [],`, `  "metadata": {`, `    "pdm": "\u00e9"`, `  },`, `  "l": [`, `    {},`, `    [`, `      1,`,
		`      {`, `        "version": 2`, `      }`, `    ]`, `  ],`, `  "n": null`, `}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("- wanted, + got:\n%s", diff)
	}
}

func TestAUnifiedDiffHasThreeLinesOfContext(t *testing.T) {
	from := `{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6,"g":7,"h":8,"i":9,"j":10,"k":11,"metadata":{"version":1}}`
	to := `{"a":1,"b":2,"c":3,"d":4.0,"e":5,"f":6,"g":7,"h":8,"i":9,"j":10,"k":11,"l":12,"metadata":{"version":2}}`
	want := `--- one
+++ two
@@ -2,7 +2,7 @@
   "a": 1,
   "b": 2,
   "c": 3,
-  "d": 4,
+  "d": 4.0,
   "e": 5,
   "f": 6,
   "g": 7,
@@ -10,5 +10,6 @@
   "i": 9,
   "j": 10,
   "k": 11,
+  "l": 12,
   "metadata": {}
 }
`
	var out bytes.Buffer
	if err := Unified(&out, Side{"one", []byte(from)}, Side{"two", []byte(to)}, "/metadata/version"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("- wanted, + got:\n%s", diff)
	}
}

func TestNothingIsWrittenOfDocumentsThatReadTheSame(t *testing.T) {
	var out bytes.Buffer
	err := Unified(&out, Side{"one", []byte(`{"metadata":{"version":1},"a":[1]}`)}, Side{"two", []byte(`{ "metadata":{"version":2}, "a":[ 1 ]}`)}, "/metadata/version")
	if err != nil || out.Len() > 0 {
		t.Errorf("%q, %v", out.String(), err)
	}
}

// Indentation makes much of little, so it is measured before it is written.
func TestAUnifiedDiffThatWouldBeTooLongIsNotWritten(t *testing.T) {
	nested := func(element string, n int) []byte {
		return []byte(strings.Repeat("[", 97) + strings.Repeat(element+",", n) + "0" + strings.Repeat("]", 97))
	}
	for _, n := range []int{200_000, 600_000} { // the longer ones are not aligned
		var out countingWriter
		err := Unified(&out, Side{"a", nested("1", n)}, Side{"b", nested("2", n)})
		if !errors.Is(err, ErrTooLong) || out > 0 {
			t.Errorf("%d elements: %v, and %d bytes were written", n, err, out)
		}
	}
	var out countingWriter
	if err := Unified(&out, Side{"a", nested("1", 200_000)}, Side{"b", nested("1", 200_001)}); err != nil || out > 4096 {
		t.Errorf("one more element: %v, %d bytes", err, out)
	}
}

func TestTheUnifiedDiffOfRandomDocumentsTurnsOneIntoTheOther(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		from, to := []byte(anyValue(t, 4)), []byte(anyValue(t, 4))
		var out bytes.Buffer
		if err := Unified(&out, Side{"a", from}, Side{"b", to}); err != nil {
			t.Fatal(err)
		}
		apply(t, out.String(), printed(from), printed(to))
	})
}

// apply turns lines into others as patch(1) does, without fuzz.
func apply(t tester, diff string, from, want []string) {
	t.Helper()
	var got []string
	at := 0
	if diff != "" {
		lines := strings.Split(strings.TrimSuffix(diff, "\n"), "\n")
		if len(lines) < 3 || !strings.HasPrefix(lines[0], "--- ") || !strings.HasPrefix(lines[1], "+++ ") {
			t.Fatalf("the diff has no header:\n%s", diff)
		}
		for _, l := range lines[2:] {
			switch {
			case l[0] == '@':
				first, count := place(strings.Fields(l)[1][1:])
				if count > 0 {
					first--
				}
				got = append(got, from[at:first]...)
				at = first
			case l[0] == '+':
				got = append(got, l[1:])
			case from[at] != l[1:]:
				t.Fatalf("line %d is %q and not %q in\n%s", at+1, from[at], l[1:], diff)
			case l[0] == ' ':
				got = append(got, l[1:])
				at++
			default:
				at++
			}
		}
	}
	got = append(got, from[at:]...)
	if d := cmp.Diff(want, got); d != "" {
		t.Fatalf("the diff\n%s\nmakes something else of it (- wanted, + got):\n%s", diff, d)
	}
}

// place reads "12,3" or "12".
func place(text string) (first, count int) {
	a, b, found := strings.Cut(text, ",")
	if !found {
		b = "1"
	}
	first, err := strconv.Atoi(a)
	count, err2 := strconv.Atoi(b)
	if err != nil || err2 != nil {
		panic(fmt.Sprint(err, err2))
	}
	return first, count
}
