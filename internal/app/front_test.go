package app

import (
	"strings"
	"testing"

	"oda/internal/engine/migrate"
)

// Whoever starts a new archive must not wonder what is upgraded in it.
func TestANewArchiveIsNotUpgraded(t *testing.T) {
	for want, at := range map[string]migrate.Status{
		"its tables are being made: schema step 1 of 9 (first)":    {Number: 1, Last: 9, Name: "first", New: true},
		"its schema is being upgraded: schema step 9 of 9 (ninth)": {Number: 9, Last: 9, Name: "ninth"},
	} {
		f := &front{}
		if reason := f.reason(); strings.Contains(reason, "upgraded") {
			t.Errorf("before a step, the reason is %q", reason)
		}
		f.tell(at)
		if reason := f.reason(); reason != want {
			t.Errorf("the reason is %q, want %q", reason, want)
		}
	}
}
