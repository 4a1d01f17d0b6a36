package history

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"oda"
	"oda/internal/test/env"
)

// A record is sent while its block does not exist, and is held up together with
// others behind a block that is locked. Meanwhile its block is created, and an
// update of it is being committed when the record goes on. Whether the record
// is refused or added, it must not take the update back.
func TestARecordIsOvertakenByTheFirstStoreOfItsBlock(t *testing.T) {
	t.Parallel()
	const blocks = 24 // enough that every lane of a server gets some
	ctx := context.Background()
	dsn := env.Postgres(t)
	// Records go through one server and stores through the other, so that
	// neither waits for the other's connections.
	recording, storing := served(t, dsn), served(t, dsn)
	var first, second []string
	for i := range blocks {
		first, second = append(first, fmt.Sprintf("eb-a-%d", i)), append(second, fmt.Sprintf("eb-b-%d", i))
		must(t, storing, wire{method: http.MethodPut, path: "/ebs/" + first[i], body: "{}"})
		must(t, storing, wire{method: http.MethodPut, path: "/ebs/" + second[i], body: "{}"})
	}
	project, err := decodeDocument(must(t, storing, wire{method: http.MethodPut, path: "/prjs/prj-last", body: "{}"}))
	if err != nil {
		t.Fatal(err)
	}
	lockFirst, lockSecond := locked(t, dsn, oda.ExecutionBlock, first...), locked(t, dsn, oda.ExecutionBlock, second...)
	lockProject := locked(t, dsn, oda.Project, "prj-last")

	// All lanes wait for the first blocks, and more gathers behind.
	var answered sync.WaitGroup
	send := func(id string) {
		answered.Go(func() {
			w := wire{method: http.MethodPost, path: "/ebs/" + id + "/request_response", body: `{"request":"other"}`}
			if _, err := recording.send(ctx, w); err != nil {
				t.Error(err)
			}
		})
	}
	for _, id := range first {
		send(id)
	}
	waitUntilBlocked(t, dsn, lockFirst.pid)
	started := time.Now()
	records, stores := make([]*game, blocks), make([]*game, blocks)
	for i := range blocks {
		refs := []oda.Ref{{Kind: oda.ExecutionBlock, ID: fmt.Sprintf("eb-c-%d", i)}}
		records[i] = &game{target: recording, refs: refs, started: started}
		stores[i] = &game{target: storing, refs: refs, started: started}
		send(second[i])
		answered.Go(func() {
			if _, err := records[i].do(ctx, 1, request{Action: record, User: "u1", Marker: "r"}); err != nil {
				t.Error(err)
			}
		})
	}
	time.Sleep(time.Second) // nothing tells that they are in their lanes
	lockFirst.release(t)
	waitUntilBlocked(t, dsn, lockSecond.pid)

	// The blocks are created, and updated in a transaction that has to wait.
	update := request{Action: store, User: "u2", Marker: "y"}
	updated := &game{target: storing, started: started}
	for i, g := range stores {
		out, err := g.do(ctx, 2, request{Action: store, User: "u2", Marker: "x", Puts: []put{{}}})
		if err != nil || out.Outcome != done {
			t.Fatal(out, err)
		}
		updated.refs = append(updated.refs, g.refs[0])
		update.Puts = append(update.Puts, put{Entity: i, Claim: &out.Documents[0].Metadata})
	}
	updated.refs = append(updated.refs, oda.Ref{Kind: oda.Project, ID: "prj-last"})
	update.Puts = append(update.Puts, put{Entity: blocks, Claim: &project[0].Metadata})
	answered.Go(func() {
		if out, err := updated.do(ctx, 2, update); err != nil || out.Outcome != done {
			t.Error(out, err)
		}
	})
	updater := waitUntilBlocked(t, dsn, lockProject.pid)
	lockSecond.release(t)
	blocked(t, dsn, updater, 2*time.Second) // or the records are refused at once
	lockProject.release(t)
	answered.Wait()
	if t.Failed() {
		return
	}

	outcomes := make(map[outcome]int)
	for i, g := range stores {
		if _, err := g.final(ctx); err != nil {
			t.Fatal(err)
		}
		op := updated.history[0]
		claim := op.Request.Puts[i].Claim
		op.Request.Puts, op.Response.Documents = []put{{Claim: claim}}, op.Response.Documents[i:i+1]
		outcomes[records[i].history[0].Response.Outcome]++
		if err := check(append(g.history, op, records[i].history[0]), 1, ""); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("the records: %v", outcomes)
}

// served is a server of its own on a database.
func served(t *testing.T, dsn string) Target {
	t.Helper()
	url := env.Oda(t, "serve", "--db="+dsn).URL
	return Target{URL: func(context.Context) (string, error) { return url, nil }, HTTP: newClient(t)}
}

// must sends a request that must be answered 200, and gives the answer.
func must(t *testing.T, target Target, w wire) []byte {
	t.Helper()
	a, err := target.send(context.Background(), w)
	if err != nil || a.status != http.StatusOK {
		t.Fatalf("%s %s: status %d, %v: %s", w.method, w.path, a.status, err, a.body)
	}
	return a.body
}

// lockTime bounds what is done with locks.
const lockTime = 30 * time.Second

// heldLock holds the heads of entities, as somebody does who changes them.
type heldLock struct {
	pid  int
	conn *pgx.Conn
}

func locked(t *testing.T, dsn string, kind oda.Kind, ids ...string) *heldLock {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), lockTime)
	defer cancel()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) }) // it may be closed already
	if _, err := conn.Exec(ctx, "BEGIN"); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(ctx, "SELECT FROM heads WHERE kind = $1 AND identifier = ANY ($2) FOR UPDATE", int16(kind), ids); err != nil {
		t.Fatal(err)
	}
	return &heldLock{int(conn.PgConn().PID()), conn}
}

func (l *heldLock) release(t *testing.T) {
	t.Helper()
	if err := l.conn.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// waitUntilBlocked waits until a backend holds up another, and gives one of
// those that wait.
func waitUntilBlocked(t *testing.T, dsn string, by int) (pid int) {
	t.Helper()
	if pid = blocked(t, dsn, by, lockTime); pid == 0 {
		t.Fatalf("nobody waits for the backend %d after %v", by, lockTime)
	}
	return pid
}

// blocked waits a while until a backend holds up another, and somewhat longer,
// so that more can come. It gives one of those that wait, 0 where none does.
func blocked(t *testing.T, dsn string, by int, while time.Duration) (pid int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), while+lockTime)
	defer cancel()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	for begun := time.Now(); pid == 0 && time.Since(begun) < while; time.Sleep(10 * time.Millisecond) {
		err := conn.QueryRow(ctx, "SELECT coalesce(max(pid), 0) FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid))", by).Scan(&pid)
		if err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(300 * time.Millisecond)
	return pid
}
