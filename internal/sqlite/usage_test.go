package sqlite

import (
	"testing"
	"time"

	"oda"
	"oda/internal/test/must"
)

func TestTheEngineTellsHowItDoes(t *testing.T) {
	t.Parallel()
	s := open(t, archivePath(t))
	for _, id := range []string{"a", "b"} {
		mustPut(t, s, put(t, id, `{}`, 1))
	}
	if _, err := s.Put(t.Context(), []oda.Put{put(t, "a", `{}`, 1)}); err == nil {
		t.Fatal("a store that does not match was accepted")
	}
	for range 3 {
		must.Get(s.Get(t.Context(), block("a")))(t)
	}
	got := s.Stats()
	if n := got.Shared.Sum; n != 2 || got.FailedCommits != 0 || got.End != 2 {
		t.Errorf("%d requests were committed, %d commits failed, the log ends at %d", n, got.FailedCommits, got.End)
	}
	if c := got.Caches[0]; c.Misses != 1 || c.Hits != 2 {
		t.Errorf("the cache tells %+v", c)
	}
	if p := got.Pools[0]; p.Used != 0 || p.Room < 4 || p.Waits != 0 {
		t.Errorf("the pool tells %+v", p)
	}
}

// Those who have to wait for a connection are counted.
func TestWaitingForAConnectionIsCounted(t *testing.T) {
	t.Parallel()
	s := open(t, archivePath(t))
	taken := takeAll(t, s)
	if p := s.Stats().Pools[0]; p.Used != p.Room || p.Waits != 0 {
		t.Errorf("all are in use, and the pool tells %+v", p)
	}
	time.AfterFunc(20*time.Millisecond, func() { s.readers.give(taken[0]) })
	c := must.Get(s.readers.take(t.Context()))(t)
	if p := s.Stats().Pools[0]; p.Waits != 1 || p.Waited < 10*time.Millisecond {
		t.Errorf("one has waited, and the pool tells %+v", p)
	}
	for _, c := range append(taken[1:], c) {
		s.readers.give(c)
	}
}
