package cli

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"oda"
	"oda/client"
	"oda/search"
)

// completion prints what a shell needs to complete commands.
type completion struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"The shell: bash, zsh or fish."`
}

// Help is what "oda completion --help" says besides the flags.
func (*completion) Help() string {
	return `To load it in each new shell:
  bash:  source <(oda completion bash)     in ~/.bashrc
  zsh:   source <(oda completion zsh)      in ~/.zshrc, after compinit
  fish:  oda completion fish | source      in ~/.config/fish/config.fish

Identifiers come from the archive at ODA_URL.`
}

var (
	//go:embed shells/oda.bash
	bashScript string
	//go:embed shells/oda.zsh
	zshScript string
	//go:embed shells/oda.fish
	fishScript string
)

// Run prints the script of the shell.
func (c *completion) Run(to streams) error {
	scripts := map[string]string{"bash": bashScript, "zsh": zshScript, "fish": fishScript}
	_, err := io.WriteString(to.out, scripts[c.Shell])
	return err
}

// complete prints what the last of some words may become. The shells call it.
type complete struct {
	Words []string `arg:"" optional:"" passthrough:""`
}

// proposal is what a word may become.
type proposal struct{ text, help string }

// Run prints one proposal per line, with a tab before its explanation. It prints no
// errors: they would appear in the middle of what a person types.
func (c *complete) Run(parser *kong.Kong, to streams) error {
	words := c.Words
	if len(words) > 0 && words[0] == "--" {
		words = words[1:]
	}
	for _, p := range proposals(parser.Model.Node, words) {
		line := p.text
		if p.help != "" {
			line += "\t" + p.help
		}
		if _, err := fmt.Fprintln(to.out, visibleCells(line)); err != nil {
			return err
		}
	}
	return nil
}

// proposals returns what the last word may become.
func proposals(root *kong.Node, words []string) []proposal {
	words, split := joined(words)
	if len(words) == 0 {
		words = []string{""}
	}
	help := len(words) > 1 && words[0] == "help"
	if help { // what follows is a command
		words = words[1:]
	}
	t := typed{node: root}
	for _, word := range words[:len(words)-1] {
		t.take(word)
	}
	current := words[len(words)-1]
	name, value, assigned := strings.Cut(current, "=")
	switch {
	case t.flag != nil:
		return t.values(t.flag.Value, current, "")
	case assigned && strings.HasPrefix(name, "--"):
		flag := t.flagNamed(name)
		if flag == nil {
			return nil
		}
		before := name + "="
		if split { // the shell takes what follows the sign as a word
			before = ""
		}
		return t.values(flag.Value, value, before)
	case strings.HasPrefix(current, "-"):
		return t.flags(current)
	case len(t.node.Children) > 0:
		return t.commands(current)
	case help:
		return nil
	}
	if arg := t.argument(); arg != nil {
		return t.values(arg, current, "")
	}
	return nil
}

// joined puts flags and their values together again, which bash takes apart at the
// sign between them. It reports whether the last word was taken apart.
func joined(words []string) (all []string, split bool) {
	for i := 0; i < len(words); i++ {
		split = false
		if words[i] == "=" && len(all) > 0 && strings.HasPrefix(all[len(all)-1], "--") {
			all[len(all)-1] += "="
			if split = true; i+1 < len(words) {
				i++
				all[len(all)-1] += words[i]
			}
			continue
		}
		all = append(all, words[i])
	}
	return all, split
}

// typed is what was typed so far.
type typed struct {
	node      *kong.Node
	arguments int        // of the command
	flag      *kong.Flag // whose value comes next; nil if none does
	url       string     // of the archive
}

// take reads a word.
func (t *typed) take(word string) {
	if t.flag != nil {
		if t.flag.Name == "url" {
			t.url = word
		}
		t.flag = nil
		return
	}
	if strings.HasPrefix(word, "-") && word != "-" {
		name, value, assigned := strings.Cut(word, "=")
		flag := t.flagNamed(name)
		switch {
		case flag == nil || flag.IsBool():
		case assigned && flag.Name == "url":
			t.url = value
		case !assigned:
			t.flag = flag
		}
		return
	}
	for _, child := range t.node.Children {
		if child.Name == word || slices.Contains(child.Aliases, word) {
			t.node = child
			return
		}
	}
	t.arguments++
}

func (t *typed) flagNamed(name string) *kong.Flag {
	for _, flags := range t.node.AllFlags(true) {
		for _, flag := range flags {
			if "--"+flag.Name == name || flag.Short != 0 && "-"+string(flag.Short) == name ||
				slices.ContainsFunc(flag.Aliases, func(alias string) bool { return "--"+alias == name }) {
				return flag
			}
		}
	}
	return nil
}

// argument returns the argument that comes next, nil if there is none.
func (t *typed) argument() *kong.Value {
	for i, arg := range t.node.Positional {
		if i == t.arguments || i < t.arguments && arg.IsSlice() {
			return arg
		}
	}
	return nil
}

func (t *typed) commands(prefix string) (found []proposal) {
	for _, child := range t.node.Children {
		if child.Hidden {
			continue
		}
		if strings.HasPrefix(child.Name, prefix) {
			found = append(found, proposal{child.Name, child.Help})
		}
		for _, alias := range child.Aliases { // for somebody who is typing it
			if prefix != "" && strings.HasPrefix(alias, prefix) {
				found = append(found, proposal{alias, child.Help})
			}
		}
	}
	return found
}

func (t *typed) flags(prefix string) (found []proposal) {
	if t.node.Parent == nil && strings.HasPrefix("--version", prefix) {
		found = append(found, proposal{"--version", versionFlag.Help})
	}
	for _, flags := range t.node.AllFlags(true) {
		for _, flag := range flags {
			if strings.HasPrefix("--"+flag.Name, prefix) {
				found = append(found, proposal{"--" + flag.Name, flag.Help})
			}
		}
	}
	return found
}

// values returns what a flag or an argument may be. Before is put in front of each.
func (t *typed) values(of *kong.Value, prefix, before string) (found []proposal) {
	var texts []string
	switch of.Tag.Get("complete") {
	case "":
		texts = of.EnumSlice()
	case "status":
		texts = statusWords
	case "telescope":
		texts = t.telescopes()
	case "zone":
		texts = zones()
	default:
		texts = t.identifiers(of, prefix)
	}
	for _, one := range texts {
		if one != "" && strings.HasPrefix(one, prefix) {
			found = append(found, proposal{text: before + one})
		}
	}
	return found
}

// statusWords are statuses that observatories often use.
var statusWords = []string{"Draft", "Ready", "Executing", "Observed", "Fully Observed", "Failed", "Aborted", "Cancelled", "Suspended"}

// zoneFolders are where systems keep time zones.
var zoneFolders = []string{"/usr/share/zoneinfo", "/usr/lib/zoneinfo", "/usr/share/lib/zoneinfo", "/etc/zoneinfo"}

// zones returns the names of the time zones that this system knows, or else a few.
func zones() (found []string) {
	for _, folder := range zoneFolders {
		root := os.DirFS(folder)
		_ = fs.WalkDir(root, ".", func(path string, entry fs.DirEntry, err error) error { // what cannot be read is no zone
			switch first := path[0]; {
			case err != nil || path == ".":
			case first < 'A' || first > 'Z': // posix, right, and tables
				if entry.IsDir() {
					return fs.SkipDir
				}
			case !entry.IsDir() && !strings.Contains(path, "."):
				found = append(found, path)
			}
			return nil
		})
	}
	if len(found) == 0 {
		found = []string{"Africa/Johannesburg", "Australia/Perth", "UTC"}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// telescopes returns the telescopes of the SKA and of the newest SBDefinitions.
func (t *typed) telescopes() []string {
	found := []string{"ska_low", "ska_mid"}
	archive, err := t.archive()
	if err != nil {
		return found
	}
	ctx, cancel := context.WithTimeout(context.Background(), completeTime)
	defer cancel()
	for one, err := range limited(archive.Search(ctx, search.Search{Kind: oda.SBDefinition, Limit: completeMost}), completeMost) {
		if err != nil {
			break
		}
		found = append(found, one.Summary.Telescope)
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// archive returns a client for the archive that was typed, which does not try for long.
func (t *typed) archive() (*client.Client, error) {
	address := cmp.Or(t.url, os.Getenv("ODA_URL"), os.Getenv("ODA_URI"), defaultArchive)
	return client.New(address, client.WithRetries(0), client.WithLogger(slog.New(slog.DiscardHandler)))
}

// Bounds of the questions to the archive: a person is typing.
const (
	completeTime = time.Second
	completeMost = 100
)

// identifiers asks the archive for identifiers, some of which may begin with a text. If
// it does not answer soon, there are none.
func (t *typed) identifiers(of *kong.Value, prefix string) (found []string) {
	kind, known := oda.KindOf(t.top().Name)
	if of.Tag.Get("complete") == "any" {
		known = false
	}
	if !known {
		if kind, known = kindOf(prefix); !known {
			for _, one := range oda.Kinds {
				found = append(found, one.Prefix()+"-")
			}
			return found
		}
	}
	archive, err := t.archive()
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), completeTime)
	defer cancel()
	asked := search.Search{Kind: kind, Words: prefix, Limit: completeMost}
	if strings.Trim(prefix, "._-") == "" {
		asked.Words = ""
	}
	for id, err := range limited(archive.SearchIDs(ctx, asked), completeMost) {
		if err != nil {
			return nil
		}
		found = append(found, id)
	}
	return found
}

// top returns the first command that was typed.
func (t *typed) top() *kong.Node {
	node := t.node
	for node.Parent != nil && node.Parent.Parent != nil {
		node = node.Parent
	}
	return node
}
