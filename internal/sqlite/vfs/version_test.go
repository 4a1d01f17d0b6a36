package vfs

import (
	"os/exec"
	"testing"
)

// read has the modules that this package reaches into, in the versions that were read
// for its doc comment.
const read = `modernc.org/libc v1.79.0
modernc.org/sqlite v1.61.0
zombiezen.com/go/sqlite v1.4.2
`

func TestTheModulesAreThoseThatWereRead(t *testing.T) {
	list := exec.CommandContext(t.Context(), "go", "list", "-m", "modernc.org/libc", "modernc.org/sqlite", "zombiezen.com/go/sqlite")
	used, err := list.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	if string(used) != read {
		t.Errorf("go.mod has\n%sbut these were read:\n%sRead again, in the new versions, each function that doc.go names, correct doc.go and log.go, "+
			"run the tests of internal/sqlite with the race detector, and write the new versions into this test", used, read)
	}
}
