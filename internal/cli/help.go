package cli

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"oda"
	"oda/internal/spelling"
)

// helping prints the help of a command.
type helping struct {
	Command []string `arg:"" optional:"" help:"The command."`
}

// Run prints the help.
func (h *helping) Run(to streams) error {
	if code := Run(append(h.Command, "--help"), to.out, to.err, to.version); code != exitOK {
		return &failure{code, ""}
	}
	return nil
}

// printHelp prints the help of a command. That of oda itself has --version, too. It is no
// flag of the parser, which would hand it on to "oda KIND get" with its own --version.
func printHelp(options kong.HelpOptions, ctx *kong.Context) error {
	if ctx.Selected() == nil {
		ctx.Model.Flags = append(ctx.Model.Flags, versionFlag)
	}
	return kong.DefaultHelpPrinter(options, ctx)
}

var versionFlag = &kong.Flag{Value: &kong.Value{
	Name: "version", Help: "Print the version.", Tag: &kong.Tag{}, Target: reflect.ValueOf(new(bool)).Elem(),
}}

// wantsVersion reports whether a command line asks for the version of oda. To
// "oda KIND get", --version is the version of an entity; other commands are not asked
// for one.
func wantsVersion(args []string) bool {
	var words []string
	for i, arg := range args {
		switch {
		case arg == "--":
			return false
		case arg == "--version" && len(words) > 0 && i < len(args)-1:
			return false
		case arg == "--version" && (len(words) < 2 || words[1] != "get" || !isKind(words[0])):
			return true
		case !strings.HasPrefix(arg, "-"):
			words = append(words, arg)
		}
	}
	return false
}

func isKind(word string) bool {
	_, ok := oda.KindOf(word)
	return ok
}

// How the parser says that a flag has no value, and names a command with its aliases.
var (
	withAliases  = regexp.MustCompile(`^([a-z ]+) \([a-z, ]+\): `)
	noValue      = regexp.MustCompile(`^(--[^ :]+): (?:expected \w+ value but got "EOL" \(<EOL>\)|missing value, expecting .*)$`)
	flagForValue = regexp.MustCompile(`^(--[^ :]+): expected \w+ value but got (".*") \((?:short|long) flag\); perhaps try (.*)\?$`)
)

// usageError returns what to tell about a command line that is not valid: what is
// wrong, which reading command may have been meant, and where to read on.
func usageError(err error) string {
	text := strings.Replace(err.Error(), `,"" but got`, " but got", 1) // no value is no choice
	text = withAliases.ReplaceAllString(text, "$1: ")
	text = noValue.ReplaceAllString(text, "$1 needs a value")
	text = flagForValue.ReplaceAllString(text, "$1 needs a value, but $2 looks like a flag; if it is meant, write $3")
	text = strings.Replace(text, `must be one of "auto",`, "must be one of ", 1)
	command := "oda"
	if parse, ok := errors.AsType[*kong.ParseError](err); ok && parse.Context != nil {
		node := parse.Context.Selected()
		if node == nil {
			node = parse.Context.Model.Node
		}
		command = commandLine(node)
		if flag, ok := strings.CutPrefix(text, "unknown flag "); ok && node.Parent == nil {
			flag, _, _ = strings.Cut(flag, ", did you mean ") // there are almost none
			text = fmt.Sprintf("unknown flag %s; flags come after the command, as in \"oda COMMAND %s\"", flag, flag)
		}
		if word, ok := strings.CutPrefix(text, "unexpected argument "); ok {
			word, _, _ = strings.Cut(word, ", did you mean ") // it may be a command that writes
			text = "unexpected argument " + word
			if ofKinds(node, word) {
				text += fmt.Sprintf("; say which kind first, as in \"oda sbds %s\" (sbds, sbis, ebs, prjs or notes)", word)
			} else if meant := meantCommand(word, node); meant != "" {
				text += fmt.Sprintf("; did you mean \"%s %s\"?", command, meant)
			} else if node.Flags != nil && slices.ContainsFunc(node.Flags, func(f *kong.Flag) bool { return f.Short == 'o' && f.PlaceHolder == "FILE" }) {
				text += fmt.Sprintf("; name the file with -o %s", word)
			}
		}
	}
	return fmt.Sprintf("%s (try \"%s --help\")", text, command)
}

// lacksIdentifier reports whether an argument of a command is an identifier, and empty.
func lacksIdentifier(command *kong.Node) bool {
	return slices.ContainsFunc(command.Positional, func(arg *kong.Positional) bool {
		if !arg.Tag.Has("complete") {
			return false
		}
		switch value := arg.Target.Interface().(type) {
		case string:
			return value == ""
		case []string:
			return slices.Contains(value, "")
		}
		return false
	})
}

// ofKinds reports whether a word that is not a command of oda is one of each kind.
func ofKinds(in *kong.Node, word string) bool {
	for _, child := range in.Children {
		if isKind(child.Name) {
			return slices.ContainsFunc(child.Children, func(n *kong.Node) bool { return n.Name == word || slices.Contains(n.Aliases, word) })
		}
	}
	return false
}

// commandLine returns how a command is called.
func commandLine(node *kong.Node) string {
	if node.Parent == nil {
		return "oda"
	}
	return commandLine(node.Parent) + " " + node.Name
}

// meantCommand returns the command that reads and is nearest to a word; empty if none
// is near. A command that writes is never suggested: somebody might just call it.
func meantCommand(word string, in *kong.Node) string {
	var names []string
	for _, child := range in.Children {
		if child.Tag.Has("reads") && !child.Hidden {
			names = append(append(names, child.Name), child.Aliases...)
		}
	}
	if i := slices.IndexFunc(names, func(name string) bool { return len(word) > 1 && strings.HasPrefix(name, word) }); i >= 0 {
		return names[i]
	}
	return spelling.Near(word, names)
}
