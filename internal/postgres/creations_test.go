package postgres_test

import (
	"testing"

	"oda"
	"oda/internal/test/env"
)

// What was imported before the seal of a first version covered who created the entity is
// sealed again by an upgrade.
func TestAnUpgradeSealsCreations(t *testing.T) {
	t.Parallel()
	dsn := env.Postgres(t)
	source, target := open(t, env.Postgres(t)), open(t, dsn)
	for _, id := range []string{"a", "b", "c"} {
		mustPut(t, source, write(t, sbd(id), `{}`))
	}
	end, err := source.End(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var entries []oda.LogEntry
	err = source.Entries(t.Context(), end, func(oda.Ref) bool { return true }, func(e *oda.LogEntry) error {
		if e.ID != "b" {
			e.CreatedBy, e.CreatedOn = "berta", e.On-1
		}
		entries = append(entries, *e)
		return entries[len(entries)-1].Prepare()
	})
	if err != nil {
		t.Fatal(err)
	}
	if answers, err := target.Load(t.Context(), entries); err != nil || answers[0] != nil || answers[2] != nil {
		t.Fatal(answers, err)
	}
	if err := target.Close(); err != nil {
		t.Fatal(err)
	}
	wantWhole(t, dsn)
	conn := connect(t, dsn)
	do(t, conn, `UPDATE versions SET seal = archive_seal_of_version(kind, identifier, version, stored_by, stored_on, sequence_before, sequence_after, runs, slots, digest)`,
		"DELETE FROM migrations WHERE number >= 14")
	if err := open(t, dsn).Close(); err != nil {
		t.Fatal(err)
	}
	wantWhole(t, dsn)
}
