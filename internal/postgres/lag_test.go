package postgres_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"oda"
	"oda/internal/test/env"
	"oda/internal/test/must"
)

// wantLag checks that an error says that the sequence lags, and how to mend it.
func wantLag(t *testing.T, err error, conn *pgx.Conn) {
	t.Helper()
	wantCode(t, err, oda.Unavailable)
	if want := mending(t, conn); !strings.Contains(err.Error(), want) {
		t.Errorf("the error is %q, want one that says %q", err, want)
	}
}

// mending returns the statement that mends the sequence.
func mending(t *testing.T, conn *pgx.Conn) string {
	t.Helper()
	return fmt.Sprintf("SELECT setval('numbers', %d)", query[int64](t, conn,
		"SELECT greatest((SELECT max(number) FROM changes), (SELECT max(seen) FROM rounds))"))
}

// After a move by logical replication, or a restore of the tables alone, the sequence
// stands at its beginning.
func TestAnArchiveWhoseSequenceLagsIsOnlyRead(t *testing.T) {
	t.Parallel()
	for name, setBack := range map[string]string{
		"never called": "ALTER SEQUENCE numbers RESTART",
		"far":          "SELECT setval('numbers', 2)",
		"by one":       "SELECT setval('numbers', last_value - 1) FROM numbers",
		"no rounds":    "WITH r AS (DELETE FROM rounds) SELECT setval('numbers', 2)",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before, conn, dsn := fresh(t)
			mustPut(t, before, write(t, block("b"), `{}`))
			for range 9 {
				mustRecord(t, before, "b", "x")
			}
			all := tell(follow(t, before, 0, 100))
			must.Do(t, before.Close())
			do(t, conn, setBack)

			s := open(t, dsn)
			wantLag(t, s.Ping(t.Context()), conn)
			_, err := s.Put(t.Context(), []oda.Put{write(t, sbd("s"), `{}`)})
			wantLag(t, err, conn)
			_, err = one(t.Context(), s, adding("b", "y", ""))
			wantLag(t, err, conn)
			if got := tell(follow(t, s, 0, 100)); got != all {
				t.Errorf("the log is %s, want %s", got, all)
			}
			mustGet(t, s, block("b"))

			do(t, conn, mending(t, conn))
			await(t, "the archive is written again", patience, func() bool { return s.Ping(t.Context()) == nil })
			mustRecord(t, s, "b", "y")
			mustPut(t, s, write(t, sbd("s"), `{}`))
			if got, want := tell(follow(t, s, 0, 100)), "b 1 0-0, b 1 1-10, s 1 0-0"; got != want {
				t.Errorf("the log is %s, want %s", got, want)
			}
			wantWhole(t, dsn)
		})
	}
}

// Every statement that writes refuses a number that a round has seen.
func TestNothingIsWrittenWithANumberOfThePast(t *testing.T) {
	t.Parallel()
	s, conn, dsn := fresh(t)
	for _, id := range []string{"a", "b"} {
		mustPut(t, s, write(t, block(id), `{}`))
		mustRecord(t, s, id, "x")
	}
	m := mustPut(t, s, write(t, sbd("s"), `{}`)).Metadata
	other := mustPut(t, s, write(t, sbd("o"), `{}`)).Metadata
	before := tell(follow(t, s, 0, 100))
	kept := write(t, block("a"), `{"metadata":`+string(mustGet(t, s, block("a")).Metadata.AppendJSON(nil))+`}`)
	kept.KeepRecords, kept.Compare = true, oda.KeptFields
	put := func(puts ...oda.Put) func() error {
		return func() error {
			_, err := s.Put(t.Context(), puts)
			return err
		}
	}
	for name, try := range map[string]func() error{
		"create":   put(write(t, sbd("new"), `{}`)),
		"update":   put(next(t, sbd("s"), m)),
		"restate":  put(next(t, sbd("s"), m, `"telescope":"ska_mid"`)),
		"several":  put(next(t, sbd("s"), m), next(t, sbd("o"), other)),
		"keep":     put(kept),
		"a record": func() error { _, err := one(t.Context(), s, adding("a", "x", "")); return err },
		"with key": func() error { _, err := one(t.Context(), s, adding("a", "x", "key")); return err },
		"together": func() error {
			_, err := s.UpdateTogether(t.Context(), []oda.Put{next(t, sbd("s"), m), next(t, sbd("o"), other)})
			return err
		},
		"records": func() error {
			_, errs := s.AppendTogether(t.Context(), []oda.Append{adding("a", "x", ""), adding("b", "x", "")})
			return errs[0]
		},
		"create with a key": func() error {
			_, err := s.Create(t.Context(), write(t, sbd("new"), `{}`), &oda.Key{Value: "k"})
			return err
		},
	} {
		do(t, conn, "SELECT setval('numbers', 2)") // the next round has not looked yet
		if err := try(); err == nil {
			t.Errorf("%s: it was stored", name)
		}
		do(t, conn, mending(t, conn))
		if _, err := s.End(t.Context()); err != nil { // makes a round
			t.Fatal(err)
		}
	}
	if got := tell(follow(t, s, 0, 100)); got != before {
		t.Errorf("the log is %s, want %s", got, before)
	}
	wantWhole(t, dsn)
}

// If somebody sets the sequence back while processes write, they refuse to write, and
// everything that was acknowledged is in the log.
func TestASequenceIsSetBackUnderRunningProcesses(t *testing.T) {
	t.Parallel()
	dsn := env.Postgres(t)
	conn := connect(t, dsn)
	processes := []*env.Process{env.Oda(t, "serve", "--db", dsn), env.Oda(t, "serve", "--db", dsn)}
	var mu sync.Mutex
	acknowledged := map[string]bool{}
	burst := func() {
		var group sync.WaitGroup
		for i := range 8 {
			group.Go(func() {
				for j := range 10 {
					mu.Lock()
					id := fmt.Sprintf("sbd-%d", len(acknowledged)*100+i*10+j)
					mu.Unlock()
					if status, _ := send(t, "PUT", processes[i%2].URL+"/sbds/"+id, `{}`); status == http.StatusOK {
						mu.Lock()
						acknowledged[id] = true
						mu.Unlock()
					}
				}
			})
		}
		group.Wait()
	}
	ready := func(want int) func() bool {
		return func() bool {
			for _, p := range processes {
				if status, _ := send(t, "GET", strings.TrimSuffix(p.URL, "/api/v1")+"/readyz", ""); status != want {
					return false
				}
			}
			return true
		}
	}
	for _, back := range []string{"1", "last_value - 30", "last_value - 3"} {
		burst()
		do(t, conn, "SELECT setval('numbers', "+back+") FROM numbers")
		burst()
		if back == "1" {
			await(t, "no process is ready", patience, ready(http.StatusServiceUnavailable))
			status, text := send(t, "PUT", processes[0].URL+"/sbds/refused", `{}`)
			if status != http.StatusServiceUnavailable || !strings.Contains(text, mending(t, conn)) || !strings.Contains(text, "Nothing was stored") {
				t.Errorf("a write is answered %d %s", status, text)
			}
		}
		do(t, conn, mending(t, conn))
		await(t, "all processes are ready", patience, ready(http.StatusOK))
	}
	burst()
	s := open(t, dsn)
	for _, c := range follow(t, s, 0, 100) {
		delete(acknowledged, c.ID)
	}
	if len(acknowledged) > 0 {
		t.Errorf("%d acknowledged writes are not in the log", len(acknowledged))
	}
}

// If the sequence was set back to just below its value, no number is given twice, not
// even once to a version and once to a record.
func TestNoNumberIsGivenTwice(t *testing.T) {
	t.Parallel()
	s, conn, dsn := fresh(t)
	mustPut(t, s, write(t, block("b"), `{}`))
	follow(t, s, 0, 100)
	mustRecord(t, s, "b", "x")
	do(t, conn, "SELECT setval('numbers', last_value - 1) FROM numbers")
	_, err := s.Put(t.Context(), []oda.Put{write(t, sbd("s"), `{}`)})
	if err == nil || !strings.Contains(err.Error(), "Nothing was stored") {
		t.Errorf("a version was stored with the number of a record, or the answer is %v", err)
	}
	mustPut(t, s, write(t, sbd("s"), `{}`))
	do(t, conn, "SELECT setval('numbers', last_value - 1) FROM numbers")
	if _, err = one(t.Context(), s, adding("b", "y", "")); err == nil || !strings.Contains(err.Error(), "Nothing was stored") {
		t.Errorf("a record was stored with the number of a version, or the answer is %v", err)
	}
	mustRecord(t, s, "b", "y")
	if got, want := tell(follow(t, s, 0, 100)), "b 1 0-0, b 1 1-1, s 1 0-0, b 1 2-2"; got != want {
		t.Errorf("the log is %s, want %s", got, want)
	}
	wantWhole(t, dsn)
}
