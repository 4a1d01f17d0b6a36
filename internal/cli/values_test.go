package cli

import (
	"strings"
	"testing"
	"testing/iotest"
)

// Records are sent in parts, so only the command knows where in the file a mistake is.
func TestAMistakeInAFileOfRecordsNamesItsPlace(t *testing.T) {
	for text, want := range map[string]string{
		"":                                   "",
		" \n\t":                              "",
		"{\"a\":1}\n\n{\"b\":2} 3 \"x\"":     "",
		" \n[ {\"a\":1} ,\n2 ] \n":           "",
		"{\"a\":1}\n{\"b\" 2}\n{}":           "record 2: it is not valid JSON: invalid character '2' after object key (line 2, column 6)",
		"{\"é\":1} {\"b\":}":                 "record 2: it is not valid JSON: invalid character '}' looking for beginning of value (line 1, column 14)",
		"\n\n{\"a\":\n":                      "record 1: it is not valid JSON: the text ends in the middle (line 4, column 1)",
		"[{\"a\":1},\n {\"b\":tru}]":         "record 2: it is not valid JSON: invalid character '}' in literal true (expecting 'e') (line 2, column 10)",
		"[{\"a\":1}\n{\"b\":2}]":             "record 2: it is not valid JSON: expected comma after array element (line 2, column 1)",
		"[1,\n,2]":                           "record 2: it is not valid JSON: invalid character ',' looking for beginning of value (line 2, column 1)",
		"[1,\n":                              "record 2: it is not valid JSON: the text ends in the middle (line 2, column 1)",
		"[1\n}":                              "it is not valid JSON: invalid character '}' after array element (line 2, column 1)",
		"{}\n  {\"a\":1,\"a\":2}":            "record 2: it is not valid JSON: the key \"a\" appears twice in one object (line 2, column 10)",
		"{}\n{\n  \"a\": \"\\ud800\"\n}\n{}": "record 2: it is not valid JSON: a string has an escape of half a character (a lone surrogate) (line 3, column 9)",
		"[] []":                              "there is data after the array of records",
	} {
		got := ""
		if err := values(iotest.OneByteReader(strings.NewReader(text)), func([]byte) error { return nil }); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q: %s\nwant %s", text, got, want)
		}
		if err := values(strings.NewReader(text), func([]byte) error { return nil }); (err == nil) != (want == "") || err != nil && err.Error() != want {
			t.Errorf("%q, read at once: %v\nwant %s", text, err, want)
		}
	}
}
