package postgres_test

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"

	"oda"
	"oda/internal/postgres"
	"oda/internal/test/env"
	"oda/internal/test/must"
)

// onDay adds a record of a call on a day.
func onDay(t *testing.T, s *postgres.Store, id, day string) error {
	t.Helper()
	_, err := s.Append(t.Context(), oda.Append{Block: id, By: "anna", At: 1, Records: []oda.NewRecord{
		{Text: fmt.Appendf(nil, `{"request":"r","request_sent_at":%q}`, day)},
	}})
	return err
}

func mustRecordOn(t *testing.T, s *postgres.Store, id, day string) {
	t.Helper()
	must.Do(t, onDay(t, s, id, day))
}

// entries returns the index of days as text.
func entries(t *testing.T, conn *pgx.Conn) string {
	t.Helper()
	return query[string](t, conn, `SELECT coalesce(string_agg(identifier || ' ' || day || ' ' || part || ' ' || first, ', '
		ORDER BY identifier, day, part), '') FROM call_days`)
}

func TestMostRecordsDoNotTouchTheIndexOfDays(t *testing.T) {
	t.Parallel()
	s, conn, _ := fresh(t)
	mustPut(t, s, write(t, block("b"), `{}`))
	mustRecordOn(t, s, "b", "2026-03-01")
	// If there is no index, nothing can touch it.
	do(t, conn, "ALTER TABLE call_days RENAME TO hidden")
	for range 20 {
		mustRecordOn(t, s, "b", "2026-03-01T12:00:00Z")
	}
	if onDay(t, s, "b", "2026-03-02") == nil {
		t.Error("the first record of a day did not need the index")
	}
	do(t, conn, "ALTER TABLE hidden RENAME TO call_days")
	mustRecordOn(t, s, "b", "2026-03-02")
	if got := query[int](t, conn, "SELECT count(*) FROM records"); got != 22 {
		t.Errorf("there are %d records", got)
	}
}

// A process notices if the head has another day than it remembers.
func TestProcessesShareTheIndexOfDays(t *testing.T) {
	t.Parallel()
	dsn := env.Postgres(t)
	one, other, conn := open(t, dsn), open(t, dsn), connect(t, dsn)
	mustPut(t, one, write(t, block("b"), `{}`))
	mustRecordOn(t, one, "b", "1970-01-02")
	mustRecordOn(t, other, "b", "1970-01-03")
	mustRecordOn(t, one, "b", "1970-01-02")
	mustRecordOn(t, other, "b", "1970-01-04")
	mustRecordOn(t, one, "b", "1970-01-04")
	mustRecordOn(t, one, "b", "1970-01-02")
	if got, want := entries(t, conn), "b 1 1 1, b 2 1 2, b 3 1 4"; got != want {
		t.Errorf("the index has %s, want %s", got, want)
	}
	// If a server loses the index, it also loses the head.
	do(t, conn, "DELETE FROM call_days", "UPDATE heads SET call_day = NULL, calls_to = NULL")
	mustRecordOn(t, one, "b", "1970-01-02")
	if got, want := entries(t, conn), "b 1 1 7"; got != want {
		t.Errorf("the index has %s, want %s", got, want)
	}
}
