package sqlite

import (
	"strings"
	"testing"
	"time"

	"zombiezen.com/go/sqlite"

	"oda"
	"oda/internal/test/must"
)

// While another program has locked the file, the archive can be read and is not ready.
func TestALockedFileIsNotReady(t *testing.T) {
	t.Parallel()
	path := archivePath(t)
	s := open(t, path)
	mustPut(t, s, put(t, "a", `{}`, 1))
	s.writer.SetBusyTimeout(10 * time.Millisecond)
	other := must.Get(openConn(path, sqlite.OpenReadWrite))(t)
	defer other.close()
	must.Do(t, other.exec("BEGIN IMMEDIATE"))
	_, err := s.Put(t.Context(), []oda.Put{put(t, "b", `{}`, 1)})
	if oda.CodeOf(err) != oda.Unavailable {
		t.Fatalf("got %v", err)
	}
	if err := s.Ping(t.Context()); oda.CodeOf(err) != oda.Unavailable || !strings.Contains(err.Error(), "locked the file") {
		t.Errorf("the archive is ready, or gives no reason: %v", err)
	}
	if !stored(t, s, "a") {
		t.Error("the archive cannot be read")
	}
	must.Do(t, other.exec("ROLLBACK"))
	for deadline := time.Now().Add(30 * time.Second); s.Ping(t.Context()) != nil; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the file is free again, but the archive is not ready")
		}
	}
	mustPut(t, s, put(t, "b", `{}`, 1))
}
