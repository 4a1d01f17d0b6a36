package oda_test

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// goPackage is what "go list" tells of a package.
type goPackage struct {
	ImportPath string
	Standard   bool
	Imports    []string // without those of tests
}

// graph is every package that the module is made of.
type graph map[string]goPackage

// engines keep the archive. A rule that names one which is not there yet holds
// already.
var engines = []string{"oda/internal/sqlite", "oda/internal/postgres"}

// forTests tells whether a package is one of which nothing is in the program.
func forTests(path string) bool { return strings.HasPrefix(path, "oda/internal/test/") }

// Arrows point inwards: cmd, cli, app, then httpapi, web and the engines, then
// package oda. These rules keep them so.
func TestArrowsPointInwards(t *testing.T) {
	g := load(t)
	for path, p := range g {
		if !strings.HasPrefix(path, "oda") || p.Standard {
			continue
		}
		for _, imported := range p.Imports {
			if rule := broken(g, path, imported); rule != "" {
				t.Errorf("%s imports %s: %s", path, imported, rule)
			}
		}
	}
	// Nor on the way through another package.
	for _, engine := range engines {
		ways := [][2]string{
			{engine, "net/http"},
			{"oda/internal/httpapi", engine},
			{"oda/internal/web", engine},
			{"oda/client", engine},
			{"oda/client/recorder", engine},
		}
		for _, other := range engines {
			if other != engine {
				ways = append(ways, [2]string{engine, other})
			}
		}
		for _, w := range ways {
			g.forbid(t, w[0], w[1])
		}
	}
	// Whoever imports the client or its recorder needs no other module.
	for path, p := range g {
		if !p.Standard && path != "oda" && !strings.HasPrefix(path, "oda/") {
			g.forbid(t, "oda/client/recorder", path)
		}
	}
	// What is for tests is not in the program.
	for path := range g {
		if forTests(path) || path == "testing" {
			g.forbid(t, "oda/cmd/oda", path)
		}
	}
}

// A package that the map does not show is one that nobody finds.
func TestEveryPackageIsOnTheMap(t *testing.T) {
	text, err := os.ReadFile("docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	for path, p := range load(t) {
		name, own := strings.CutPrefix(path, "oda/")
		if own && !p.Standard && !strings.Contains(string(text), "`"+name+"`") {
			t.Errorf("docs/architecture.md does not name `%s`", name)
		}
	}
}

func (g graph) forbid(t *testing.T, from, to string) {
	t.Helper()
	if chain := g.way(from, to); chain != nil {
		t.Errorf("%s must not need %s: %s", from, to, strings.Join(chain, " > "))
	}
}

// broken gives the rule that an import breaks.
func broken(g graph, from, to string) string {
	own := to == "oda" || strings.HasPrefix(to, "oda/")
	switch {
	case from == "oda" && !g[to].Standard && to != "oda/internal/rawjson":
		return "the vocabulary needs the standard library and rawjson only"
	case (from == "oda/internal/rawjson" || from == "oda/internal/files") && !g[to].Standard:
		return "it needs the standard library only"
	case from == "oda/cmd/oda" && own && to != "oda/internal/cli":
		return "the command is a few lines around cli"
	case slices.Contains(engines, to) && from != "oda/internal/app":
		return "app alone knows an engine by name"
	case slices.Contains(engines, from) && to == "net/http":
		return "an engine knows no HTTP"
	case from == "oda/internal/test/fault" && own:
		return "the fault tools serve measurements, too, and need nothing of ours"
	case forTests(to) && !forTests(from) && from != "oda/deploy/drill":
		return "this is for tests only"
	}
	return ""
}

// A rule that nothing can break keeps nothing.
func TestTheRulesOfTheArrowsCanBeBroken(t *testing.T) {
	g := graph{"strings": {Standard: true}, "net/http": {Standard: true}}
	for _, test := range []struct {
		from, to string
		allowed  bool
	}{
		{"oda", "strings", true},
		{"oda", "oda/internal/rawjson", true},
		{"oda", "oda/internal/sqlite", false},
		{"oda", "github.com/google/go-cmp/cmp", false},
		{"oda/internal/rawjson", "strings", true},
		{"oda/internal/rawjson", "oda", false},
		{"oda/internal/files", "oda", false},
		{"oda/internal/sqlite", "oda/internal/engine/migrate", true},
		{"oda/internal/sqlite", "net/http", false},
		{"oda/internal/postgres", "oda/internal/sqlite", false},
		{"oda/internal/httpapi", "oda/internal/sqlite", false},
		{"oda/internal/web", "oda/internal/postgres", false},
		{"oda/internal/cli", "oda/internal/sqlite", false},
		{"oda/internal/app", "oda/internal/sqlite", true},
		{"oda/internal/app", "oda/internal/test/env", false},
		{"oda/internal/test/env", "oda/internal/test/fault", true},
		{"oda/internal/test/fault", "oda/internal/test/env", false},
		{"oda/internal/test/suite", "oda/internal/sqlite", false},
		{"oda/deploy/drill", "oda/internal/test/fault", true},
		{"oda/internal/postgres", "oda/internal/test/fault", false},
		{"oda/cmd/oda", "oda/internal/cli", true},
		{"oda/cmd/oda", "oda/internal/app", false},
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

// load asks the Go command for all packages of the module and what they need.
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
			t.Fatalf("read what go list says: %v", err)
		}
		g[p.ImportPath] = p
	}
	for _, expected := range []string{"oda", "oda/cmd/oda", "oda/internal/app", "oda/internal/sqlite"} {
		if _, ok := g[expected]; !ok {
			t.Fatalf("go list knows no %s", expected)
		}
	}
	return g
}

// way gives a chain of imports from one package to another, nil if none.
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
