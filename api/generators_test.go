package api_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"oda/api"
)

// Client generators put the names of components into one namespace, and some
// make a function NewX for a type X.
func TestComponentNamesAreUnique(t *testing.T) {
	var doc struct{ Components map[string]map[string]any }
	if err := json.Unmarshal(api.JSON, &doc); err != nil {
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
	doc := load(t, api.JSON)
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

// If an object does not say whether it allows other members, generators
// disagree.
func TestEveryObjectSaysWhetherItAllowsOtherMembers(t *testing.T) {
	doc := load(t, api.JSON)
	var look func(where string, s *openapi3.SchemaRef)
	look = func(where string, s *openapi3.SchemaRef) {
		if s == nil || s.Ref != "" && strings.Contains(where, "/") {
			return
		}
		if s.Value.Type.Is("object") && s.Value.AdditionalProperties.Has == nil {
			t.Errorf("%s is an object that does not say additionalProperties", where)
		}
		for name, p := range s.Value.Properties {
			look(where+"/"+name, p)
		}
		look(where+"/items", s.Value.Items)
		for i, one := range s.Value.OneOf {
			look(fmt.Sprint(where, "/oneOf/", i), one)
		}
	}
	for name, s := range doc.Components.Schemas {
		look(name, s)
	}
}
