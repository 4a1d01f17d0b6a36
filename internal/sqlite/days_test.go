package sqlite

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"zombiezen.com/go/sqlite"

	"oda"
)

// onDay returns a record of a call on a day.
func onDay(day string) string { return fmt.Sprintf(`{"request":"r","request_sent_at":%q}`, day) }

func TestMostRecordsDoNotTouchTheIndexOfDays(t *testing.T) {
	path := archivePath(t)
	s := open(t, path)
	mustPut(t, s, put(t, "b", `{}`, 1))
	if _, err := record(s, "b", onDay("2026-03-01")); err != nil {
		t.Fatal(err)
	}
	// If there is no index, nothing can touch it.
	script(t, path, "ALTER TABLE call_days RENAME TO hidden")
	for range 20 {
		if _, err := record(s, "b", onDay("2026-03-01T12:00:00Z")); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := record(s, "b", onDay("2026-03-02")); err == nil {
		t.Error("the first record of a day did not need the index")
	}
	script(t, path, "ALTER TABLE hidden RENAME TO call_days")
}

// entries returns the index of days as text.
func entries(t *testing.T, s *Store) (all []string) {
	t.Helper()
	c, err := s.readers.take(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer s.readers.give(c)
	err = c.query(`SELECT h.identifier, d.day, d.part, d.first FROM call_days d JOIN heads h USING (entity) ORDER BY 1, 2, 3`, func(stmt *sqlite.Stmt) error {
		all = append(all, fmt.Sprint(stmt.ColumnText(0), " ", stmt.ColumnInt64(1), " ", stmt.ColumnInt64(2), " ", stmt.ColumnInt64(3)))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestTheDaysOfStoredCallsAreIndexedInParts(t *testing.T) {
	path := archivePath(t)
	s := open(t, path)
	var list []string
	for i := range 4500 {
		list = append(list, fmt.Sprintf(`{"request":"%d","request_sent_at":"2026-03-%02d"}`, i, 1+i/2000))
	}
	for i := range 5 {
		mustPut(t, s, put(t, fmt.Sprint("b", i), `{"request_responses":[`+strings.Join(list, ",")+`]}`, oda.Instant(i)*100_000_000_000))
	}
	mustPut(t, s, put(t, "late", `{"request_responses":[{"request":"unsaid"}]}`, oda.Day(3).Begin()))
	want := entries(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	script(t, path, "DROP TABLE call_days")
	c, err := openConn(path, sqlite.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	parts, at := 0, ""
	for ended := false; !ended; parts++ {
		// Each part is cut off once before its end, and done again.
		for _, end := range []string{"ROLLBACK", "COMMIT"} {
			must(t, c.script("BEGIN IMMEDIATE"))
			part, err := indexDays(c, at, 5000)
			must(t, err)
			must(t, c.script(end))
			if end == "COMMIT" {
				at, ended = part.At, part.End
			}
		}
	}
	must(t, c.close())
	s = open(t, path)
	if got := entries(t, s); !slices.Equal(got, want) || len(want) < 20 {
		t.Errorf("the step made %d entries, recording made %d", len(got), len(want))
	}
	if parts != 6 {
		t.Errorf("the step took %d parts to make the table and index %d records", parts, 5*len(list)+1)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
