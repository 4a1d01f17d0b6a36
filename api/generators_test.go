package api_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/go-cmp/cmp"

	"oda/api"
)

// Client generators put the names of components into one namespace, and some
// make a function NewX for a type X.
func TestComponentNamesAreUnique(t *testing.T) {
	var doc struct{ Components map[string]map[string]any }
	if err := json.Unmarshal(api.JSON(), &doc); err != nil {
		t.Fatal(err)
	}
	section := map[string]string{}
	for in, components := range doc.Components {
		for name := range components {
			key := strings.ToLower(name)
			if other, ok := section[key]; ok {
				t.Errorf("%s is in %s and in %s", name, other, in)
			}
			section[key] = in
		}
	}
	for name := range section {
		if _, ok := section["new"+name]; ok {
			t.Errorf("there is a New%s as well as %s", name, name)
		}
	}
}

// An entity that was read can be stored without conversion, since the type is
// the same.
func TestAnEntityHasOneSchema(t *testing.T) {
	doc := load(t, api.JSON())
	for collection, kind := range map[string]string{
		"sbds": "SBDefinition", "sbis": "SBInstance", "ebs": "ExecutionBlock", "prjs": "Project",
	} {
		ref := "#/components/schemas/" + kind
		var got []string
		note := func(where string, schema *openapi3.SchemaRef) {
			if got = append(got, where); schema.Ref != ref {
				t.Errorf("%s has the schema %q, want %s", where, schema.Ref, ref)
			}
		}
		for path, item := range doc.Paths.Map() {
			if path != "/"+collection && !strings.HasPrefix(path, "/"+collection+"/{") && path != "/"+collection+"/create" ||
				strings.Contains(path, "}/") {
				continue
			}
			for method, op := range item.Operations() {
				if op.RequestBody != nil {
					note(method+" "+path, op.RequestBody.Value.Content["application/json"].Schema)
				}
				if strings.Contains(path, "{") || method == "POST" {
					note("the answer to "+method+" "+path, op.Responses.Value("200").Value.Content["application/json"].Schema)
				}
			}
		}
		if len(got) < 5 {
			t.Errorf("%s is only in %q", kind, got)
		}
	}
	several := doc.Paths.Value("/").Put
	if sent, answered := several.RequestBody.Value.Content["application/json"].Schema.Ref,
		several.Responses.Value("200").Value.Content["application/json"].Schema.Ref; sent != answered || sent == "" {
		t.Errorf("PUT / takes %q and answers %q", sent, answered)
	}
}

// What a client sends in these must be as described, so that a misspelt member is not
// ignored.
var strict = []string{"Entities", "RecordBatch", "KeyedRecord", "NewStatus", "BegunCall"}

// An answer may get members later, and a document has members that nobody knows here.
// Generators differ about an object that does not say so, and typify, for Rust,
// drops unknown members unless it is said with {} instead of true.
func TestObjectsAreOpen(t *testing.T) {
	eachSchema(t, func(where string, schema map[string]any) {
		if schema["type"] != "object" || schema["allOf"] != nil {
			return
		}
		want := any(map[string]any{})
		if slices.Contains(strict, strings.TrimPrefix(where, "components/schemas/")) {
			want = false
		}
		if got, said := schema["additionalProperties"]; !said || !cmp.Equal(got, want) {
			t.Errorf("%s says additionalProperties: %v, want %v", where, got, want)
		}
	})
}

// What has no name in the description gets one that a generator makes up, which may be
// another one after the next change; some generators give up.
func TestWhatGeneratorsNameHasAName(t *testing.T) {
	eachSchema(t, func(where string, schema map[string]any) {
		named := strings.HasPrefix(where, "components/schemas/") && strings.Count(where, "/") == 2
		if !named && (schema["enum"] != nil || schema["properties"] != nil) {
			t.Errorf("%s is an enum or an object without a name", where)
		}
	})
	for path, item := range load(t, api.JSON()).Paths.Map() {
		for method, op := range item.Operations() {
			for status, response := range op.Responses.Map() {
				if response.Ref == "" {
					t.Errorf("%s %s answers %s with something that has no name", method, path, status)
				}
			}
		}
	}
}

// Some generators for Go make constants of the values of all enums in one namespace.
func TestValuesOfEnumsAreUnique(t *testing.T) {
	enum := map[string]string{}
	eachSchema(t, func(where string, schema map[string]any) {
		values, _ := schema["enum"].([]any)
		if names, ok := schema["x-enum-varnames"].([]any); ok && len(names) == len(values) {
			values = names
		}
		for _, value := range values {
			key := strings.ToLower(value.(string))
			if other, ok := enum[key]; ok {
				t.Errorf("%v is in %s and in %s", value, other, where)
			}
			enum[key] = where
		}
	})
}

// In OpenAPI 3.0, nullable adds to the type beside it and means nothing without one.
func TestNullableHasAType(t *testing.T) {
	eachSchema(t, func(where string, schema map[string]any) {
		if schema["nullable"] != nil && schema["type"] == nil {
			t.Errorf("%s is nullable but has no type", where)
		}
	})
}

// Every schema is used: one that is not describes nothing that the archive does.
func TestEveryComponentIsUsed(t *testing.T) {
	var doc struct{ Components map[string]map[string]any }
	if err := json.Unmarshal(api.JSON(), &doc); err != nil {
		t.Fatal(err)
	}
	for section, components := range doc.Components {
		for name := range components {
			if !bytes.Contains(api.JSON(), []byte(`"#/components/`+section+"/"+name+`"`)) && section != "securitySchemes" && name != "NoSuchPath" {
				t.Errorf("nothing refers to components/%s/%s", section, name)
			}
		}
	}
}

// eachSchema calls visit with every schema of the description that is not a
// reference, with the path to it. What the extension x-schemas has is for the archive
// only.
func eachSchema(t *testing.T, visit func(where string, schema map[string]any)) {
	t.Helper()
	var doc map[string]any
	if err := json.Unmarshal(api.JSON(), &doc); err != nil {
		t.Fatal(err)
	}
	delete(doc["components"].(map[string]any), "x-schemas")
	delete(doc["components"].(map[string]any), "examples")
	seen := 0
	var walk func(where string, node any)
	one := func(where string, schema any) {
		if schema, ok := schema.(map[string]any); ok && schema["$ref"] == nil {
			seen++
			visit(where, schema)
		}
	}
	walk = func(where string, node any) {
		switch node := node.(type) {
		case map[string]any:
			for name, member := range node {
				at := strings.TrimPrefix(where+"/"+name, "/")
				switch {
				case name == "example", name == "examples", name == "not":
					continue
				case name == "schema", name == "items", where == "components/schemas", strings.HasSuffix(where, "/properties"):
					one(at, member)
				}
				walk(at, member)
			}
		case []any:
			for i, element := range node {
				at := fmt.Sprint(where, "/", i)
				if strings.HasSuffix(where, "Of") {
					one(at, element)
				}
				walk(at, element)
			}
		}
	}
	walk("", doc)
	if seen < 100 {
		t.Errorf("only %d schemas were found", seen)
	}
}
