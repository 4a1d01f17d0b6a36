package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"math"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"oda/internal/jsondiff"
)

// printDocument prints a document: for people with a value to a line and in
// colours, for programs byte for byte. It ends its last line.
func (l look) printDocument(out io.Writer, format string, text []byte) error {
	switch {
	case format == "yaml":
		return l.printYAML(out, text)
	case format == "csv":
		return l.printPlaces(out, text)
	case l.people:
		return l.printLines(out, text)
	}
	if len(text) == 0 || text[len(text)-1] != '\n' {
		text = append(text[:len(text):len(text)], '\n')
	}
	_, err := out.Write(text)
	return err
}

// printLines prints a document with a value to a line.
func (l look) printLines(out io.Writer, text []byte) error {
	w := bufio.NewWriter(out)
	lines, _ := jsondiff.Lines(text, math.MaxInt)
	for _, line := range lines {
		w.WriteString(strings.Repeat("  ", line.Indent))
		value := line.Text
		if line.Key != "" {
			value = strings.TrimPrefix(line.Text[len(line.Key):], ": ")
			w.WriteString(l.paint(blue, l.safe(line.Key)) + ": ")
		}
		w.WriteString(l.paint(valueInk(value), l.safe(value)))
		if line.Comma {
			w.WriteByte(',')
		}
		w.WriteByte('\n')
	}
	return w.Flush() // it has the first error
}

// valueInk returns the colour of a JSON value.
func valueInk(value string) ink {
	switch value[0] {
	case '"':
		return green
	case '{', '[', '}', ']':
		return plainInk
	case 't', 'f', 'n':
		return magenta
	}
	return cyan
}

// pretty returns a document with a value to a line, as people edit it.
func pretty(text []byte) []byte {
	var out bytes.Buffer
	_ = look{}.printLines(&out, text) // a buffer takes everything
	return out.Bytes()
}

// printYAML prints a JSON text as YAML, in the same order and with the same
// spelling of numbers.
func (l look) printYAML(out io.Writer, text []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	node, err := yamlOf(decoder)
	if err != nil {
		return err
	}
	var written bytes.Buffer
	encoder := yaml.NewEncoder(&written)
	encoder.SetIndent(2)
	if err := encoder.Encode(node); err != nil {
		return err
	}
	shown := written.String()
	if l.people {
		shown = visibleLines(shown)
	}
	_, err = io.WriteString(out, shown)
	return err
}

// yamlOf returns the next value of a JSON text.
func yamlOf(from *json.Decoder) (*yaml.Node, error) {
	token, err := from.Token()
	if err != nil {
		return nil, err
	}
	if token == nil {
		return &yaml.Node{Kind: yaml.ScalarNode, Value: "null"}, nil
	}
	switch token := token.(type) {
	case json.Number:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: token.String()}, nil
	case json.Delim:
		node := &yaml.Node{Kind: yaml.MappingNode}
		if token == '[' {
			node.Kind = yaml.SequenceNode
		}
		for from.More() { // in an object these are keys and values in turn
			child, err := yamlOf(from)
			if err != nil {
				return nil, err
			}
			node.Content = append(node.Content, child)
		}
		if len(node.Content) == 0 {
			node.Style = yaml.FlowStyle
		}
		_, err := from.Token()
		return node, err
	}
	if text, ok := token.(string); ok && misread(text) {
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Style: yaml.DoubleQuotedStyle, Value: text}, nil
	}
	node := new(yaml.Node)
	return node, node.Encode(token)
}

// misread reports whether YAML would read a text as another one if it were written as the
// encoder does: as a merge key or a default value, or, as a block of lines, without the
// white space at its beginning.
func misread(text string) bool {
	first, _ := utf8.DecodeRuneInString(text)
	return text == "<<" || text == "=" || unicode.IsSpace(first) && strings.Contains(text, "\n")
}

// printDiff prints a unified diff, in colours for people.
func (l look) printDiff(out io.Writer, text string) error {
	if !l.people {
		_, err := io.WriteString(out, text)
		return err
	}
	w := bufio.NewWriter(out)
	for line := range strings.Lines(text) {
		line = visibleCells(strings.TrimSuffix(line, "\n")) // there is a tab before a time
		i := plainInk
		switch {
		case strings.HasPrefix(line, "---"), strings.HasPrefix(line, "+++"):
			i = bold
		case strings.HasPrefix(line, "@@"):
			i = cyan
		case strings.HasPrefix(line, "-"):
			i = red
		case strings.HasPrefix(line, "+"):
			i = green
		}
		w.WriteString(l.paint(i, line) + "\n")
	}
	return w.Flush()
}
