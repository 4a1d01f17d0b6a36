// Package words finds the words of texts, in the form in which they are searched for.
package words

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxWord is how many bytes of a word count. What follows is ignored.
const maxWord = 200

// loweredAtOnce is how much of a text is put into lower case at once. That is much cheaper
// than doing it word by word.
const loweredAtOnce = 4 << 10

// Each calls yield for each word of a text. A word is a sequence of letters and
// digits, folded so that case does not matter.
func Each(text string, yield func(word string)) {
	lower, from := "", 0 // a part of the text, and where it begins
	for i := 0; i < len(text); i++ {
		start, seen := i, byte(0)
		for i < len(text) && inWords[text[i]] != 0 {
			seen |= inWords[text[i]]
			i++
		}
		word := text[start:i]
		switch {
		case seen == 0:
		case seen == asItIs:
			yield(Cut(word, maxWord))
		case seen&notASCII == 0:
			end := min(i, start+maxWord)
			if end > from+len(lower) {
				lower, from = lowerASCII(text[start:min(start+loweredAtOnce, len(text))]), start
			}
			yield(lower[start-from : end-from])
		default:
			for word := range strings.FieldsFuncSeq(word, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
				yield(Cut(strings.Map(Fold, word), maxWord))
			}
		}
	}
}

// What a byte of a word may be.
const (
	asItIs   byte = 1 << iota // a letter or digit that is folded already
	upper                     // a letter that is not
	notASCII                  // part of a character that may be a letter or digit, or not
)

// inWords says what each byte is, 0 if it stands between words. Most words are
// ASCII, and this finds them quickly.
var inWords = func() (table [256]byte) {
	for c := range table {
		switch {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9':
			table[c] = asItIs
		case 'A' <= c && c <= 'Z':
			table[c] = upper
		case c >= utf8.RuneSelf:
			table[c] = notASCII
		}
	}
	return table
}()

// lowerASCII returns the text with the letters A to Z in lower case, and all others as
// they are.
func lowerASCII(text string) string {
	b := []byte(text)
	for i, c := range b {
		if inWords[c] == upper {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

// Cut shortens a text to at most the given number of bytes, at the end of a character.
func Cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	end := most
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end]
}

// CutRunes returns a text, cut to so many characters.
func CutRunes(text string, most int) string {
	for at := range text {
		if most--; most < 0 {
			return text[:at]
		}
	}
	return text
}

// Fold returns the same letter for all cases of a letter. It goes by way of the
// upper case, since two lower cases (σ and ς) may share one.
func Fold(r rune) rune { return unicode.ToLower(unicode.ToUpper(r)) }

// Of returns the words of a text, in order.
func Of(text string) []string {
	var all []string
	Each(text, func(word string) { all = append(all, word) })
	return all
}
