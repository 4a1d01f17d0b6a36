package web

import (
	"bytes"
	"html/template"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// remarks converts what people write in notes. Nothing in it is HTML, so tags are shown as
// they were written.
var remarks = goldmark.New(
	goldmark.WithParser(parser.NewParser(
		parser.WithBlockParsers(
			util.Prioritized(parser.NewSetextHeadingParser(), 100),
			util.Prioritized(parser.NewThematicBreakParser(), 200),
			util.Prioritized(parser.NewListParser(), 300),
			util.Prioritized(parser.NewListItemParser(), 400),
			util.Prioritized(parser.NewCodeBlockParser(), 500),
			util.Prioritized(parser.NewATXHeadingParser(), 600),
			util.Prioritized(parser.NewFencedCodeBlockParser(), 700),
			util.Prioritized(parser.NewBlockquoteParser(), 800),
			util.Prioritized(parser.NewParagraphParser(), 1000),
		),
		parser.WithInlineParsers(
			util.Prioritized(parser.NewCodeSpanParser(), 100),
			util.Prioritized(parser.NewLinkParser(), 200),
			util.Prioritized(parser.NewAutoLinkParser(), 300),
			util.Prioritized(parser.NewEmphasisParser(), 500),
		),
		parser.WithASTTransformers(util.Prioritized(tamed{}, 1000)),
	)),
	goldmark.WithExtensions(extension.Linkify, extension.Strikethrough),
)

// What people write by hand has little of what a reader of Markdown can nest. A text that has
// more would take long, so it is shown as it is.
const (
	maxMarks  = 500 // in a text
	maxNested = 8   // lists and quotations that one line begins
)

var deeplyNested = regexp.MustCompile(`(?m)^(?:[ \t]*(?:[>*+-]|[0-9]{1,9}[.)])){` + strconv.Itoa(maxNested+1) + `}`)

// showMarkdown converts what somebody wrote in a note.
func showMarkdown(markdown string) template.HTML {
	marks := 0
	for i := range len(markdown) {
		if strings.IndexByte("[*_~`<", markdown[i]) >= 0 {
			marks++
		}
	}
	var b bytes.Buffer
	if marks > maxMarks || deeplyNested.MatchString(markdown) || remarks.Convert([]byte(markdown), &b) != nil {
		return template.HTML("<pre>" + template.HTMLEscapeString(markdown) + "</pre>") // #nosec G203 -- it was escaped
	}
	return template.HTML(b.String()) // #nosec G203 -- the converter escapes, and knows no HTML
}

// tamed leaves of Markdown what may be on a page: no images, links only to where a note may
// lead, and no headings above those of the page.
type tamed struct{}

// Transform is called by goldmark.
func (tamed) Transform(doc *ast.Document, reader text.Reader, _ parser.Context) {
	var found []ast.Node
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if entering {
			found = append(found, n)
		}
		return ast.WalkContinue, nil
	})
	for _, n := range found {
		switch n := n.(type) {
		case *ast.Heading:
			n.Level = min(n.Level+3, 6)
		case *ast.Image:
			unwrap(n)
		case *ast.Link:
			if n.Title = nil; !mayLead(string(n.Destination)) {
				unwrap(n)
				continue
			}
			n.SetAttributeString("rel", []byte("noreferrer nofollow"))
		case *ast.AutoLink:
			to := string(n.URL(reader.Source()))
			if n.AutoLinkType == ast.AutoLinkEmail && !strings.HasPrefix(strings.ToLower(to), "mailto:") {
				to = "mailto:" + to
			}
			if !mayLead(to) {
				n.Parent().ReplaceChild(n.Parent(), n, ast.NewString(n.Label(reader.Source())))
				continue
			}
			n.SetAttributeString("rel", []byte("noreferrer nofollow"))
		}
	}
}

// unwrap leaves the text of a link or an image.
func unwrap(n ast.Node) {
	for child := n.FirstChild(); child != nil; child = n.FirstChild() {
		n.Parent().InsertBefore(n.Parent(), n, child)
	}
	n.Parent().RemoveChild(n.Parent(), n)
}

// mayLead reports whether a note may lead to an address.
func mayLead(address string) bool {
	to, err := url.Parse(address)
	if err != nil {
		return false
	}
	return slices.Contains([]string{"http", "https"}, to.Scheme) && to.Host != "" || to.Scheme == "mailto" && to.Opaque != ""
}
