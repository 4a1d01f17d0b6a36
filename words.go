package oda

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxWord is how many bytes of a word count; beyond them words are the same.
const maxWord = 200

// words calls yield for each word of a text: a run of letters and digits, folded
// so that case does not matter.
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

// cut bounds a text to so many bytes, at the end of a character.
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

// fold makes the same of all cases of a letter: by way of the upper case, since
// two lower cases (σ and ς) may share one.
func fold(r rune) rune { return unicode.ToLower(unicode.ToUpper(r)) }

// Words gives the words of a text, in its order.
func Words(text string) []string {
	var all []string
	words(text, func(word string) { all = append(all, word) })
	return all
}

// isPlainText tells whether a text can be kept as text everywhere: it has no
// control characters, PostgreSQL's NUL among them, and is not absurdly long.
func isPlainText(text string) bool {
	return text != "" && len(text) <= maxName && !strings.ContainsFunc(text, unicode.IsControl)
}
