package oda_test

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// goPackage is what "go list" says about a package.
type goPackage struct {
	ImportPath string
	Standard   bool
	Imports    []string // without those of tests
}

// graph holds every package of the module and what they import.
type graph map[string]goPackage

// rooms lists every package, with the packages of this module that it may import.
// Imports point inwards: cmd, cli, app, then httpapi, web and the engines, then
// package oda. Only app knows the engines by name. Only tests, benchmarks and the
// drill import packages for tests.
var rooms = map[string][]string{
	"oda":                         {"oda/internal/rawjson", "oda/internal/words", "oda/sky"},
	"oda/alignment":               {"oda", "oda/internal/jsondiff", "oda/internal/rawjson"},
	"oda/api":                     {},
	"oda/api/clients":             {},
	"oda/archive":                 {"oda", "oda/summary"},
	"oda/docs":                    {},
	"oda/client":                  {"oda", "oda/calls", "oda/night", "oda/progress", "oda/provenance", "oda/search"},
	"oda/client/recorder":         {"oda", "oda/client", "oda/internal/files", "oda/internal/rawjson", "oda/internal/skuid"},
	"oda/cmd/oda":                 {"oda/internal/cli"},
	"oda/deploy/drill":            {"oda/internal/test/fault", "oda/internal/test/load"},
	"oda/internal/admission":      {"oda", "oda/internal/measure"},
	"oda/internal/app":            {"oda", "oda/archive", "oda/calls", "oda/internal/admission", "oda/internal/auditlog", "oda/internal/auth", "oda/internal/auth/oidc", "oda/internal/auth/session", "oda/internal/backup", "oda/internal/doctor", "oda/internal/engine", "oda/internal/engine/audit", "oda/internal/engine/migrate", "oda/internal/feed", "oda/internal/files", "oda/internal/httpapi", "oda/internal/metrics", "oda/internal/moving", "oda/internal/postgres", "oda/internal/serving", "oda/internal/skuid", "oda/internal/sqlite", "oda/internal/web", "oda/naming", "oda/night", "oda/progress", "oda/provenance", "oda/search"},
	"oda/internal/auth":           {"oda", "oda/internal/files"},
	"oda/internal/auth/oidc":      {"oda", "oda/internal/auth"},
	"oda/internal/auth/session":   {"oda", "oda/internal/auth", "oda/internal/files"},
	"oda/internal/auditlog":       {"oda"},
	"oda/internal/backup":         {},
	"oda/internal/cli":            {"oda", "oda/api", "oda/calls", "oda/client", "oda/client/recorder", "oda/internal/admission", "oda/internal/app", "oda/internal/auth", "oda/internal/auth/oidc", "oda/internal/backup", "oda/internal/contract", "oda/internal/demo", "oda/internal/doctor", "oda/internal/engine/audit", "oda/internal/files", "oda/internal/httpapi", "oda/internal/jsondiff", "oda/internal/moving", "oda/internal/rawjson", "oda/internal/sheet", "oda/internal/skuid", "oda/internal/spelling", "oda/night", "oda/progress", "oda/provenance", "oda/search", "oda/sky", "oda/summary"},
	"oda/internal/content":        {"oda"},
	"oda/internal/contract":       {"oda", "oda/internal/rawjson", "oda/internal/sheet", "oda/internal/spelling"},
	"oda/internal/demo":           {"oda", "oda/client", "oda/internal/rawjson", "oda/search"},
	"oda/internal/doctor":         {"oda"},
	"oda/internal/engine":         {"oda", "oda/internal/measure"},
	"oda/internal/engine/audit":   {"oda", "oda/internal/engine", "oda/internal/rawjson", "oda/summary"},
	"oda/internal/engine/migrate": {},
	"oda/internal/feed":           {"oda", "oda/archive", "oda/internal/content", "oda/internal/measure", "oda/internal/serving"},
	"oda/internal/files":          {},
	"oda/internal/httpapi":        {"oda", "oda/api", "oda/archive", "oda/calls", "oda/internal/admission", "oda/internal/auditlog", "oda/internal/auth", "oda/internal/content", "oda/internal/contract", "oda/internal/feed", "oda/internal/jsondiff", "oda/internal/measure", "oda/internal/rawjson", "oda/internal/serving", "oda/internal/sheet", "oda/night", "oda/progress", "oda/provenance", "oda/search", "oda/summary"},
	"oda/internal/jsondiff":       {"oda/internal/rawjson"},
	"oda/internal/measure":        {},
	"oda/internal/metrics":        {"oda", "oda/internal/admission", "oda/internal/engine", "oda/internal/feed", "oda/internal/measure"},
	"oda/internal/moving":         {"oda", "oda/api", "oda/client", "oda/internal/contract", "oda/internal/engine", "oda/internal/rawjson", "oda/provenance", "oda/summary"},
	"oda/internal/postgres":       {"oda", "oda/internal/doctor", "oda/internal/engine", "oda/internal/engine/audit", "oda/internal/engine/migrate"},
	"oda/internal/rawjson":        {},
	"oda/internal/serving":        {},
	"oda/internal/skuid":          {"oda", "oda/internal/files", "oda/internal/serving"},
	"oda/internal/spelling":       {},
	"oda/internal/sqlite":         {"oda", "oda/internal/backup", "oda/internal/doctor", "oda/internal/engine", "oda/internal/engine/audit", "oda/internal/engine/migrate", "oda/internal/files", "oda/internal/sqlite/vfs"},
	"oda/internal/sqlite/vfs":     {},
	"oda/internal/test/disk":      {"oda/internal/sqlite/vfs"},
	"oda/internal/test/embedded":  {"oda", "oda/internal/sqlite"},
	"oda/internal/test/env":       {"oda", "oda/internal/app", "oda/internal/auth", "oda/internal/httpapi", "oda/internal/test/fault", "oda/internal/test/judge", "oda/internal/test/load", "oda/internal/test/must", "oda/internal/test/proof", "oda/internal/test/sample"},
	"oda/internal/test/fault":     {},
	"oda/internal/test/follow":    {"oda", "oda/client", "oda/internal/test/fault", "oda/internal/test/load"},
	"oda/internal/test/sample":    {},
	"oda/internal/test/history":   {"oda", "oda/archive", "oda/calls", "oda/internal/auth", "oda/internal/feed", "oda/internal/httpapi", "oda/internal/moving", "oda/internal/rawjson", "oda/internal/web", "oda/naming", "oda/night", "oda/progress", "oda/provenance", "oda/search"},
	"oda/internal/test/judge":     {"oda/api"},
	"oda/internal/test/load":      {"oda", "oda/client", "oda/internal/test/fault"},
	"oda/internal/test/must":      {},
	"oda/internal/test/proof":     {},
	"oda/internal/sheet":          {"oda/internal/rawjson"},
	"oda/internal/test/suite":     {"oda", "oda/api", "oda/archive", "oda/calls", "oda/client", "oda/internal/auth", "oda/internal/contract", "oda/internal/engine", "oda/internal/httpapi", "oda/internal/test/history", "oda/internal/test/judge", "oda/internal/test/must", "oda/internal/test/proof", "oda/naming", "oda/night", "oda/progress", "oda/provenance", "oda/search", "oda/summary"},
	"oda/internal/web":            {"oda", "oda/alignment", "oda/archive", "oda/calls", "oda/docs", "oda/internal/auth", "oda/internal/auth/oidc", "oda/internal/auth/session", "oda/internal/content", "oda/internal/jsondiff", "oda/internal/rawjson", "oda/internal/sheet", "oda/naming", "oda/night", "oda/progress", "oda/provenance", "oda/search", "oda/sky", "oda/summary"},
	"oda/internal/words":          {},
	"oda/naming":                  {"oda", "oda/summary"},
	"oda/night":                   {"oda", "oda/internal/kept", "oda/naming"},
	"oda/calls":                   {"oda", "oda/internal/kept", "oda/internal/words"},
	"oda/internal/kept":           {},
	"oda/progress":                {"oda", "oda/internal/rawjson", "oda/night", "oda/summary"},
	"oda/provenance":              {"oda"},
	"oda/search":                  {"oda", "oda/internal/rawjson", "oda/internal/words", "oda/progress", "oda/sky"},
	"oda/sky":                     {},
	"oda/summary":                 {"oda", "oda/internal/rawjson", "oda/internal/words", "oda/sky"},
}

// standardOnly lists the packages that may import nothing but the standard library and
// what rooms allows them.
var standardOnly = []string{"oda", "oda/alignment", "oda/archive", "oda/calls", "oda/internal/backup", "oda/internal/files", "oda/internal/jsondiff", "oda/internal/kept", "oda/internal/measure", "oda/internal/rawjson", "oda/internal/sheet", "oda/internal/spelling", "oda/internal/words", "oda/naming", "oda/night", "oda/progress", "oda/provenance", "oda/search", "oda/sky", "oda/summary"}

func own(path string) bool { return path == "oda" || strings.HasPrefix(path, "oda/") }

func TestImportsPointInwards(t *testing.T) {
	g := load(t)
	for path, p := range g {
		if !own(path) {
			continue
		}
		if _, ok := rooms[path]; !ok {
			t.Errorf("%s has no room: add it to rooms and to docs/architecture.md", path)
		}
		for _, imported := range p.Imports {
			if rule := broken(g, path, imported); rule != "" {
				t.Errorf("%s imports %s: %s", path, imported, rule)
			}
		}
	}
	for path := range rooms {
		if _, ok := g[path]; !ok {
			t.Errorf("there is a room for %s, but no such package", path)
		}
	}
	// These must not be reached through other packages either.
	for _, engine := range []string{"oda/internal/sqlite", "oda/internal/postgres"} {
		g.forbid(t, engine, "net/http")
		for _, from := range []string{"oda/internal/httpapi", "oda/internal/web", "oda/internal/metrics", "oda/client/recorder"} {
			g.forbid(t, from, engine)
		}
	}
	// A program that imports the client or its recorder needs no other module.
	for path, p := range g {
		if !p.Standard && !own(path) {
			g.forbid(t, "oda/client/recorder", path)
		}
	}
	// The program contains nothing that is for tests.
	for path := range g {
		if strings.HasPrefix(path, "oda/internal/test/") || path == "testing" {
			g.forbid(t, "oda/cmd/oda", path)
		}
	}
}

// Nobody finds a package that the map does not show.
func TestEveryPackageIsOnTheMap(t *testing.T) {
	text, err := os.ReadFile("docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	for path := range rooms {
		if name := strings.TrimPrefix(path, "oda/"); !strings.Contains(string(text), "`"+name+"`") {
			t.Errorf("docs/architecture.md has no row for %s", name)
		}
	}
}

// The guide in the package comment must name every file of this package.
func TestEveryFileIsInTheGuide(t *testing.T) {
	guide, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if file != "doc.go" && !strings.HasSuffix(file, "_test.go") && !strings.Contains(string(guide), file) {
			t.Errorf("the package comment in doc.go does not say what %s is for", file)
		}
	}
}

func (g graph) forbid(t *testing.T, from, to string) {
	t.Helper()
	if chain := g.way(from, to); chain != nil {
		t.Errorf("%s must not need %s: %s", from, to, strings.Join(chain, " > "))
	}
}

// broken returns the rule that an import breaks.
func broken(g graph, from, to string) string {
	switch {
	case own(to) && !slices.Contains(rooms[from], to):
		return "rooms does not allow it"
	case !own(to) && !g[to].Standard && slices.Contains(standardOnly, from):
		return "it may import only the standard library"
	case strings.HasPrefix(to, "modernc.org/") && from != "oda/internal/sqlite/vfs" && from != "oda/internal/test/disk":
		return "only oda/internal/sqlite/vfs reaches into SQLite"
	}
	return ""
}

// A rule that nothing can break protects nothing.
func TestTheRulesOfImportsCanBeBroken(t *testing.T) {
	g := graph{"strings": {Standard: true}}
	for _, test := range []struct {
		from, to string
		allowed  bool
	}{
		{"oda", "strings", true},
		{"oda", "oda/internal/rawjson", true},
		{"oda", "oda/internal/sqlite", false},
		{"oda", "github.com/google/go-cmp/cmp", false},
		{"oda/internal/sqlite", "zombiezen.com/go/sqlite", true},
		{"oda/internal/sqlite", "modernc.org/sqlite/lib", false},
		{"oda/internal/postgres", "oda/internal/sqlite", false},
		{"oda/internal/web", "oda/internal/postgres", false},
		{"oda/internal/app", "oda/internal/sqlite", true},
		{"oda/internal/new", "oda", false},
	} {
		if rule := broken(g, test.from, test.to); (rule == "") != test.allowed {
			t.Errorf("%s imports %s: %q", test.from, test.to, rule)
		}
	}
	g = graph{"a": {Imports: []string{"b", "c"}}, "c": {Imports: []string{"d"}}}
	if got := strings.Join(g.way("a", "d"), " > "); got != "a > c > d" {
		t.Errorf("the way from a to d is %q", got)
	}
}

// load asks the go command for all packages of the module and what they import.
func load(t *testing.T) graph {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-json=ImportPath,Standard,Imports", "./...")
	var complaints strings.Builder
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v: %s", err, complaints.String())
	}
	g := make(graph)
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p goPackage
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("parse the output of go list: %v", err)
		}
		g[p.ImportPath] = p
	}
	for _, expected := range []string{"oda", "oda/cmd/oda", "oda/internal/app", "oda/internal/sqlite"} {
		if _, ok := g[expected]; !ok {
			t.Fatalf("go list does not list %s", expected)
		}
	}
	return g
}

// way returns a chain of imports from one package to another, nil if there is
// none.
func (g graph) way(from, to string) []string {
	before := map[string]string{from: ""}
	for queue := []string{from}; len(queue) > 0; queue = queue[1:] {
		for _, next := range g[queue[0]].Imports {
			if _, known := before[next]; known {
				continue
			}
			before[next] = queue[0]
			if next == to {
				var chain []string
				for at := to; at != ""; at = before[at] {
					chain = append([]string{at}, chain...)
				}
				return chain
			}
			queue = append(queue, next)
		}
	}
	return nil
}
