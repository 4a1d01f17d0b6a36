package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"go.yaml.in/yaml/v3"
)

// toJSON returns a YAML document as indented JSON, with its keys in the same order.
func toJSON(source []byte) ([]byte, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(source, &document); err != nil {
		return nil, err
	}
	if len(document.Content) != 1 {
		return nil, errors.New("there is no document")
	}
	w := newWriter()
	if err := w.value(document.Content[0]); err != nil {
		return nil, err
	}
	var indented bytes.Buffer
	if err := json.Indent(&indented, w.out.Bytes(), "", "  "); err != nil {
		return nil, err
	}
	indented.WriteByte('\n')
	return indented.Bytes(), nil
}

// writer writes nodes of YAML as compact JSON.
type writer struct {
	out     bytes.Buffer
	scalars *json.Encoder
}

func newWriter() *writer {
	w := new(writer)
	w.scalars = json.NewEncoder(&w.out)
	w.scalars.SetEscapeHTML(false) // people read the description, and it is part of no page
	return w
}

func (w *writer) value(node *yaml.Node) error {
	switch node.Kind {
	case yaml.MappingNode:
		return w.mapping(node)
	case yaml.SequenceNode:
		return w.sequence(node)
	case yaml.ScalarNode:
		return w.scalar(node)
	default:
		return fmt.Errorf("line %d: JSON has no anchors and aliases", node.Line)
	}
}

func (w *writer) mapping(node *yaml.Node) error {
	w.out.WriteByte('{')
	for i := 0; i < len(node.Content); i += 2 {
		key := node.Content[i]
		if key.Kind != yaml.ScalarNode || key.Tag != "!!str" {
			return fmt.Errorf("line %d: the key is not a string; quote it", key.Line)
		}
		if i > 0 {
			w.out.WriteByte(',')
		}
		if err := w.scalar(key); err != nil {
			return err
		}
		w.out.WriteByte(':')
		if err := w.value(node.Content[i+1]); err != nil {
			return err
		}
	}
	w.out.WriteByte('}')
	return nil
}

func (w *writer) sequence(node *yaml.Node) error {
	w.out.WriteByte('[')
	for i, element := range node.Content {
		if i > 0 {
			w.out.WriteByte(',')
		}
		if err := w.value(element); err != nil {
			return err
		}
	}
	w.out.WriteByte(']')
	return nil
}

func (w *writer) scalar(node *yaml.Node) error {
	var value any = node.Value
	if node.Tag != "!!str" {
		if err := node.Decode(&value); err != nil {
			return err
		}
	}
	if err := w.scalars.Encode(value); err != nil {
		return err
	}
	w.out.Truncate(w.out.Len() - 1) // the line end that Encode adds
	return nil
}
