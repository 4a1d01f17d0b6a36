package postgres_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"testing"

	"oda"
	"oda/internal/postgres"
	"oda/internal/test/env"
	"oda/internal/test/history"
	"oda/internal/test/load"
	"oda/internal/test/must"
)

// Steps of a later program. Older programs can go on while the first is done.
var (
	gentle = postgres.Step{Name: "notes", Beside: true, SQL: "CREATE TABLE notes (n integer PRIMARY KEY); CREATE INDEX heads_notes ON heads (kind, version)"}
	strict = postgres.Step{Name: "digits", SQL: "CREATE TABLE digits (n integer PRIMARY KEY)"}
)

// newer opens an archive with a program that has more steps.
func newer(t *testing.T, dsn string, steps ...postgres.Step) *postgres.Store {
	t.Helper()
	s := must.Get(postgres.OpenNewer(t.Context(), dsn, slog.New(slog.DiscardHandler), ignore, steps...))(t)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// leave closes a store, and waits until nobody is connected who says that it is an
// archive.
func leave(t *testing.T, dsn string, s *postgres.Store) {
	t.Helper()
	must.Do(t, s.Close())
	watch := connect(t, dsn)
	await(t, "the sessions of the process have ended", patience, func() bool {
		return query[int](t, watch, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'oda%'") == 0
	})
}

// Two processes are replaced by newer ones, one after the other, while clients read
// and write. No request fails, and what was acknowledged is there.
func TestAnUpgradeOfOneProcessAfterTheOtherFailsNoRequest(t *testing.T) {
	t.Parallel()
	dsn := env.Postgres(t)
	older := []*postgres.Store{open(t, dsn), open(t, dsn)}
	servers := []*history.Server{history.NewServer(t, older[0]), history.NewServer(t, older[1])}
	defer func() { servers[0].Close(); servers[1].Close() }()
	l := env.NewLoad(t, load.Options{Patient: true}, servers[0].Host(), servers[1].Host())
	l.More()
	for i := range servers {
		leaving := servers[i]
		servers[i] = history.NewServer(t, newer(t, dsn, gentle))
		l.Use(servers[0].Host(), servers[1].Host())
		l.More()
		leaving.Close()
		if err := older[i].Close(); err != nil {
			t.Error(err)
		}
		l.More()
	}
	l.Whole(servers[0].Host())
	if n := query[int](t, connect(t, dsn), "SELECT count(*) FROM migrations WHERE name = 'notes' AND beside"); n != 1 {
		t.Errorf("the step is listed %d times", n)
	}
}

func TestAStepThatExcludesOlderProcessesWaitsForTheirEnd(t *testing.T) {
	t.Parallel()
	dsn := env.Postgres(t)
	older := open(t, dsn)
	_, err := postgres.OpenNewer(t.Context(), dsn, slog.New(slog.DiscardHandler), ignore, gentle, strict)
	if err == nil {
		t.Fatal("the step was done while an older process was connected")
	}
	if n := query[int](t, connect(t, dsn), "SELECT count(*) FROM migrations WHERE name = 'notes'"); n != 0 {
		t.Error("the step before it was done, although the upgrade is refused")
	}
	for _, says := range []string{"(digits)", fmt.Sprintf(":%d", os.Getpid()), "stop them and start this one again", "nothing was changed"} {
		if !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "\n") {
			t.Errorf("the error is %q; it should be a line that says %q", err, says)
		}
	}
	mustPut(t, older, write(t, sbd("a"), `{}`)) // goes on as before
	leave(t, dsn, older)
	s := newer(t, dsn, gentle, strict)
	if got := mustGet(t, s, sbd("a")).Metadata.Version; got != 1 {
		t.Errorf("it has version %d", got)
	}
}

// A process that nobody knew of, because it names its sessions otherwise, finds out
// by itself.
func TestAProcessThatIsExcludedStopsWriting(t *testing.T) {
	t.Parallel()
	dsn := env.Postgres(t)
	older := open(t, with(t, dsn, "application_name", "something else"))
	m := mustPut(t, older, write(t, sbd("a"), `{}`)).Metadata
	mustPut(t, older, write(t, block("b"), `{}`))
	server := history.NewServer(t, older)
	defer server.Close()
	leave(t, dsn, newer(t, dsn, gentle))
	mustPut(t, older, next(t, sbd("a"), m))
	newer(t, dsn, gentle, strict)
	await(t, "it notices", patience, func() bool { return older.Ping(t.Context()) != nil })
	for what, request := range map[string][3]string{
		"store":  {"PUT", "/sbds/c", `{}`},
		"create": {"POST", "/sbds", `{}`},
		"record": {"POST", "/ebs/b/request_response", `{"request":"r"}`},
	} {
		status, header, text := sendHeader(t, request[0], server.URL+"/api/v1"+request[1], request[2])
		if status != http.StatusServiceUnavailable || header.Get("Retry-After") == "" || !strings.Contains(text, "was upgraded by a newer program") {
			t.Errorf("to %s is answered %d: %s", what, status, text)
		}
	}
	if got := mustGet(t, older, sbd("a")).Metadata.Version; got != 2 {
		t.Errorf("it reads version %d", got)
	}
	if n := query[int](t, connect(t, dsn), "SELECT count(*) FROM heads"); n != 2 {
		t.Errorf("%d entities are stored, want 2", n)
	}
	if code := oda.CodeOf(older.Ping(t.Context())); code != oda.Unavailable {
		t.Errorf("it is not ready because of %v", code)
	}
}
