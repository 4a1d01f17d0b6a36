package sqlite

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	"oda"
	"oda/internal/test/must"
)

// A file that is no longer where the next start looks for it takes no more writes: they would
// be acknowledged, and lost. What is stored can be read and backed up, and once the file is
// back, the archive goes on.
func TestAFileThatIsNotInItsPlaceTakesNoWrites(t *testing.T) {
	t.Parallel()
	for _, suffix := range []string{"", "-wal"} {
		for _, replaced := range []bool{false, true} {
			t.Run(map[bool]string{false: "moved", true: "replaced"}[replaced]+suffix, func(t *testing.T) {
				t.Parallel()
				path := archivePath(t)
				s := open(t, path)
				mustPut(t, s, put(t, "a", `{}`, 1))
				away := path + ".away"
				must.Do(t, os.Rename(path+suffix, away))
				if replaced {
					content := must.Get(os.ReadFile(away))(t)
					must.Do(t, os.WriteFile(path+suffix, content, 0o600))
				}
				if err := s.Ping(t.Context()); oda.CodeOf(err) != oda.Unavailable || !strings.Contains(err.Error(), "moved, removed or replaced") {
					t.Errorf("the archive is ready, or gives no reason: %v", err)
				}
				time.Sleep(lookEvery)
				_, err := s.Put(t.Context(), []oda.Put{put(t, "b", `{}`, 1)})
				if oda.CodeOf(err) != oda.Unavailable || !strings.Contains(err.Error(), "Nothing was stored") {
					t.Fatalf("a write was answered with %v", err)
				}
				if !stored(t, s, "a") || stored(t, s, "b") {
					t.Error("what is stored cannot be read, or what was refused can")
				}
				if suffix == "" {
					if err := s.Backup(t.Context(), &bytes.Buffer{}, "test"); err != nil {
						t.Errorf("what is stored cannot be backed up: %v", err)
					}
				}
				must.Do(t, os.Rename(away, path+suffix))
				for deadline := time.Now().Add(30 * time.Second); s.Ping(t.Context()) != nil; time.Sleep(10 * time.Millisecond) {
					if time.Now().After(deadline) {
						t.Fatal("the file is back, but the archive is not ready")
					}
				}
				mustPut(t, s, put(t, "b", `{}`, 1))
			})
		}
	}
}
