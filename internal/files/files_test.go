package files

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

func TestAFileHasOneHolder(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	if IsLocked(path) {
		t.Error("a missing file is locked")
	}
	held, err := Lock(path, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Lock(path, 0o600); !errors.Is(err, ErrLocked) || !IsLocked(path) {
		t.Errorf("a second Lock returns %v; locked: %v", err, IsLocked(path))
	}
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	if IsLocked(path) {
		t.Error("a released file is locked")
	}
	again, err := Lock(path, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	again.Close()
	if _, err := Lock(filepath.Join(path, "none"), 0o600); err == nil {
		t.Error("a file inside a file was locked")
	}
}

// Who looks whether a file is locked is not taken for its holder.
func TestLookingAtALockDoesNotTakeIt(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	enough := make(chan struct{})
	var looking sync.WaitGroup
	looking.Go(func() {
		for {
			select {
			case <-enough:
				return
			default:
				IsLocked(path)
			}
		}
	})
	defer looking.Wait()
	defer close(enough)
	for range 20_000 {
		held, err := Lock(path, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		held.Close()
	}
}

// A lock on a removed file is worthless.
func TestALockedFileStillHasItsName(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	held, err := Lock(path, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	if !isNamed(held, path) {
		t.Error("a locked file does not have its name")
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if isNamed(held, path) {
		t.Error("a file that was removed has its name")
	}
	// Nor may it be another file with the same name.
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if isNamed(held, path) {
		t.Error("a removed file was taken for its successor")
	}
}

func TestAFileIsReplacedCompletelyOrNotAtAll(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	for text, replace := range map[string]func(string, []byte, os.FileMode) error{"quick": Replace, "synced": ReplaceSynced} {
		if err := replace(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != text {
			t.Errorf("the file has %q, want %q: %v", got, text, err)
		}
		// A folder cannot be replaced by a file.
		if err := replace(filepath.Dir(path), []byte(text), 0o600); err == nil {
			t.Error("a folder was replaced")
		}
	}
	left, err := filepath.Glob(dir + "*")
	if err != nil || len(left) != 1 {
		t.Errorf("files left: %v: %v", left, err)
	}
}

func TestAPendingFileAppearsAsAWhole(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path+".part", []byte("left by a process that was killed, and longer"), 0o644); err != nil {
		t.Fatal(err)
	}
	begin := func(replace bool) *Pending {
		t.Helper()
		f, err := Begin(path, "left by", replace)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString("left by nobody"); err != nil {
			t.Fatal(err)
		}
		return f
	}
	if _, err := Begin(path, "another file", false); !errors.Is(err, ErrInTheWay) {
		t.Errorf("a file that nobody has left gives %v", err)
	}
	f := begin(false)
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is there before it is complete (%v)", err)
	}
	if _, err := Begin(path, "left by", false); !errors.Is(err, ErrLocked) {
		t.Errorf("a second one at the same time gives %v", err)
	}
	if err := f.Commit(); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	info, statErr := os.Stat(path)
	if string(content) != "left by nobody" || info.Mode() != 0o600 || errors.Join(err, statErr) != nil {
		t.Errorf("it is %q, %v (%v)", content, info.Mode(), err)
	}
	if _, err := Begin(path, "left by", false); !errors.Is(err, ErrExists) {
		t.Errorf("a file that exists gives %v", err)
	}
	begin(true).Discard()
	if err := begin(true).Commit(); err != nil {
		t.Error(err)
	}
	if err := os.Truncate(path, 0); err != nil { // nothing is lost if it is replaced
		t.Fatal(err)
	}
	f = begin(false)
	if err := os.WriteFile(path, []byte("somebody was faster"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := f.Commit(); !errors.Is(err, ErrExists) {
		t.Errorf("a file that has appeared meanwhile gives %v", err)
	}
	if _, err := os.Stat(path + ".part"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("something is left (%v)", err)
	}
}

// Whoever may write to the folder must not choose which file is overwritten.
func TestNoLinkIsFollowed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	precious, path := filepath.Join(dir, "precious"), filepath.Join(dir, "file")
	if err := os.WriteFile(precious, []byte("precious"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, link := range map[string]func(from, to string) error{"symbolic": os.Symlink, "hard": os.Link} {
		t.Run(name, func(t *testing.T) {
			for _, side := range []string{".part", ".tmp", ".lock"} {
				if err := link(precious, path+side); err != nil {
					t.Fatal(err)
				}
			}
			if f, err := Begin(path, "prec", true); err == nil {
				if _, err := f.WriteString("new"); err != nil {
					t.Error(err)
				}
				if err := f.Commit(); err != nil {
					t.Error(err)
				}
			} else if name == "hard" {
				t.Error(err)
			}
			_ = Replace(path, []byte("new"), 0o600)
			if held, err := Lock(path+".lock", 0o600); err == nil {
				if name == "symbolic" {
					t.Error("a symbolic link was locked")
				}
				held.Close()
			}
			if content, err := os.ReadFile(precious); err != nil || string(content) != "precious" {
				t.Errorf("the file that the links lead to has %q (%v)", content, err)
			}
			if info, err := os.Stat(precious); err != nil || info.Mode() != 0o644 {
				t.Errorf("its mode is %v (%v)", info.Mode(), err)
			}
			for _, side := range []string{"", ".part", ".tmp", ".lock"} {
				_ = os.Remove(path + side)
			}
		})
	}
}
