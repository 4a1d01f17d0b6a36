package oda

import (
	"strings"
	"testing"
)

func TestIdentifiers(t *testing.T) {
	for _, id := range []string{
		"a", "7", "sbd-mvp01-20200325-00001", "sbi-mvp01-1673428800.123", "EB123", "ob_1", "sbd-6txs9jhxnk7",
		strings.Repeat("x", 128), "Create", "creates", "a..b",
	} {
		if !ValidID(id) {
			t.Errorf("%q must be an identifier", id)
		}
	}
	for _, id := range []string{
		"", "create", "search", ".", "..", ".a", "-a", "_a", "a b", "a/b", "a%2Fb", "a\x00", "é", "a:b", "a\n",
		strings.Repeat("x", 129),
	} {
		if ValidID(id) {
			t.Errorf("%q must not be an identifier", id)
		}
	}
}

func TestUsers(t *testing.T) {
	for _, name := range []string{"a", "DefaultUser", "Liz Bartlett", "248091c7-cd6f-40c3-847b-dd15644997a0", "Zoë \ufffd", "שרה", "سارة", "a\u200db", strings.Repeat("é", 256)} {
		if !ValidUser(name) {
			t.Errorf("%q must be a user", name)
		}
	}
	for _, name := range []string{
		"", "a\nb", "\x00", "a\x7f", "\u0085", "a\xff", strings.Repeat("é", 257), "a\u2028b", "a\u2029",
		"\u061ca", "a\u200e", "a\u200f", "a\u202ab", "a\u202b", "a\u202c", "a\u202d", "\u202eadmin", "a\u2066", "a\u2067", "a\u2068", "a\u2069",
	} {
		if ValidUser(name) {
			t.Errorf("%q must not be a user", name)
		}
	}
}
