// Package contract checks requests against the API description.
//
// The specification says "400: the request fails validation against the API
// description", and this package takes it literally: Load compiles the
// parameters and bodies of openapi.yaml into small checkers, and nothing else
// defines what a valid request is. A body is read once. The same pass finds
// syntax errors, checks the document against its schema, and notes where the
// declared values are, so that the rules of the archive need not parse it
// again.
//
// Load knows a subset of OpenAPI 3.0 and refuses a description that uses more,
// so that everything it says about a request is checked. Responses are not
// compiled; the tests of the API check them against the description.
package contract

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"oda/internal/rawjson"
)

// Description is a compiled API description. It is safe for concurrent use.
type Description struct {
	operations []*Operation
	byID       map[string]*Operation
}

// Operation is one method of one path.
type Operation struct {
	ID     string // the operationId
	Method string // upper case, as in a request
	Path   string // relative to the server, with {name} for a parameter

	parameters   []parameter
	body         *schema
	bodyRequired bool
}

// Load compiles the description, which is OpenAPI 3.0 in JSON. Values below a
// schema named in leaves are checked but not indexed, and nesting is counted
// from there.
func Load(description []byte, leaves ...string) (*Description, error) {
	var doc struct {
		Paths      map[string]map[string]json.RawMessage `json:"paths"`
		Components struct {
			Schemas    map[string]json.RawMessage `json:"schemas"`
			Also       map[string]json.RawMessage `json:"x-schemas"`
			Parameters map[string]json.RawMessage `json:"parameters"`
		} `json:"components"`
	}
	if err := json.Unmarshal(description, &doc); err != nil {
		return nil, fmt.Errorf("read the API description: %w", err)
	}
	c := &compiler{
		schemas:    doc.Components.Schemas,
		parameters: doc.Components.Parameters,
		leaves:     map[string]bool{},
		compiled:   map[string]*schema{},
		narrowed:   map[[2]*schema]*schema{},
	}
	for name, raw := range doc.Components.Also {
		if c.schemas[name] != nil {
			return nil, fmt.Errorf("the API description has the schema %q twice", name)
		}
		c.schemas[name] = raw
	}
	for _, name := range leaves {
		if c.schemas[name] == nil {
			return nil, fmt.Errorf("the API description has no schema %q to end the index at", name)
		}
		c.leaves[name] = true
	}
	d := &Description{byID: map[string]*Operation{}}
	for path, item := range doc.Paths {
		for method, raw := range item {
			op, err := c.operation(strings.ToUpper(method), path, raw)
			if err != nil {
				return nil, fmt.Errorf("the API description, %s %s: %w", method, path, err)
			}
			if d.byID[op.ID] != nil {
				return nil, fmt.Errorf("the API description has the operationId %q twice", op.ID)
			}
			d.byID[op.ID] = op
			d.operations = append(d.operations, op)
		}
	}
	slices.SortFunc(d.operations, func(a, b *Operation) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Method, b.Method))
	})
	return d, nil
}

// Operation returns the operation with this operationId, or nil.
func (d *Description) Operation(operationID string) *Operation { return d.byID[operationID] }

// Operations lists all operations by path, then method.
func (d *Description) Operations() []*Operation { return slices.Clone(d.operations) }

// HasBody reports whether the operation accepts a body.
func (op *Operation) HasBody() bool { return op.body != nil }

// CheckBody reads a body once. If it is not a strict JSON document of at most
// maxDepth levels, not counting envelopes around documents, the error has the
// code InvalidJSON. If it does not match its schema, the code is
// InvalidRequest, with the first faults. Otherwise CheckBody returns the index
// of the declared values: the root, the declared members of indexed objects,
// and the elements of indexed lists. An optional body may be empty or null; its
// index is nil.
func (op *Operation) CheckBody(data []byte, maxDepth int) ([]rawjson.Node, error) {
	index, err := op.CheckWatched(data, maxDepth, nil)
	return index.Nodes, err
}

// CheckWatched is CheckBody, and in the same pass notes what the watch wants to
// know of the text.
func (op *Operation) CheckWatched(data []byte, maxDepth int, watch rawjson.Watch) (rawjson.Index, error) {
	if op.body == nil {
		return rawjson.Index{}, fmt.Errorf("the operation %s takes no body to check", op.ID)
	}
	if !op.bodyRequired && isNothing(data) {
		return rawjson.Index{}, nil
	}
	c := checker{
		data:  data,
		scan:  rawjson.NewScanner(data, maxDepth),
		nodes: make([]rawjson.Node, 0, op.body.nodes()),
	}
	if watch != nil {
		c.scan.Watch(watch)
	}
	err := c.value(op.body, "", true)
	if err == nil {
		err = c.scan.End()
	}
	if err != nil {
		return rawjson.Index{}, invalidJSON(err)
	}
	if c.count > 0 {
		return rawjson.Index{}, c.invalidRequest()
	}
	return rawjson.Index{Nodes: c.nodes, Notes: c.scan.Notes()}, nil
}

// isNothing reports whether a body is empty or null, which some generated clients
// send for a body that was left out.
func isNothing(data []byte) bool {
	return len(data) == 0 || string(bytes.Trim(data, " \t\r\n")) == "null"
}

// operation compiles the requests of one operation.
func (c *compiler) operation(method, path string, raw json.RawMessage) (*Operation, error) {
	switch method {
	case "GET", "PUT", "POST", "PATCH", "DELETE":
	default:
		return nil, errors.New("only methods may appear below a path")
	}
	var described struct {
		OperationID string            `json:"operationId"`
		Parameters  []json.RawMessage `json:"parameters"`
		RequestBody json.RawMessage   `json:"requestBody"`
	}
	if err := json.Unmarshal(raw, &described); err != nil {
		return nil, err
	}
	if described.OperationID == "" {
		return nil, errors.New("it has no operationId")
	}
	op := &Operation{ID: described.OperationID, Method: method, Path: path}
	for _, raw := range described.Parameters {
		p, err := c.parameter(raw)
		if err != nil {
			return nil, err
		}
		op.parameters = append(op.parameters, p)
	}
	if described.RequestBody != nil {
		if err := c.requestBody(op, described.RequestBody); err != nil {
			return nil, fmt.Errorf("the request body: %w", err)
		}
		op.body.markDocuments()
	}
	return op, nil
}

func (c *compiler) requestBody(op *Operation, raw json.RawMessage) error {
	var described struct {
		Description string `json:"description"`
		Required    bool   `json:"required"`
		Content     map[string]struct {
			Schema json.RawMessage `json:"schema"`
			Also   json.RawMessage `json:"x-also"`
		} `json:"content"`
	}
	if err := json.Unmarshal(raw, &described); err != nil {
		return err
	}
	content, ok := described.Content["application/json"]
	if !ok || len(described.Content) != 1 || content.Schema == nil {
		return errors.New("it must have a schema for application/json and for nothing else")
	}
	var err error
	op.bodyRequired = described.Required
	if op.body, err = c.schema(content.Schema); err != nil || content.Also == nil {
		return err
	}
	also, err := c.schema(content.Also)
	if err != nil {
		return fmt.Errorf("x-also: %w", err)
	}
	op.body, err = c.narrow(op.body, also)
	return err
}
