package rawjson

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

const depth = 100

// scan scans a whole document and checks that nothing follows it.
func scan(text string) error {
	s := NewScanner([]byte(text), depth)
	if _, _, err := s.Skip(); err != nil {
		return err
	}
	return s.End()
}

func TestStrictDocumentsAreAccepted(t *testing.T) {
	for _, text := range []string{
		`{}`, `[]`, `null`, `true`, `false`, `""`, `0`, `-0`, `-0.0e+0`, `1e5`, `0.35e9`, `3.6E+6`,
		" \t\r\n{ \"a\" : [ 1 , 2 ] } \n",
		`{"a":{"a":{"a":1}},"b":[{"a":1},{"a":2}]}`,
		`"\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00"`,
		`"arcsec² — ünïcode 😀"`,
		`123456789012345678901234567890.123456789012345678901234567890`,
		strings.Repeat("[", depth) + strings.Repeat("]", depth),
		`{"":1,"A":2,"a":3}`,
	} {
		if err := scan(text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestLooseDocumentsAreRefused(t *testing.T) {
	tests := map[string]struct {
		text, msg, pointer string
		offset             int
	}{
		"empty":                    {"", "empty", "", 0},
		"only white space":         {" \n", "empty", "", 2},
		"truncated object":         {`{"a": {"b": 1`, "ends in the middle", "/a/b", 13},
		"truncated string":         {`{"a": "x`, "ends in the middle", "/a", 8},
		"truncated after comma":    {`[1,`, "ends in the middle", "/1", 3},
		"trailing data":            {`{} {}`, "more data", "", 3},
		"trailing comma in object": {`{"a":1,}`, "a key in double quotes", "", 7},
		"trailing comma in array":  {`[1,]`, "a JSON value", "/1", 3},
		"missing comma":            {`[1 2]`, "a comma or", "/0", 3},
		"missing colon":            {`{"a" 1}`, "a colon", "/a", 5},
		"unquoted key":             {`{a:1}`, "a key in double quotes", "", 1},
		"duplicate key":            {`{"a":1,"b":2,"a":3}`, `"a" appears twice`, "/a", 13},
		"duplicate key, deep":      {`{"x":[{"a":1,"a":2}]}`, `"a" appears twice`, "/x/0/a", 13},
		"duplicate key, escaped":   {`{"a":1,"\u0061":2}`, `"a" appears twice`, "/a", 7},
		"invalid UTF-8":            {"{\"a\":\"\xff\"}", "UTF-8", "", 6},
		"invalid UTF-8 in key":     {"{\"\xc0\xaf\":1}", "UTF-8", "", 2},
		"byte order mark":          {"\xef\xbb\xbf{}", "byte order mark", "", 0},
		"lone high surrogate":      {`"\ud800"`, "surrogate", "", 1},
		"lone low surrogate":       {`"\udc00"`, "surrogate", "", 1},
		"high surrogate and text":  {`"\ud800x"`, "surrogate", "", 1},
		"two high surrogates":      {`"\ud800\ud800"`, "surrogate", "", 1},
		"control character":        {"\"a\nb\"", "control character", "", 2},
		"control after escape":     {"\"\\n\n\"", "control character", "", 3},
		"bad escape":               {`"\x41"`, "escape", "", 1},
		"bad hex escape":           {`"\u12g4"`, "escape", "", 1},
		"NaN":                      {`NaN`, "a JSON value", "", 0},
		"Infinity":                 {`-Infinity`, "a digit", "", 1},
		"leading zero":             {`01`, "more data", "", 1},
		"leading plus":             {`+1`, "a JSON value", "", 0},
		"bare point":               {`1.`, "ends in the middle", "", 2},
		"bare exponent":            {`1e`, "ends in the middle", "", 2},
		"point and letter":         {`1.e5`, "a digit", "", 2},
		"single quotes":            {`{'a':1}`, "a key in double quotes", "", 1},
		"comment":                  {`{/**/}`, "a key in double quotes", "", 1},
		"word":                     {`nul`, "a JSON value", "", 0},
		"nested too deeply":        {strings.Repeat("[", depth+1) + strings.Repeat("]", depth+1), "nests deeper than 100", strings.Repeat("/0", depth), depth},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := scan(test.text)
			var syntax *SyntaxError
			if !errors.As(err, &syntax) {
				t.Fatalf("got %v, want a SyntaxError", err)
			}
			if !strings.Contains(syntax.Msg, test.msg) {
				t.Errorf("message %q does not contain %q", syntax.Msg, test.msg)
			}
			if at := offsetOf(test.text, syntax); syntax.Pointer != test.pointer || at != test.offset {
				t.Errorf("at %q, byte %d; want %q, byte %d", syntax.Pointer, at, test.pointer, test.offset)
			}
		})
	}
}

func TestDuplicatesAreFoundInLargeObjects(t *testing.T) {
	var b strings.Builder
	b.WriteString("{")
	for i := range 5000 {
		b.WriteString(`"k` + strconv.Itoa(i) + `":1,`)
	}
	distinct := b.String()
	if err := scan(distinct + `"last":1}`); err != nil {
		t.Fatal(err)
	}
	if err := scan(distinct + `"k0":1}`); err == nil {
		t.Fatal("a duplicate of the first key was not found")
	}
	if err := scan(distinct + `"last":1,"last":1}`); err == nil {
		t.Fatal("a duplicate of a late key was not found")
	}
}

func TestMembersAndElementsAreReturnedInOrder(t *testing.T) {
	text := []byte(` {"\u0061": 1, "list": [true, null, "x"], "o": {}} `)
	s := NewScanner(text, depth)
	if _, err := s.BeginObject(); err != nil {
		t.Fatal(err)
	}
	var got []string
	for {
		key, more, err := s.NextKey()
		if err != nil {
			t.Fatal(err)
		}
		if !more {
			break
		}
		got = append(got, string(key))
		kind, err := s.Peek()
		if err != nil {
			t.Fatal(err)
		}
		if kind != Array {
			start, end, err := s.Skip()
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, string(text[start:end]))
			continue
		}
		if _, err := s.BeginArray(); err != nil {
			t.Fatal(err)
		}
		for {
			more, err := s.NextElement()
			if err != nil {
				t.Fatal(err)
			}
			if !more {
				break
			}
			start, end, err := s.Skip()
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, string(text[start:end]))
		}
	}
	if err := s.End(); err != nil {
		t.Fatal(err)
	}
	if want := `a|1|list|true|null|"x"|o|{}`; strings.Join(got, "|") != want {
		t.Errorf("got %s, want %s", strings.Join(got, "|"), want)
	}
}

func TestQuotedTextComesBack(t *testing.T) {
	for _, text := range []string{"", "plain", `quote " and \ slash`, "tab\tnewline\nnul\x00", "ünïcode 😀", "a\\u0041"} {
		literal := AppendQuoted(nil, text)
		if err := scan(string(literal)); err != nil {
			t.Errorf("%q: %v", literal, err)
		}
		if got := Unquote(literal); got != text {
			t.Errorf("%q came back as %q", text, got)
		}
	}
	if got := Unquote([]byte(`"\ud83d\ude00\/\u00e9"`)); got != "😀/é" {
		t.Errorf("escapes decoded to %q", got)
	}
}

// FuzzScanner compares the scanner with an independent strict parser.
func FuzzScanner(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"a":1,"a":2}`, `[1,2.5e3,"\ud83d\ude00",null,true]`, "\"\xff\"", `"\ud800"`, `{"a":{"b":[{}]}}`,
		`{"eb_id":"eb-1","request_responses":[{"request":"m.f","request_args":{"kwargs":{"subarray_id":"1"}}}]}`,
		"\xef\xbb\xbf{}", `01`, `1.`, `nul`, "{\"a\":\"\x01\"}", `{"\u0061":1,"a":2}`,
	} {
		f.Add([]byte(seed))
	}
	files, _ := filepath.Glob("../../testdata/*/*.json")
	for _, name := range files {
		if text, err := os.ReadFile(name); err == nil {
			f.Add(text)
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		mine := scan(string(text))
		var syntax *SyntaxError
		if errors.As(mine, &syntax) && strings.Contains(syntax.Msg, "nests deeper") {
			return
		}
		// jsontext's Value.IsValid allows duplicates and bad UTF-8 unless a
		// Decoder reads it, so the judge is the Decoder.
		var theirs error
		d := jsontext.NewDecoder(strings.NewReader(string(text)))
		if _, theirs = d.ReadValue(); theirs == nil {
			if _, err := d.ReadToken(); err == nil || err.Error() != "EOF" {
				theirs = errors.New("trailing data")
			}
		}
		if (mine == nil) != (theirs == nil) {
			t.Errorf("scanner: %v; judge: %v; text %q", mine, theirs, text)
		}
	})
}

// A special byte is found wherever it stands among others, also among those that
// look like one of them with another highest bit.
func TestTheFirstSpecialByteOfAStringIsFound(t *testing.T) {
	isSpecial := func(c byte) bool { return c < 0x20 || c == '"' || c == '\\' }
	for range 200_000 {
		text := make([]byte, rand.N(20))
		for i := range text {
			text[i] = []byte{' ', 'x', 0x21, 0x23, 0x5b, 0x5d, 0x7f, 0x80, 0xa2, 0xdc, 0xff, 0x1f, 0, '"', '\\', 0x9f, 0xa0}[rand.N(17)]
		}
		want := slices.IndexFunc(text, isSpecial)
		if want < 0 {
			want = len(text)
		}
		if got := special(text); got != want {
			t.Fatalf("the first special byte of %q is at %d, want %d", text, got, want)
		}
	}
}

// offsetOf returns the offset of the byte that an error names by its line and column.
func offsetOf(text string, at *SyntaxError) int {
	lines := strings.SplitAfter(text, "\n")
	before := strings.Join(lines[:at.Line-1], "")
	return len(before) + len(string([]rune(lines[at.Line-1])[:at.Column-1]))
}

// As an editor counts them: a character is one column, however many bytes it has.
func TestASyntaxErrorNamesItsLineAndColumn(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"a":1,}`:              "a key in double quotes was expected here (line 1, column 8)",
		"{\"a\":1,\n\"b\" 2}":   "a colon was expected here (line 2, column 5)",
		"{\"a\":\n\n\"\xff\"}":  "the text is not valid UTF-8 (line 3, column 2)",
		"\n{}\n[]":              "there is more data after the end of the document (line 3, column 1)",
		"{\n\"é😀\" 1}":          "a colon was expected here (line 2, column 6)",
		"\xef\xbb\xbf{}":        "the text begins with a byte order mark; send it without (line 1, column 1)",
		"{\n\"a\":\n[\n1\n]\n}": "",
	} {
		got := ""
		if err := Check([]byte(text), 10); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
