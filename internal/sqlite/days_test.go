package sqlite

import (
	"fmt"
	"testing"

	"oda/internal/test/must"
)

// onDay returns a record of a call on a day.
func onDay(day string) string { return fmt.Sprintf(`{"request":"r","request_sent_at":%q}`, day) }

func TestMostRecordsDoNotTouchTheIndexOfDays(t *testing.T) {
	path := archivePath(t)
	s := open(t, path)
	mustPut(t, s, put(t, "b", `{}`, 1))
	must.Get(record(s, "b", onDay("2026-03-01")))(t)
	// If there is no index, nothing can touch it.
	script(t, path, "ALTER TABLE call_days RENAME TO hidden")
	for range 20 {
		must.Get(record(s, "b", onDay("2026-03-01T12:00:00Z")))(t)
	}
	if _, err := record(s, "b", onDay("2026-03-02")); err == nil {
		t.Error("the first record of a day did not need the index")
	}
	script(t, path, "ALTER TABLE hidden RENAME TO call_days")
}
