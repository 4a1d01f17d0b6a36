package api_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/go-cmp/cmp"

	"oda"
	"oda/api"
)

const problemPrefix = "urn:oda:problem:"

func TestDescriptionIsValidWithItsExamples(t *testing.T) {
	for name, data := range map[string][]byte{"yaml": api.YAML, "json": api.JSON()} {
		t.Run(name, func(t *testing.T) {
			doc := load(t, data)
			if err := doc.Validate(t.Context(), openapi3.EnableExamplesValidation()); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestEveryOperationIsFullyDescribed(t *testing.T) {
	revisions := []any{"A", "B", "A, B", "addition"}
	for name, op := range operations(load(t, api.JSON())) {
		t.Run(name, func(t *testing.T) {
			if op.Summary == "" || op.Description == "" || len(op.Tags) != 1 {
				t.Error("summary, description or tag is missing")
			}
			if !slices.Contains(revisions, op.Extensions["x-revision"]) {
				t.Errorf("x-revision is %v, want one of %v", op.Extensions["x-revision"], revisions)
			}
			for _, p := range op.Parameters {
				if p.Value.Description == "" || p.Value.Required && p.Value.Example == nil {
					t.Errorf("parameter %s has no description, or is required and has no example", p.Value.Name)
				}
			}
			if op.RequestBody != nil {
				wantExamples(t, "the request body", op.RequestBody.Value.Content)
			}
			for status, response := range op.Responses.Map() {
				if response.Value.Headers["X-Request-Id"] == nil {
					t.Errorf("the response %s has no X-Request-Id", status)
				}
				wantExamples(t, "the response "+status, response.Value.Content)
			}
		})
	}
}

func TestProblemExamplesHaveTheStatusOfTheirResponse(t *testing.T) {
	for name, op := range operations(load(t, api.JSON())) {
		for status, response := range op.Responses.Map() {
			media := response.Value.Content["application/problem+json"]
			if media == nil {
				continue
			}
			for code, example := range media.Examples {
				value := example.Value.Value.(map[string]any)
				if value["type"] != problemPrefix+code {
					t.Errorf("%s %s: the example %s is a %v", name, status, code, value["type"])
				}
				if want, _ := strconv.ParseFloat(status, 64); value["status"] != want {
					t.Errorf("%s %s: the example %s has status %v", name, status, code, value["status"])
				}
			}
		}
	}
}

// The codes are a closed list in the root package; the description must name
// the same ones and show an example of each.
func TestProblemTypesAreTheCodesOfTheRootPackage(t *testing.T) {
	codes := codesOf(t, "../error.go")
	doc := load(t, api.JSON())

	var described []string
	for _, v := range doc.Components.Schemas["Problem"].Value.Properties["type"].Value.Enum {
		described = append(described, strings.TrimPrefix(v.(string), problemPrefix))
	}
	slices.Sort(described)
	if diff := cmp.Diff(codes, described); diff != "" {
		t.Errorf("codes of error.go (-) and of the schema Problem (+):\n%s", diff)
	}

	for name, p := range doc.Components.Parameters {
		if code, ok := p.Value.Extensions["x-problem"].(string); ok && !slices.Contains(codes, code) {
			t.Errorf("the parameter %s has the unknown x-problem %s", name, code)
		}
	}

	shown := map[string]bool{}
	for _, response := range doc.Components.Responses {
		if media := response.Value.Content["application/problem+json"]; media != nil {
			for code := range media.Examples {
				shown[code] = true
			}
		}
	}
	if diff := cmp.Diff(codes, slices.Sorted(maps.Keys(shown))); diff != "" {
		t.Errorf("codes of error.go (-) and of the examples (+):\n%s", diff)
	}
}

// The description has every row of the specification's tables.
func TestEveryOperationOfTheSpecificationIsDescribed(t *testing.T) {
	doc := load(t, api.JSON())
	rows := []struct {
		method, path, revision, statuses string
	}{
		{"GET", "/", "B", "200"},
		{"PUT", "/", "A, B", "200 400 422 500"},
		{"PATCH", "/ebs/{eb_id}/request_response", "A", "200 400 404 500"},
		{"POST", "/ebs/{eb_id}/request_response", "B", "200 400 404 500"},
		{"POST", "/ebs/create", "B", "200 500"},
		{"GET", "/ui", "A", "200"},
	}
	for _, k := range oda.Kinds {
		if k == oda.Note {
			continue // the specification does not have them
		}
		one := fmt.Sprintf("/%s/{%s}", k.Collection(), k.IDField())
		rows = append(rows, []struct{ method, path, revision, statuses string }{
			{"GET", "/" + k.Collection(), "A, B", "200 400 500"},
			{"POST", "/" + k.Collection(), "A", "200 400 404 422 500"},
			{"GET", one, "A, B", "200 404 500"},
			{"PUT", one, "A, B", "200 400 404 422 500"},
		}...)
	}
	for _, row := range rows {
		t.Run(row.method+" "+row.path, func(t *testing.T) {
			op := doc.Paths.Value(row.path).GetOperation(row.method)
			if op == nil {
				t.Fatal("it is not described")
			}
			if got := op.Extensions["x-revision"]; got != row.revision {
				t.Errorf("it is described as of revision %v, want %s", got, row.revision)
			}
			for status := range strings.FieldsSeq(row.statuses) {
				if op.Responses.Value(status) == nil {
					t.Errorf("the status %s is not described", status)
				}
			}
		})
	}
	for _, name := range []string{"user", "user_match_type", "created_before", "created_after", "last_modified_before", "last_modified_after"} {
		for _, k := range oda.Kinds {
			p := doc.Paths.Value("/"+k.Collection()).Get.Parameters.GetByInAndName("query", name)
			if p == nil || p.Required || !p.Schema.Value.Type.Is("string") {
				t.Errorf("%s: %s is not described as an optional string", k.Collection(), name)
			}
		}
	}
}

func load(t *testing.T, data []byte) *openapi3.T {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromData(data)
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// operations returns every operation by its method and path.
func operations(doc *openapi3.T) map[string]*openapi3.Operation {
	all := map[string]*openapi3.Operation{}
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			all[method+" "+path] = op
		}
	}
	return all
}

func wantExamples(t *testing.T, where string, content openapi3.Content) {
	t.Helper()
	for media, c := range content {
		if c.Example == nil && len(c.Examples) == 0 {
			t.Errorf("%s has no example for %s", where, media)
		}
	}
}

// codesOf returns the values of the constants of type Code in a source file.
func codesOf(t *testing.T, file string) []string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var codes []string
	ast.Inspect(parsed, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if typ, ok := spec.Type.(*ast.Ident); ok && typ.Name == "Code" {
			code, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			codes = append(codes, code)
		}
		return true
	})
	slices.Sort(codes)
	if len(codes) == 0 {
		t.Fatalf("%s has no constant of type Code", file)
	}
	return codes
}
