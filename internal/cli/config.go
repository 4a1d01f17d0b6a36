package cli

import (
	"cmp"
	"fmt"
	"log/slog"
	"net/url"
	"reflect"
	"strings"

	"github.com/alecthomas/kong"
	"go.yaml.in/yaml/v3"

	"oda/internal/app"
)

// config are the commands about the settings of a server. They take its flags, so
// that they can be asked about any command line of it.
type config struct {
	Check configCheck `cmd:"" reads:"" help:"Say everything that is wrong with the settings."`
	Show  configShow  `cmd:"" reads:"" help:"Print the settings, and where each comes from, without secrets."`
}

// configCheck checks settings.
type configCheck struct {
	serve `embed:""`
}

// Help is what "oda config check --help" says besides the flags.
func (*configCheck) Help() string {
	return `Reads the settings as "oda serve" would: the flags, the environment, and the file of
--config. It checks them, and the files that they name, and prints one line for each
mistake. It opens neither the database nor an address, and changes nothing.

Exit codes: 0 no mistake; 1 mistakes; 2 invalid command line.`
}

// Validate leaves the checks to Run, which reports all mistakes.
func (*configCheck) Validate() error { return nil }

// Run prints what is wrong.
func (c *configCheck) Run(from *settings, to streams) error {
	wrong := c.mistakes(from, to.version)
	for i, fault := range wrong {
		if i < len(wrong)-1 { // the last one is the error
			fmt.Fprintf(to.err, "oda: %s\n", shownError(to.err, fault))
		}
	}
	if len(wrong) > 0 {
		return wrong[len(wrong)-1]
	}
	_, err := fmt.Fprintln(to.out, "no mistake found")
	return err
}

// mistakes returns everything that is wrong with the settings.
func (c *configCheck) mistakes(from *settings, version string) []error {
	wrong := append(from.faults, c.faults()...)
	cfg, err := c.config(version, slog.New(slog.DiscardHandler))
	if err != nil {
		wrong = append(wrong, err)
	}
	if c.Export != "" {
		if err := app.CheckExport(c.Export); err != nil {
			wrong = append(wrong, err)
		}
	}
	return append(wrong, app.Check(cfg)...)
}

// configShow shows settings.
type configShow struct {
	serve `embed:""`
}

// Help is what "oda config show --help" says besides the flags.
func (*configShow) Help() string {
	return `Prints the settings that "oda serve" would use with the same flags, environment and
file, as a file of settings. A comment says where each comes from. Passwords are
replaced.`
}

// Run prints the settings as YAML.
func (c *configShow) Run(from *settings, command *kong.Context, to streams) error {
	all := &yaml.Node{Kind: yaml.MappingNode}
	for _, flag := range command.Selected().Flags {
		if flag.Name == "config" {
			continue
		}
		value := new(yaml.Node)
		if err := value.Encode(plain(flag)); err != nil {
			return err
		}
		value.LineComment, value.Style = cmp.Or(from.from[flag], "default"), value.Style|yaml.FlowStyle
		all.Content = append(all.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: flag.Name}, value)
	}
	text, err := yaml.Marshal(all)
	if err != nil {
		return err
	}
	_, err = to.out.Write(text)
	return err
}

// plain returns the value of a flag as YAML has it.
func plain(flag *kong.Flag) any {
	switch {
	case flag.IsSlice():
		list := make([]string, flag.Target.Len())
		for i := range list {
			list[i] = shown(flag, flag.Target.Index(i))
		}
		return list
	case flag.IsBool():
		return flag.Target.Bool()
	}
	if value := flag.Target.Interface(); flag.Target.CanInt() || flag.Target.CanFloat() {
		if _, ok := value.(fmt.Stringer); !ok {
			return value
		}
	}
	return shown(flag, flag.Target)
}

// shown returns the value of a flag as people may see it: without a password, also
// one in the query of an address.
func shown(flag *kong.Flag, value reflect.Value) string {
	if value.Kind() == reflect.Slice {
		var list []string
		for i := range value.Len() {
			list = append(list, shown(flag, value.Index(i)))
		}
		return fmt.Sprint(list)
	}
	text := fmt.Sprint(value.Interface())
	switch {
	case flag.Name == "db":
		return app.Shown(text)
	case strings.Contains(text, "://"):
		u, err := url.Parse(text)
		if err != nil {
			return "(not valid)"
		}
		if u.RawQuery != "" {
			u.RawQuery = "..."
		}
		return u.Redacted()
	}
	return text
}
