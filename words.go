package oda

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxWord is how many bytes of a word count. What follows is ignored.
const maxWord = 200

// words calls yield for each word of a text. A word is a sequence of letters and
// digits, folded so that case does not matter.
func words(text string, yield func(word string)) {
	var room [64]byte
	word := room[:0]
	end := func() {
		if len(word) > 0 {
			yield(string(cut(word, maxWord)))
			word = word[:0]
		}
	}
	for _, r := range text {
		switch {
		case 'a' <= r && r <= 'z', '0' <= r && r <= '9':
			word = append(word, byte(r))
		case 'A' <= r && r <= 'Z':
			word = append(word, byte(r)+'a'-'A')
		case r < utf8.RuneSelf:
			end()
		case unicode.IsLetter(r) || unicode.IsDigit(r):
			word = utf8.AppendRune(word, fold(r))
		default:
			end()
		}
	}
	end()
}

// cut shortens a text to at most so many bytes, at the end of a character.
func cut(text []byte, most int) []byte {
	if len(text) <= most {
		return text
	}
	end := most
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end]
}

// fold returns the same letter for all cases of a letter. It goes by way of the
// upper case, since two lower cases (σ and ς) may share one.
func fold(r rune) rune { return unicode.ToLower(unicode.ToUpper(r)) }

// Words returns the words of a text, in order.
func Words(text string) []string {
	var all []string
	words(text, func(word string) { all = append(all, word) })
	return all
}

// isPlainText reports whether every engine can store a text as text: it has no
// control characters, such as NUL, which PostgreSQL refuses, and is not too long.
func isPlainText(text string) bool {
	return text != "" && len(text) <= maxName && !strings.ContainsFunc(text, unicode.IsControl)
}
