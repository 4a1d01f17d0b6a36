package jsondiff

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestAPatchSaysWhatPeopleSee(t *testing.T) {
	tests := map[string]struct{ from, to, want string }{
		"nothing changed":                     {`{"a":1}`, `{"a":1}`, `[]`},
		"white space, order and escapes":      {`{"a":[1,{"b":"é"}],"c":2}`, "{ \"c\":2,\n\"\\u0061\":[1, {\"b\":\"\\u00e9\"}]}", `[]`},
		"a field":                             {`{"a":{"b":1}}`, `{"a":{"b":2}}`, `[{"op":"replace","path":"/a/b","value":2}]`},
		"a new field":                         {`{"a":{}}`, `{"a":{"b":[1, 2]}}`, `[{"op":"add","path":"/a/b","value":[1, 2]}]`},
		"a field that is gone":                {`{"a":{"b":null}}`, `{"a":{}}`, `[{"op":"remove","path":"/a/b"}]`},
		"null is not nothing":                 {`{"a":0}`, `{"a":null}`, `[{"op":"replace","path":"/a","value":null}]`},
		"another type":                        {`{"a":"1"}`, `{"a":1}`, `[{"op":"replace","path":"/a","value":1}]`},
		"the spelling of a number":            {`{"a":1}`, `{"a":1.0}`, `[{"op":"replace","path":"/a","value":1.0}]`},
		"a digit that a float does not have":  {`[1234567890.12345678901234567890]`, `[1234567890.12345678901234567891]`, `[{"op":"replace","path":"/0","value":1234567890.12345678901234567891}]`},
		"a key that a pointer escapes":        {`{"a/b~c\"":1}`, `{"a/b~c\"":2}`, `[{"op":"replace","path":"/a~1b~0c\"","value":2}]`},
		"an empty key":                        {`{"":1}`, `{"":2}`, `[{"op":"replace","path":"/","value":2}]`},
		"the document itself":                 {`{}`, `[]`, `[{"op":"replace","path":"","value":[]}]`},
		"an element inserted in the middle":   {`[1,2,3]`, `[1,9,2,3]`, `[{"op":"add","path":"/1","value":9}]`},
		"an element removed from the middle":  {`[1,9,2,3]`, `[1,2,3]`, `[{"op":"remove","path":"/1"}]`},
		"one of several that are equal":       {`[1,1,1,1]`, `[1,1,1]`, `[{"op":"remove","path":"/3"}]`},
		"elements inserted in several places": {`[1,2,1,2]`, `[0,1,2,0,1,2,0]`, `[{"op":"add","path":"/0","value":0},{"op":"add","path":"/3","value":0},{"op":"add","path":"/6","value":0}]`},
		"an element appended":                 {`{"l":[{"a":1}]}`, `{"l":[{"a":1},{"a":1}]}`, `[{"op":"add","path":"/l/1","value":{"a":1}}]`},
		"the first and the last element":      {`[1,2,3]`, `[2,3,4]`, `[{"op":"remove","path":"/0"},{"op":"add","path":"/2","value":4}]`},
		"a field in a list of objects": {
			`{"targets":[{"id":"a","ra":1},{"id":"b","ra":2},{"id":"c","ra":3}]}`,
			`{"targets":[{"id":"a","ra":1},{"id":"b","ra":2.5},{"id":"c","ra":3}]}`,
			`[{"op":"replace","path":"/targets/1/ra","value":2.5}]`,
		},
		"a field in each of a list of objects": {
			`[{"id":"a","ra":1},{"id":"b","ra":2}]`, `[{"id":"a","ra":1.5},{"id":"b","ra":2.5}]`,
			`[{"op":"replace","path":"/0/ra","value":1.5},{"op":"replace","path":"/1/ra","value":2.5}]`,
		},
		"an object changed after one that is new": {
			`[{"id":"a","ra":1,"dec":1}]`, `[{"id":"x","ra":7,"dec":9},{"id":"a","ra":1,"dec":2}]`,
			`[{"op":"add","path":"/0","value":{"id":"x","ra":7,"dec":9}},{"op":"replace","path":"/1/dec","value":2}]`,
		},
		"an object changed in front of one that is gone": {
			`[{"id":"a","ra":1,"dec":1},{"id":"x","ra":7,"dec":9}]`, `[{"id":"a","ra":1,"dec":2}]`,
			`[{"op":"replace","path":"/0/dec","value":2},{"op":"remove","path":"/1"}]`,
		},
		"another object in its place":  {`[{"a":1}]`, `[{"b":2}]`, `[{"op":"replace","path":"/0","value":{"b":2}}]`},
		"a list within a list":         {`[[1,2],[3,4]]`, `[[1,2],[3,5,4]]`, `[{"op":"add","path":"/1/1","value":5}]`},
		"an object that becomes empty": {`{"a":{"b":1}}`, `{"a":{}}`, `[{"op":"remove","path":"/a/b"}]`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := mustPatch(t, []byte(test.from), []byte(test.to))
			if diff := cmp.Diff(test.want, string(got)); diff != "" {
				t.Errorf("- wanted, + got:\n%s", diff)
			}
			judge(t, []byte(test.from), []byte(test.to))
		})
	}
}

// tester is a test, or one of a property.
type tester interface {
	Helper()
	Fatalf(format string, args ...any)
}

func mustPatch(t tester, from, to []byte) []byte {
	t.Helper()
	patch, err := Patch(context.Background(), from, to)
	if err != nil {
		t.Fatalf("the patch: %v", err)
	}
	return patch
}

// judge lets a library that did not make the patch apply it. It knows no empty
// keys, so a document that has one is judged by the lines below alone.
func judge(t tester, from, to []byte) {
	t.Helper()
	patch := mustPatch(t, from, to)
	want := values(t, to)
	if got := applied(t, values(t, from), patch); !reflect.DeepEqual(got, want) {
		t.Fatalf("the patch %s makes of\n%s\nthe document\n%v\nand not\n%s", patch, from, got, to)
	}
	if empty := []byte(`"":`); bytes.Contains(from, empty) || bytes.Contains(to, empty) {
		return
	}
	decoded, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		t.Fatalf("the patch %s: %v", patch, err)
	}
	got, err := decoded.Apply(from)
	if err != nil {
		t.Fatalf("apply %s to %s: %v", patch, from, err)
	}
	if !reflect.DeepEqual(values(t, got), want) {
		t.Fatalf("the library makes with %s of\n%s\nthe document\n%s\nand not\n%s", patch, from, got, to)
	}
}

// applied carries a patch out on decoded values, as RFC 6902 reads.
func applied(t tester, document any, patch []byte) any {
	t.Helper()
	root := map[string]any{"": document}
	for _, one := range values(t, patch).([]any) {
		op := one.(map[string]any)
		pointer := strings.Split(op["path"].(string), "/")
		for i, token := range pointer {
			pointer[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
		}
		edit(t, root, pointer, op["op"].(string), op["value"])
	}
	return root[""]
}

// edit carries one operation out below a value, and gives what it becomes.
func edit(t tester, in any, pointer []string, op string, value any) any {
	t.Helper()
	last := len(pointer) == 1
	switch in := in.(type) {
	case map[string]any:
		_, known := in[pointer[0]]
		switch {
		case known == (op == "add") && last || !known && !last:
			t.Fatalf("%s of the member %q of %v", op, pointer[0], in)
		case !last:
			in[pointer[0]] = edit(t, in[pointer[0]], pointer[1:], op, value)
		case op == "remove":
			delete(in, pointer[0])
		default:
			in[pointer[0]] = value
		}
		return in
	case []any:
		at, err := strconv.Atoi(pointer[0])
		if err != nil || at > len(in) || at == len(in) && !(last && op == "add") {
			t.Fatalf("%s of the element %q of %v", op, pointer[0], in)
		}
		switch {
		case !last:
			in[at] = edit(t, in[at], pointer[1:], op, value)
		case op == "remove":
			return slices.Delete(in, at, at+1)
		case op == "add":
			return slices.Insert(in, at, value)
		default:
			in[at] = value
		}
		return in
	}
	t.Fatalf("%s below %v", op, in)
	return nil
}

// values decodes a document; numbers stay as they are spelled.
func values(t tester, text []byte) any {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var v any
	if err := decoder.Decode(&v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

// anyValue draws a value; few are possible, so that they repeat.
func anyValue(t *rapid.T, depth int) string {
	space := rapid.SampledFrom([]string{"", "", "", " ", "\n\t"})
	kind := rapid.IntRange(0, 9).Draw(t, "kind")
	if depth == 0 {
		kind = 9
	}
	var parts []string
	switch {
	case kind < 4:
		for range rapid.IntRange(0, 7).Draw(t, "length") {
			parts = append(parts, space.Draw(t, "space")+anyValue(t, depth-1))
		}
		return "[" + strings.Join(parts, ",") + space.Draw(t, "space") + "]"
	case kind < 8:
		keys := []string{`"a"`, `"b"`, `"id"`, `""`, `"a/b"`, `"~"`, `"é\n"`, `"-"`, `"0"`}
		for _, key := range rapid.SliceOfNDistinct(rapid.SampledFrom(keys), 0, 5, rapid.ID[string]).Draw(t, "keys") {
			parts = append(parts, space.Draw(t, "space")+key+":"+space.Draw(t, "space")+anyValue(t, depth-1))
		}
		return "{" + strings.Join(parts, ",") + "}"
	}
	return rapid.SampledFrom([]string{
		`1`, `1.0`, `1e0`, `-0`, `0`, `2`, `3`, `4`, `null`, `true`, `false`, `""`, `"a"`, `"\u0061"`, `"b\"\\"`, `"1"`,
		`123456789012345678901234567890.12345678901234567890`,
	}).Draw(t, "scalar")
}

func TestThePatchOfRandomDocumentsTurnsOneIntoTheOther(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		wrap := rapid.SampledFrom([]string{"[%s]", `{"x":%s}`}).Draw(t, "wrap")
		from := fmt.Sprintf(wrap, anyValue(t, 4))
		to := fmt.Sprintf(wrap, anyValue(t, 4))
		judge(t, []byte(from), []byte(to))
	})
}

// Lists of which most stays, since that is what is searched for.
func TestThePatchOfListsThatShareMuchTurnsOneIntoTheOther(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		from := rapid.SliceOfN(rapid.IntRange(0, rapid.SampledFrom([]int{3, 30, 3000}).Draw(t, "range")), 0, 60).Draw(t, "from")
		to := append([]int(nil), from...)
		for range rapid.IntRange(0, 8).Draw(t, "edits") {
			at := rapid.IntRange(0, len(to)).Draw(t, "at")
			if at < len(to) && rapid.Bool().Draw(t, "remove") {
				to = append(to[:at], to[at+1:]...)
			} else {
				to = append(to[:at], append([]int{rapid.IntRange(0, 30).Draw(t, "value")}, to[at:]...)...)
			}
		}
		list := func(numbers []int) []byte {
			var parts []string
			for _, n := range numbers {
				parts = append(parts, fmt.Sprintf(`{"n":%d,"s":"%d"}`, n, n%7))
			}
			return []byte("[" + strings.Join(parts, ",") + "]")
		}
		judge(t, list(from), list(to))
	})
}

func FuzzPatch(f *testing.F) {
	for _, name := range []string{"sbds", "ebs", "prjs"} {
		files, err := filepath.Glob("../../testdata/" + name + "/*.json")
		if err != nil || len(files) == 0 {
			f.Fatalf("there are no documents in testdata/%s", name)
		}
		text, err := os.ReadFile(files[0])
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text, bytes.Replace(text, []byte("1"), []byte("2"), 3))
	}
	f.Add([]byte(`[[1,{"a":2}],[3]]`), []byte(`[[1,{"b":2}],[],[3,4]]`))
	f.Fuzz(func(t *testing.T, from, to []byte) {
		for _, text := range [][]byte{from, to} {
			if len(text) == 0 || text[0] != '{' && text[0] != '[' || !strict(text) {
				t.Skip("no document")
			}
		}
		judge(t, from, to)
		var out bytes.Buffer
		if err := Unified(&out, Side{"a", from}, Side{"b", to}, "/metadata/version"); err != nil {
			t.Fatal(err)
		}
		apply(t, out.String(), printed(from, "/metadata/version"), printed(to, "/metadata/version"))
	})
}

// Documents that are made to take time or memory.
func TestHostileDocumentsAreComparedWithinBounds(t *testing.T) {
	const half = 1 << 20
	list := func(element string, size int) []byte {
		return []byte("[" + strings.Repeat(element+",", size/(len(element)+1)) + element + "]")
	}
	numbered := func(format string, n int) []byte {
		var b bytes.Buffer
		for i := range n {
			fmt.Fprintf(&b, format, i)
		}
		return append(append([]byte("["), bytes.TrimSuffix(b.Bytes(), []byte(","))...), ']')
	}
	nested := func(depth int, inner string) []byte {
		return []byte(strings.Repeat("[1,", depth) + inner + strings.Repeat(",2]", depth))
	}
	tests := map[string][2][]byte{
		"millions of ones, then twos":         {list("1", half), list("2", half)},
		"millions of ones, one less":          {list("1", half), list("1", half-2)},
		"ones and zeros":                      {list("1,0", half), list("0,0,1", half)},
		"empty lists and objects":             {list("[]", half), list("{}", half)},
		"100,000 objects, all changed":        {numbered(`{"id":%d,"on":true},`, 100_000), numbered(`{"id":%d,"on":false},`, 100_000)},
		"100,000 objects, one inserted":       {numbered(`{"id":%d},`, 100_000), append([]byte(`[{"id":"new"},`), numbered(`{"id":%d},`, 100_000)[1:]...)},
		"no repetition at all":                {numbered(`"a%d",`, 600_000), numbered(`"b%d",`, 600_000)},
		"deep, and changed at the bottom":     {nested(2000, strings.Repeat("1", half/4)), nested(2000, strings.Repeat("2", half/4))},
		"a long key above many changes":       {[]byte(`{"` + strings.Repeat("k", half/2) + `":` + string(list("1", half/2)) + "}"), []byte(`{"` + strings.Repeat("k", half/2) + `":` + string(list("2", half/2)) + "}")},
		"very many members":                   {object(500_000, 1), object(500_000, 2)},
		"a list with few different elements":  {numbered(`[%[1]d,1],`, 1000), numbered(`[1,%[1]d],`, 1000)},
		"one long string":                     {list(`"`+strings.Repeat(`\u0041`, half/8)+`"`, 1), list(`"`+strings.Repeat("A", half/8)+`"`, 1)},
		"many lists whose ends change":        {edged(100, 0), edged(100, 9)},
		"many short lists without uniqueness": {list("[1,2,1,2,1,2]", half), list("[2,1,2,1,2]", half)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			from, to := test[0], test[1]
			size := len(from) + len(to)
			before := taken()
			patch := mustPatch(t, from, to)
			if took := taken() - before; took > 8*size+160<<20 {
				t.Errorf("the patch of %d bytes took %d bytes of memory", size, took)
			}
			if !json.Valid(patch) || len(patch) > 3*len(to)+patchSlack {
				t.Errorf("the patch of %d and %d bytes has %d", len(from), len(to), len(patch))
			}
			before = taken()
			var out countingWriter
			if err := Unified(&out, Side{"a", from}, Side{"b", to}); err != nil && !errors.Is(err, ErrTooLong) {
				t.Error(err)
			}
			if took := taken() - before; took > 8*size+160<<20 {
				t.Errorf("the unified diff of %d bytes took %d bytes of memory", size, took)
			}
		})
	}
}

// edged returns lists without unique elements, the first and last of which are an
// edge: to compare one of them fills a table of a million cells.
func edged(lists, edge int) []byte {
	list := fmt.Sprintf("[%d%s,%d]", edge, strings.Repeat(",1,2,2,1,3,1", 170), edge)
	return []byte("[" + strings.Repeat(list+",", lists-1) + list + "]")
}

func TestNothingIsComparedForSomebodyWhoHasLeft(t *testing.T) {
	from, to := edged(20, 0), edged(20, 9)
	ctx, leave := context.WithCancel(t.Context())
	leave()
	before := taken()
	if _, err := Patch(ctx, from, to); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if took := taken() - before; took > 1<<20 {
		t.Errorf("the comparison took %d bytes of memory", took)
	}
}

// What elements have in common is looked for in a list, but not in each of very many.
func TestTheSearchForResemblingElementsIsBounded(t *testing.T) {
	const lists, elements, most = 30, 60, 200
	document := func(first, members int) []byte {
		b := []byte("{")
		for l := range lists {
			b = fmt.Appendf(b, `"%d":[`, l)
			for e := first; e < elements; e++ {
				b = append(b, '{')
				for m := range members {
					b = fmt.Appendf(b, `"%d":0,`, e*most+m)
				}
				b = append(b[:len(b)-1], "},"...)
			}
			b = append(b[:len(b)-1], "],"...)
		}
		return append(b[:len(b)-1], '}')
	}
	patch := string(mustPatch(t, document(0, most), document(1, most-1)))
	for l, found := range map[int]bool{0: true, lists - 1: false} {
		if op := fmt.Sprintf(`{"op":"remove","path":"/%d/0"}`, l); strings.Contains(patch, op) != found {
			t.Errorf("that the patch has %s is %v", op, !found)
		}
	}
}

// However deep a long list lies, it is read through once to be compared.
func TestADeepListIsComparedAsAnyOther(t *testing.T) {
	var list strings.Builder
	for i := range 250_000 {
		fmt.Fprintf(&list, `,"element %d"`, i)
	}
	nested := func(list string) []byte {
		return []byte(strings.Repeat("[0,", 90) + "[" + list + "]" + strings.Repeat("]", 90))
	}
	patch := mustPatch(t, nested(list.String()[1:]), nested(`"new"`+list.String()))
	want := `[{"op":"add","path":"` + strings.Repeat("/1", 90) + `/0","value":"new"}]`
	if got := string(patch); got != want {
		t.Errorf("got  %.300s\nwant %s", got, want)
	}
}

// taken is how many bytes of memory were taken so far.
func taken() int {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.TotalAlloc)
}

type countingWriter int

func (c *countingWriter) Write(p []byte) (int, error) {
	*c += countingWriter(len(p))
	return len(p), nil
}

func object(members, value int) []byte {
	var b bytes.Buffer
	for i := range members {
		fmt.Fprintf(&b, `"k%d":%d,`, i, value)
	}
	return append(append([]byte("{"), bytes.TrimSuffix(b.Bytes(), []byte(","))...), '}')
}
