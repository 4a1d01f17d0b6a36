package rawjson

import (
	"bytes"
	"iter"
)

// Members yields the members of an object that a Scanner has accepted before: each key,
// decoded, and the text of its value. It is for reading a few members of many texts: it
// checks nothing, and so is several times as fast. A text that is not an object has no
// members; a damaged one may have any or none.
func Members(text []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(key, value []byte) bool) {
		at := SkipWhite(text, 0)
		if at == len(text) || text[at] != '{' {
			return
		}
		for at++; ; {
			key, value, end := nextMember(text, at)
			if end == 0 || !yield(key, value) {
				return
			}
			at = end
		}
	}
}

// Elements yields the elements of an array that a Scanner has accepted before, as Members
// does for an object.
func Elements(text []byte) iter.Seq[[]byte] {
	return func(yield func(element []byte) bool) {
		at := SkipWhite(text, 0)
		if at == len(text) || text[at] != '[' {
			return
		}
		for at++; ; {
			if at = SkipWhite(text, at); at < len(text) && text[at] == ',' {
				at = SkipWhite(text, at+1)
			}
			end := EndOfValue(text, at)
			if end == at || !yield(text[at:end]) {
				return
			}
			at = end
		}
	}
}

// nextMember returns the member that follows an offset, and where it ends; 0 if there is
// none.
func nextMember(text []byte, at int) (key, value []byte, end int) {
	at = SkipWhite(text, at)
	if at < len(text) && text[at] == ',' {
		at = SkipWhite(text, at+1)
	}
	if at == len(text) || text[at] != '"' {
		return nil, nil, 0
	}
	end = EndOfString(text, at)
	if end-at < 2 {
		return nil, nil, 0
	}
	key = text[at+1 : end-1]
	if bytes.IndexByte(key, '\\') >= 0 {
		key = []byte(Unquote(text[at:end]))
	}
	at = SkipWhite(text, end)
	if at == len(text) || text[at] != ':' {
		return nil, nil, 0
	}
	at = SkipWhite(text, at+1)
	if end = EndOfValue(text, at); end == at {
		return nil, nil, 0
	}
	return key, text[at:end], end
}

// SkipWhite returns the first offset from one on that has no white space.
func SkipWhite(text []byte, at int) int {
	for at < len(text) && white[text[at]] {
		at++
	}
	return at
}

// EndOfString returns the offset after the string that begins at an offset. As Members, it
// checks nothing.
func EndOfString(text []byte, at int) int {
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

// EndOfValue returns the offset after the value that begins at an offset.
func EndOfValue(text []byte, at int) int {
	depth := 0
	for i := at; i < len(text); {
		switch c := text[i]; {
		case c == '"':
			i = EndOfString(text, i)
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
