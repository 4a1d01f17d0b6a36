package env

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"oda/internal/test/must"
)

// AuditLines returns the lines of an audit log that are about a request, or all of
// them if the request is not named.
func AuditLines(tb testing.TB, path, requestID string) []map[string]any {
	tb.Helper()
	text := must.Get(os.ReadFile(path))(tb)
	var found []map[string]any
	for line := range strings.Lines(string(text)) {
		var in map[string]any
		if err := json.Unmarshal([]byte(line), &in); err != nil || !strings.HasSuffix(line, "\n") {
			tb.Fatalf("%q is not a line of JSON: %v", line, err)
		}
		if requestID == "" || in["request_id"] == requestID {
			found = append(found, in)
		}
	}
	return found
}
