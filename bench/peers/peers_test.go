package peers_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"oda/bench/load"
	"oda/bench/measure"
	"oda/bench/peers"
)

// peersVariable allows tests to download PocketBase and Kinto.
const peersVariable = "ODA_BENCH_PEERS"

// newLab makes a lab that goes with the test.
func newLab(t *testing.T) *peers.Lab {
	t.Helper()
	// Not t.TempDir: the user of PostgreSQL must get through.
	dir, err := os.MkdirTemp("", "oda-lab-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	lab, err := peers.NewLab(t.Context(), dir, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := lab.Close(); err != nil {
			t.Error(err)
		}
	})
	return lab
}

// step is a request and what is expected of its answer.
type step struct {
	what    string
	request []byte
	status  int
	has     string
}

// steps sends requests to a server one after the other.
func steps(t *testing.T, server *peers.Server, err error, all ...step) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if server.PID == 0 {
		t.Error("the server has no process")
	}
	for _, s := range all {
		answer, err := load.Once(t.Context(), server.Addr, s.request)
		if err != nil {
			t.Fatalf("%s: %v", s.what, err)
		}
		if answer.Status != s.status || !strings.Contains(string(answer.Body), s.has) {
			t.Errorf("%s: answered %d %.500s, want %d with %s", s.what, answer.Status, answer.Body, s.status, s.has)
		}
	}
	if err := server.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}

// target is named in a document of 5000 bytes, not in a changed one.
const target = "target-002"

func TestEachPeerDoesEachKindOfWork(t *testing.T) {
	lab := newLab(t)
	document, record := peers.Document(5000, "sbd-p-000000000"), peers.Record(3)
	const call = "end_of_observation" // of that record

	t.Run("bare", func(t *testing.T) {
		server, err := lab.Bare(t.Context())
		steps(t, server, err,
			step{"get", load.Request(nil, "GET", "/api/v1/sbds/x", nil, nil), 200, target},
			step{"put", load.Request(nil, "PUT", "/api/v1/sbds/x", nil, []byte(`{"a":1}`)), 200, `{"a":1}`},
			step{"record", load.Request(nil, "POST", "/api/v1/ebs/x/request_response", nil, record), 200, `"sequence":1`},
		)
	})
	t.Run("oda on SQLite", func(t *testing.T) {
		server, err := lab.Oda(t.Context(), lab.SQLite("test"))
		steps(t, server, err, odaSteps(document, record)...)
	})
	t.Run("oda on PostgreSQL", func(t *testing.T) {
		server, err := lab.Oda(t.Context(), database(t, lab, "oda"))
		steps(t, server, err, odaSteps(document, record)...)
	})
	t.Run("rewriting", func(t *testing.T) {
		server, err := lab.Rewriting(t.Context(), database(t, lab, "rewriting"))
		steps(t, server, err,
			step{"create", peers.Rewriting{}.Create("eb-1"), 200, "eb-1"},
			step{"record", peers.Rewriting{}.Record("eb-1", record), 200, `"sequence":1`},
			step{"record again", peers.Rewriting{}.Record("eb-1", record), 200, `"sequence":2`},
			step{"get", peers.Rewriting{}.Get("eb-1"), 200, call},
			step{"an unknown block", peers.Rewriting{}.Record("eb-2", record), 404, "could not be found"},
		)
	})
	t.Run("PocketBase", func(t *testing.T) {
		allowed(t)
		server, err := lab.PocketBase(t.Context())
		p := peers.PocketBase{}
		steps(t, server, err,
			step{"create", p.Create("sbd-p-000000000", document), 200, target},
			step{"get", p.Get("sbd-p-000000000"), 200, target},
			step{"update", p.Update("sbd-p-000000000", []byte(`{"changed":true}`)), 200, `"changed":true`},
			step{"get the update", p.Get("sbd-p-000000000"), 200, `"changed":true`},
			step{"record", p.Record("eb-1", record), 200, call},
			step{"batch", p.Batch("eb-1", [][]byte{record, record}), 200, call},
		)
	})
	t.Run("Kinto", func(t *testing.T) {
		allowed(t)
		server, err := lab.Kinto(t.Context(), database(t, lab, "kinto"))
		k := peers.Kinto{}
		steps(t, server, err,
			step{"create", k.Create("sbd-p-000000000", document), 201, target},
			step{"get", k.Get("sbd-p-000000000"), 200, target},
			step{"update", k.Update("sbd-p-000000000", []byte(`{"changed":true}`)), 200, `"changed":true`},
			step{"get the update", k.Get("sbd-p-000000000"), 200, `"changed":true`},
			step{"record", k.Record("eb-1", record), 201, call},
		)
	})
	t.Run("raw SQLite", func(t *testing.T) {
		raw, err := lab.RawSQLite(t.Context(), 100, 5000)
		if err != nil {
			t.Fatal(err)
		}
		const short = 100 * time.Millisecond
		read, err := raw.Get(t.Context(), short)
		did(t, "read", read, err)
		for _, together := range []int{1, 64} {
			sample, err := raw.Record(t.Context(), together, short)
			did(t, fmt.Sprintf("record, %d together", together), sample, err)
			sample, err = raw.Update(t.Context(), together, short)
			did(t, fmt.Sprintf("update, %d together", together), sample, err)
		}
		if err := raw.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Run("pgbench", func(t *testing.T) { pgbench(t, lab, document) })

	for _, name := range []string{"oda", "SQLite", "PostgreSQL"} {
		if lab.Versions()[name] == "" {
			t.Errorf("the version of %s is not known", name)
		}
	}
	t.Logf("versions: %v", lab.Versions())
}

// pgbench runs each script on a database that the archive has filled.
func pgbench(t *testing.T, lab *peers.Lab, document []byte) {
	dsn := database(t, lab, "pgbench")
	server, err := lab.Oda(t.Context(), dsn)
	path := "/api/v1/sbds/sbd-p-000000000"
	steps(t, server, err, step{"put", load.Request(nil, "PUT", path, nil, document), 200, target})
	postgres, err := lab.Postgres(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := postgres.Settle(t.Context(), dsn); err != nil {
		t.Fatal(err)
	}
	update, err := peers.UpdateScript(t.Context(), dsn, "sbd-p", 1)
	if err != nil {
		t.Fatal(err)
	}
	for name, script := range map[string]peers.Script{
		"get": peers.GetScript("sbd-p", 1), "record": peers.RecordScript("eb-pgbench", 4), "update": update,
	} {
		sample, err := postgres.Pgbench(t.Context(), dsn, script, 4, time.Second)
		did(t, name, sample, err)
	}
	// What pgbench stored is what the archive would have stored.
	server, err = lab.Oda(t.Context(), dsn)
	steps(t, server, err, step{"get", load.Request(nil, "GET", path, nil, nil), 200, target})
}

// did fails if nothing was measured.
func did(t *testing.T, what string, sample measure.Sample, err error) {
	t.Helper()
	if err != nil || sample.Operations == 0 || sample.Failed != 0 || sample.P50 == 0 || sample.P50 > sample.P99 {
		t.Errorf("%s: %+v, %v", what, sample, err)
	}
	t.Logf("%s: %.0f /s, p50 %v", what, sample.Rate(), sample.P50)
}

// odaSteps does with the archive what is done with the other peers.
func odaSteps(document, record []byte) []step {
	sbd, eb := "/api/v1/sbds/sbd-p-000000000", "/api/v1/ebs/eb-1"
	return []step{
		{"create", load.Request(nil, "PUT", sbd, nil, document), 200, target},
		{"get", load.Request(nil, "GET", sbd, nil, nil), 200, target},
		{"update without metadata", load.Request(nil, "PUT", sbd, nil, document), 422, ""},
		{"create a block", load.Request(nil, "PUT", eb, nil, peers.EmptyBlock("eb-1")), 200, "eb-1"},
		{"record", load.Request(nil, "POST", eb+"/request_response", nil, record), 200, `"sequence":1`},
	}
}

// allowed skips a test that would download.
func allowed(t *testing.T) {
	t.Helper()
	if os.Getenv(peersVariable) != "1" {
		t.Skipf("downloads; set %s=1 to run it", peersVariable)
	}
}

func database(t *testing.T, lab *peers.Lab, name string) string {
	t.Helper()
	postgres, err := lab.Postgres(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	dsn, err := postgres.Database(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return dsn
}

func TestAServerThatDoesNotStartSaysWhy(t *testing.T) {
	lab := newLab(t)
	_, err := lab.Oda(t.Context(), "postgres://nobody@127.0.0.1:1/none")
	if err == nil || !strings.Contains(err.Error(), "ended at once") || !strings.Contains(err.Error(), "127.0.0.1") {
		t.Errorf("got %v, want the end of its log", err)
	}
	server, err := lab.Bare(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	process, err := os.FindProcess(server.PID)
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Kill(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(100 * time.Millisecond)
	if err := server.Stop(context.Background()); err == nil {
		t.Error("a server that was killed has ended well")
	}
	if _, err := peers.NewLab(t.Context(), "/dev/null/x", t.Output()); err == nil || errors.Is(err, peers.ErrUnavailable) {
		t.Errorf("a lab in an impossible folder: %v", err)
	}
}
