package oda

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxID is the longest identifier, in bytes.
const maxID = 128

// ValidID reports whether an entity may be stored under that identifier: 1 to
// 128 of the characters A-Z a-z 0-9 . _ -, beginning with a letter or digit, and
// not one of the words that are paths of their own. Existing data has
// identifiers that follow no stricter pattern.
func ValidID(id string) bool {
	if len(id) == 0 || len(id) > maxID || id == "create" || id == "search" {
		return false
	}
	for i := range len(id) {
		switch c := id[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		case c == '.' || c == '_' || c == '-':
			if i == 0 {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// maxUser is the longest user name, in characters.
const maxUser = 256

// UserRule says what ValidUser asks for, as a part of a sentence.
const UserRule = "1 to 256 characters without control characters, line separators and bidirectional controls"

// ValidUser reports whether a text can name a user: valid UTF-8 of 1 to 256
// characters, none of which ends a line or turns the direction of the text. Such a
// name could look like another, or make a line of a log look like two.
func ValidUser(name string) bool {
	return wasValidUser(name) && !strings.ContainsFunc(name, func(r rune) bool {
		return r == '\u2028' || r == '\u2029' || unicode.Is(unicode.Bidi_Control, r)
	})
}

// wasValidUser reports whether an archive may have stored the name of a user: earlier
// ones refused fewer.
func wasValidUser(name string) bool {
	return name != "" && utf8.ValidString(name) && utf8.RuneCountInString(name) <= maxUser && !strings.ContainsFunc(name, unicode.IsControl)
}

// MaxName is the longest name of a thing that searches and roles know, in bytes.
const MaxName = 1 << 10

// isPlainText reports whether every engine can store a text as text: it has no
// control characters, such as NUL, which PostgreSQL refuses, and is not too long.
func isPlainText(text string) bool {
	return text != "" && len(text) <= MaxName && !strings.ContainsFunc(text, unicode.IsControl)
}
