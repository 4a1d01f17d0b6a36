package clients

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"oda/internal/app"
	"oda/internal/auth"
	"oda/internal/test/env"
)

const importAll = `
import importlib, pkgutil, sys
sys.path.insert(0, "out/python")
package = importlib.import_module("openapi_client")
for module in pkgutil.walk_packages(package.__path__, "openapi_client."):
    importlib.import_module(module.name)
package.SBDefinition.from_json('{"sbd_id": "sbd-1", "name": "M51", "metadata": {"version": 1}}')
`

// Further generators, with their defaults. The generated code is compiled if
// "make setup" installs what that needs.
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
	generator := func(name string) step {
		return step{".venv/bin/openapi-generator-cli", "generate", "-i", description, "-g", name, "-o", "out/" + name}
	}
	for _, s := range []step{
		{"node_modules/.bin/openapi-ts", "-i", description, "-o", "out/hey"},
		{"node_modules/.bin/orval", "--input", description, "--output", "out/orval.ts"},
		{"node_modules/.bin/tsc", "--project", "."},
		{".venv/bin/datamodel-codegen", "--input", description, "--input-file-type", "openapi", "--output", "out/models.py"},
		{".venv/bin/python", "out/models.py"},
		generator("python"),
		{".venv/bin/python", "-c", importAll},
		generator("typescript-fetch"),
		{"node_modules/.bin/tsc", "--project", "tsconfig-fetch.json"},
		generator("go"),
		{"go", "build", "-C", "out/go", "-mod=mod", "."},
		generator("java"),
		generator("kotlin"),
		generator("csharp"),
		generator("rust"),
		generator("swift5"),
	} {
		t.Log(strings.Join(s[:min(len(s), 6)], " "))
		run(t, "proof", s)
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
