package skuid

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"oda/internal/test/must"
)

func TestWithAStateNoIdentifierIsRepeatedAfterARestart(t *testing.T) {
	for _, c := range []struct {
		about  string
		end    func(*testing.T, *Generator)
		clocks []int64 // at each start, in milliseconds since epoch
	}{
		{"stopped, clock set back", stop, []int64{50_000, 40_000, 0, 50_000}},
		{"killed, clock set back", crash, []int64{50_000, 40_000, 0, 50_000}},
		{"killed, clock stands still", crash, []int64{50_000, 50_000, 50_000, 50_000}},
		{"killed, clock goes on", crash, []int64{50_000, 50_100, 90_000, 90_001}},
	} {
		t.Run(c.about, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "state")
			seen := make(map[uint64]bool)
			for start, now := range c.clocks {
				g := openGenerator(t, path, now)
				for range 3 * 2048 {
					n := next(t, g)
					if seen[n] {
						t.Fatalf("start %d: %d was repeated", start, n)
					}
					seen[n] = true
				}
				c.end(t, g)
			}
		})
	}
}

func TestWithoutAStateAClockThatStandsStillRepeatsIdentifiers(t *testing.T) {
	// The tests above rely on this.
	clock := withClock(func() time.Time { return time.UnixMilli(epoch + 50_000) })
	seen := make(map[uint64]bool)
	for range 2 {
		g := newGenerator(t, 5, clock)
		for range 2048 {
			seen[next(t, g)] = true
		}
	}
	if len(seen) != 2048 {
		t.Errorf("got %d numbers", len(seen))
	}
}

func TestTheReservationIsOnDiskBeforeTheIdentifierIsReturned(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	now := int64(0)
	g := newGenerator(t, 5, withClock(func() time.Time { return time.UnixMilli(epoch + now) }), withState(openState(t, path)))
	for range 2000 {
		now += 9
		n := next(t, g)
		if reserved := reservation(t, path); int64(n>>21) > reserved {
			t.Fatalf("millisecond %d is used, %d is reserved", n>>21, reserved)
		}
	}
	stop(t, g)
}

func TestTheFileIsWrittenOncePerReservation(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	now := int64(1000)
	g := newGenerator(t, 5, withClock(func() time.Time { return time.UnixMilli(epoch + now) }), withState(openState(t, path)))
	want := []struct{ clock, reserved int64 }{
		{1000, 3000},
		{1001, 3000},
		{3000, 3000},
		{3001, 5001},
		{9000, 11_000},
		{8000, 11_000},
	}
	for _, w := range want {
		now = w.clock
		next(t, g)
		if got := reservation(t, path); got != w.reserved {
			t.Errorf("clock at %d: reserved until %d, want %d", w.clock, got, w.reserved)
		}
	}
	stop(t, g)
	if got := reservation(t, path); got != 9000 {
		t.Errorf("after a stop: reserved until %d, want the last millisecond used, 9000", got)
	}
}

func TestStoppingWithoutMintingDoesNotChangeTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	stop(t, openGenerator(t, path, 7))
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("a file was written: %v", err)
	}
	g := openGenerator(t, path, 7)
	next(t, g)
	stop(t, g)
	stop(t, openGenerator(t, path, 90_000))
	if got := reservation(t, path); got != 7 {
		t.Errorf("reserved until %d, want 7", got)
	}
}

func TestAStateThatCannotBeWrittenStopsMinting(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "state")
	g := openGenerator(t, path, 7)
	// A directory with the name of the new file prevents the write.
	must.Do(t, os.Mkdir(path+".tmp", 0o755))
	if id, err := g.Next("sbd"); err == nil || !strings.Contains(err.Error(), "state file") {
		t.Fatalf("got %q, %v", id, err)
	}
	must.Do(t, os.Remove(path+".tmp"))
	if _, err := g.Next("sbd"); err != nil {
		t.Errorf("after the fault: %v", err)
	}
	stop(t, g)
}

func TestAnInvalidStateFileIsRefused(t *testing.T) {
	for about, text := range map[string]string{
		"empty":              "",
		"a number":           "1763177948123\n",
		"cut off":            "identifiers reserved until 2026-11-15T03:3",
		"no end of line":     "identifiers reserved until 2026-11-15T03:39:08.123Z",
		"two lines":          "identifiers reserved until 2026-11-15T03:39:08.123Z\n\n",
		"no such day":        "identifiers reserved until 2026-02-30T03:39:08.123Z\n",
		"finer than allowed": "identifiers reserved until 2026-11-15T03:39:08.123456Z\n",
		"before the epoch":   "identifiers reserved until 2026-01-06T23:59:59.999Z\n",
		"after the last":     "identifiers reserved until 2900-01-01T00:00:00.000Z\n",
		"long":               strings.Repeat("identifiers reserved until 2026-11-15T03:39:08.123Z\n", 1000),
		"binary":             "\x00\xff\x00",
	} {
		t.Run(about, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "state")
			writeFile(t, path, text)
			_, err := OpenState(path)
			if err == nil {
				t.Fatal("the file was accepted")
			}
			if message := err.Error(); !strings.Contains(message, path) || !strings.Contains(message, "restore it") || strings.Contains(message, "\n") {
				t.Errorf("the message does not help: %q", message)
			}
			// The lock is released, and the file is left for a person to
			// inspect.
			if after := readFile(t, path); after != text {
				t.Errorf("the file was changed to %q", after)
			}
			writeFile(t, path, "identifiers reserved until 2026-11-15T03:39:08.123Z\n")
			if err := openState(t, path).lock.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAStateFileCannotBeShared(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "state")
	g := openGenerator(t, path, 7)
	next(t, g)
	link := filepath.Join(dir, "link")
	must.Do(t, os.Symlink(path, link))
	for _, name := range []string{path, link} {
		if _, err := OpenState(name); err == nil || !strings.Contains(err.Error(), "in use by another process") {
			t.Errorf("%s: got %v", filepath.Base(name), err)
		}
	}
	stop(t, g)
	if err := openState(t, link).lock.Close(); err != nil {
		t.Error(err)
	}
}

func TestAStateFileInAMissingDirectoryIsRefused(t *testing.T) {
	if _, err := OpenState(filepath.Join(t.TempDir(), "none", "state")); err == nil {
		t.Error("the file was accepted")
	}
}

func FuzzStateFile(f *testing.F) {
	f.Add("identifiers reserved until 2026-11-15T03:39:08.123Z\n")
	f.Add("identifiers reserved until 2026-11-15T03:39:08.123+01:00\n")
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		until, ok := parseState(text)
		if !ok {
			return
		}
		if until < 0 || until > lastMillisecond {
			t.Errorf("%q: reserved until %d", text, until)
		}
		path := filepath.Join(t.TempDir(), "state")
		s := openState(t, path)
		defer s.lock.Close()
		must.Do(t, s.write(until))
		if again := readFile(t, path); again != text {
			t.Errorf("%q was read, and written as %q", text, again)
		}
	})
}

func openGenerator(t *testing.T, path string, clock int64) *Generator {
	t.Helper()
	return newGenerator(t, 5, withClock(func() time.Time { return time.UnixMilli(epoch + clock) }), withState(openState(t, path)))
}

func openState(t *testing.T, path string) *State {
	t.Helper()
	s := must.Get(OpenState(path))(t)
	return s
}

func stop(t *testing.T, g *Generator) {
	t.Helper()
	must.Do(t, g.Close())
}

// crash leaves everything as the end of a process does: the lock is gone, and
// nothing is cleaned up.
func crash(t *testing.T, g *Generator) {
	t.Helper()
	must.Do(t, g.state.lock.Close())
}

func reservation(t *testing.T, path string) int64 {
	t.Helper()
	until := must.Get(readState(path))(t)
	return until
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text := must.Get(os.ReadFile(path))(t)
	return string(text)
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	must.Do(t, os.WriteFile(path, []byte(text), 0o644))
}

func withState(s *State) func(*Generator) { return func(g *Generator) { g.keep(s) } }
