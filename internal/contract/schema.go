package contract

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"oda/internal/rawjson"
)

// schema is a compiled schema. As in OpenAPI, a keyword applies only to values
// of its own type; kinds are the allowed types.
type schema struct {
	kinds   kindSet
	integer bool // a number must be integral
	leaf    bool // nothing below is indexed

	document bool // nesting is counted from here

	properties map[string]property
	required   []string // the bit of a name is its index here
	closed     bool     // no members other than properties
	size       bounds   // number of members of an object

	items  *schema
	length bounds // number of elements of a list

	text      bounds // length of a text in characters
	pattern   *regexp.Regexp
	enum      []string
	notEnum   []string
	timestamp bool
	rule      string // describes the valid texts, for people

	minimum, maximum *int64
}

// property is a declared member of an object.
type property struct {
	name   string
	bit    uint64 // marks a required member as seen
	schema *schema
}

// bounds are inclusive; nil means unbounded.
type bounds struct{ min, max *int }

// kindSet is a set of types of JSON values, a bit for each rawjson.Kind.
type kindSet uint8

func setOf(kinds ...rawjson.Kind) (s kindSet) {
	for _, k := range kinds {
		s |= 1 << k
	}
	return s
}

func (s kindSet) has(k rawjson.Kind) bool { return s&(1<<k) != 0 }

var anyKind = setOf(rawjson.Null, rawjson.Bool, rawjson.Number, rawjson.String, rawjson.Array, rawjson.Object)

// keywords are the keywords that Load understands. Decoding refuses any other,
// so that nothing is described that is not checked.
type keywords struct {
	Ref string `json:"$ref"`

	Type     string `json:"type"`
	Nullable bool   `json:"nullable"`

	Properties           map[string]json.RawMessage `json:"properties"`
	Required             []string                   `json:"required"`
	AdditionalProperties *openness                  `json:"additionalProperties"`
	MinProperties        *int                       `json:"minProperties"`
	MaxProperties        *int                       `json:"maxProperties"`

	Items    json.RawMessage `json:"items"`
	MinItems *int            `json:"minItems"`
	MaxItems *int            `json:"maxItems"`

	MinLength *int      `json:"minLength"`
	MaxLength *int      `json:"maxLength"`
	Pattern   *string   `json:"pattern"`
	Enum      []string  `json:"enum"`
	Not       *notOneOf `json:"not"`
	Format    string    `json:"format"`

	Minimum *int64 `json:"minimum"`
	Maximum *int64 `json:"maximum"`

	OneOf []json.RawMessage `json:"oneOf"`
	AnyOf []json.RawMessage `json:"anyOf"`
	AllOf []json.RawMessage `json:"allOf"`

	Rule string `json:"x-rule"`

	annotations
}

// openness says whether an object may have members that are not described: {} or
// true, or false. Some generators of clients keep such members only for {}.
type openness bool

// UnmarshalJSON reads it, and refuses a schema for such members.
func (o *openness) UnmarshalJSON(raw []byte) error {
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) == nil && members != nil && len(members) == 0 {
		*o = true
		return nil
	}
	if err := json.Unmarshal(raw, (*bool)(o)); err != nil {
		return errors.New("additionalProperties must be {}, true or false")
	}
	return nil
}

// notOneOf is the only supported form of "not".
type notOneOf struct {
	Enum []string `json:"enum"`
}

// annotations do not affect validity.
type annotations struct {
	Title       json.RawMessage `json:"title"`
	Description json.RawMessage `json:"description"`
	Example     json.RawMessage `json:"example"`
	Examples    json.RawMessage `json:"examples"`
	Default     json.RawMessage `json:"default"`
	Deprecated  json.RawMessage `json:"deprecated"`
	ReadOnly    json.RawMessage `json:"readOnly"`
	WriteOnly   json.RawMessage `json:"writeOnly"`
}

// compiler turns the description's schemas into checkers, each component once.
type compiler struct {
	schemas    map[string]json.RawMessage
	parameters map[string]json.RawMessage
	leaves     map[string]bool
	compiled   map[string]*schema
	narrowed   map[[2]*schema]*schema
}

// schema compiles a schema or a reference to one.
func (c *compiler) schema(raw json.RawMessage) (*schema, error) {
	name, isRef, err := reference(raw, "schemas")
	if err != nil {
		return nil, err
	}
	if !isRef {
		s := new(schema)
		return s, c.fill(s, raw)
	}
	if s := c.compiled[name]; s != nil {
		return s, nil
	}
	target := c.schemas[name]
	if target == nil {
		return nil, fmt.Errorf("there is no schema %q", name)
	}
	if _, chained, err := reference(target, "schemas"); chained || err != nil {
		return nil, fmt.Errorf("the schema %q is itself a reference", name)
	}
	s := &schema{leaf: c.leaves[name], document: c.leaves[name]}
	c.compiled[name] = s // before its members, which may refer to it
	if err := c.fill(s, target); err != nil {
		return nil, fmt.Errorf("the schema %q: %w", name, err)
	}
	return s, nil
}

// fill compiles the keywords of one schema.
func (c *compiler) fill(s *schema, raw json.RawMessage) error {
	var k keywords
	if err := decodeStrictly(raw, &k); err != nil {
		return err
	}
	if len(k.AllOf) > 0 {
		return c.same(s, &k)
	}
	if err := c.kinds(s, &k); err != nil {
		return err
	}
	s.size = bounds{k.MinProperties, k.MaxProperties}
	s.length = bounds{k.MinItems, k.MaxItems}
	s.text = bounds{k.MinLength, k.MaxLength}
	s.minimum, s.maximum = k.Minimum, k.Maximum
	s.rule = k.Rule
	if err := c.texts(s, &k); err != nil {
		return err
	}
	if k.Items != nil {
		items, err := c.schema(k.Items)
		if err != nil {
			return fmt.Errorf("items: %w", err)
		}
		s.items = items
	}
	return c.members(s, &k)
}

// same compiles allOf with one schema, which is OpenAPI 3.0's way to make a
// referenced schema nullable. The type, without which nullable means nothing, must
// be that of the schema.
func (c *compiler) same(s *schema, k *keywords) error {
	rest := *k
	rest.AllOf, rest.Type, rest.Nullable, rest.annotations = nil, "", false, annotations{}
	if !rest.isZero() || len(k.AllOf) != 1 {
		return errors.New("allOf may list one schema, and only type and nullable may accompany it")
	}
	if k.Nullable && k.Type == "" {
		return errors.New("nullable needs a type beside it")
	}
	one, err := c.schema(k.AllOf[0])
	if err != nil {
		return fmt.Errorf("allOf: %w", err)
	}
	if one.kinds == 0 {
		return errors.New("allOf leads back to itself")
	}
	if k.Type != "" {
		var typed schema
		if err := c.kinds(&typed, &keywords{Type: k.Type}); err != nil {
			return err
		}
		if typed.kinds != one.kinds || typed.integer != one.integer {
			return fmt.Errorf("allOf has another type than %q", k.Type)
		}
	}
	*s = *one
	if k.Nullable {
		s.kinds |= setOf(rawjson.Null)
	}
	return nil
}

// kinds compiles the allowed types.
func (c *compiler) kinds(s *schema, k *keywords) error {
	alternatives := append(slices.Clone(k.OneOf), k.AnyOf...)
	switch {
	case len(alternatives) > 0:
		return c.alternatives(s, k, alternatives)
	case k.Nullable && k.Enum != nil:
		return errors.New("nullable and enum contradict each other")
	case k.Nullable && k.Type == "":
		return errors.New("nullable needs a type beside it")
	}
	switch k.Type {
	case "":
		s.kinds = anyKind
	case "object":
		s.kinds = setOf(rawjson.Object)
	case "array":
		s.kinds = setOf(rawjson.Array)
	case "string":
		s.kinds = setOf(rawjson.String)
	case "number":
		s.kinds = setOf(rawjson.Number)
	case "integer":
		s.kinds, s.integer = setOf(rawjson.Number), true
	case "boolean":
		s.kinds = setOf(rawjson.Bool)
	default:
		return fmt.Errorf("there is no type %q", k.Type)
	}
	if k.Nullable {
		s.kinds |= setOf(rawjson.Null)
	}
	if k.Enum != nil {
		s.kinds &= setOf(rawjson.String) // its values are texts
	}
	return nil
}

// alternatives compiles oneOf or anyOf with schemas that only name a type.
// Their types become one set; in oneOf they must not overlap.
func (c *compiler) alternatives(s *schema, k *keywords, list []json.RawMessage) error {
	rest := *k
	rest.OneOf, rest.AnyOf, rest.Rule, rest.annotations = nil, nil, "", annotations{}
	if !rest.isZero() || len(k.OneOf) > 0 && len(k.AnyOf) > 0 {
		return errors.New("oneOf or anyOf must stand alone")
	}
	s.integer = true
	numbers := false
	for _, raw := range list {
		var typeOnly keywords
		if err := decodeStrictly(raw, &typeOnly); err != nil {
			return err
		}
		rest := typeOnly
		rest.Type, rest.Nullable, rest.annotations = "", false, annotations{}
		if open := rest.AdditionalProperties; open != nil && bool(*open) {
			rest.AdditionalProperties = nil
		}
		if !rest.isZero() || typeOnly.Type == "" {
			return errors.New("oneOf and anyOf may list schemas of a type and nothing else")
		}
		var one schema
		if err := c.kinds(&one, &typeOnly); err != nil {
			return err
		}
		if len(k.OneOf) > 0 && s.kinds&one.kinds != 0 {
			return errors.New("the schemas of oneOf overlap")
		}
		s.kinds |= one.kinds
		if one.kinds.has(rawjson.Number) {
			numbers = true
			s.integer = s.integer && one.integer
		}
	}
	s.integer = s.integer && numbers
	return nil
}

// codePoint is a character by its number, which a description writes in another way
// than Go.
var codePoint = regexp.MustCompile(`\\u([0-9A-Fa-f]{4})`)

// texts compiles the keywords for strings.
func (c *compiler) texts(s *schema, k *keywords) (err error) {
	s.enum = k.Enum
	if k.Not != nil {
		s.notEnum = k.Not.Enum
	}
	switch {
	case k.Format == "timestamp":
		s.timestamp = true // stricter than its pattern
		return nil
	case k.Format == "int64" && k.Type == "integer" && k.Minimum != nil && k.Maximum != nil:
	case k.Format != "":
		return fmt.Errorf("the format %q is not checked", k.Format)
	}
	if k.Pattern != nil {
		if k.Rule == "" {
			return errors.New("the pattern has no x-rule that says it to people")
		}
		if s.pattern, err = regexp.Compile(codePoint.ReplaceAllString(*k.Pattern, `\x{$1}`)); err != nil {
			return err
		}
	}
	return nil
}

// members compiles the keywords for objects.
func (c *compiler) members(s *schema, k *keywords) error {
	s.closed = k.AdditionalProperties != nil && !bool(*k.AdditionalProperties)
	s.required = k.Required
	s.properties = make(map[string]property, len(k.Properties))
	for name, raw := range k.Properties {
		member, err := c.schema(raw)
		if err != nil {
			return fmt.Errorf("the member %q: %w", name, err)
		}
		s.properties[name] = property{name: name, schema: member}
	}
	return s.mark()
}

// mark assigns a bit to each required member.
func (s *schema) mark() error {
	if len(s.required) > 64 {
		return errors.New("more than 64 members are required")
	}
	for i, name := range s.required {
		p, ok := s.properties[name]
		if !ok {
			return fmt.Errorf("the member %q is required but not described", name)
		}
		p.bit = 1 << i
		s.properties[name] = p
	}
	return nil
}

// markDocuments marks where the nesting of a body is counted from. An object
// without additional members, and a list in it, is an envelope: a document may
// be as deep inside one as alone.
func (s *schema) markDocuments() {
	switch {
	case s.closed:
		for _, p := range s.properties {
			p.schema.markDocuments()
		}
	case s.items != nil:
		s.items.markDocuments()
	default:
		s.document = true
	}
}

// opaque reports whether nothing inside an object needs to be indexed.
func (s *schema) opaque() bool {
	return len(s.properties) == 0 && !s.closed && s.size == bounds{}
}

// nodes is the initial capacity of an index.
func (s *schema) nodes() int {
	if s.leaf {
		return 1
	}
	return 16
}

// isZero reports whether there are no keywords.
func (k keywords) isZero() bool { return reflect.ValueOf(k).IsZero() }

// reference returns the name of the component that raw refers to.
func reference(raw json.RawMessage, section string) (name string, isRef bool, err error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil {
		return "", false, err
	}
	target, isRef := members["$ref"]
	if !isRef {
		return "", false, nil
	}
	var ref string
	if err := json.Unmarshal(target, &ref); err != nil {
		return "", false, err
	}
	name, local := strings.CutPrefix(strings.Replace(ref, "/x-"+section+"/", "/"+section+"/", 1), "#/components/"+section+"/")
	if !local || len(members) > 1 {
		return "", false, fmt.Errorf("the reference %q must have no siblings and point to components/%s", ref, section)
	}
	return name, true, nil
}

// decodeStrictly decodes an object and refuses members that the target does not
// have. Extensions are allowed, except those that have a meaning here.
func decodeStrictly(raw json.RawMessage, target any) error {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil {
		return err
	}
	maps.DeleteFunc(members, func(name string, _ json.RawMessage) bool {
		return strings.HasPrefix(name, "x-") && name != "x-rule" && name != "x-problem" && name != "x-ignorable"
	})
	kept, err := json.Marshal(members)
	if err != nil {
		return err
	}
	decoder := json.NewDecoder(bytes.NewReader(kept))
	decoder.DisallowUnknownFields()
	return decoder.Decode(target)
}
