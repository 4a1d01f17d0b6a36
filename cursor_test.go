package oda_test

import (
	"encoding/base64"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oda"
	"oda/internal/test/must"
)

func TestACursorCarriesItsQuery(t *testing.T) {
	place := oda.Place{At: instant(t, "2026-01-15T10:00:00.000007Z"), ID: "sbd-7.a_B"}
	for _, raw := range []string{
		"user=mary", "user=Zo%C3%AB+%22Z%22%E2%80%A8%3C%26&user_match_type=contains", "user=m&user_match_type=starts_with",
		"created_after=2026-01-01", "created_before=2026-02-01", "created_after=1969-01-01&created_before=2026-02-01", "created_after=1970-01-01",
		"last_modified_after=2026-01-01&last_modified_before=2026-02-01",
	} {
		first := must.Get(ask(t, oda.SBDefinition, raw+"&limit=2"))(t)
		want := first
		want.Start = &place
		cursor := "cursor=" + first.Cursor(place)
		if strings.ContainsAny(cursor, "+/&%") {
			t.Errorf("%s would have to be escaped in an address", cursor)
		}
		for _, with := range []string{cursor + "&limit=2", raw + "&limit=2&" + cursor} {
			got, err := ask(t, oda.SBDefinition, with)
			if err != nil {
				t.Errorf("%s: %v", with, err)
			} else if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: %s", with, diff)
			}
		}
		// The size of a page may change from page to page.
		got, err := ask(t, oda.SBDefinition, cursor+"&limit=3")
		if err != nil || got.Limit != 3 {
			t.Errorf("%s with another limit: %+v, %v", raw, got, err)
		}
		if got, err = ask(t, oda.SBDefinition, cursor); err != nil || got.Limit != 0 {
			t.Errorf("%s without a limit: %+v, %v", raw, got, err)
		}
	}
	q := must.Get(ask(t, oda.Project, "created_after=2026-01-01T05:30:00%2B05:30"))(t)
	if _, err := ask(t, oda.Project, "created_after=2026-01-01&cursor="+q.Cursor(place)); err != nil {
		t.Errorf("the same instant in another spelling: %v", err)
	}
}

func TestACursorWithAnotherQueryIsRefused(t *testing.T) {
	place := oda.Place{At: 1, ID: "x"}
	cursor := func(raw string) string {
		q := must.Get(ask(t, oda.SBDefinition, raw))(t)
		return "cursor=" + q.Cursor(place)
	}
	for _, test := range []struct{ made, sent string }{
		{"user=mary", "user=john"},
		{"user=mary", "user=mary&user_match_type=contains"},
		{"user=mary", "created_after=2026-01-01"},
		{"created_after=2026-01-01", "user=mary&created_after=2026-01-01"},
		{"created_after=2026-01-01", "created_after=2026-01-02"},
		{"created_after=2026-01-01", "created_before=2026-01-01"},
		{"created_after=2026-01-01", "created_after=2026-01-01&created_before=2026-02-01"},
		{"created_after=2026-01-01", "last_modified_after=2026-01-01"},
	} {
		_, err := ask(t, oda.SBDefinition, test.sent+"&"+cursor(test.made))
		if oda.CodeOf(err) != oda.InvalidQuery || !strings.Contains(err.Error(), "another query") {
			t.Errorf("a cursor of %s with %s: %v", test.made, test.sent, err)
		}
	}
	for _, sent := range []string{"", "user=mary&"} {
		_, err := ask(t, oda.SBInstance, sent+cursor("user=mary"))
		if oda.CodeOf(err) != oda.InvalidQuery || !strings.Contains(err.Error(), "another query") {
			t.Errorf("a cursor of another collection: %v", err)
		}
	}
	if _, err := ask(t, oda.SBDefinition, cursor("user=mary")+"&"+cursor("user=mary")); oda.CodeOf(err) != oda.InvalidQuery {
		t.Errorf("a cursor twice: %v", err)
	}
}

// rubbishCursors lists texts that look more and more like a cursor.
func rubbishCursors() []string {
	all := []string{"x", "=", "!!!!", "eyJ9", " ", "\x00", "é"}
	for _, inside := range []string{
		``, `null`, `[]`, `{`, `{}`, `"x"`, `{"c":"sbds"}`,
		`{"c":"sbds","p":{},"t":1,"i":"x"}`,
		`{"c":"sbds","p":{"user":["mary"]},"t":1,"i":""}`,
		`{"c":"sbds","p":{"user":["mary"]},"t":1,"i":"../x"}`,
		`{"c":"sbds","p":{"user":["mary"]},"t":"1","i":"x"}`,
		`{"c":"sbds","p":{"user":["mary"]},"t":1,"i":"x","z":1}`,
		`{"c":"sbds","p":{"user":["mary"]},"t":1,"i":"x"} `,
		`{"c":"","p":{"user":["mary"]},"t":1,"i":"x"}`,
		`{"c":"sbds","p":{"user":["mary","john"]},"t":1,"i":"x"}`,
		`{"c":"sbds","p":{"limit":["5"],"user":["mary"]},"t":1,"i":"x"}`,
		`{"c":"sbds","p":{"user":["mary"],"user_match_type":["equals"]},"t":1,"i":"x"}`,
		`{"c":"sbds","p":{"user":["mary"],"user_match_type":["like"]},"t":1,"i":"x"}`,
		`{"c":"sbds","p":{"user_match_type":["contains"]},"t":1,"i":"x"}`,
		`{"c":"sbds","p":{"created_after":["2026-01-01"]},"t":1,"i":"x"}`,
		`{"c":"sbds","p":{"created_after":["2026-01-01T00:00:00.000000Z"],"user":["mary"]},"t":1,"i":"x"}`,
	} {
		all = append(all, base64.RawURLEncoding.EncodeToString([]byte(inside))+"A")
		if inside != "" {
			all = append(all, base64.RawURLEncoding.EncodeToString([]byte(inside)))
		}
	}
	return all
}

func TestRubbishIsNotACursor(t *testing.T) {
	for _, text := range rubbishCursors() {
		for _, with := range []string{"", "user=mary&", "created_after=2026-01-01&"} {
			_, err := ask(t, oda.SBDefinition, with+"cursor="+url.QueryEscape(text))
			if oda.CodeOf(err) != oda.InvalidQuery || !strings.Contains(err.Error(), "cursor is not a cursor of this archive") {
				t.Errorf("%q: %v", text, err)
			}
		}
	}
}
