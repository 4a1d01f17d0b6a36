package cli

import (
	"encoding"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"
	"go.yaml.in/yaml/v3"

	"oda/internal/spelling"
)

// entry is the value of a key in a file of settings, written as on a command line.
type entry struct {
	text string
	line int
}

// fileMost bounds the size of a file of settings.
const fileMost = 1 << 20

// readEntries reads a file of settings: a mapping of YAML from names of flags to
// values. It returns everything that is wrong with it. An empty value is left out,
// like an empty variable.
func readEntries(path string, known map[string]*kong.Flag) (map[string]entry, faults) {
	wrong := func(line int, format string, args ...any) error {
		return fmt.Errorf("%s:%d: %s", path, line, fmt.Sprintf(format, args...))
	}
	root, err := readYAML(path)
	switch {
	case err != nil:
		return nil, faults{err}
	case root == nil:
		return nil, nil
	case root.Kind != yaml.MappingNode:
		return nil, faults{wrong(root.Line, "write settings as \"key: value\", each on a line of its own")}
	}
	var found faults
	entries, lines := make(map[string]entry), make(map[string]int)
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, value := root.Content[i], root.Content[i+1]
		flag, first := known[key.Value], lines[key.Value]
		switch {
		case flag == nil:
			found = append(found, wrong(key.Line, "there is no setting %q; %s", key.Value, nearest(key.Value, known)))
			continue
		case first != 0:
			found = append(found, wrong(key.Line, "%s is set a second time; line %d has it already", key.Value, first))
			continue
		}
		lines[key.Value] = key.Line
		text, err := textOf(flag, value)
		if err == nil && text != "" {
			err = decode(flag, text)
		}
		if err != nil {
			found = append(found, wrong(value.Line, "%s %v", key.Value, err))
		} else if text != "" {
			entries[key.Value] = entry{text, key.Line}
		}
	}
	return entries, found
}

// atLine is how the reader of YAML says where an error is.
var atLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

// readYAML returns the root of the only document in a file, nil if it is empty.
func readYAML(path string) (*yaml.Node, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read the file of settings (--config): %w", err)
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, fileMost+1))
	if err != nil {
		return nil, fmt.Errorf("cannot read the file of settings (--config): %w", err)
	}
	if len(text) > fileMost {
		return nil, fmt.Errorf("%s is not a file of settings: it has more than %d bytes", path, fileMost)
	}
	documents := yaml.NewDecoder(strings.NewReader(string(text)))
	var first, second yaml.Node
	err = documents.Decode(&first)
	if errors.Is(err, io.EOF) {
		return nil, nil
	}
	if err == nil {
		if err = documents.Decode(&second); err == nil {
			return nil, fmt.Errorf("%s:%d: a second document begins here; put all settings into one", path, second.Line)
		}
		if errors.Is(err, io.EOF) {
			err = nil
		}
	}
	if err != nil {
		line := 1
		if at := atLine.FindStringSubmatch(err.Error()); at != nil && at[1] != "" {
			line, _ = strconv.Atoi(at[1])
		}
		return nil, fmt.Errorf("%s:%d: this is not YAML: %s", path, line, atLine.ReplaceAllString(err.Error(), ""))
	}
	root := first.Content[0]
	if root.Kind == yaml.ScalarNode && root.Tag == "!!null" {
		return nil, nil
	}
	return root, nil
}

// Tags of YAML.
const (
	tagText  = "!!str"
	tagBool  = "!!bool"
	tagInt   = "!!int"
	tagFloat = "!!float"
	tagNull  = "!!null"
)

// textOf returns a value as it would be written on a command line. A value of
// another type than the flag's is an error: what YAML takes for a number or for true
// may be meant as a text, or the other way round.
func textOf(flag *kong.Flag, value *yaml.Node) (string, error) {
	if value.Kind == yaml.AliasNode {
		value = value.Alias
	}
	tags, what := typeOf(flag)
	switch {
	case value.Tag == tagNull:
		return "", errors.New("has no value; remove the line, or give it one")
	case value.Kind == yaml.SequenceNode && flag.IsSlice():
		texts := make([]string, len(value.Content))
		for i, one := range value.Content {
			if one.Kind != yaml.ScalarNode || one.Tag != tagText {
				return "", fmt.Errorf("must be %s", what)
			}
			texts[i] = one.Value
		}
		return kong.JoinEscaped(texts, flag.Tag.Sep), nil
	case value.Kind != yaml.ScalarNode, !slices.Contains(tags, value.ShortTag()):
		return "", fmt.Errorf("must be %s", what)
	}
	return value.Value, nil
}

// typeOf returns the tags of the values that a flag may have, and what to call them.
func typeOf(flag *kong.Flag) (tags []string, what string) {
	target := flag.Target
	_, own := reflect.New(target.Type()).Interface().(encoding.TextUnmarshaler)
	switch {
	case own:
		return []string{tagText, tagInt}, "a text or a number"
	case target.Type() == reflect.TypeFor[time.Duration]():
		return []string{tagText}, "a time with its unit, such as 10s"
	case flag.IsBool():
		return []string{tagBool}, "true or false, without quotes"
	case flag.IsSlice():
		return []string{tagText}, "a list of texts"
	case target.CanInt():
		return []string{tagInt}, "a whole number, without quotes"
	case target.CanFloat():
		return []string{tagInt, tagFloat}, "a number, without quotes"
	}
	return []string{tagText}, "a text; put it in quotes"
}

// nearest says which key may be meant by one that is not known.
func nearest(key string, known map[string]*kong.Flag) string {
	plain := strings.ReplaceAll(strings.TrimPrefix(strings.ToLower(strings.TrimLeft(key, "-")), "oda_"), "_", "-")
	best := spelling.Near(plain, slices.Sorted(maps.Keys(known)))
	if best == "" {
		return "the keys are the names of the flags, without the hyphens before them"
	}
	return fmt.Sprintf("did you mean %q?", best)
}
