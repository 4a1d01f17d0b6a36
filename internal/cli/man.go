package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/alecthomas/kong"
)

// manual writes the manual pages: one for oda, and one for each of its commands.
// "make release" calls it.
type manual struct {
	Dir string `arg:"" help:"Folder to write them to."`
}

// Run writes the pages.
func (m *manual) Run(parser *kong.Kong, to streams) error {
	root := parser.Model.Node
	pages := map[string]string{"oda.1": rootPage(root, to.version)}
	for _, command := range root.Children {
		if !command.Hidden {
			pages["oda-"+command.Name+".1"] = commandPage(command, to.version)
		}
	}
	err := os.MkdirAll(m.Dir, 0o755) // #nosec G301 -- everybody may read them
	if err != nil {
		return err
	}
	for name, text := range pages {
		err = os.WriteFile(filepath.Join(m.Dir, name), []byte(text), 0o644) // #nosec G306 -- so
		if err != nil {
			return err
		}
	}
	return nil
}

// rootPage returns the page of oda.
func rootPage(root *kong.Node, version string) string {
	var p page
	p.begin("oda", "the observation archive", version)
	p.section("SYNOPSIS")
	p.text("oda COMMAND ...")
	p.line(".br")
	p.text("oda --version")
	p.section("DESCRIPTION")
	p.paragraphs(description)
	p.section("COMMANDS")
	for _, command := range root.Children {
		if !command.Hidden {
			p.term("oda "+command.Name, command.Help+" See oda-"+command.Name+"(1).")
		}
	}
	return p.String()
}

// commandPage returns the page of a command, with those below it.
func commandPage(command *kong.Node, version string) string {
	var p page
	p.begin("oda-"+command.Name, strings.TrimSuffix(command.Help, "."), version)
	p.section("SYNOPSIS")
	leaves := command.Leaves(true)
	if command.Leaf() {
		leaves = []*kong.Node{command}
	}
	for i, leaf := range leaves {
		if i > 0 {
			p.line(".br")
		}
		p.text("oda " + leaf.Summary())
	}
	p.section("DESCRIPTION")
	p.paragraphs(described(command.Detail, command.Help))
	for _, leaf := range leaves {
		if leaf == command {
			p.section("OPTIONS")
		} else {
			p.section(strings.ToUpper(leaf.Name))
			p.paragraphs(described(leaf.Detail, leaf.Help))
		}
		p.values(leaf)
	}
	p.section("SEE ALSO")
	p.text("oda(1)")
	return p.String()
}

func described(detail, help string) string {
	if detail == "" {
		return help
	}
	return help + "\n\n" + detail
}

// page is a page in the format of man(7).
type page struct{ strings.Builder }

func (p *page) line(text string) { p.WriteString(text + "\n") }

func (p *page) begin(name, about, version string) {
	p.line(fmt.Sprintf(".TH %s 1 \"\" \"oda %s\" \"User Commands\"", roff(strings.ToUpper(name)), roff(version)))
	p.section("NAME")
	p.line(roff(name) + ` \- ` + roff(about))
}

func (p *page) section(name string) { p.line(".SH " + roff(name)) }

// text writes a line of text. At its beginning a dot would be a command.
func (p *page) text(text string) { p.line(`\&` + roff(text)) }

// paragraphs writes a text as it is in the help. Indented lines stay lines.
func (p *page) paragraphs(text string) {
	for line := range strings.Lines(text) {
		switch line = strings.TrimRight(line, "\n"); {
		case line == "":
			p.line(".PP")
		case strings.HasPrefix(line, " "):
			p.line(".br")
			p.text(line)
		default:
			p.text(line)
		}
	}
}

func (p *page) term(name, text string) {
	p.line(".TP")
	p.line(`.B ` + roff(name))
	p.text(text)
}

// values writes the arguments and flags of a command.
func (p *page) values(command *kong.Node) {
	for _, arg := range command.Positional {
		p.term(arg.Summary(), arg.Help)
	}
	for _, flags := range command.AllFlags(true) {
		for _, flag := range flags {
			name := "--" + flag.Name
			if !flag.IsBool() {
				name += "=" + flag.FormatPlaceHolder()
			}
			if flag.Short != 0 {
				name = "-" + string(flag.Short) + ", " + name
			}
			p.term(name, withVariables(flag.Value))
		}
	}
}

// roff returns a text in which nothing is a command.
func roff(text string) string {
	return strings.NewReplacer(`\`, `\e`, "-", `\-`, "\n", " ", `"`, `\(dq`).Replace(text)
}
