package web

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"oda"
	"oda/docs"
	"oda/internal/test/must"
)

// read returns the text of a page that a handler serves.
func read(t *testing.T, handle func(http.ResponseWriter, *http.Request) error, code string) (string, error) {
	t.Helper()
	r := httptest.NewRequest("GET", "/api/v1/problems", nil)
	r.SetPathValue("code", code)
	w := httptest.NewRecorder()
	err := handle(w, r)
	return w.Body.String(), err
}

func TestAProblemIsFoundByItsTypeAndByItsCode(t *testing.T) {
	site := New(Config{})
	all := must.Get(read(t, site.Problems, ""))(t)
	sections := regexp.MustCompile(`(?m)^## (.*)$`).FindAllStringSubmatch(string(docs.Problems), -1)
	if len(sections) < 20 {
		t.Fatalf("docs/problems.md has %d sections", len(sections))
	}
	for _, section := range sections {
		code := section[1]
		if !strings.Contains(all, `id="`+code+`"`) {
			t.Errorf("the page of all problems has no section %s", code)
		}
		for _, name := range []string{code, oda.CodePrefix + code} {
			page, err := read(t, site.Problem, name)
			if err != nil || !strings.Contains(page, "What to do.") || !strings.Contains(page, oda.CodePrefix+code) {
				t.Errorf("%s: got %v, %.300s", name, err, page)
			}
		}
	}
	for _, name := range []string{"", "nothing", "urn:oda:problem:", strings.Repeat("x", 5000), "../guide"} {
		if _, err := read(t, site.Problem, name); oda.CodeOf(err) != oda.NoSuchPath || len(err.Error()) > 300 {
			t.Errorf("%.40q: got %v", name, err)
		}
	}
}

// The documentation files link to each other. On the pages, a link leads to a
// page, or is plain text if there is none.
func TestDocumentationPagesLinkOnlyToPages(t *testing.T) {
	site := New(Config{})
	link := regexp.MustCompile(`(?:href|src)="([^"]*)"`)
	for path, page := range prosePages() {
		w := httptest.NewRecorder()
		must.Do(t, site.prosePage(w, httptest.NewRequest("GET", "/api/v1/"+path, nil), page))
		text := w.Body.String()
		root := strings.Repeat("../", strings.Count(path, "/"))
		layout := strings.NewReplacer(`="./`+root+`../../api/v1/`, `="`+root, `="./`+root+`../../`, `="page:`)
		text = layout.Replace(text)
		for _, found := range link.FindAllStringSubmatch(text, -1) {
			target, anchor, _ := strings.Cut(found[1], "#")
			target, _, _ = strings.Cut(target, "?")
			name, ok := strings.CutPrefix(target, root)
			asset, isAsset := strings.CutPrefix(name, "ui/")
			switch _, isPage := prosePages()[name]; {
			case strings.HasPrefix(target, "page:") && knownPage(site, strings.TrimPrefix(target, "page:")):
			case target == "#main", target == "" && strings.Contains(text, `id="`+anchor+`"`):
			case ok && isAsset && site.assets[asset].gz != nil:
			case ok && (isPage || name == "./" || name == "ui" || name == "openapi.yaml" || name == "openapi.json"):
			default:
				t.Errorf("%s links to %s", path, found[1])
			}
		}
	}
}

// knownPage reports whether there is a page beside the interface at a path.
func knownPage(site *Site, path string) bool {
	_, ok := site.Pages()["/"+path]
	return ok || path == ""
}
