package sqlite

import (
	"testing"

	"zombiezen.com/go/sqlite"

	"oda"
)

// What was imported before the seal of a first version covered who created the entity is
// sealed again by an upgrade.
func TestAnUpgradeSealsCreations(t *testing.T) {
	t.Parallel()
	source, target := fresh(t), fresh(t)
	var entries []oda.LogEntry
	for _, id := range []string{"eb-a", "eb-b", "eb-c"} {
		mustPut(t, source, put(t, id, `{}`, 1_700_000_000_000_000))
	}
	err := source.Entries(t.Context(), 3, func(oda.Ref) bool { return true }, func(e *oda.LogEntry) error {
		if e.ID != "eb-b" {
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
	path := target.file.path
	if err := target.Close(); err != nil {
		t.Fatal(err)
	}
	wantWhole(t, path)

	c, err := sqlite.OpenConn(path, sqlite.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	older := &conn{Conn: c, statements: make(map[string]*sqlite.Stmt)}
	seals := map[int64][]byte{}
	err = older.query(`SELECT entity, position, version, stored_by, stored_on, sequence_before, sequence_after, runs, slots, text, digest FROM versions`, func(stmt *sqlite.Stmt) error {
		row, _, err := versionRow(stmt)
		seal := row.Seal()
		seals[stmt.ColumnInt64(1)] = seal[:]
		return err
	})
	for position, seal := range seals {
		if err == nil {
			err = older.exec("UPDATE versions SET seal = ? WHERE position = ?", seal, position)
		}
	}
	if err == nil {
		err = older.exec("DELETE FROM migrations WHERE number = 7")
	}
	if err != nil {
		t.Fatal(err)
	}
	for part := range int64(2) { // one entity in each
		if _, err := sealCreations(older, part, 1); err != nil {
			t.Fatal(err)
		}
	}
	if err := older.close(); err != nil {
		t.Fatal(err)
	}
	if err := open(t, path).Close(); err != nil {
		t.Fatal(err)
	}
	wantWhole(t, path)
}
