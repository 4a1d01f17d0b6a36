package spelling

import "testing"

func TestNear(t *testing.T) {
	words := []string{"created_by", "last_modified_by", "limit", "sort", "to", "date"}
	for from, want := range map[string]string{
		"limit":           "limit",
		"limits":          "limit",
		"createdby":       "created_by",
		"lastmodified_by": "last_modified_by",
		"day":             "date",
		"ot":              "to",
		"liimt":           "limit",
		"sotr":            "sort",
		"t":               "to",
		"":                "",
		"x":               "",
		"foo":             "",
		"modified_by":     "",
		"frobnicate":      "",
	} {
		if got := Near(from, words); got != want {
			t.Errorf("%q: %q, want %q", from, got, want)
		}
	}
	if got := Near("x", nil); got != "" {
		t.Errorf("of no words, %q is near", got)
	}
	if got := Nearest("modified_by", words); got != "last_modified_by" {
		t.Errorf("%q is the nearest of all", got)
	}
}
