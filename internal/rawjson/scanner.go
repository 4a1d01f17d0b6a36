package rawjson

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf8"
)

// SyntaxError says where and why a text is not a strict JSON document.
type SyntaxError struct {
	Line, Column int    // of the character that is wrong, from 1; columns are characters
	Pointer      string // JSON pointer to the value that holds that character
	Msg          string
}

func (e *SyntaxError) Error() string {
	return e.Msg + " (line " + strconv.Itoa(e.Line) + ", column " + strconv.Itoa(e.Column) + ")"
}

// Check returns why a text is not a strict JSON document, as a *SyntaxError, or nil.
func Check(text []byte, maxDepth int) error {
	s := NewScanner(text, maxDepth)
	if _, _, err := s.Skip(); err != nil {
		return err
	}
	return s.End()
}

// manyKeys is the number of keys in one object from which duplicates are
// found with a map. Below it a linear search is faster and allocates nothing.
const manyKeys = 24

// frame is an object or array that has begun and not yet ended.
type frame struct {
	array     bool
	blind     bool     // nothing in it is noted
	of        Interest // in the current member, or in all elements of a list
	container int32    // its number among the containers, from 1; 0: none yet
	start     int32
	n         int    // members or elements begun
	key       []byte // of the current member
	keysBase  int    // where this object's keys begin in Scanner.keys
	set       map[string]struct{}
}

// Scanner walks over one document. Its methods must be called in the order of the
// document: Peek says what comes next, then Skip, BeginObject or BeginArray
// consumes it. After an error the scanner must not be used.
type Scanner struct {
	data     []byte
	pos      int
	maxDepth int
	floor    int // frames below it do not count as nesting
	frames   []frame
	keys     [][]byte // of the objects that have not ended, for finding duplicates
	watch    Watch    // nil: nothing is noted
	notes    Notes
	counts   *counts // nil: nothing has been noted yet
	err      error

	// Room for what most documents need, so that a scan allocates memory once.
	frameRoom [8]frame
	keyRoom   [24][]byte
}

// NewScanner starts a scan. A document may nest maxDepth objects and arrays; so may
// a document within it, if CountFromHere is called for it. Errors that concern the
// text as a whole are returned by the first method that is called.
func NewScanner(data []byte, maxDepth int) *Scanner {
	s := &Scanner{data: data, maxDepth: maxDepth}
	switch {
	case bytes.HasPrefix(data, []byte("\xef\xbb\xbf")):
		s.err = syntaxError(data, 0, "", "the text begins with a byte order mark; send it without")
	case !utf8.Valid(data):
		s.err = syntaxError(data, invalidUTF8(data), "", "the text is not valid UTF-8")
	default:
		s.frames, s.keys = s.frameRoom[:0], s.keyRoom[:0]
	}
	return s
}

// syntaxError returns the error for the byte at an offset.
func syntaxError(data []byte, offset int, pointer, msg string) *SyntaxError {
	before := data[:offset]
	line := 1 + bytes.Count(before, []byte("\n"))
	column := 1 + utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:])
	return &SyntaxError{line, column, pointer, msg}
}

func invalidUTF8(data []byte) int {
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return len(data)
}

// Pos returns the offset of the first byte that is not yet consumed.
func (s *Scanner) Pos() int { return s.pos }

// Peek returns the kind of the value that comes next. White space before it is
// consumed, so Pos is then the start of the value.
func (s *Scanner) Peek() (Kind, error) {
	if s.err != nil {
		return 0, s.err
	}
	s.space()
	if s.pos == len(s.data) {
		if s.pos == 0 || len(s.frames) == 0 {
			return 0, s.fail("the text is empty")
		}
		return 0, s.fail("the text ends in the middle of the document")
	}
	switch c := s.data[s.pos]; {
	case c == '{':
		return Object, nil
	case c == '[':
		return Array, nil
	case c == '"':
		return String, nil
	case c == '-' || c >= '0' && c <= '9':
		return Number, nil
	case c == 't' || c == 'f':
		return Bool, nil
	case c == 'n':
		return Null, nil
	}
	return 0, s.fail("a JSON value was expected here")
}

// Skip consumes the next value, checks all of it, and returns its place.
func (s *Scanner) Skip() (start, end int, err error) {
	kind, err := s.Peek()
	if err != nil {
		return 0, 0, err
	}
	start = s.pos
	switch kind {
	case Object:
		err = s.skipObject()
	case Array:
		err = s.skipArray()
	case String:
		_, err = s.string()
	case Number:
		err = s.number()
	default:
		err = s.literal()
	}
	if s.watch != nil && (kind == String || kind == Number) && err == nil {
		s.note(kind, start)
	}
	return start, s.pos, err
}

func (s *Scanner) skipObject() error {
	if _, err := s.BeginObject(); err != nil {
		return err
	}
	for {
		_, more, err := s.NextKey()
		if err != nil || !more {
			return err
		}
		if _, _, err := s.Skip(); err != nil {
			return err
		}
	}
}

func (s *Scanner) skipArray() error {
	if _, err := s.BeginArray(); err != nil {
		return err
	}
	for {
		more, err := s.NextElement()
		if err != nil || !more {
			return err
		}
		if _, _, err := s.Skip(); err != nil {
			return err
		}
	}
}

// CountFromHere counts nesting and notes from the next value, which is a document
// within the document. Once that value is consumed, CountFrom with the result
// restores the old count.
func (s *Scanner) CountFromHere() (before int) {
	before, s.floor = s.floor, len(s.frames)
	if s.counts != nil {
		*s.counts = counts{}
	}
	return before
}

// CountFrom undoes CountFromHere.
func (s *Scanner) CountFrom(before int) { s.floor = before }

// BeginObject consumes the opening brace of an object. NextKey then returns its
// members one by one.
func (s *Scanner) BeginObject() (start int, err error) {
	return s.begin(Object, frame{keysBase: len(s.keys)})
}

// BeginArray consumes the opening bracket of an array. NextElement then leads
// to its elements one by one.
func (s *Scanner) BeginArray() (start int, err error) {
	return s.begin(Array, frame{array: true, keysBase: len(s.keys)})
}

func (s *Scanner) begin(want Kind, f frame) (int, error) {
	kind, err := s.Peek()
	if err != nil {
		return 0, err
	}
	if kind != want {
		return 0, s.fail("an " + want.String() + " was expected here")
	}
	if len(s.frames)-s.floor == s.maxDepth {
		return 0, s.fail("the document nests deeper than " + strconv.Itoa(s.maxDepth) + " levels")
	}
	if s.watch != nil {
		f.start = int32(s.pos)
		s.look(&f)
	}
	s.frames = append(s.frames, f)
	s.pos++
	return s.pos - 1, nil
}

// NextKey consumes the next key of the current object, and the colon after
// it; the caller must then consume the value. The key is decoded and valid
// until the object ends. When there are no more members, the closing brace is
// consumed and more is false.
func (s *Scanner) NextKey() (key []byte, more bool, err error) {
	if s.err != nil {
		return nil, false, s.err
	}
	f := &s.frames[len(s.frames)-1]
	if more, err = s.separator(f, '}'); err != nil || !more {
		return nil, false, err
	}
	f.key = nil
	if s.pos == len(s.data) || s.data[s.pos] != '"' {
		return nil, false, s.expected(`a key in double quotes was expected here`)
	}
	start := s.pos
	if key, err = s.string(); err != nil {
		return nil, false, err
	}
	if s.duplicate(f, key) {
		s.pos = start
		f.key = key
		return nil, false, s.fail("the key " + strconv.Quote(clip(string(key))) + " appears twice in one object")
	}
	f.key = key
	s.space()
	if s.pos == len(s.data) || s.data[s.pos] != ':' {
		return nil, false, s.expected("a colon was expected here")
	}
	s.pos++
	if s.watch != nil && !f.blind {
		f.of = s.watch(key)
	}
	return key, true, nil
}

// NextElement leads to the next element of the current array, which the
// caller must then consume. When there are no more, the closing bracket is
// consumed and more is false.
func (s *Scanner) NextElement() (more bool, err error) {
	if s.err != nil {
		return false, s.err
	}
	return s.separator(&s.frames[len(s.frames)-1], ']')
}

// separator consumes what comes before a member or element: a comma, or
// nothing before the first. At the closing byte it ends the frame.
func (s *Scanner) separator(f *frame, closing byte) (more bool, err error) {
	s.space()
	if s.pos == len(s.data) {
		return false, s.expected("")
	}
	switch c := s.data[s.pos]; {
	case c == closing:
		s.pos++
		s.keys = s.keys[:f.keysBase]
		s.frames = s.frames[:len(s.frames)-1]
		return false, nil
	case f.n == 0:
	case c == ',':
		s.pos++
		s.space()
	default:
		return false, s.fail("a comma or " + strconv.Quote(string(closing)) + " was expected here")
	}
	f.n++
	return true, nil
}

// duplicate notes the key and reports whether the object already has it.
func (s *Scanner) duplicate(f *frame, key []byte) bool {
	mine := s.keys[f.keysBase:]
	if len(mine) < manyKeys {
		for _, k := range mine {
			if string(k) == string(key) {
				return true
			}
		}
		s.keys = append(s.keys, key)
		return false
	}
	if f.set == nil {
		f.set = make(map[string]struct{}, 4*manyKeys)
		for _, k := range mine {
			f.set[string(k)] = struct{}{}
		}
	}
	if _, ok := f.set[string(key)]; ok {
		return true
	}
	f.set[string(key)] = struct{}{}
	return false
}

// End checks that nothing but white space follows the document.
func (s *Scanner) End() error {
	if s.err != nil {
		return s.err
	}
	s.space()
	if s.pos < len(s.data) {
		return s.fail("there is more data after the end of the document")
	}
	return nil
}

func (s *Scanner) space() {
	i := s.pos
	for i < len(s.data) && s.data[i] <= ' ' && white[s.data[i]] {
		i++
	}
	s.pos = i
}

// white marks JSON's white space.
var white = [256]bool{' ': true, '\n': true, '\r': true, '\t': true}

// expected fails with msg, or with the end of the text if that is the reason.
func (s *Scanner) expected(msg string) error {
	if s.pos == len(s.data) {
		msg = "the text ends in the middle of the document"
	}
	return s.fail(msg)
}

// fail returns an error for the current byte, with a pointer to it.
func (s *Scanner) fail(msg string) error {
	s.err = syntaxError(s.data, s.pos, s.Pointer(), msg)
	return s.err
}

// Pointer returns the JSON pointer to the current value: the one that was consumed
// last, or whose key was.
func (s *Scanner) Pointer() string {
	var p strings.Builder
	for _, f := range s.frames {
		switch {
		case f.n == 0 || !f.array && f.key == nil:
			continue
		case f.array:
			p.WriteString("/" + strconv.Itoa(f.n-1))
		default:
			p.WriteString("/" + escapePointer(clip(string(f.key))))
		}
	}
	return p.String()
}

// escapePointer returns a key as a reference token of a JSON pointer.
func escapePointer(key string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
}

// clip shortens a key for messages and logs.
func clip(key string) string {
	const most = 60
	if len(key) <= most {
		return key
	}
	return strings.ToValidUTF8(key[:most], "") + "…"
}
