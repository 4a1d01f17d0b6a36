package contract

import (
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"oda"
	"oda/internal/rawjson"
)

// parameter is a declared parameter of an operation.
type parameter struct {
	in, name string
	required bool
	code     oda.Code // code of the problem if the value is invalid
	schema   *schema

	// ignorable is set if the rules of the list query decide whether the
	// parameter is used, and check it then.
	ignorable bool
}

// parameter compiles a parameter or a reference to one.
func (c *compiler) parameter(raw json.RawMessage) (parameter, error) {
	name, isRef, err := reference(raw, "parameters")
	if err != nil {
		return parameter{}, err
	}
	if isRef {
		if raw = c.parameters[name]; raw == nil {
			return parameter{}, fmt.Errorf("there is no parameter %q", name)
		}
	}
	var described struct {
		Name      string          `json:"name"`
		In        string          `json:"in"`
		Required  bool            `json:"required"`
		Schema    json.RawMessage `json:"schema"`
		Problem   oda.Code        `json:"x-problem"`
		Ignorable bool            `json:"x-ignorable"`
		annotations
	}
	if err := decodeStrictly(raw, &described); err != nil {
		return parameter{}, fmt.Errorf("a parameter: %w", err)
	}
	p := parameter{in: described.In, name: described.Name, required: described.Required, code: described.Problem}
	if p.code == "" {
		p.code = oda.InvalidRequest
	}
	if described.Schema == nil {
		return parameter{}, fmt.Errorf("the parameter %q has no schema", p.name)
	}
	if p.schema, err = c.schema(described.Schema); err != nil {
		return parameter{}, fmt.Errorf("the parameter %q: %w", p.name, err)
	}
	if err := p.checkable(); err != nil {
		return parameter{}, fmt.Errorf("the parameter %q: %w", p.name, err)
	}
	p.ignorable = described.Ignorable
	return p, nil
}

// checkable refuses parameters that CheckParameters cannot check.
func (p parameter) checkable() error {
	text := p.schema.kinds == setOf(rawjson.String)
	switch {
	case p.in != "path" && p.in != "query" && p.in != "header":
		return fmt.Errorf("it cannot be in %q", p.in)
	case p.repeats():
		return nil
	case !text && p.schema.kinds != setOf(rawjson.Number):
		return errors.New("only texts and numbers are checked")
	}
	return nil
}

// repeats reports whether the parameter may be given several times in a query,
// each time a text. What may stand there is for the rules to say.
func (p parameter) repeats() bool {
	return p.in == "query" && p.schema.kinds == setOf(rawjson.Array) && p.schema.items != nil && p.schema.items.kinds == setOf(rawjson.String)
}

// CheckParameters checks the declared parameters against the description.
// lookup returns the first value of a parameter in "path", "query" or "header",
// and whether there is one. Repetition and precedence are left to the rules of
// the list query. The error lists all invalid parameters, and has the code that
// the description gives for the first of them, or InvalidRequest.
func (op *Operation) CheckParameters(lookup func(in, name string) (value string, given bool)) error {
	var problem *oda.Error
	for i := range op.parameters {
		p := &op.parameters[i]
		msg := p.check(lookup(p.in, p.name))
		if msg == "" {
			continue
		}
		if problem == nil {
			problem = oda.Errorf(p.code, "The request does not match the API description. The %s parameter %s: %s", p.in, p.name, msg)
		}
		problem.Faults = append(problem.Faults, oda.Fault{Pointer: p.in + ":" + p.name, Detail: msg})
	}
	if problem == nil {
		return nil
	}
	return problem
}

// check returns a sentence that says what is wrong with a parameter, or "".
func (p *parameter) check(value string, given bool) string {
	switch {
	case !given && p.required && p.schema.rule != "":
		return "This parameter is missing. It must be " + p.schema.rule + "."
	case !given && p.required:
		return "This parameter is missing."
	case !given, p.ignorable, p.repeats(), p.code == oda.NotFound: // the rules look for it
		return ""
	case p.schema.integer && !isInteger(value):
		return "Must be an integer."
	case p.schema.kinds == setOf(rawjson.Number) && !isNumber(value):
		return "Must be a number."
	case p.schema.kinds == setOf(rawjson.Number):
		return p.schema.checkNumber([]byte(value))
	case !p.schema.checksText():
		return ""
	case !utf8.ValidString(value):
		return "Must be valid UTF-8."
	}
	return p.schema.checkText([]byte(value))
}

// isNumber reports whether a parameter is a number as JSON spells it.
func isNumber(value string) bool {
	return value != "" && (value[0] == '-' || '0' <= value[0] && value[0] <= '9') && rawjson.Check([]byte(value), 1) == nil
}

// isInteger reports whether a parameter is an integer in plain decimal digits.
func isInteger(value string) bool {
	if value != "" && value[0] == '-' {
		value = value[1:]
	}
	for _, c := range []byte(value) {
		if c < '0' || c > '9' {
			return false
		}
	}
	return value != ""
}
