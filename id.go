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

// ValidUser reports whether a text can name a user: valid UTF-8 of 1 to 256
// characters, none of them a control character.
func ValidUser(name string) bool {
	return name != "" && utf8.ValidString(name) && utf8.RuneCountInString(name) <= maxUser && !strings.ContainsFunc(name, unicode.IsControl)
}
