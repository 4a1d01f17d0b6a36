package postgres_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"oda"
	"oda/internal/postgres"
	"oda/internal/test/env"
	"oda/internal/test/must"
)

func schemaWasMadeOnce(t *testing.T, dsn string) {
	t.Helper()
	conn := connect(t, dsn)
	if steps, last := query[int](t, conn, "SELECT count(*) FROM migrations"), query[int](t, conn, "SELECT max(number) FROM migrations"); steps != last {
		t.Errorf("%d steps were applied, the last is %d", steps, last)
	}
	if got := query[int](t, conn, "SELECT count(*) FROM counts"); got != 16*len(oda.Kinds) {
		t.Errorf("there are %d counts, want 16 of each kind", got)
	}
	if got := query[int](t, conn, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"); got != 0 {
		t.Errorf("%d advisory locks are left", got)
	}
}

func TestTenProcessesServeOneDatabase(t *testing.T) {
	t.Parallel()
	dsn := env.Postgres(t)
	env.Program(t)
	processes := make([]*env.Process, 10)
	var group sync.WaitGroup
	for i := range processes {
		group.Go(func() { processes[i] = env.Oda(t, "serve", "--db", with(t, dsn, "pool_max_conns", "2")) })
	}
	group.Wait()
	if t.Failed() {
		t.FailNow()
	}
	schemaWasMadeOnce(t, dsn)
	status, _ := send(t, "PUT", processes[0].URL+"/sbds/one", `{"a":1}`)
	if status != 200 {
		t.Fatalf("the first process answered %d", status)
	}
	for i, p := range processes {
		if status, text := send(t, "GET", p.URL+"/sbds/one", ""); status != 200 || !strings.Contains(text, `"a":1`) {
			t.Errorf("process %d answers %d %s", i, status, text)
		}
	}
}

// send sends a request and returns the status and the body of the answer. The status
// is 0 if there is no answer.
func send(t *testing.T, method, address, body string) (int, string) {
	t.Helper()
	status, _, text := sendHeader(t, method, address, body)
	return status, text
}

func sendHeader(t *testing.T, method, address, body string) (int, http.Header, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	request := must.Get(http.NewRequestWithContext(ctx, method, address, strings.NewReader(body)))(t)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, nil, err.Error()
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, nil, err.Error()
	}
	return response.StatusCode, response.Header, string(text)
}

func TestOneOfManyUpdatesThroughSeveralStoresWins(t *testing.T) {
	t.Parallel()
	dsn := env.Postgres(t)
	stores := []*postgres.Store{open(t, dsn), open(t, dsn), open(t, dsn)}
	const rounds, n = 10, 12
	m := mustPut(t, stores[0], write(t, sbd("s"), `{}`)).Metadata
	for round := range rounds {
		errs := make([]error, n)
		var group sync.WaitGroup
		for i := range n {
			put := next(t, sbd("s"), m, fmt.Sprintf(`"n":%d`, i))
			group.Go(func() { _, errs[i] = stores[i%len(stores)].Put(t.Context(), []oda.Put{put}) })
		}
		group.Wait()
		won := 0
		for _, err := range errs {
			if err == nil {
				won++
				continue
			}
			wantCode(t, err, oda.MetadataMismatch)
		}
		m = mustGet(t, stores[round%len(stores)], sbd("s")).Metadata
		if won != 1 || m.Version != int64(round+2) {
			t.Fatalf("%d of %d were accepted, but the version is %d", won, n, m.Version)
		}
	}
}

// hold locks the head of an entity in a transaction until the test releases it.
func hold(t *testing.T, dsn string, ref oda.Ref) (letGo func()) {
	t.Helper()
	conn := connect(t, dsn)
	do(t, conn, "BEGIN", fmt.Sprintf("SELECT FROM heads WHERE kind = %d AND identifier = '%s' FOR UPDATE", ref.Kind, ref.ID))
	return func() {
		t.Helper()
		do(t, conn, "ROLLBACK")
	}
}

func TestAKilledProcessLeavesNothingLocked(t *testing.T) {
	t.Parallel()
	s, watch, dsn := fresh(t)
	mustPut(t, s, write(t, sbd("a"), `{}`))
	mustPut(t, s, write(t, sbd("b"), `{}`))
	mustPut(t, s, write(t, block("b"), `{}`))
	process := env.Oda(t, "serve", "--db", dsn)

	// The process has stored a and waits for b. It also records.
	letGo := hold(t, dsn, sbd("b"))
	body := func(id string) string {
		return `{"sbd_id":"` + id + `","metadata":` + string(mustGet(t, s, sbd(id)).Metadata.AppendJSON(nil)) + `}`
	}
	var group sync.WaitGroup
	group.Go(func() { send(t, "PUT", process.URL+"/", `{"sbds":[`+body("a")+`,`+body("b")+`]}`) })
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	group.Go(func() {
		for ctx.Err() == nil {
			send(t, "POST", process.URL+"/ebs/b/request_response", `{"request":"x"}`)
		}
	})
	await(t, "the process waits in the middle of its work", patience, func() bool { return waiting(t, watch) > 0 })
	process.Kill()
	stop()
	group.Wait()

	began := time.Now()
	mustRecord(t, s, "b", "after")
	mustPut(t, s, next(t, sbd("a"), mustGet(t, s, sbd("a")).Metadata))
	if took := time.Since(began); took > env.AtMost(5*time.Second) {
		t.Errorf("others could write after %v", took)
	}
	if got := mustGet(t, s, sbd("a")).Metadata.Version; got != 2 {
		t.Errorf("a has version %d: half of the write was stored", got)
	}
	letGo()
	mustPut(t, s, next(t, sbd("b"), mustGet(t, s, sbd("b")).Metadata))
	await(t, "nothing of the process is left", patience, func() bool {
		return query[int](t, watch, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND xact_start IS NOT NULL
			AND pid <> pg_backend_pid()`) == 0
	})
}

func TestNoErrorAndNoLogShowsThePassword(t *testing.T) {
	t.Parallel()
	const secret = "s3cr3t-word"
	dsn := env.Postgres(t)
	config := must.Get(pgx.ParseConfig(dsn))(t)
	where := address(t, dsn)
	proxy := env.NewProxy(t, where)
	proxy.Refuse(true)
	for name, bad := range map[string]string{
		"bad port":         "postgres://anna:" + secret + "@127.0.0.1:port/x",
		"bad host":         "postgres://anna:" + secret + "@[::1/x",
		"bad escape":       "postgres://anna:" + secret + "@127.0.0.1/%zz",
		"bad escape in it": "postgres://anna:%zz" + secret + "@127.0.0.1/x",
		"bad setting":      "postgres://anna:" + secret + "@127.0.0.1/x?connect_timeout=soon",
		"bad pool":         "postgres://anna:" + secret + "@127.0.0.1/x?pool_max_conns=many",
		"bad mode":         "postgres://anna@127.0.0.1/x?password=" + secret + "&sslmode=perhaps",
		"key and value":    "host=127.0.0.1 port=x password=" + secret,
		"unknown setting":  "postgres://postgres:" + secret + "@" + where + "/postgres?nonsense=1",
		"no server":        "postgres://anna:" + secret + "@" + proxy.Addr() + "/x?sslmode=disable",
		"no database":      "postgres://" + config.User + ":" + secret + "@" + where + "/nowhere?sslmode=disable",
	} {
		var log bytes.Buffer
		s, err := postgres.Open(t.Context(), bad, slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})))
		if err == nil {
			t.Errorf("%s: the archive was opened", name)
			_ = s.Close()
			continue
		}
		if strings.Contains(err.Error()+log.String(), secret) {
			t.Errorf("%s: the password is in %q, or in the log %q", name, err, log.String())
		}
		if strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: the error is more than a sentence: %q", name, err)
		}
	}

	u := strings.Replace(dsn, config.User+"@", config.User+":"+secret+"@", 1)
	if !strings.Contains(u, secret) {
		t.Fatal("the DSN has no password")
	}
	process := env.Oda(t, "serve", "--db", u, "--log-level", "debug")
	_, text := send(t, "PUT", process.URL+"/sbds/one", `{"a":1}`)
	do(t, connect(t, dsn), "ALTER TABLE heads RENAME TO gone")
	_, second := send(t, "PUT", process.URL+"/sbds/one", `{"a":1}`)
	process.Stop()
	if strings.Contains(process.Log()+text+second, secret) {
		t.Errorf("the password is in the log:\n%s", process.Log())
	}
}
