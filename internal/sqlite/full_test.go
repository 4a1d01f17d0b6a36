package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"oda"
	"oda/internal/test/disk"
	"oda/internal/test/must"
	"oda/internal/test/suite"
)

// smallDisk returns a directory on a file system of that many bytes.
func smallDisk(t *testing.T, bytes int) string {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root can mount a small file system")
	}
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d", bytes)); err != nil {
		t.Skipf("a small file system cannot be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func TestTheArchiveSurvivesAFullDisk(t *testing.T) {
	ctx := context.Background()
	dir := smallDisk(t, 6<<20)
	ballast := filepath.Join(dir, "ballast")
	must.Do(t, os.WriteFile(ballast, make([]byte, 2<<20), 0o600))
	path := filepath.Join(dir, "archive.db")
	s := open(t, path)
	mustPut(t, s, put(t, "night", `{}`, 1))

	padding := strings.Repeat("x", 20_000)
	var acknowledged, refused []string
	records := 0
	write := func(i int) (err error) {
		id := fmt.Sprintf("b%d", i)
		if _, err = s.Put(ctx, []oda.Put{put(t, id, `{"padding":"`+padding+`"}`, 1)}); err == nil {
			acknowledged = append(acknowledged, id)
			if _, err = record(s, "night", fmt.Sprintf(`{"request":"%d","padding":"%s"}`, i, padding)); err == nil {
				records++
			}
		} else {
			refused = append(refused, id)
		}
		return err
	}
	check := func() {
		t.Helper()
		for _, id := range acknowledged {
			e, err := s.Get(ctx, block(id))
			if err != nil {
				t.Fatalf("%s was acknowledged: %v", id, err)
			}
			if text := suite.Render(t, e); !strings.Contains(text, padding) {
				t.Fatalf("%s is incomplete", id)
			}
		}
		for _, id := range refused {
			if _, err := s.Get(ctx, block(id)); oda.CodeOf(err) != oda.NotFound {
				t.Fatalf("%s was refused: %v", id, err)
			}
		}
		night := must.Get(s.Get(ctx, block("night")))(t)
		if got := strings.Count(suite.Render(t, night), `"request":`); got != records {
			t.Fatalf("%d records were acknowledged, but %d are stored", records, got)
		}
	}

	failures := 0
	for i := 0; failures < 20; i++ {
		if err := write(i); err != nil {
			if inDoubt(t, err) {
				t.Errorf("a write on a full disk is certainly not stored, but got %v", err)
			}
			failures++
		}
		if i > 1000 {
			t.Fatal("the disk does not fill up")
		}
	}
	if len(acknowledged) == 0 {
		t.Fatal("nothing was stored before the disk was full")
	}
	check()
	holds(t, disk.AfterKill(t, path), acknowledged, refused)
	if err := s.Ping(ctx); oda.CodeOf(err) != oda.Unavailable || !strings.Contains(err.Error(), "full") {
		t.Errorf("the archive is ready, or gives no reason: %v", err)
	}

	must.Do(t, os.Remove(ballast))
	for deadline := time.Now().Add(30 * time.Second); s.Ping(ctx) != nil; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the engine does not notice that there is room again")
		}
	}
	for i := 5000; i < 5010; i++ {
		if err := write(i); err != nil {
			t.Fatalf("there is room again, but: %v", err)
		}
	}
	check()
	must.Do(t, s.Close())
	s = open(t, path)
	check()
}

// A small commit fits into the space that a failed one has left in the log, so it
// does not prove that there is room again.
func TestADiskWithLittleRoomCountsAsFull(t *testing.T) {
	dir := smallDisk(t, 8<<20)
	s := open(t, filepath.Join(dir, "archive.db"))
	mustPut(t, s, put(t, "night", `{}`, 1))
	must.Do(t, s.tryWrite(t.Context()))
	var room syscall.Statfs_t
	must.Do(t, syscall.Statfs(dir, &room))
	ballast := filepath.Join(dir, "ballast")
	must.Do(t, os.WriteFile(ballast, make([]byte, int64(room.Bavail)*room.Bsize-256<<10), 0o600))
	if err := s.tryWrite(t.Context()); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("with 256 KiB left: %v", err)
	}
	must.Do(t, os.Remove(ballast))
	if err := s.tryWrite(t.Context()); err != nil {
		t.Error(err)
	}
	left, err := filepath.Glob(filepath.Join(dir, "*.probe"))
	if err != nil || left != nil {
		t.Errorf("the probe left %v behind (%v)", left, err)
	}
}
