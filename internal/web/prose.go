package web

import (
	"bytes"
	"fmt"
	"html/template"
	"net/http"
	"strings"

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
	s.prose()["guide"].serve(w, r, pageCache, pagePolicy)
	return nil
}

// Problems serves the page about all problems, GET {base}/api/v1/problems.
func (s *Site) Problems(w http.ResponseWriter, r *http.Request) error {
	s.prose()["problems"].serve(w, r, pageCache, pagePolicy)
	return nil
}

// Problem serves the page about one problem, GET {base}/api/v1/problems/{code}.
// The path value "code" is its code or its whole type.
func (s *Site) Problem(w http.ResponseWriter, r *http.Request) error {
	code := strings.TrimPrefix(r.PathValue("code"), oda.CodePrefix)
	page, ok := s.prose()["problems/"+code]
	if !ok {
		return oda.Errorf(oda.NoSuchPath, "There is no problem %q. All problems are listed one level up, at \"problems\".", clip(code))
	}
	page.serve(w, r, pageCache, pagePolicy)
	return nil
}

// clip shortens a name.
func clip(name string) string {
	const most = 64
	if len(name) > most {
		name = name[:most] + "…"
	}
	return strings.ToValidUTF8(name, "�")
}

// proseView is the data for a page of documentation.
type proseView struct {
	frame
	Content template.HTML
}

// renderProse renders the documentation pages by path.
func (s *Site) renderProse() map[string]file {
	pages := map[string]file{
		"guide":    s.prosePage("Guide to the interface", "", docs.Interface),
		"problems": s.prosePage("Problems", "", docs.Problems),
	}
	_, sections, _ := strings.Cut(string(docs.Problems), "\n## ")
	for section := range strings.SplitSeq(sections, "\n## ") {
		code, _, _ := strings.Cut(section, "\n")
		pages["problems/"+code] = s.prosePage(code, "../", []byte("# "+section))
	}
	return pages
}

// prosePage renders an embedded page, which is known to be valid. Up is the
// relative path from it to {base}/api/v1/.
func (s *Site) prosePage(title, up string, markdown []byte) file {
	converter := goldmark.New(
		goldmark.WithExtensions(extension.Table),
		goldmark.WithParserOptions(parser.WithAutoHeadingID(), parser.WithASTTransformers(util.Prioritized(links(up), 0))),
	)
	var content bytes.Buffer
	if err := converter.Convert(markdown, &content); err != nil {
		panic(fmt.Sprintf("web: the embedded page %q does not render: %v", title, err))
	}
	view := proseView{
		frame:   frame{Root: "./" + up + "../../", Title: title, Version: s.cfg.Version, Engine: s.cfg.Engine},
		Content: template.HTML(content.String()), // #nosec G203 -- from a page that is part of the program
	}
	view.Crumbs = []crumb{{Name: title}}
	text, err := s.render("prose", view)
	if err != nil {
		panic(fmt.Sprintf("web: the embedded page %q does not render: %v", title, err))
	}
	return newFile(htmlType, text)
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
