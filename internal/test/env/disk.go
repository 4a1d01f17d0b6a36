package env

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"oda/internal/test/must"
)

// SmallDisk returns a directory on a file system of this many bytes, accessible
// to every user. Only root can mount one; for others the test is skipped.
func SmallDisk(tb testing.TB, bytes int) string {
	tb.Helper()
	if os.Geteuid() != 0 {
		tb.Skip("only root can mount a small file system")
	}
	// Other users may not enter tb.TempDir.
	dir := must.Get(os.MkdirTemp("", "oda-disk-"))(tb)
	tb.Cleanup(func() {
		if err := os.Remove(dir); err != nil {
			tb.Error(err)
		}
	})
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d,mode=755", bytes)); err != nil {
		tb.Skipf("a small file system cannot be mounted here: %v", err)
	}
	tb.Cleanup(func() {
		// A process that another test is just starting has copies of all open files until
		// its program is loaded, so the file system may be busy for a moment.
		Await(tb, "the small file system is unmounted", func() bool {
			err := syscall.Unmount(dir, 0)
			if err != nil && !errors.Is(err, syscall.EBUSY) {
				tb.Fatal(err)
			}
			return err == nil
		})
	})
	return dir
}

// FillDisk fills the file system of a directory, and returns a function that
// frees the space again.
func FillDisk(tb testing.TB, dir string) (empty func()) {
	tb.Helper()
	path := filepath.Join(dir, "filler")
	file := must.Get(os.Create(path))(tb)
	defer file.Close()
	for block := make([]byte, 64<<10); len(block) > 0; {
		if _, err := file.Write(block); err != nil {
			block = block[:len(block)/2] // down to the last bytes
		}
	}
	return func() {
		must.Do(tb, os.Remove(path))
	}
}
