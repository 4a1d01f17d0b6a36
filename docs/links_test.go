package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	code    = regexp.MustCompile("(?s)```.*?```")
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	link    = regexp.MustCompile(`\]\(([^)\s:]+)\)`)
	marked  = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// Every link from one page to another leads to a file that exists, and to a heading
// in it.
func TestLinksBetweenPagesLeadSomewhere(t *testing.T) {
	headings, links := map[string]map[string]bool{}, 0
	text := func(path string) string {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return code.ReplaceAllString(string(content), "")
	}
	var pages []string
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() && path != ".." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules" || d.Name() == "dist") {
			return fs.SkipDir // not ours: packages that the tests have installed, and what was built
		}
		if err == nil && filepath.Ext(path) == ".md" {
			pages = append(pages, path)
			headings[path] = map[string]bool{}
			for _, h := range heading.FindAllStringSubmatch(text(path), -1) {
				headings[path][strings.ReplaceAll(marked.ReplaceAllString(strings.ToLower(h[1]), ""), " ", "-")] = true
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages {
		for _, l := range link.FindAllStringSubmatch(text(page), -1) {
			links++
			path, place, _ := strings.Cut(l[1], "#")
			target := filepath.Join(filepath.Dir(page), path)
			if path == "" {
				target = page
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: %s leads nowhere", page, l[1])
			} else if known := headings[target]; place != "" && known != nil && !known[place] {
				t.Errorf("%s: %s has no such heading", page, l[1])
			}
		}
	}
	if links < 200 {
		t.Errorf("only %d links were found", links)
	}
}
