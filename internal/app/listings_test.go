package app_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"oda/internal/app"
	"oda/internal/test/env"
	"oda/internal/test/must"
)

// A listing of this many entities does not fit into all the buffers between the
// server and a reader that has stopped.
const (
	manyEntities = 60_000
	longID       = `'sbd-' || %s || '-00000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000'`
)

// slowReader requests a listing without a limit and reads only its headers.
type slowReader struct {
	conn     net.Conn
	response *http.Response
}

// readSlowly requests a listing and waits until the answer begins.
func readSlowly(t *testing.T, addr string) *slowReader {
	t.Helper()
	conn := must.Get(net.Dial("tcp", addr))(t)
	t.Cleanup(func() { _ = conn.Close() })
	must.Do(t, conn.(*net.TCPConn).SetReadBuffer(64<<10))
	must.Get(io.WriteString(conn, "GET /api/v1/sbds?user=anna HTTP/1.1\r\nHost: archive\r\n\r\n"))(t)
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Errorf("begin a listing: %v", err)
		return nil
	}
	return &slowReader{conn, response}
}

// cutOff reads on and demands that the answer breaks off.
func (r *slowReader) cutOff(t *testing.T) {
	t.Helper()
	must.Do(t, r.conn.SetReadDeadline(time.Now().Add(30*time.Second)))
	n, err := io.Copy(io.Discard, r.response.Body)
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a listing that was cut off ended after %d bytes with %v, want it to break off", n, err)
	}
}

// readers requests several slow listings at once, and counts the answers.
func readers(t *testing.T, addr string, n int) (begun []*slowReader, refused int) {
	t.Helper()
	var mu sync.Mutex
	var group sync.WaitGroup
	for range n {
		group.Go(func() {
			r := readSlowly(t, addr)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case r == nil:
			case r.response.StatusCode == http.StatusOK:
				begun = append(begun, r)
			case r.response.StatusCode == http.StatusServiceUnavailable && r.response.Header.Get("Retry-After") != "":
				refused++
			default:
				t.Errorf("a listing is answered %s", r.response.Status)
			}
		})
	}
	group.Wait()
	return begun, refused
}

// largePostgres returns a database with many entities.
func largePostgres(t *testing.T, parameters string) (dsn string) {
	t.Helper()
	dsn = env.Postgres(t) + parameters
	must.Do(t, env.Start(t, func(c *app.Config) { c.Database = dsn }).Stop())
	conn := must.Get(pgx.Connect(t.Context(), strings.TrimSuffix(dsn, parameters)))(t)
	defer conn.Close(t.Context())
	id := fmt.Sprintf(longID, "to_char(i, 'FM00000000')")
	if _, err := conn.Exec(t.Context(), fmt.Sprintf(`INSERT INTO creations SELECT 1, %s, 'anna', i FROM generate_series(1, %d) i;
		INSERT INTO heads SELECT 1, %s, 1, 'anna', i, 'anna', i, 0, i, NULL, 0 FROM generate_series(1, %d) i`, id, manyEntities, id, manyEntities),
		pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatal(err)
	}
	return dsn
}

func TestSlowListingsLeaveConnectionsForOthers(t *testing.T) {
	t.Parallel()
	dsn := largePostgres(t, "")
	a := env.Start(t, func(c *app.Config) { c.Database = dsn })
	a.Must("PUT", "/ebs/b", `{}`)
	recorded := make(chan string, 1)
	stop := make(chan struct{})
	go func() {
		defer close(recorded)
		for {
			reply, err := a.Try("POST", "/ebs/b/request_response", `{"request":"x"}`)
			if err != nil || reply.Status != 200 {
				recorded <- fmt.Sprint(reply, err)
				return
			}
			select {
			case <-stop:
				return
			default:
			}
		}
	}()
	begun, refused := readers(t, a.Addr(), 16)
	if len(begun) != 4 || refused != 12 {
		t.Errorf("%d listings began and %d were refused, want 4 and 12", len(begun), refused)
	}
	// A page is read at once, and need not wait for its turn.
	a.Must("GET", "/sbds?user=anna&limit=10", "")
	close(stop)
	if failure, failed := <-recorded; failed {
		t.Errorf("recording failed during listings: %s", failure)
	}
}

// In a small pool even one listing can be too many.
func TestAListingIsCutOffIfItBlocksWriting(t *testing.T) {
	t.Parallel()
	dsn := largePostgres(t, "&pool_max_conns=1")
	a := env.Start(t, func(c *app.Config) { c.Database = dsn })
	a.Must("PUT", "/ebs/b", `{}`)
	r := readSlowly(t, a.Addr())
	for range 3 {
		a.Must("POST", "/ebs/b/request_response", `{"request":"x"}`)
	}
	r.cutOff(t)
}

// largeSQLite returns an archive with many entities.
func largeSQLite(t *testing.T) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "archive.db")
	must.Do(t, env.Start(t, func(c *app.Config) { c.Database = "sqlite:" + path }).Stop())
	conn := must.Get(sqlite.OpenConn(path, sqlite.OpenReadWrite))(t)
	defer conn.Close()
	err := sqlitex.ExecuteScript(conn, fmt.Sprintf(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)
		INSERT INTO heads (kind, identifier, version, created_by, created_on, last_modified_by, last_modified_on, last_sequence, position, summary_hash)
		SELECT 1, %s, 1, 'anna', i, 'anna', i, 0, 0, 0 FROM n`, manyEntities, fmt.Sprintf(longID, "printf('%08d', i)")), nil)
	must.Do(t, err)
	return path
}

func TestSlowListingsDoNotLetTheWriteAheadLogGrow(t *testing.T) {
	if raceDetector {
		t.Skip("a hundred megabytes of documents take minutes; races are tested on PostgreSQL")
	}
	t.Parallel()
	path := largeSQLite(t)
	a := env.Start(t, func(c *app.Config) { c.Database = "sqlite:" + path })
	first, refused := readers(t, a.Addr(), 2)
	if len(first) != 2 || refused != 0 {
		t.Fatalf("%d listings began, %d were refused", len(first), refused)
	}
	// Other listings overlap with them all the time.
	stop := make(chan struct{})
	var others sync.WaitGroup
	var overlapping []*slowReader
	others.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				begun, _ := readers(t, a.Addr(), 1)
				overlapping = append(overlapping, begun...)
			}
		}
	})
	document := `{"text":"` + strings.Repeat("0123456789abcdef", 1<<16) + `"}`
	var size, largest int64
	for i := 0; largest < 90<<20 || size > 64<<20; i++ {
		answered(t, "PUT", fmt.Sprintf("%s/prjs/p%d", a.URL(), i), document, "Content-Type", "application/json")
		info := must.Get(os.Stat(path + "-wal"))(t)
		if size = info.Size(); size > 300<<20 {
			t.Fatalf("the write-ahead log grew to %d MiB", size>>20)
		}
		largest = max(largest, size)
	}
	close(stop)
	others.Wait()
	t.Logf("the write-ahead log grew to %d MiB", largest>>20)
	for _, r := range first {
		r.cutOff(t)
	}
	for _, r := range overlapping {
		if err := r.conn.Close(); err != nil {
			t.Error(err)
		}
	}
	// A reader that keeps reading gets everything.
	if reply := a.Do("GET", "/sbds?user=anna", ""); reply.Status != 200 || strings.Count(reply.Text(), ",") != manyEntities-1 {
		t.Errorf("a listing is answered %d with %d bytes", reply.Status, len(reply.Body))
	}
}
