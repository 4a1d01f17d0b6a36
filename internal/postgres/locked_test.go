package postgres_test

import (
	"testing"

	"oda"
)

// While somebody has locked a whole table, nothing is stored, and the answers say so.
func TestWritesToALockedTableAreCertainlyNotStored(t *testing.T) {
	t.Parallel()
	for _, table := range []string{"heads", "versions", "records", "changes"} {
		t.Run(table, func(t *testing.T) {
			t.Parallel()
			s, holder, dsn := fresh(t)
			mustPut(t, s, write(t, block("b"), `{}`))
			mustRecord(t, s, "b", "one")
			m := mustPut(t, s, write(t, sbd("s"), `{}`)).Metadata
			do(t, holder, "BEGIN", "LOCK TABLE "+table+" IN ACCESS EXCLUSIVE MODE")
			answers := make(chan error, 3)
			go func() { _, err := one(t.Context(), s, adding("b", "two", "")); answers <- err }()
			go func() { _, err := s.Put(t.Context(), []oda.Put{next(t, sbd("s"), m)}); answers <- err }()
			go func() {
				_, err := s.Create(t.Context(), write(t, block("c"), `{}`), &oda.Key{Value: "k"})
				answers <- err
			}()
			failed := 0
			for range 3 {
				err := <-answers
				if err == nil {
					continue // it does not need the table
				}
				failed++
				wantCode(t, err, oda.Overloaded)
				if !nothingStored(err) {
					t.Errorf("the answer is %v", err)
				}
			}
			if failed == 0 {
				t.Error("no write needs the table")
			}
			do(t, holder, "ROLLBACK")
			if err := s.Ping(t.Context()); err != nil {
				t.Errorf("the archive is not ready: %v", err)
			}
			mustRecord(t, s, "b", "three")
			wantWhole(t, dsn)
		})
	}
}
