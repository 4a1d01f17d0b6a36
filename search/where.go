package search

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"oda"
	"oda/internal/rawjson"
	"oda/internal/words"
)

// Where is a condition on the text of a document: it compares the values at a
// pointer with a given one.
type Where struct {
	path  []step
	op    string
	value value
}

// step is one reference token of a pointer.
type step struct {
	key   string
	every bool // *: every member or element
}

// operators lists the operators, each before those that it begins with.
var operators = [...]string{"!=", "<=", ">=", "=", "<", ">", "~"}

// maxDepth exceeds every bound on nesting under which a document can have been stored.
const maxDepth = 1 << 20

// Bounds of all conditions of a search together. Each is judged on every document
// that the other filters leave, and the cursor carries them.
const (
	maxWhere     = 16
	maxWhereText = 4096
)

// ParseWhere parses POINTER OP VALUE, separated by single spaces. The pointer
// ends at the first space that is followed by an operator and a space, so keys
// may have spaces.
func ParseWhere(text string) (Where, error) {
	var w Where
	if !utf8.ValidString(text) {
		return w, errors.New("is not valid UTF-8")
	}
	pointer, op, literal, found := cutCondition(text)
	if !found {
		return w, errors.New(`must be a JSON pointer, an operator and a JSON value, separated by single spaces, such as /status = "Observed"; ` +
			`the operators are = != < <= > >= ~`)
	}
	w.op = op
	var err error
	if w.path, err = parsePointer(pointer); err != nil {
		return w, err
	}
	if w.value, err = parseValue(literal); err != nil {
		return w, err
	}
	return w, w.check()
}

// parseAllWhere parses the conditions of a search.
func parseAllWhere(texts []string) ([]Where, error) {
	if len(texts) > maxWhere {
		return nil, fmt.Errorf("is given %d times; at most %d conditions are allowed", len(texts), maxWhere)
	}
	size := 0
	var all []Where
	for _, text := range texts {
		if size += len(text); size > maxWhereText {
			return nil, fmt.Errorf("is longer than %d bytes, counting all conditions together", maxWhereText)
		}
		w, err := ParseWhere(text)
		if err != nil {
			return nil, err
		}
		all = append(all, w)
	}
	return all, nil
}

// cutCondition cuts a condition at its operator.
func cutCondition(text string) (pointer, op, literal string, found bool) {
	for at := range len(text) {
		if text[at] != ' ' {
			continue
		}
		for _, op := range operators {
			if rest, ok := strings.CutPrefix(text[at+1:], op+" "); ok {
				return text[:at], op, rest, true
			}
		}
	}
	return "", "", "", false
}

func parsePointer(text string) ([]step, error) {
	if text == "" {
		return nil, nil // the whole document
	}
	if text[0] != '/' {
		return nil, errors.New("must begin with a JSON pointer, such as /status; a pointer begins with a slash")
	}
	var path []step
	for token := range strings.SplitSeq(text[1:], "/") {
		key := strings.NewReplacer("~0", "~", "~1", "/").Replace(token)
		if strings.Count(token, "~") != strings.Count(token, "~0")+strings.Count(token, "~1") {
			return nil, errors.New("has a ~ in its pointer that is neither ~0 nor ~1; write ~ as ~0 and / as ~1")
		}
		path = append(path, step{key: key, every: token == "*"})
	}
	return path, nil
}

// check returns an error for a comparison that can never hold.
func (w Where) check() error {
	switch {
	case w.op == "~" && w.value.kind != rawjson.String:
		return errors.New("has no string after ~; write one in double quotes")
	case w.op != "=" && w.op != "!=" && w.value.kind != rawjson.String && w.value.kind != rawjson.Number:
		return fmt.Errorf("compares with %s by %s, which is only for numbers and strings; use = or !=", w.value.kind, w.op)
	}
	return nil
}

// value is the value that a condition compares with.
type value struct {
	kind    rawjson.Kind
	text    string // of a string, true, false or null
	folded  string // of a string, for comparison without regard to case
	number  rawjson.Decimal
	list    []value
	members map[string]value
}

// maxValueDepth bounds the nesting of a condition's value.
const maxValueDepth = 100

func parseValue(literal string) (value, error) {
	s := rawjson.NewScanner([]byte(literal), maxValueDepth)
	v, err := readValue(s, literal)
	if err == nil {
		err = s.End()
	}
	if syntax, ok := errors.AsType[*rawjson.SyntaxError](err); ok {
		err = fmt.Errorf("%s (column %d of it)", syntax.Msg, syntax.Column)
	}
	if err != nil {
		return value{}, fmt.Errorf("has no JSON value after its operator: %w; write strings in double quotes", err)
	}
	return v, nil
}

func readValue(s *rawjson.Scanner, text string) (value, error) {
	kind, err := s.Peek()
	if err != nil {
		return value{}, err
	}
	v := value{kind: kind}
	switch kind {
	case rawjson.Object:
		v.members = make(map[string]value)
		err = eachMember(s, func(key []byte) error {
			member, err := readValue(s, text)
			v.members[string(key)] = member
			return err
		})
	case rawjson.Array:
		err = eachElement(s, func(int) error {
			element, err := readValue(s, text)
			v.list = append(v.list, element)
			return err
		})
	default:
		var start, end int
		if start, end, err = s.Skip(); err != nil {
			return value{}, err
		}
		switch literal := []byte(text[start:end]); kind {
		case rawjson.String:
			v.text = rawjson.Unquote(literal)
			v.folded = strings.Map(words.Fold, v.text)
		case rawjson.Number:
			v.number = rawjson.ParseDecimal(literal)
		default:
			v.text = string(literal)
		}
	}
	return v, err
}

// eachMember calls each for every member of the object that comes next. Each must
// consume the value.
func eachMember(s *rawjson.Scanner, each func(key []byte) error) error {
	if _, err := s.BeginObject(); err != nil {
		return err
	}
	for {
		key, more, err := s.NextKey()
		if err != nil || !more {
			return err
		}
		if err := each(key); err != nil {
			return err
		}
	}
}

// eachElement calls each for every element of the array that comes next. Each
// must consume the element.
func eachElement(s *rawjson.Scanner, each func(i int) error) error {
	if _, err := s.BeginArray(); err != nil {
		return err
	}
	for i := 0; ; i++ {
		more, err := s.NextElement()
		if err != nil || !more {
			return err
		}
		if err := each(i); err != nil {
			return err
		}
	}
}

// errHolds ends the walk over a document because the condition holds.
var errHolds = errors.New("the condition holds")

// errDiffers ends the walk over a value because it is not the wanted one.
var errDiffers = errors.New("the values differ")

// Holds reports whether the condition holds for a stored document. It ignores
// lists of records wherever they are, as words and positions do.
func (w Where) Holds(document []byte) bool {
	walk := textWalk{Scanner: rawjson.NewScanner(document, maxDepth), text: document, where: &w}
	return errors.Is(walk.follow(w.path), errHolds)
}

// textWalk judges a condition on a document.
type textWalk struct {
	*rawjson.Scanner
	text  []byte
	where *Where
}

// follow consumes the value that comes next and compares what the path leads to
// in it.
func (t textWalk) follow(path []step) error {
	kind, err := t.Peek()
	if err != nil {
		return err
	}
	enter := func(hit bool) error {
		if hit {
			return t.follow(path[1:])
		}
		return t.pass()
	}
	switch {
	case len(path) == 0:
		return t.compare(kind)
	case kind == rawjson.Object:
		return eachMember(t.Scanner, func(key []byte) error {
			return enter(string(key) != oda.RecordsField && (path[0].every || string(key) == path[0].key))
		})
	case kind == rawjson.Array:
		index := path[0].index()
		return eachElement(t.Scanner, func(i int) error { return enter(path[0].every || i == index) })
	}
	return t.pass()
}

// pass consumes the value that comes next.
func (t textWalk) pass() error {
	_, _, err := t.Skip()
	return err
}

// index returns the index of the element that a step leads to, -1 if there is
// none.
func (s step) index() int {
	i, err := strconv.Atoi(s.key)
	if err != nil || strconv.Itoa(i) != s.key {
		return -1
	}
	return i
}

// compare consumes the value that comes next and compares it. No comparison holds
// between values of different types, not even !=.
func (t textWalk) compare(kind rawjson.Kind) error {
	v := &t.where.value
	if kind != v.kind {
		return t.pass()
	}
	if kind == rawjson.Object || kind == rawjson.Array {
		// It gets a scanner of its own, which can stop where it differs.
		start, end, err := t.Skip()
		if err != nil {
			return err
		}
		inner := textWalk{Scanner: rawjson.NewScanner(t.text[start:end], maxDepth), text: t.text[start:end]}
		err = inner.equal(v)
		if err != nil && !errors.Is(err, errDiffers) {
			return err
		}
		return holds((err == nil) == (t.where.op == "="))
	}
	start, end, err := t.Skip()
	if err != nil {
		return err
	}
	literal := t.text[start:end]
	switch kind {
	case rawjson.Number:
		return t.order(rawjson.ParseDecimal(literal).Compare(v.number))
	case rawjson.String:
		text := rawjson.Unquote(literal)
		if t.where.op == "~" {
			return holds(strings.Contains(strings.Map(words.Fold, text), v.folded))
		}
		return t.order(strings.Compare(text, v.text))
	}
	return t.order(strings.Compare(string(literal), v.text))
}

func holds(yes bool) error {
	if yes {
		return errHolds
	}
	return nil
}

// order applies the operator to the result of a comparison: -1, 0 or 1.
func (t textWalk) order(c int) error {
	switch t.where.op {
	case "=":
		return holds(c == 0)
	case "!=":
		return holds(c != 0)
	case "<":
		return holds(c < 0)
	case "<=":
		return holds(c <= 0)
	case ">":
		return holds(c > 0)
	}
	return holds(c >= 0)
}

// equal consumes the value that comes next, and returns errDiffers if it is not
// the given one. Objects are equal if they have equal members in any order, arrays
// if they have equal elements in the same order.
func (t textWalk) equal(v *value) error {
	kind, err := t.Peek()
	switch {
	case err != nil:
		return err
	case kind != v.kind:
		return errDiffers
	}
	n := 0
	switch kind {
	case rawjson.Object:
		err = eachMember(t.Scanner, func(key []byte) error {
			if string(key) == oda.RecordsField {
				return t.pass()
			}
			n++
			member, ok := v.members[string(key)]
			if !ok {
				return errDiffers
			}
			return t.equal(&member)
		})
		if err == nil && n != len(v.members) {
			err = errDiffers
		}
		return err
	case rawjson.Array:
		err = eachElement(t.Scanner, func(i int) error {
			if n++; i >= len(v.list) {
				return errDiffers
			}
			return t.equal(&v.list[i])
		})
		if err == nil && n != len(v.list) {
			err = errDiffers
		}
		return err
	}
	start, end, err := t.Skip()
	if err != nil {
		return err
	}
	literal := t.text[start:end]
	same := false
	switch kind {
	case rawjson.Number:
		same = rawjson.ParseDecimal(literal).Compare(v.number) == 0
	case rawjson.String:
		same = rawjson.Unquote(literal) == v.text
	default:
		same = string(literal) == v.text
	}
	if !same {
		return errDiffers
	}
	return nil
}
