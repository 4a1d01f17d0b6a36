// Command gen converts the API description from YAML to JSON. Keys keep their
// order, so that a change in one file appears as the same change in the other.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"go.yaml.in/yaml/v3"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: gen SOURCE.yaml TARGET.json")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func run(source, target string) error {
	data, err := os.ReadFile(source)
	if err != nil {
		return err
	}
	converted, err := convert(data)
	if err != nil {
		return fmt.Errorf("convert %s: %w", source, err)
	}
	return os.WriteFile(target, converted, 0o644)
}

// convert returns a YAML document as indented JSON, keys in the same order.
func convert(source []byte) ([]byte, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(source, &document); err != nil {
		return nil, err
	}
	if len(document.Content) != 1 {
		return nil, errors.New("the file holds no document")
	}
	var compact bytes.Buffer
	if err := write(&compact, document.Content[0]); err != nil {
		return nil, err
	}
	var indented bytes.Buffer
	if err := json.Indent(&indented, compact.Bytes(), "", "  "); err != nil {
		return nil, err
	}
	indented.WriteByte('\n')
	return indented.Bytes(), nil
}

func write(out *bytes.Buffer, node *yaml.Node) error {
	switch node.Kind {
	case yaml.MappingNode:
		return writeMapping(out, node)
	case yaml.SequenceNode:
		return writeSequence(out, node)
	case yaml.ScalarNode:
		var value any
		if err := node.Decode(&value); err != nil {
			return err
		}
		return writeScalar(out, value)
	default:
		return fmt.Errorf("line %d: anchors and aliases cannot be written in JSON", node.Line)
	}
}

func writeMapping(out *bytes.Buffer, node *yaml.Node) error {
	out.WriteByte('{')
	for i := 0; i < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		if key.Kind != yaml.ScalarNode || key.Tag != "!!str" {
			return fmt.Errorf("line %d: the key is not a string; quote it", key.Line)
		}
		if i > 0 {
			out.WriteByte(',')
		}
		if err := writeScalar(out, key.Value); err != nil {
			return err
		}
		out.WriteByte(':')
		if err := write(out, value); err != nil {
			return err
		}
	}
	out.WriteByte('}')
	return nil
}

func writeSequence(out *bytes.Buffer, node *yaml.Node) error {
	out.WriteByte('[')
	for i, element := range node.Content {
		if i > 0 {
			out.WriteByte(',')
		}
		if err := write(out, element); err != nil {
			return err
		}
	}
	out.WriteByte(']')
	return nil
}

// writeScalar does not escape <, > and &: the description is not embedded in a
// page, and people read it.
func writeScalar(out *bytes.Buffer, value any) error {
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return err
	}
	out.Truncate(out.Len() - 1) // the line end that Encode adds
	return nil
}
