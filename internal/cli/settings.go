package cli

import (
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// settings finds the values of flags that are not on the command line: in the
// environment, else in a file. Else they are the defaults. Only
// commands with the flag --config have a file. It is a kong.Resolver.
type settings struct {
	file   string // empty if there is none
	texts  map[*kong.Flag]string
	from   map[*kong.Flag]string // of every flag that does not have its default
	faults faults
}

// faults are mistakes in settings. As an error they are one line, about the first.
type faults []error

func (f faults) Error() string {
	switch len(f) {
	case 1:
		return f[0].Error()
	case 2:
		return fmt.Sprintf("%v (and one more mistake; \"oda config check\" shows all)", f[0])
	}
	return fmt.Sprintf("%v (and %d more mistakes; \"oda config check\" shows all)", f[0], len(f)-1)
}

// gather finds the values of the flags of a command. "oda config check" is told
// about mistakes when it runs; other commands do not run at all.
func (s *settings) gather(ctx *kong.Context) error {
	s.texts, s.from = make(map[*kong.Flag]string), make(map[*kong.Flag]string)
	for _, p := range ctx.Path {
		if p.Flag == nil {
			continue
		}
		s.from[p.Flag] = "command line"
		if value := reflect.ValueOf(ctx.FlagValue(p.Flag)); needsText(p.Flag) && value.Len() == 0 {
			s.faults = append(s.faults, fmt.Errorf("--%s is given but empty; give it a value, or leave it out", p.Flag.Name))
		}
	}
	entries := s.read(ctx)
	for _, flag := range ctx.Flags() {
		if s.from[flag] != "" {
			continue
		}
		if name, text, ok := variable(flag); ok {
			if err := decode(flag, text); err != nil {
				s.faults = append(s.faults, fmt.Errorf("--%s %w (from the variable %s)", flag.Name, err, name))
				continue
			}
			s.texts[flag], s.from[flag] = text, "environment "+name
		} else if entry, ok := entries[flag.Name]; ok {
			s.texts[flag], s.from[flag] = entry.text, fmt.Sprintf("%s:%d", s.file, entry.line)
		}
	}
	if len(s.faults) > 0 && ctx.Command() != "config check" {
		return s.faults
	}
	return nil
}

// needsText reports whether an archive may be less protected without the flag, or more be
// selected. A variable of a script that is empty by mistake must not do that.
func needsText(flag *kong.Flag) bool {
	if kind := flag.Target.Kind(); kind != reflect.String && kind != reflect.Slice {
		return false
	}
	return flag.Tag.Has("narrows") || flag.Group != nil && slices.Contains([]string{"Callers", "Transport", "Query"}, flag.Group.Key)
}

// read reads the file of settings, if the command has one.
func (s *settings) read(ctx *kong.Context) map[string]entry {
	flags := ctx.Flags()
	i := slices.IndexFunc(flags, func(f *kong.Flag) bool { return f.Name == "config" })
	if i < 0 {
		return nil
	}
	s.file, _ = ctx.FlagValue(flags[i]).(string)
	if s.from[flags[i]] == "" {
		_, s.file, _ = variable(flags[i])
	}
	if s.file == "" {
		return nil
	}
	known := make(map[string]*kong.Flag)
	for _, flag := range inFile(ctx) {
		known[flag.Name] = flag
	}
	entries, faults := readEntries(s.file, known)
	s.faults = append(s.faults, faults...)
	return entries
}

// inFile returns the flags that a file of settings may have: the flags of its server.
func inFile(ctx *kong.Context) []*kong.Flag {
	server := "serve"
	if ctx.Selected().Name == "skuid" {
		server = "skuid"
	}
	return flagsOf(ctx.Model, server)
}

// flagsOf returns the flags of a command that a file may have, in the order of the
// help.
func flagsOf(model *kong.Application, command string) []*kong.Flag {
	for _, node := range model.Children {
		if node.Name == command {
			return slices.DeleteFunc(slices.Clone(node.Flags), func(f *kong.Flag) bool { return f.Name == "config" })
		}
	}
	return nil
}

// Validate implements kong.Resolver. Everything was checked when it was gathered.
func (s *settings) Validate(*kong.Application) error { return nil }

// Resolve implements kong.Resolver.
func (s *settings) Resolve(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	if text, ok := s.texts[flag]; ok {
		return text, nil
	}
	return nil, nil
}

// variable returns the first variable of a flag that is set. An empty one counts as
// not set, so that it hides neither the next one nor the file nor the default.
func variable(flag *kong.Flag) (name, text string, ok bool) {
	for _, name := range flag.Envs {
		if text := os.Getenv(name); text != "" {
			return name, text, true
		}
	}
	return "", "", false
}

// decode checks that a text is a value of a flag.
func decode(flag *kong.Flag, text string) error {
	into := reflect.New(flag.Target.Type()).Elem()
	scan := kong.Scan().PushTyped(text, kong.FlagValueToken)
	if err := flag.Mapper.Decode(&kong.DecodeContext{Value: flag.Value, Scan: scan}, into); err != nil {
		return fmt.Errorf("is not valid: %w", err)
	}
	if allowed := flag.EnumSlice(); flag.Enum != "" && !slices.Contains(allowed, text) {
		return fmt.Errorf("must be one of %s, but is %q", strings.Join(allowed, ", "), text)
	}
	return nil
}

// withVariables is the help of a flag, with its variables. The parser itself no
// longer knows them.
func withVariables(value *kong.Value) string {
	if value.Flag == nil || len(value.Flag.Envs) == 0 {
		return value.Help
	}
	return fmt.Sprintf("%s ($%s).", strings.TrimSuffix(value.Help, "."), strings.Join(value.Flag.Envs, ", $"))
}

// takeVariables keeps the parser from reading variables itself: it would prefer
// the file to them.
func takeVariables(k *kong.Kong) error {
	return kong.Visit(k.Model, func(node kong.Visitable, next kong.Next) error {
		if flag, ok := node.(*kong.Flag); ok {
			flag.Tag.Envs = nil
		}
		return next(nil)
	})
}
