package rawjson

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math/bits"
	"unicode/utf16"
	"unicode/utf8"
)

// string consumes a string and returns its decoded bytes, which are a part of
// the text itself if nothing is escaped.
func (s *Scanner) string() ([]byte, error) {
	start := s.pos + 1
	s.pos = start + special(s.data[start:])
	if s.pos < len(s.data) && s.data[s.pos] == '"' {
		s.pos++
		return s.data[start : s.pos-1], nil
	}
	return s.escaped(start)
}

// special returns the place of the first byte that does not stand for itself inside a
// string, or the length of the text. It looks at eight bytes at a time. In a mask, the
// highest bit of a byte is set if the byte was found; bytes after the first that was
// found may be wrong.
func special(text []byte) int {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	for i := 0; ; i += 8 {
		if i+8 > len(text) {
			for ; i < len(text); i++ {
				if c := text[i]; c < 0x20 || c == '"' || c == '\\' {
					break
				}
			}
			return i
		}
		eight := binary.LittleEndian.Uint64(text[i:])
		quotes, escapes := eight^'"'*ones, eight^'\\'*ones
		found := ((eight-0x20*ones)&^eight | (quotes-ones)&^quotes | (escapes-ones)&^escapes) & highs
		if found != 0 {
			return i + bits.TrailingZeros64(found)/8
		}
	}
}

// escaped continues at the first escape of a string.
func (s *Scanner) escaped(start int) ([]byte, error) {
	out := append([]byte(nil), s.data[start:s.pos]...)
	for s.pos < len(s.data) {
		c := s.data[s.pos]
		switch {
		case c == '"':
			s.pos++
			return out, nil
		case c < 0x20:
			return nil, s.fail("a control character inside a string must be escaped")
		case c != '\\':
			out = append(out, c)
			s.pos++
			continue
		}
		r, size := unescape(s.data[s.pos:])
		switch {
		case size == 0:
			return nil, s.fail("this escape inside a string is not valid JSON")
		case size < 0:
			return nil, s.fail("a string has an escape of half a character (a lone surrogate)")
		}
		out = utf8.AppendRune(out, r)
		s.pos += size
	}
	return nil, s.fail("the text ends in the middle of the document")
}

// unescape decodes the escape at the start of text. The size is 0 if the escape
// is invalid, and -1 if it is half of a surrogate pair.
func unescape(text []byte) (r rune, size int) {
	if len(text) < 2 {
		return 0, 0
	}
	switch text[1] {
	case '"', '\\', '/':
		return rune(text[1]), 2
	case 'b':
		return '\b', 2
	case 'f':
		return '\f', 2
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	}
	r, ok := hex4(text)
	switch {
	case !ok:
		return 0, 0
	case !utf16.IsSurrogate(r):
		return r, 6
	}
	low, ok := hex4(text[6:])
	if !ok {
		return 0, -1
	}
	if r = utf16.DecodeRune(r, low); r == utf8.RuneError {
		return 0, -1
	}
	return r, 12
}

// hex4 decodes \uXXXX.
func hex4(text []byte) (r rune, ok bool) {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return 0, false
	}
	for _, c := range text[2:6] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// number consumes a number.
func (s *Scanner) number() error {
	if s.data[s.pos] == '-' {
		s.pos++
	}
	switch {
	case s.pos < len(s.data) && s.data[s.pos] == '0':
		s.pos++
	case !s.digits():
		return s.expected("a digit was expected here")
	}
	if s.pos < len(s.data) && s.data[s.pos] == '.' {
		s.pos++
		if !s.digits() {
			return s.expected("a digit was expected after the decimal point")
		}
	}
	if s.pos < len(s.data) && s.data[s.pos]|0x20 == 'e' {
		s.pos++
		if s.pos < len(s.data) && (s.data[s.pos] == '+' || s.data[s.pos] == '-') {
			s.pos++
		}
		if !s.digits() {
			return s.expected("a digit was expected in the exponent")
		}
	}
	return nil
}

func (s *Scanner) digits() bool {
	start, end := s.pos, s.pos
	for end < len(s.data) && s.data[end]-'0' <= 9 {
		end++
	}
	s.pos = end
	return end > start
}

// literal consumes true, false or null.
func (s *Scanner) literal() error {
	for _, word := range [...]string{"true", "false", "null"} {
		if rest := s.data[s.pos:]; len(rest) >= len(word) && string(rest[:len(word)]) == word {
			s.pos += len(word)
			return nil
		}
	}
	return s.fail("a JSON value was expected here")
}

// Unquote decodes a string literal with its quotes. A Scanner must have accepted
// the literal.
func Unquote(literal []byte) string {
	inner := literal[1 : len(literal)-1]
	for i := range inner {
		if inner[i] != '\\' {
			continue
		}
		s := Scanner{data: literal, pos: i + 1}
		out, err := s.escaped(1)
		if err != nil {
			return ""
		}
		return string(out)
	}
	return string(inner)
}

// AppendQuoted appends text as a JSON string. The text must be valid UTF-8.
func AppendQuoted(dst []byte, text string) []byte {
	const hexDigits = "0123456789abcdef"
	dst = append(dst, '"')
	for i := range len(text) {
		switch c := text[i]; {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c == '\n': // no byte of a JSON text, which may have these three, becomes more than two
			dst = append(dst, '\\', 'n')
		case c == '\r':
			dst = append(dst, '\\', 'r')
		case c == '\t':
			dst = append(dst, '\\', 't')
		case c < 0x20:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		default:
			dst = append(dst, c)
		}
	}
	return append(dst, '"')
}

// Marshal is json.Marshal without escapes for HTML, which no text of the archive is part of.
func Marshal(value any) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(value)
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), err
}

// OrNull returns the value for a member that is null if the value is missing, which its zero
// value says.
func OrNull[T comparable](value T) *T {
	var none T
	if value == none {
		return nil
	}
	return &value
}
