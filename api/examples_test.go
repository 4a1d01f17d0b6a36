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

// All examples of the description work when they are sent together: in the
// Swagger UI, which fills them in, and in tools that begin with the examples.
// Entities are stored first, as in a real archive.
func TestExamplesWorkTogether(t *testing.T) {
	a := env.Start(t)
	doc := load(t, api.JSON())
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
				switch list, several := p.Value.Example.([]any); {
				case several:
					for _, one := range list {
						query.Add(p.Value.Name, fmt.Sprint(one))
					}
				case p.Value.In == "path":
					address = strings.ReplaceAll(address, "{"+p.Value.Name+"}", value)
				case p.Value.In == "query":
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
					continue // for another state of the archive
				}
				if r := a.Do(method, address, body, headers...); r.Status != 200 && r.Status != 204 {
					t.Errorf("%s %s, example %q: answered %d %s", method, address, name, r.Status, r.Body)
				}
			}
		}
	}
}

// bodies returns the examples of an operation's body, or an empty one.
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

// A prefilled user would make all people the same person, and a prefilled key
// each request a repetition of the first.
func TestPersonalParametersAreNotPrefilled(t *testing.T) {
	for name, op := range operations(load(t, api.JSON())) {
		for _, p := range op.Parameters {
			if p.Value.In == "header" && p.Value.Example != nil || p.Value.Name == "cursor" && p.Value.Example != nil {
				t.Errorf("%s: %s is prefilled with %v", name, p.Value.Name, p.Value.Example)
			}
		}
	}
}

// The pattern of a time matches what the server accepts, and nothing else
// except days that a month does not have.
func TestThePatternOfTimesMatchesTheServer(t *testing.T) {
	schemas := load(t, api.JSON()).Components.Schemas
	pattern, inQuery := schemas["Timestamp"].Value.Pattern, schemas["QueryTime"].Value.Pattern
	fits, fitsQuery := regexp.MustCompile(pattern), regexp.MustCompile(inQuery)
	noSuchDay := regexp.MustCompile(`^\d{4}-(02-29|02-30|..-31)`)
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(strings.Trim(pattern, "^$")).Draw(t, "text")
		if _, err := oda.ParseTime(text); err != nil && !noSuchDay.MatchString(text) {
			t.Errorf("%q matches the pattern, but is refused", text)
		}
		if !fitsQuery.MatchString(text) {
			t.Errorf("%q does not match the pattern of queries", text)
		}
		letters := []rune(text)
		at := rapid.IntRange(0, len(letters)-1).Draw(t, "at")
		letters[at] = rapid.SampledFrom([]rune("0123456789:-+ .TtZz,٣")).Draw(t, "letter")
		if _, err := oda.ParseTime(string(letters)); err == nil && !fits.MatchString(string(letters)) {
			t.Errorf("%q is accepted, but does not match the pattern", string(letters))
		}
	})
}

// In Markdown, a line that begins with a number and a full stop is a list.
func TestNoLineIsAccidentallyAList(t *testing.T) {
	list := regexp.MustCompile(`\\n *\d+[.)]`)
	for _, found := range list.FindAllString(string(api.JSON()), -1) {
		t.Errorf("a description has a line that begins with %q", found)
	}
}
