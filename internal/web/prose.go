package web

import (
	"bytes"
	"fmt"
	"html/template"
	"net/http"
	"strings"
	"sync"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"oda"
	"oda/docs"
)

// Guide serves the guide to the API, GET {base}/api/v1/guide.
func (s *Site) Guide(w http.ResponseWriter, r *http.Request) error {
	return s.prosePage(w, r, prosePages()["guide"])
}

// Problems serves the page about all problems, GET {base}/api/v1/problems.
func (s *Site) Problems(w http.ResponseWriter, r *http.Request) error {
	return s.prosePage(w, r, prosePages()["problems"])
}

// Problem serves the page about one problem, GET {base}/api/v1/problems/{code}.
// The path value "code" is its code or its whole type.
func (s *Site) Problem(w http.ResponseWriter, r *http.Request) error {
	code := strings.TrimPrefix(r.PathValue("code"), oda.CodePrefix)
	page, ok := prosePages()["problems/"+code]
	if !ok {
		return oda.Errorf(oda.NoSuchPath, "There is no problem %q. All problems are listed one level up, at \"problems\".", oda.Clip(code))
	}
	return s.prosePage(w, r, page)
}

// prose is a page of documentation.
type prose struct {
	title   string
	content template.HTML
}

// proseView is the data for a page of documentation.
type proseView struct {
	frame
	Content template.HTML
}

func (s *Site) prosePage(w http.ResponseWriter, r *http.Request, p prose) error {
	view := proseView{frame: s.newFrame(r, p.title, ""), Content: p.content}
	view.Crumbs = []crumb{{Name: p.title}}
	return s.page(w, r, "prose", view)
}

// prosePages are the pages of documentation by their paths, such as
// problems/not-found.
var prosePages = sync.OnceValue(func() map[string]prose {
	pages := map[string]prose{
		"guide":    newProse("Guide to the interface", "", docs.Interface),
		"problems": newProse("Problems", "", docs.Problems),
	}
	_, sections, _ := strings.Cut(string(docs.Problems), "\n## ")
	for section := range strings.SplitSeq(sections, "\n## ") {
		code, _, _ := strings.Cut(section, "\n")
		pages["problems/"+code] = newProse(code, "../", []byte("# "+section))
	}
	return pages
})

// newProse converts an embedded page, which is known to be valid. Up is the relative
// path from it to {base}/api/v1/.
func newProse(title, up string, markdown []byte) prose {
	converter := goldmark.New(
		goldmark.WithExtensions(extension.Table),
		goldmark.WithParserOptions(parser.WithAutoHeadingID(), parser.WithASTTransformers(util.Prioritized(links(up), 0))),
	)
	var content bytes.Buffer
	if err := converter.Convert(markdown, &content); err != nil {
		panic(fmt.Sprintf("web: the embedded page %q does not render: %v", title, err))
	}
	return prose{title, template.HTML(content.String())} // #nosec G203 -- from a page that is part of the program
}

// links turns links between documentation files into links between pages. Its
// value is the relative path to {base}/api/v1/.
type links string

// served are the documentation files that have a page.
var served = map[string]string{"interface.md": "guide", "problems.md": "problems", "../api/openapi.yaml": "openapi.yaml"}

// Transform is called by goldmark. A link to a file that is not served becomes
// plain text.
func (root links) Transform(doc *ast.Document, _ text.Reader, _ parser.Context) {
	var unlinked []*ast.Link
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		link, ok := n.(*ast.Link)
		if !ok || !entering {
			return ast.WalkContinue, nil
		}
		name, anchor, _ := strings.Cut(string(link.Destination), "#")
		switch page, ok := served[name]; {
		case ok && anchor != "":
			link.Destination = []byte(string(root) + page + "#" + anchor)
		case ok:
			link.Destination = []byte(string(root) + page)
		case name != "" && !strings.Contains(name, "://"):
			unlinked = append(unlinked, link)
		}
		return ast.WalkContinue, nil
	})
	for _, link := range unlinked {
		for child := link.FirstChild(); child != nil; child = link.FirstChild() {
			link.Parent().InsertBefore(link.Parent(), link, child)
		}
		link.Parent().RemoveChild(link.Parent(), link)
	}
}
