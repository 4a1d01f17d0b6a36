package web

import "testing"

func TestEscapedCharactersAreReadable(t *testing.T) {
	for text, want := range map[string]string{
		`"plain"`:               `"plain"`,
		`"12\u00b0 30\u2032"`:   `"12° 30′"`,
		`"\u00B0"`:              `"°"`,
		`"\ud83d\udd2d"`:        `"🔭"`,
		`"\ud83d\udd2"`:         `"\ud83d\udd2"`,
		`"\ud83d"`:              `"\ud83d"`,
		`"\\u00b0"`:             `"\\u00b0"`,
		`"\\\u00b0"`:            `"\\°"`,
		`"a\nb\t\"c\"\\d\/"`:    `"a\nb\t\"c\"\\d\/"`,
		`"\u0022\u005c\u000a"`:  `"\u0022\u005c\u000a"`,
		`"\u202e\u200b\ufeff"`:  `"\u202e\u200b\ufeff"`,
		`"\u003cscript\u003e"`:  `"<script>"`,
		`{"a":["\u00e9",1.50]}`: `{"a":["é",1.50]}`,
		`"\u00`:                 `"\u00`,
		`\`:                     `\`,
	} {
		if got := readable(text); got != want {
			t.Errorf("%s is shown as %s, want %s", text, got, want)
		}
	}
}

func TestWhatTurnsTheDirectionOfATextIsSeen(t *testing.T) {
	for text, want := range map[string]string{
		"":                          "",
		"plain – text…":             "plain – text…",
		"a\u202eb":                  "a⟨U+202E⟩b",
		"\u202a\u2066x\u2069\u202c": "⟨U+202A⟩⟨U+2066⟩x⟨U+2069⟩⟨U+202C⟩",
		"שלום":                      "שלום",
		"\xe2\x80":                  "\xe2\x80",
		"\u202e\xe2":                "⟨U+202E⟩\xe2",
	} {
		if got := unmasked(text); got != want {
			t.Errorf("%q is shown as %q, want %q", text, got, want)
		}
	}
	// A form sends the values of its fields as they are.
	for page, want := range map[string]string{
		"<input value=\"a\u202eb\">\u202e":                       "<input value=\"a\u202eb\">⟨U+202E⟩",
		"<input value=\"\">\u202e":                               "<input value=\"\">⟨U+202E⟩",
		"<p title=\"\u202e\" data-value=\"\u202e\">value=\u202e": "<p title=\"⟨U+202E⟩\" data-value=\"⟨U+202E⟩\">value=⟨U+202E⟩",
	} {
		if got := string(unmaskedPage([]byte(page))); got != want {
			t.Errorf("%q is sent as %q, want %q", page, got, want)
		}
	}
}
