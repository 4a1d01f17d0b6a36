package rawjson

import (
	"fmt"
	"strings"
	"testing"
)

// walked lists the members that a walk finds.
func walked(text string) string {
	var found []string
	for key, value := range Members([]byte(text)) {
		found = append(found, fmt.Sprintf("%s=%s", key, value))
	}
	return strings.Join(found, "|")
}

// scanned lists the members that the scanner finds.
func scanned(text string) (string, error) {
	var found []string
	s := NewScanner([]byte(text), depth)
	if _, err := s.BeginObject(); err != nil {
		return "", err
	}
	for {
		key, more, err := s.NextKey()
		if err != nil || !more {
			if err == nil {
				err = s.End()
			}
			return strings.Join(found, "|"), err
		}
		start, end, err := s.Skip()
		if err != nil {
			return "", err
		}
		found = append(found, fmt.Sprintf("%s=%s", key, text[start:end]))
	}
}

func TestAWalkFindsTheMembersOfAnObject(t *testing.T) {
	for text, want := range map[string]string{
		`{}`:                               ``,
		" \t{ } \n":                        ``,
		`{"a":1}`:                          `a=1`,
		`{"a":1,"b":-2.5e+3,"c":null}`:     `a=1|b=-2.5e+3|c=null`,
		"{ \"a\" : true ,\r\n\"b\":[ ] }":  `a=true|b=[ ]`,
		`{"a":"}\"]\\","b":"x"}`:           `a="}\"]\\"|b="x"`,
		`{"a":{"b":[{"c":"]}"},1]},"d":2}`: `a={"b":[{"c":"]}"},1]}|d=2`,
		`{"\u0061\"":0}`:                   `a"=0`,
		`[1,2]`:                            ``,
		`"x"`:                              ``,
	} {
		if got := walked(text); got != want {
			t.Errorf("%s has %s, want %s", text, got, want)
		}
	}
}

// FuzzMembers compares the walk with the scanner if that accepts the text. The walk
// must end in any text.
func FuzzMembers(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"a":1}`, `{"a":"\\","b":"\"","":[{"x":"}"}]}`, "{ \"a\" : {} ,\n\"\\u0062\":null }", `{"a`, `{"a":`, `{"a":[`, `{"a":"\`, `{"a":\}`, `{:,"}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := walked(text)
		want, err := scanned(text)
		if err == nil && got != want {
			t.Errorf("%q: the walk finds %q, the scanner %q", text, got, want)
		}
	})
}
