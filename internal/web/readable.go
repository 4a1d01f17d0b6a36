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

// unmasked writes the characters that turn the direction of the text behind them as their
// numbers: they can make a text look like another, beyond its own end.
func unmasked(page []byte) []byte {
	const first = 0xe2 // byte of each of them in UTF-8
	var out []byte
	done := 0
	for at := bytes.IndexByte(page, first); at >= 0; {
		if number := turning(page[at:]); number != "" {
			out = append(append(out, page[done:at]...), "⟨"+number+"⟩"...)
			done = at + 3
		}
		next := bytes.IndexByte(page[at+1:], first)
		if next < 0 {
			break
		}
		at += 1 + next
	}
	if done == 0 {
		return page
	}
	return append(out, page[done:]...)
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
