package cli

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"oda"
	"oda/client"
	"oda/internal/test/must"
	"oda/night"
)

func TestTimesAsPeopleSayThem(t *testing.T) {
	now := time.Date(2026, 3, 2, 5, 30, 15, 0, time.UTC)
	for text, want := range map[string]string{
		"now":                   "2026-03-02T05:30:15Z",
		"today":                 "2026-03-02T00:00:00Z",
		"yesterday":             "2026-03-01T00:00:00Z",
		"last-night":            "2026-03-01T12:00:00Z",
		"2h":                    "2026-03-02T03:30:15Z",
		"90m":                   "2026-03-02T04:00:15Z",
		"15s":                   "2026-03-02T05:30:00Z",
		"3d":                    "2026-02-27T05:30:15Z",
		"1w":                    "2026-02-23T05:30:15Z",
		"0d":                    "2026-03-02T05:30:15Z",
		"20000w":                "1642-11-10T05:30:15Z",
		"yesterday 20:13":       "2026-03-01T20:13:00Z",
		"today 04:05:06":        "2026-03-02T04:05:06Z",
		"05:30":                 "2026-03-02T05:30:00Z",
		"20:13":                 "2026-03-01T20:13:00Z", // it is not yet 20:13 today
		"last-night 20:13":      "",
		"yesterday 25:00":       "",
		"yesterday ":            "",
		"":                      "",
		"h":                     "",
		"-2h":                   "2026-03-02T03:30:15Z",
		"1h30m":                 "2026-03-02T04:00:15Z",
		"--2h":                  "",
		"0":                     "",
		"2y":                    "",
		"2026":                  "",
		"99999999999999999999d": "",
	} {
		got, ok := spoken(text, now)
		if ok != (want != "") || ok && got.Format(time.RFC3339) != want {
			t.Errorf("%q: %v, %v, want %s", text, got, ok, want)
		}
	}
}

// A record may have a response in the year 9999, which is later than Go can count from here.
func TestANightOfEndlessCalls(t *testing.T) {
	var out strings.Builder
	must.Do(t, printNight(&out, look{}, &night.Report{Zone: "UTC", Busy: math.MaxInt64, Tally: night.Tally{Calls: 1}}))
	if !strings.Contains(out.String(), " 2562047h47m16") {
		t.Errorf("%s", out.String())
	}
}

func TestWhichNightIsMeant(t *testing.T) {
	early, late := time.Date(2026, 3, 2, 5, 0, 0, 0, time.UTC), time.Date(2026, 3, 2, 23, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		text, zone string
		now        time.Time
		want       string
	}{
		{"last-night", "UTC", early, "2026-03-01"},
		{"last-night", "UTC", late, "2026-03-01"},
		{"yesterday", "UTC", late, "2026-03-01"},
		{"today", "UTC", early, "2026-03-02"},
		{"2026-02-28", "UTC", early, "2026-02-28"},
		{"2h", "UTC", early, "2026-03-01"}, // 03:00, in the night that began the day before
		{"2h", "UTC", late, "2026-03-02"},
		{"last-night", "Australia/Perth", late, "2026-03-02"}, // where it is 07:00 of the next day
		{"2026-11-15T22:00", "UTC", early, "2026-11-15"},
		{"2026-11-15 11:59", "UTC", early, "2026-11-14"},
		{"2026-11-15T12:00:00Z", "UTC", early, "2026-11-15"},
		{"2026-11-15T22:00:00+02:00", "Australia/Perth", early, "2026-11-15"}, // 04:00 of the next day there
		{"2026-03-29T10:30Z", "Europe/Berlin", early, "2026-03-29"},           // half an hour after noon, in a short day
		{"soon", "UTC", early, "soon"},
		{"2026-11-15T25:00", "UTC", early, "2026-11-15T25:00"},
	} {
		if got := nightDate(c.text, c.zone, c.now); got != c.want {
			t.Errorf("%q in %s at %v: %s, want %s", c.text, c.zone, c.now, got, c.want)
		}
	}
}

func TestPositions(t *testing.T) {
	for text, want := range map[string]oda.Position{"0": 0, "17": 17, "now": client.Now} {
		var got position
		if err := got.UnmarshalText([]byte(text)); err != nil || oda.Position(got) != want {
			t.Errorf("%q: %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "-1", "Now", "1.5", "9223372036854775808"} {
		if err := new(position).UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}

// What a document has in it cannot command the terminal that shows it.
func TestNothingCommandsTheTerminal(t *testing.T) {
	for text, want := range map[string]string{
		"M51":               "M51",
		"\x1b]0;own\x07":    `\u001b]0;own\u0007`,
		"\u009b31m":         `\u009b31m`,
		"a\u202eb":          `a\u202eb`,
		"two\nlines":        `two\u000alines`,
		"\xff\x9b31m":       "\ufffd\ufffd31m",
		"é 語 🔭":             "é 語 🔭",
		"\U000e0041 hidden": `\U000e0041 hidden`,
	} {
		if got := visible(text); got != want {
			t.Errorf("%q is shown as %q, want %q", text, got, want)
		}
	}
}

func TestADocumentFollowsAnotherState(t *testing.T) {
	at := must.Get(oda.ParseTime("2026-03-01T20:00:00Z"))(t)
	m := oda.Metadata{Version: 3, CreatedBy: "ada", CreatedOn: oda.InstantOf(at), LastModifiedBy: "bob", LastModifiedOn: oda.InstantOf(at)}
	managed := string(m.AppendJSON(nil))
	managed = managed[1 : len(managed)-1]
	for document, want := range map[string]string{
		`{"sbd_id":"x","a": 1.0}`:                                 `{"sbd_id":"x","a": 1.0,"metadata":{` + managed + `}}`,
		`{ "metadata" : null, "sbd_id":"x"}`:                      `{ "metadata" : {` + managed + `}, "sbd_id":"x"}`,
		`{"sbd_id":"x","metadata":{"pdm_version":"1"},"b":[ 2 ]}`: `{"sbd_id":"x","metadata":{"pdm_version":"1",` + managed + `},"b":[ 2 ]}`,
		`{"sbd_id":"x","metadata": {` + managed + ` }}`:           `{"sbd_id":"x","metadata": {` + managed + ` }}`,
	} {
		got, err := restated(oda.SBDefinition, []byte(document), m)
		if err != nil || string(got) != want {
			t.Errorf("%s becomes\n%s, %v, want\n%s", document, got, err, want)
		}
	}
	for _, broken := range []string{``, `[]`, `{"a":1,"a":2}`, `{"a"`, `{"metadata":{"version":"3"}}`} {
		if got, err := restated(oda.SBDefinition, []byte(broken), m); err == nil {
			t.Errorf("%s becomes %s", broken, got)
		}
	}
}

// A command that writes is never suggested, however near it is.
func TestOnlyReadingCommandsAreSuggested(t *testing.T) {
	parser, _, err := newParser(nil, nil, func(int) {})
	must.Do(t, err)
	reading := []string{"get", "query", "search", "list", "versions", "history", "diff", "provenance", "open", "records"}
	for _, node := range parser.Model.Children {
		if node.Name != "ebs" {
			continue
		}
		for _, child := range node.Children {
			if got := meantCommand(child.Name, node); got != "" && !slices.Contains(reading, got) {
				t.Errorf("for %s, %s is suggested", child.Name, got)
			}
		}
		for word, want := range map[string]string{"gets": "get", "serch": "search", "recordz": "records", "his": "history", "ptu": "", "posts": "", "frobnicate": ""} {
			if got := meantCommand(word, node); got != want {
				t.Errorf("for %s, %q is suggested, want %q", word, got, want)
			}
		}
	}
}

func TestEveryCommandIsCompleted(t *testing.T) {
	t.Setenv("ODA_URL", "http://127.0.0.1:1") // where nobody answers
	parser, _, err := newParser(nil, nil, func(int) {})
	must.Do(t, err)
	for line, want := range map[string]string{
		"sb":                          "sbds sbis",
		"sbds ver":                    "versions",
		"sbds his":                    "history",
		"ebs li":                      "list",
		"--ver":                       "--version",
		"sbds --ver":                  "",
		"night --telescope ska_":      "ska_low ska_mid",
		"night --zone=Africa/Johan":   "--zone=Africa/Johannesburg",
		"night --zone Australia/Pert": "Australia/Perth",
		"sbds search --sort=-mod":     "--sort=-modified",
		"sbds search --sort = mod":    "modified",
		"sbds search --sort -cr":      "-created",
		"sbds get x -o ":              "auto json yaml csv",
		"ebs records x --fol":         "--follow",
		"completion ":                 "bash zsh fish",
		"changes --kind e":            "ebs",
		"open e":                      "eb-",
		"sbds put ":                   "", // the shell proposes files
		"frobnicate ":                 "",
		"sbds frobnicate --nothing x": "",
	} {
		var got []string
		for _, p := range proposals(parser.Model.Node, strings.Split(line, " ")) {
			got = append(got, p.text)
		}
		if text := strings.Join(got, " "); text != want && line != "frobnicate " {
			t.Errorf("%q: %s, want %s", line, text, want)
		}
	}
}
