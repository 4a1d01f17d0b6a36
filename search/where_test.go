package search_test

import (
	"encoding/json"
	"math/big"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"oda/internal/rawjson"
	"oda/search"
)

func TestConditionsOnTheText(t *testing.T) {
	document := `{"sbd_id":"sbd-1","status":"Fully Observed","n":1000.0,"big":123456789012345678901234567890.5,
		"neg":-0.0,"yes":true,"no":false,"nothing":null,"empty":{},"list":[1,[2,3],{"a":"x"}],"a/b":{"~c":"slash"},
		"a = b":"spaces","":"no key","0":"zero","targets":[{"name":"M83","frame":"icrs"},{"name":"Straße ΣΊΣΥΦΟΣ"}],
		"request_responses":[{"request":"secret"}],"inner":{"request_responses":[7]},
		"metadata":{"version":3,"created_by":"anna"},"esc":"a\u0062\"c","*":"star"}`
	for _, test := range []struct {
		where string
		want  bool
	}{
		{`/status = "Fully Observed"`, true},
		{`/status = "fully observed"`, false},
		{`/status != "Draft"`, true},
		{`/status != "Fully Observed"`, false},
		{`/status ~ "OBSERVED"`, true},
		{`/status ~ ""`, true},
		{`/status ~ "executed"`, false},
		{`/status < "G"`, true},
		{`/status > "Fully"`, true},
		{`/esc = "ab\"c"`, true},

		// Numbers are compared by value, whatever their spelling and length.
		{`/n = 1e3`, true},
		{`/n = 1000`, true},
		{`/n != 1000.000`, false},
		{`/n < 1000.0000000000000000001`, true},
		{`/n >= 1E+3`, true},
		{`/neg = 0`, true},
		{`/neg < 0`, false},
		{`/big = 123456789012345678901234567890.50`, true},
		{`/big = 123456789012345678901234567890`, false},
		{`/big < 123456789012345678901234567890.6`, true},
		{`/big > 123456789012345678901234567890.4e0`, true},
		{`/n < 1e400`, true},
		{`/n > -1e400`, true},
		{`/n > 1e-400`, true},
		{`/n < 1e99999999999999999999`, true},
		{`/n > 1e-99999999999999999999`, true},

		// A value that is missing or of another type is neither equal nor different.
		{`/nowhere = 1`, false},
		{`/nowhere != 1`, false},
		{`/nowhere = null`, false},
		{`/n != "1000"`, false},
		{`/status != 1`, false},
		{`/nothing = null`, true},
		{`/nothing != null`, false},
		{`/n != null`, false},
		{`/yes = true`, true},
		{`/yes != true`, false},
		{`/yes != false`, true},
		{`/no = false`, true},

		// Objects and arrays are equal as JSON values.
		{`/empty = {}`, true},
		{`/empty = []`, false},
		{`/empty != {"a":1}`, true},
		{`/list = [1.0, [2,3e0], {"a":"x"}]`, true},
		{`/list = [1,[2,3]]`, false},
		{`/list != [1,[3,2],{"a":"x"}]`, true},
		{`/list/1 = [2,3]`, true},
		{`/metadata = {"created_by":"anna","version":3}`, true},

		// Pointers.
		{`/list/0 = 1`, true},
		{`/list/1/1 = 3`, true},
		{`/list/01 = 1`, false},
		{`/list/- = 1`, false},
		{`/list/9 != 1`, false},
		{`/list/-1 = 1`, false},
		{`/list/99999999999999999999 = 1`, false},
		{`/0 = "zero"`, true},
		{`/ = "no key"`, true},
		{`/a~1b/~0c = "slash"`, true},
		{`/a = b = "spaces"`, false}, // the pointer is /a
		{`/status/x = 1`, false},
		{`/metadata/version = 3`, true},
		{`/metadata/version > 3`, false},

		// * is every member or element: true if true of any.
		{`/targets/*/name = "M83"`, true},
		{`/targets/*/name != "M83"`, true},
		{`/targets/*/name ~ "m8"`, true},
		{`/targets/*/name = "M84"`, false},
		{`/targets/*/name ~ "straße σίσυφοσ"`, true},
		{`/*/version = 3`, true},
		{`/list/*/a = "x"`, true},
		{`/list/*/* = 3`, true},
		{`/empty/* != 1`, false},
		{`/* = "star"`, true},
		{`/status/* = 1`, false},

		// Records are ignored.
		{`/request_responses/0/request = "secret"`, false},
		{`/request_responses != []`, false},
		{`/*/*/request ~ "s"`, false},
		{`/*/0/request ~ "s"`, false},
		{`/inner/request_responses/0 = 7`, false},
	} {
		w, err := search.ParseWhere(test.where)
		switch {
		case test.where == `/a = b = "spaces"`:
			if err == nil {
				t.Errorf("%s is accepted, but b is not a JSON value", test.where)
			}
		case err != nil:
			t.Errorf("%s: %v", test.where, err)
		case w.Holds([]byte(document)) != test.want:
			t.Errorf("%s is %v", test.where, !test.want)
		}
	}
	whole, err := search.ParseWhere(` = {"a":1,"b":[]}`)
	if err != nil || !whole.Holds([]byte(`{"b":[],"request_responses":[{"request":"x"}],"a":1.0}`)) || whole.Holds([]byte(`{"a":1}`)) {
		t.Errorf("the whole document: %v", err)
	}
	// The pointer ends at the first space that is followed by an operator and a
	// space.
	keyed, err := search.ParseWhere(`/key with =spaces and <b = 1`)
	if err != nil || !keyed.Holds([]byte(`{"key with =spaces and <b":1}`)) {
		t.Errorf("a key with spaces: %v", err)
	}
}

func TestInvalidConditions(t *testing.T) {
	for text, says := range map[string]string{
		``:                                 "must be a JSON pointer",
		`/status`:                          "must be a JSON pointer",
		`/status =`:                        "must be a JSON pointer",
		`/status="x"`:                      "must be a JSON pointer",
		`/status == "x"`:                   "must be a JSON pointer",
		`/status like "x"`:                 "must be a JSON pointer",
		`status = "x"`:                     "begins with a slash",
		`/a~2b = 1`:                        "neither ~0 nor ~1",
		`/a~ = 1`:                          "neither ~0 nor ~1",
		`/status = Observed`:               "double quotes",
		`/status = `:                       "no JSON value",
		`/status = "x" `:                   "",
		`/status = "x" y`:                  "no JSON value",
		`/status = {"a":1,"a":2}`:          "appears twice",
		`/status = 01`:                     "no JSON value",
		`/n ~ 1`:                           "no string after ~",
		`/n < true`:                        "compares with boolean",
		`/n >= null`:                       "compares with null",
		`/n > {}`:                          "compares with object",
		`/n <= []`:                         "compares with array",
		"/\xff = 1":                        "UTF-8",
		`/n = ` + strings.Repeat("[", 200): "nests deeper",
	} {
		_, err := search.ParseWhere(text)
		if says == "" {
			if err != nil {
				t.Errorf("%q: %v", text, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// The model judges a condition on values that encoding/json has decoded.

func modelHolds(document any, path []string, op string, want any) bool {
	if len(path) == 0 {
		return modelCompares(document, op, want)
	}
	key := strings.ReplaceAll(strings.ReplaceAll(path[0], "~1", "/"), "~0", "~")
	switch v := document.(type) {
	case map[string]any:
		if path[0] != "*" {
			member, ok := v[key]
			return ok && modelHolds(member, path[1:], op, want)
		}
		for _, member := range v {
			if modelHolds(member, path[1:], op, want) {
				return true
			}
		}
	case []any:
		for i, element := range v {
			if (path[0] == "*" || strconv.Itoa(i) == key) && modelHolds(element, path[1:], op, want) {
				return true
			}
		}
	}
	return false
}

func folded(text string) string {
	return strings.Map(func(r rune) rune { return unicode.ToLower(unicode.ToUpper(r)) }, text)
}

func modelCompares(got any, op string, want any) bool {
	c := 0
	switch w := want.(type) {
	case string:
		g, ok := got.(string)
		if !ok {
			return false
		}
		if op == "~" {
			return strings.Contains(folded(g), folded(w))
		}
		c = strings.Compare(g, w)
	case *big.Rat:
		g, ok := got.(*big.Rat)
		if !ok {
			return false
		}
		c = g.Cmp(w)
	default:
		if reflect.TypeOf(got) != reflect.TypeOf(want) {
			return false
		}
		if !modelEqual(got, want) {
			c = 1
		}
	}
	return map[string]bool{"=": c == 0, "!=": c != 0, "<": c < 0, "<=": c <= 0, ">": c > 0, ">=": c >= 0}[op]
}

func modelEqual(a, b any) bool {
	if reflect.TypeOf(a) != reflect.TypeOf(b) {
		return false
	}
	switch a := a.(type) {
	case map[string]any:
		b := b.(map[string]any)
		for key := range a {
			if other, ok := b[key]; !ok || !modelEqual(a[key], other) {
				return false
			}
		}
		return len(a) == len(b)
	case []any:
		b := b.([]any)
		for i := range a {
			if i >= len(b) || !modelEqual(a[i], b[i]) {
				return false
			}
		}
		return len(a) == len(b)
	case *big.Rat:
		return a.Cmp(b.(*big.Rat)) == 0
	}
	return a == b
}

// modelValue decodes a JSON text with exact numbers. It returns false for a text
// that the archive does not store, and for numbers whose exponents are too large
// for a fraction.
func modelValue(text string) (any, bool) {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var v any
	if decoder.Decode(&v) != nil || decoder.InputOffset() < int64(len(strings.TrimRight(text, " \t\r\n"))) {
		return nil, false
	}
	return modelExact(v)
}

func modelExact(v any) (any, bool) {
	switch v := v.(type) {
	case json.Number:
		if _, exponent, ok := strings.Cut(strings.ToLower(string(v)), "e"); ok {
			if e, err := strconv.Atoi(exponent); err != nil || e > 400 || e < -400 {
				return nil, false
			}
		}
		return new(big.Rat).SetString(string(v))
	case map[string]any:
		for key := range v {
			exact, ok := modelExact(v[key])
			if !ok {
				return nil, false
			}
			v[key] = exact
		}
	case []any:
		for i := range v {
			exact, ok := modelExact(v[i])
			if !ok {
				return nil, false
			}
			v[i] = exact
		}
	}
	return v, true
}

// FuzzWhere compares conditions with the model.
func FuzzWhere(f *testing.F) {
	operators := []string{"=", "!=", "<", "<=", ">", ">=", "~"}
	document := `{"a":{"b":[1,2.50,"x",null,true,{"c":"ÄÖ"}],"~/":1e3},"s":"text","*":[[],{}],"request_responses":[1],"n":-0.1e-2}`
	op := 0
	for _, pointer := range []string{"", "/a/b/0", "/a/b/*", "/a/b/*/c", "/a/~0~1", "/*", "/*/*", "/s", "/n", "/request_responses/*", "/a/b/00"} {
		for _, value := range []string{"1", "2.5", `"x"`, `"äö"`, "null", "true", "[]", `{"c":"ÄÖ"}`, "-1e-3"} {
			f.Add(pointer, byte(op), value, document)
			op++
		}
	}
	f.Fuzz(func(t *testing.T, pointer string, op byte, value, document string) {
		operator := operators[int(op)%len(operators)]
		text := pointer + " " + operator + " " + value
		w, err := search.ParseWhere(text)
		if err != nil || !utf8.ValidString(document) {
			return
		}
		for _, other := range operators {
			if strings.Contains(pointer+" ", " "+other+" ") {
				return // the pointer ends earlier
			}
		}
		want, ok := modelValue(value)
		whole, isJSON := modelValue(document)
		members, isObject := whole.(map[string]any)
		scan := rawjson.NewScanner([]byte(document), 1000)
		if _, _, err := scan.Skip(); err != nil || !ok || !isJSON || !isObject {
			return // the archive would not store it
		}
		delete(members, "request_responses")
		var path []string
		if pointer != "" {
			path = strings.Split(pointer[1:], "/")
		}
		if got := w.Holds([]byte(document)); got != modelHolds(members, path, operator, want) {
			t.Errorf("%s is %v for %s", text, got, document)
		}
	})
}
