package clients

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"oda/api"
	"oda/internal/app"
	"oda/internal/auth"
	"oda/internal/test/env"
)

// Further generators, with their defaults. Where "make setup" installs what that needs,
// the generated client is compiled, and reads a document and stores it again.
func TestProofOfFurtherGenerators(t *testing.T) {
	env.ProofOnly(t)
	t.Cleanup(func() {
		if t.Failed() {
			return // keep the folder for inspection
		}
		if err := os.RemoveAll("proof/out"); err != nil {
			t.Error(err)
		}
	})
	if err := os.MkdirAll("proof/out/js", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("proof/out/js/package.json", []byte(`{"type": "commonjs"}`), 0o644); err != nil {
		t.Fatal(err)
	}
	generator := func(name string, options ...string) step {
		return append(step{".venv/bin/openapi-generator-cli", "generate", "-i", description, "-g", name, "-o", "out/" + name}, options...)
	}
	for _, s := range []step{
		{"node_modules/.bin/openapi-ts", "-i", description, "-o", "out/hey"},
		{"node_modules/.bin/orval", "--input", description, "--output", "out/orval.ts"},
		{"node_modules/.bin/tsc", "--project", "."},
		{".venv/bin/datamodel-codegen", "--input", description, "--input-file-type", "openapi", "--output", "out/models.py"},
		generator("python"),
		generator("typescript-fetch", "--additional-properties", "modelPropertyNaming=original,paramNaming=original"),
		{"node_modules/.bin/tsc", "--project", "tsconfig-copy.json"},
		generator("go"),
		{"mkdir", "-p", "out/go/copy"},
		{"cp", "testdata/copy.go", "out/go/copy"},
	} {
		t.Log(strings.Join(s[:min(len(s), 6)], " "))
		run(t, "proof", s)
	}
	for name, copying := range map[string]step{
		"hey-api":                  {"node", "out/js/testdata/copy-hey.js"},
		"orval":                    {"node", "out/js/testdata/copy-orval.js"},
		"openapi-generator fetch":  {"node", "out/js/testdata/copy-fetch.js"},
		"openapi-generator python": {".venv/bin/python", "testdata/copy_client.py"},
		"datamodel-codegen":        {".venv/bin/python", "testdata/copy_models.py"},
		"openapi-generator for Go": {"go", "run", "-C", "out/go", "-mod=mod", "./copy"},
	} {
		t.Run(name, func(t *testing.T) { copies(t, "proof", copying) })
	}
}

// These are modules and crates of their own.
func TestProofOfOgenAndProgenitor(t *testing.T) {
	env.ProofOnly(t)
	t.Run("ogen", func(t *testing.T) {
		run(t, "ogen", step{"go", "tool", "ogen", "--config", "ogen.yml", "--target", "archive", "--package", "archive", "--clean", description})
		copies(t, "ogen", step{"go", "run", "."})
	})
	t.Run("progenitor", func(t *testing.T) {
		if _, err := exec.LookPath("cargo"); err != nil {
			t.Fatal("this test needs Rust 1.88 or newer, which rustup installs; Debian's may be too old")
		}
		if err := os.WriteFile("rust/openapi.json", api.JSON(), 0o644); err != nil {
			t.Fatal(err)
		}
		run(t, "rust", step{"cargo", "build", "--quiet", "--locked"})
		copies(t, "rust", step{"target/debug/roundtrip"})
	})
}

// What openapi-generator makes of an SBDefinition, where it is not compiled here: the
// file, and what is in it if members that the description does not know are kept.
// docs/generated-clients.md says the same to people.
func TestProofOfWhatDropsMembers(t *testing.T) {
	env.ProofOnly(t)
	for generator, test := range map[string]struct {
		file, keeps string
		kept        bool
	}{
		"java":   {"src/main/java/org/openapitools/client/model/SBDefinition.java", "additionalProperties", true},
		"swift5": {"OpenAPIClient/Classes/OpenAPIs/Models/SBDefinition.swift", "additionalProperties", true},
		"rust":   {"src/models/sb_definition.rs", "flatten", false},
		"kotlin": {"src/main/kotlin/org/openapitools/client/models/SBDefinition.kt", "additionalProperties", false},
		"php":    {"lib/Model/SBDefinition.php", "dditional", false},
		"ruby":   {"lib/openapi_client/models/sb_definition.rb", "dditional", false},
		"dart":   {"lib/model/sb_definition.dart", "dditional", false},
		// It has a place for them, which its own converter does not fill.
		"csharp": {"src/Org.OpenAPITools/Model/SBDefinition.cs", "AdditionalProperties.Add", false},
	} {
		t.Run(generator, func(t *testing.T) {
			out := t.TempDir()
			run(t, "proof", step{".venv/bin/openapi-generator-cli", "generate", "-i", description, "-g", generator, "-o", out, "--global-property", "models"})
			text, err := os.ReadFile(filepath.Join(out, test.file))
			if err != nil {
				t.Fatal(err)
			}
			if kept := strings.Contains(string(text), test.keeps); kept != test.kept {
				t.Errorf("members that are not described are kept: %v; docs/generated-clients.md says %v", kept, test.kept)
			}
		})
	}
}

// longestWait is how long a request may wait for changes, and a little more, in
// seconds. Without it schemathesis takes one that waits for a failure.
const longestWait = "70"

// schemathesis makes valid and invalid requests from the description, also in
// sequences. It must find no server error, no undescribed answer, and no
// invalid request that succeeds.
func TestProofBySchemathesis(t *testing.T) {
	env.ProofOnly(t)
	a := env.Start(t)
	run(t, "proof", step{
		".venv/bin/schemathesis", "run", a.URL() + "/openapi.json", "--seed", "1", "--max-examples", "30", "--request-timeout", longestWait,
		"--checks", "not_a_server_error,status_code_conformance,content_type_conformance," +
			"response_headers_conformance,response_schema_conformance,negative_data_rejection",
	})
	// With the examples alone most requests succeed.
	b := env.Start(t)
	run(t, "proof", step{
		".venv/bin/schemathesis", "run", b.URL() + "/openapi.json", "--seed", "1", "--phases", "examples", "--request-timeout", longestWait,
		"--checks", "not_a_server_error",
	})
	good, all := 0, 0
	for _, line := range b.Log() {
		if line["msg"] != "request" || line["operation"] == nil {
			continue
		}
		if all++; line["status"] == 200.0 {
			good++
		}
	}
	if all < 30 || good*2 < all {
		t.Errorf("%d of %d requests that were made from the examples succeed", good, all)
	}
}

// The same with callers who are known: who may do most things, who may only read,
// and who is not let in. The audit log must not be in the way.
func TestProofBySchemathesisWithTokens(t *testing.T) {
	env.ProofOnly(t)
	dir := t.TempDir()
	tokens := filepath.Join(dir, "tokens")
	callers := map[string]string{"nobody": "oda_nothing"}
	for name, role := range map[string]auth.Role{"editor": auth.Editor, "reader": auth.Reader} {
		secret, err := auth.CreateToken(tokens, auth.Token{Name: name, Role: role, Created: time.Now().UTC()})
		if err != nil {
			t.Fatal(err)
		}
		callers[name] = secret
	}
	a := env.Start(t, func(cfg *app.Config) {
		cfg.Auth = auth.Config{Tokens: tokens}
		cfg.AuditLog = filepath.Join(dir, "audit.log")
	})
	for name, secret := range callers {
		t.Run(name, func(t *testing.T) {
			run(t, "proof", step{
				".venv/bin/schemathesis", "run", "../../openapi.json", "--url", a.URL(), "--seed", "1", "--max-examples", "10", "--request-timeout", longestWait,
				"--header", "Authorization: Bearer " + secret,
				"--checks", "not_a_server_error,status_code_conformance,content_type_conformance," +
					"response_headers_conformance,response_schema_conformance",
			})
		})
	}
}
