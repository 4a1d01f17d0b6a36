package web

import (
	"bytes"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
)

// readable writes JSON with the characters that are spelled as \u and four digits, where
// they can be seen. Quotes, backslashes and line breaks stay escaped, so that a value
// keeps its bounds.
func readable(text string) string {
	next := strings.Index(text, `\`)
	if next < 0 {
		return text
	}
	var out strings.Builder
	for ; next >= 0; next = strings.Index(text, `\`) {
		out.WriteString(text[:next])
		text = text[next:]
		char, size := escaped(text)
		if char != unicode.ReplacementChar && unicode.IsPrint(char) && char != '"' && char != '\\' {
			out.WriteRune(char)
		} else {
			out.WriteString(text[:size])
		}
		text = text[size:]
	}
	out.WriteString(text)
	return out.String()
}

// escaped reads the escape with which a text begins: its character, or
// U+FFFD if it is another escape, and its length.
func escaped(text string) (char rune, size int) {
	unit := func(text string) rune {
		if len(text) >= 6 && text[:2] == `\u` {
			if n, err := strconv.ParseUint(text[2:6], 16, 16); err == nil {
				return rune(n)
			}
		}
		return unicode.ReplacementChar
	}
	char = unit(text)
	switch {
	case char == unicode.ReplacementChar:
		return char, min(2, len(text))
	case !utf16.IsSurrogate(char):
		return char, 6
	}
	if pair := utf16.DecodeRune(char, unit(text[6:])); pair != unicode.ReplacementChar {
		return pair, 12
	}
	return unicode.ReplacementChar, 6
}

// unmasked writes characters that turn the direction of the text after them as numbers:
// they can make a text, and what follows it, look like another.
func unmasked(text string) string {
	if strings.IndexByte(text, firstTurning) < 0 {
		return text
	}
	return string(unmask([]byte(text)))
}

// unmaskedPage is unmasked for a page. The values of fields stay as they are, since forms
// send them. Quotes that are not around attributes are escaped in a page.
func unmaskedPage(page []byte) []byte {
	const field = ` value="`
	out := make([]byte, 0, len(page))
	for {
		before, rest, found := bytes.Cut(page, []byte(field))
		out = append(out, unmask(before)...)
		if !found {
			return out
		}
		end := max(0, bytes.IndexByte(rest, '"'))
		out = append(append(out, field...), rest[:end]...)
		page = rest[end:]
	}
}

// firstTurning is the first byte, in UTF-8, of each character that turns the direction.
const firstTurning = 0xe2

// unmask writes these characters as their numbers.
func unmask(text []byte) []byte {
	var out []byte
	done := 0
	for at := bytes.IndexByte(text, firstTurning); at >= 0; {
		if number := turning(text[at:]); number != "" {
			out = append(append(out, text[done:at]...), "⟨"+number+"⟩"...)
			done = at + 3
		}
		next := bytes.IndexByte(text[at+1:], firstTurning)
		if next < 0 {
			break
		}
		at += 1 + next
	}
	if done == 0 {
		return text
	}
	return append(out, text[done:]...)
}

// turning is the number of the character at the beginning of a text, if it is one of
// those that turn its direction.
func turning(text []byte) string {
	if len(text) < 3 {
		return ""
	}
	switch last := text[2]; {
	case text[1] == 0x80 && last >= 0xaa && last <= 0xae: // embeddings and overrides
		return "U+202" + string("ABCDE"[last-0xaa])
	case text[1] == 0x81 && last >= 0xa6 && last <= 0xa9: // isolates
		return "U+206" + string("6789"[last-0xa6])
	}
	return ""
}
