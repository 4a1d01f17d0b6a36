package api_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"pgregory.net/rapid"

	"oda"
	"oda/api"
	"oda/internal/test/env"
)

// Whoever sends what the description shows, all of it at once, succeeds: in the
// Swagger UI, which fills it in, and in tools that begin with the examples.
// Storing comes first, as it does in an archive.
func TestExamplesWorkTogether(t *testing.T) {
	a := env.Start(t)
	doc := load(t, api.JSON)
	for _, method := range []string{"PUT", "POST", "PATCH", "GET"} {
		for _, path := range slices.Sorted(maps.Keys(doc.Paths.Map())) {
			op := doc.Paths.Value(path).GetOperation(method)
			if op == nil {
				continue
			}
			address, query, headers := path, url.Values{}, []string(nil)
			for _, p := range op.Parameters {
				if p.Value.Example == nil {
					continue
				}
				value := fmt.Sprint(p.Value.Example)
				switch p.Value.In {
				case "path":
					address = strings.ReplaceAll(address, "{"+p.Value.Name+"}", value)
				case "query":
					query.Set(p.Value.Name, value)
				default:
					headers = append(headers, p.Value.Name, value)
				}
			}
			if len(query) > 0 {
				address += "?" + query.Encode()
			}
			for name, body := range bodies(t, op) {
				if name == "update" {
					continue // of a state that the archive is not in
				}
				if r := a.Do(method, address, body, headers...); r.Status != 200 {
					t.Errorf("%s %s, example %q: answered %d %s", method, address, name, r.Status, r.Body)
				}
			}
		}
	}
}

// bodies gives the examples of an operation's body, or an empty one.
func bodies(t *testing.T, op *openapi3.Operation) map[string]string {
	t.Helper()
	all := map[string]string{}
	if op.RequestBody == nil {
		return map[string]string{"no body": ""}
	}
	for name, example := range op.RequestBody.Value.Content["application/json"].Examples {
		text, err := json.Marshal(example.Value.Value)
		if err != nil {
			t.Fatal(err)
		}
		all[name] = string(text)
	}
	return all
}

// A value that is given for everybody makes everybody the same person, or each
// request a repetition of the first.
func TestNothingIsPrefilledThatMustBeOnesOwn(t *testing.T) {
	for name, op := range operations(load(t, api.JSON)) {
		for _, p := range op.Parameters {
			if p.Value.In == "header" && p.Value.Example != nil || p.Value.Name == "cursor" && p.Value.Example != nil {
				t.Errorf("%s: %s is prefilled with %v", name, p.Value.Name, p.Value.Example)
			}
		}
	}
}

// The pattern of a time lets through what the server reads, and nothing else
// but days that a month does not have.
func TestThePatternOfTimesIsTheServers(t *testing.T) {
	schemas := load(t, api.JSON).Components.Schemas
	pattern, inQuery := schemas["Timestamp"].Value.Pattern, schemas["QueryTime"].Value.Pattern
	fits, fitsQuery := regexp.MustCompile(pattern), regexp.MustCompile(inQuery)
	noSuchDay := regexp.MustCompile(`^\d{4}-(02-29|02-30|..-31)`)
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(strings.Trim(pattern, "^$")).Draw(t, "text")
		if _, err := oda.ParseTime(text); err != nil && !noSuchDay.MatchString(text) {
			t.Errorf("%q fits the pattern, and is refused", text)
		}
		if !fitsQuery.MatchString(text) {
			t.Errorf("%q does not fit the pattern of queries", text)
		}
		letters := []rune(text)
		at := rapid.IntRange(0, len(letters)-1).Draw(t, "at")
		letters[at] = rapid.SampledFrom([]rune("0123456789:-+ .TtZz,٣")).Draw(t, "letter")
		if _, err := oda.ParseTime(string(letters)); err == nil && !fits.MatchString(string(letters)) {
			t.Errorf("%q is read, and does not fit the pattern", string(letters))
		}
	})
}

// A line that begins with a number and a full stop is a list in Markdown.
func TestNoLineIsAListByAccident(t *testing.T) {
	list := regexp.MustCompile(`\\n *\d+[.)]`)
	for _, found := range list.FindAllString(string(api.JSON), -1) {
		t.Errorf("a description has a line that begins with %q", found)
	}
}
