package cli

import (
	"errors"
	"strings"
	"testing"
)

// What has come of a list that breaks off is printed. An array is not closed, so that
// nobody takes it for the whole.
func TestAListThatBreaksOffIsPrintedSoFar(t *testing.T) {
	broken := errors.New("the archive is gone")
	list := func(yield func(string, error) bool) {
		_ = yield("sbd-1", nil) && yield("sbd-2", nil) && yield("", broken)
	}
	print := printer[string]{
		header: []string{"IDENTIFIER"}, row: func(id string) []cell { return plainCells(id) },
		line: strings.Clone, id: strings.Clone, json: func(id string) []byte { return []byte(`"` + id + `"`) },
	}
	for format, want := range map[string]string{
		"table": "IDENTIFIER\nsbd-1\nsbd-2\n", "id": "sbd-1\nsbd-2\n", "json": `["sbd-1","sbd-2"`, "yaml": "",
	} {
		var out strings.Builder
		err := print.all(&out, format, list, func(err error) error { return err })
		if !errors.Is(err, broken) || out.String() != want {
			t.Errorf("as %s it is printed as %q, %v; want %q", format, &out, err, want)
		}
	}
}
