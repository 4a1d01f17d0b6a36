package oda

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxID bounds the length of an identifier.
const maxID = 128

// ValidID tells whether an entity may be stored under that identifier: 1 to
// 128 of the characters A-Z a-z 0-9 . _ -, beginning with a letter or digit,
// and none of the words that are paths of their own. Identifiers of existing
// data follow no stricter pattern than this.
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

// maxUser bounds the length of a user name, in characters.
const maxUser = 256

// ValidUser tells whether a text can name a user: valid UTF-8 of 1 to 256
// characters, none of them a control character.
func ValidUser(name string) bool {
	return name != "" && utf8.ValidString(name) && utf8.RuneCountInString(name) <= maxUser && !strings.ContainsFunc(name, unicode.IsControl)
}
