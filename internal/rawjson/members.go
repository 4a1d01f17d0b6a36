package rawjson

import "bytes"

// Members walks over the members of an object that a Scanner has accepted before,
// to read a few members of many texts. It checks nothing, and so is several times
// as fast. In a damaged text it may find anything or nothing, but it ends.
type Members struct {
	text []byte
	at   int
}

// MembersOf begins a walk. A text that is not an object has no members.
func MembersOf(text []byte) Members {
	at := skipWhite(text, 0)
	if at == len(text) || text[at] != '{' {
		return Members{}
	}
	return Members{text, at + 1}
}

// Next returns the next member: its key, decoded, and the text of its value.
func (m *Members) Next() (key, value []byte, ok bool) {
	at := skipWhite(m.text, m.at)
	if at < len(m.text) && m.text[at] == ',' {
		at = skipWhite(m.text, at+1)
	}
	if at == len(m.text) || m.text[at] != '"' {
		return nil, nil, false
	}
	end := endOfString(m.text, at)
	if end-at < 2 {
		return nil, nil, false
	}
	key = m.text[at+1 : end-1]
	if bytes.IndexByte(key, '\\') >= 0 {
		key = []byte(Unquote(m.text[at:end]))
	}
	at = skipWhite(m.text, end)
	if at == len(m.text) || m.text[at] != ':' {
		return nil, nil, false
	}
	at = skipWhite(m.text, at+1)
	m.at = endOfValue(m.text, at)
	return key, m.text[at:m.at], m.at > at
}

func skipWhite(text []byte, at int) int {
	for at < len(text) && white[text[at]] {
		at++
	}
	return at
}

// endOfString returns the offset after the string that begins at an offset.
func endOfString(text []byte, at int) int {
	for i := at + 1; ; {
		quote := bytes.IndexByte(text[i:], '"')
		if quote < 0 {
			return len(text)
		}
		i += quote + 1
		slashes := 0
		for text[i-2-slashes] == '\\' { // at the latest, it ends at the opening quote
			slashes++
		}
		if slashes%2 == 0 {
			return i
		}
	}
}

// endOfValue returns the offset after the value that begins at an offset.
func endOfValue(text []byte, at int) int {
	depth := 0
	for i := at; i < len(text); {
		switch c := text[i]; {
		case c == '"':
			i = endOfString(text, i)
		case c == '{' || c == '[':
			depth++
			i++
		case depth == 0 && (c == ',' || c == '}' || c == ']' || white[c]):
			return i
		case c == '}' || c == ']':
			depth--
			i++
		default:
			i++
			continue
		}
		if depth == 0 {
			return i
		}
	}
	return len(text)
}
