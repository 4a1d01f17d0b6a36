package oda_test

import (
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oda"
	"oda/internal/test/must"
)

// ask parses a raw query, as it follows the question mark of a URL.
func ask(t testing.TB, kind oda.Kind, raw string) (oda.Query, error) {
	t.Helper()
	params := must.Get(url.ParseQuery(raw))(t)
	return oda.ParseQuery(kind, params)
}

func at(t testing.TB, text string) *oda.Instant {
	i := instant(t, text)
	return &i
}

func TestListQueries(t *testing.T) {
	user := func(name string, match oda.MatchType) oda.Query {
		return oda.Query{Order: oda.ByCreation, User: name, Match: match}
	}
	created := func(after, before *oda.Instant) oda.Query {
		return oda.Query{Order: oda.ByCreation, After: after, Before: before}
	}
	modified := func(after, before *oda.Instant) oda.Query {
		return oda.Query{Order: oda.ByModification, After: after, Before: before}
	}
	limited := func(q oda.Query, limit int) oda.Query {
		q.Limit = limit
		return q
	}
	tests := []struct {
		name, raw string
		want      oda.Query
	}{
		{"by user", "user=mary", user("mary", oda.UserEquals)},
		{"by user, in words", "user=mary&user_match_type=equals", user("mary", oda.UserEquals)},
		{"by the beginning of a user", "user=m%25_&user_match_type=starts_with", user("m%_", oda.UserStartsWith)},
		{"by a part of a user", "user=*&user_match_type=contains", user("*", oda.UserContains)},
		{"by a user with a space", "user=Liz+Bartlett", user("Liz Bartlett", oda.UserEquals)},
		{"by a user of one space", "user=%20", user(" ", oda.UserEquals)},
		{"by creation, both ends", "created_before=2026-02-01&created_after=2026-01-01", created(at(t, "2026-01-01"), at(t, "2026-02-01"))},
		{"by creation, open at one end", "created_before=2026-02-01", created(nil, at(t, "2026-02-01"))},
		{"by creation, open at the other", "created_after=2026-02-01", created(at(t, "2026-02-01"), nil)},
		{"by creation, ends that cross", "created_before=2026-01-01&created_after=2026-02-01", created(at(t, "2026-02-01"), at(t, "2026-01-01"))},
		{"by modification, both ends", "last_modified_after=2026-01-01&last_modified_before=2026-02-01", modified(at(t, "2026-01-01"), at(t, "2026-02-01"))},
		{"by modification, open at one end", "last_modified_before=2026-02-01", modified(nil, at(t, "2026-02-01"))},

		// Precedence: later fields are not even parsed.
		{"user before all", "last_modified_after=x&created_before=y&created_after=&user=mary", user("mary", oda.UserEquals)},
		{"creation before modification", "last_modified_after=x&last_modified_after=&created_before=2026-02-01", created(nil, at(t, "2026-02-01"))},
		{"unknown parameters", "sort=&sort=&created_on=x&user=mary&USER=john", user("mary", oda.UserEquals)},
		{"a match type beside a time", "user_match_type=contains&created_after=2026-01-01", created(at(t, "2026-01-01"), nil)},

		// Times as people write them.
		{"a date is midnight, also in before", "created_before=2026-02-01", created(nil, at(t, "2026-02-01T00:00:00Z"))},
		{"a space between date and time", "created_after=2026-02-01%2010:30", created(at(t, "2026-02-01T10:30:00Z"), nil)},
		{"a plus between date and time", "created_after=2026-02-01+10:30:05.5", created(at(t, "2026-02-01T10:30:05.5Z"), nil)},
		{"an offset", "created_after=2026-02-01T10:30:00%2B05:30", created(at(t, "2026-02-01T05:00:00Z"), nil)},
		{"an offset whose plus is a space", "created_after=2026-02-01T10:30:00+05:30", created(at(t, "2026-02-01T05:00:00Z"), nil)},
		{"the same with a fraction", "created_after=2026-02-01T10:30:00.25+05:30", created(at(t, "2026-02-01T05:00:00.25Z"), nil)},
		{"both pluses are spaces", "created_after=2026-02-01+10:30+05:30", created(at(t, "2026-02-01T05:00:00Z"), nil)},
		{"a negative offset", "created_after=2026-02-01T10:30:00-02:00", created(at(t, "2026-02-01T12:30:00Z"), nil)},
		{"no zone", "created_after=2026-02-01T10:30:00", created(at(t, "2026-02-01T10:30:00Z"), nil)},

		// Both ends are inclusive, so a finer time is rounded into the range.
		{"after, below a microsecond", "created_after=2026-02-01T00:00:00.0000001Z", created(at(t, "2026-02-01T00:00:00.000001Z"), nil)},
		{"after, just below the next", "created_after=2026-02-01T00:00:00.000000999Z", created(at(t, "2026-02-01T00:00:00.000001Z"), nil)},
		{"after, exact", "created_after=2026-02-01T00:00:00.000001000Z", created(at(t, "2026-02-01T00:00:00.000001Z"), nil)},
		{"after, before 1970", "created_after=1969-12-31T23:59:59.9999995Z", created(at(t, "1970-01-01"), nil)},
		{"before, below a microsecond", "created_before=2026-02-01T00:00:00.000001999Z", created(nil, at(t, "2026-02-01T00:00:00.000001Z"))},
		{"before, before 1970", "last_modified_before=1969-12-31T23:59:59.9999995Z", modified(nil, at(t, "1969-12-31T23:59:59.999999Z"))},

		{"the smallest limit", "user=mary&limit=1", limited(user("mary", oda.UserEquals), 1)},
		{"the largest limit", "created_after=2026-01-01&limit=10000", limited(created(at(t, "2026-01-01"), nil), 10_000)},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := must.Get(ask(t, oda.Project, test.raw))(t)
			test.want.Kind = oda.Project
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestInvalidListQueries(t *testing.T) {
	tests := []struct{ name, raw, parameter, says string }{
		{"nothing", "", "", "needs a query"},
		{"only unknown parameters", "created_on=2026-01-01&User=mary", "", "needs a query"},
		{"a match type alone", "user_match_type=equals", "", "needs a query"},
		{"a limit alone", "limit=5", "", "needs a query"},
		{"an empty user", "user=", "user", "is empty"},
		{"a user without a value", "user", "user", "is empty"},
		{"an empty user before a time", "user=&created_after=2026-01-01", "user", "is empty"},
		{"a user twice", "user=mary&user=mary", "user", "is given 2 times"},
		{"a user that is no text", "user=%ff", "user", "UTF-8"},
		{"an unknown match type", "user=mary&user_match_type=like", "user_match_type", "equals, starts_with or contains"},
		{"a match type in capitals", "user=mary&user_match_type=Equals", "user_match_type", "equals, starts_with or contains"},
		{"an empty match type", "user=mary&user_match_type=", "user_match_type", "is empty"},
		{"a match type twice", "user=mary&user_match_type=equals&user_match_type=equals", "user_match_type", "is given 2 times"},
		{"not a time", "created_after=yesterday", "created_after", "is not a valid time"},
		{"an empty time", "created_before=", "created_before", "is empty"},
		{"a time twice", "created_before=2026-01-01&created_before=2026-01-01", "created_before", "is given 2 times"},
		{"one good end and one bad", "last_modified_after=2026-01-01&last_modified_before=2026-02-30", "last_modified_before", "is not a valid time"},
		{"an empty time before a good one", "created_after=&last_modified_after=2026-01-01", "created_after", "is empty"},
		{"a date with an offset", "created_after=2026-01-01+05:3", "created_after", "is not a valid time"},
		{"a space at the end", "created_after=2026-01-01T10:00+", "created_after", "is not a valid time"},
		{"a limit of 0", "user=mary&limit=0", "limit", "from 1 to 10000"},
		{"a negative limit", "user=mary&limit=-1", "limit", "from 1 to 10000"},
		{"a limit beyond", "user=mary&limit=10001", "limit", "from 1 to 10000"},
		{"a limit out of all bounds", "user=mary&limit=99999999999999999999", "limit", "from 1 to 10000"},
		{"a limit in words", "user=mary&limit=ten", "limit", "from 1 to 10000"},
		{"a limit with a fraction", "user=mary&limit=1.0", "limit", "from 1 to 10000"},
		{"an empty limit", "user=mary&limit=", "limit", "is empty"},
		{"a limit twice", "user=mary&limit=1&limit=1", "limit", "is given 2 times"},
		{"an empty cursor", "user=mary&cursor=", "cursor", "is empty"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := ask(t, oda.SBDefinition, test.raw)
			e, _ := errors.AsType[*oda.Error](err)
			if e == nil || e.Code != oda.InvalidQuery {
				t.Fatalf("got %+v, %v", got, err)
			}
			if !strings.Contains(e.Detail, test.says) || !strings.Contains(e.Detail, test.parameter) {
				t.Errorf("%q does not say that %s %s", e.Detail, test.parameter, test.says)
			}
			if test.parameter != "" && (len(e.Faults) == 0 || e.Faults[0].Pointer != "query:"+test.parameter) {
				t.Errorf("the faults are %v", e.Faults)
			}
		})
	}
}

func TestEveryFaultOfAQueryIsReported(t *testing.T) {
	_, err := ask(t, oda.SBDefinition, "created_after=x&created_before=y&limit=0&cursor=z")
	e, _ := errors.AsType[*oda.Error](err)
	if e == nil || len(e.Faults) != 4 {
		t.Fatalf("got %v", err)
	}
}

// FuzzQuery parses any raw query. A query that is accepted has one order and sane
// bounds, and its cursor, alone or with the query, asks for the same.
func FuzzQuery(f *testing.F) {
	q := oda.Query{Kind: oda.SBDefinition, Order: oda.ByCreation, User: "mary", Match: oda.UserEquals}
	for _, seed := range []string{
		"", "user=mary", "user=%ff", "user=a&user=b", "user=m&user_match_type=contains&limit=10", "user_match_type=equals",
		"created_after=2026-01-01&created_before=2026-02-01T10:00:00+05:30", "last_modified_before=2026-01-01+10:00", "created_after=",
		"last_modified_after=1969-12-31T23:59:59.9999999Z&limit=0", "limit=10000&cursor=" + q.Cursor(oda.Place{At: 7, ID: "x"}), "%zz", "a;b",
	} {
		f.Add(seed)
	}
	for _, text := range rubbishCursors() {
		f.Add("cursor=" + url.QueryEscape(text))
	}
	f.Fuzz(func(t *testing.T, raw string) {
		params, err := url.ParseQuery(raw)
		if err != nil {
			return
		}
		q, err := oda.ParseQuery(oda.SBDefinition, params)
		if err != nil {
			if oda.CodeOf(err) != oda.InvalidQuery {
				t.Fatalf("%q: %v", raw, err)
			}
			return
		}
		if q.Kind != oda.SBDefinition || q.Order != oda.ByCreation && q.Order != oda.ByModification ||
			q.Limit < 0 || q.Limit > oda.MaxLimit || q.User == "" && q.Match != oda.UserEquals {
			t.Fatalf("%q is read as %+v", raw, q)
		}
		want := q
		want.Start = &oda.Place{At: 1_700_000_000_000_001, ID: "sbd-1"}
		params.Set("cursor", q.Cursor(*want.Start))
		beside, err := oda.ParseQuery(oda.SBDefinition, params)
		if err != nil || !cmp.Equal(want, beside) {
			t.Fatalf("%q with its cursor is read as %+v, %v", raw, beside, err)
		}
		want.Limit = 0
		alone, err := oda.ParseQuery(oda.SBDefinition, map[string][]string{"cursor": params["cursor"]})
		if err != nil || !cmp.Equal(want, alone) {
			t.Fatalf("the cursor of %q is read as %+v, %v; want %+v", raw, alone, err, want)
		}
	})
}
