package postgres_test

import (
	"log/slog"
	"testing"

	"oda"
	"oda/internal/postgres"
	"oda/internal/test/env"
	"oda/internal/test/must"
	"oda/summary"
)

// TestWhatWasLoadedSurvivesACrash has a database that does not write commits to disk by
// itself for a while, unless one of them waits for that.
func TestWhatWasLoadedSurvivesACrash(t *testing.T) {
	t.Parallel()
	c := env.NewCluster(t, env.ClusterOptions{Settings: map[string]string{"wal_writer_delay": "10s", "wal_writer_flush_after": "1GB"}})
	do(t, connect(t, c.DSN("postgres")), "CREATE DATABASE source", "CREATE DATABASE target")
	opened := func(name string) *postgres.Store {
		s := must.Get(postgres.Open(t.Context(), c.DSN(name), slog.New(slog.DiscardHandler)))(t)
		t.Cleanup(func() { s.Close() })
		return s
	}
	source, target := opened("source"), opened("target")
	mustPut(t, source, write(t, sbd("a"), `{}`))
	end := must.Get(source.End(t.Context()))(t)
	var entries []oda.LogEntry
	err := source.Entries(t.Context(), end, func(oda.Ref) bool { return true }, func(e *oda.LogEntry) error {
		entries = append(entries, *e)
		return summary.Prepare(&entries[len(entries)-1])
	})
	must.Do(t, err)
	must.Get(target.Load(t.Context(), entries))(t)
	must.Do(t, target.Sync(t.Context()))
	c.Kill()
	c.Start()
	await(t, "the archive", patience, func() bool {
		_, err := target.Get(t.Context(), sbd("a"))
		if oda.CodeOf(err) == oda.NotFound {
			t.Fatal("what was loaded is lost")
		}
		return err == nil
	})
}

// What the log says of a row that was edited is not exported.
func TestVersionsWithExchangedNumbersAreNotExported(t *testing.T) {
	t.Parallel()
	s, conn, _ := fresh(t)
	mustPut(t, s, write(t, sbd("a"), `{}`))
	mustPut(t, s, write(t, sbd("b"), `{}`))
	end := must.Get(s.End(t.Context()))(t)
	export := func() error {
		return s.Entries(t.Context(), end, func(oda.Ref) bool { return true }, func(*oda.LogEntry) error { return nil })
	}
	must.Do(t, export())
	do(t, conn, "UPDATE changes SET number = -number", "UPDATE changes c SET number = -o.number FROM changes o WHERE o.number <> c.number")
	wantCode(t, export(), oda.DamagedText)
}
