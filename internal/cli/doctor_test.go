package cli

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/creack/pty"
)

// A server or a file may say anything. A terminal must not obey it.
func TestTheDoctorQuotesNoCommandsToTheTerminal(t *testing.T) {
	t.Parallel()
	const evil = "\x1b]0;owned\a\u009b2J\u202e"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/readyz" {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprintf(w, `{"type":"urn:oda:problem:unavailable","title":"x","status":503,"detail":"\u001b]0;owned\u0007%s","instance":"x"}`, "\u009b2J\u202e")
			return
		}
		fmt.Fprintf(w, "oda_build_info{version=\"%s\"} 1\n", evil)
	}))
	defer server.Close()
	settings := filepath.Join(t.TempDir(), "oda.yaml")
	if err := os.WriteFile(settings, []byte("audit-log: /none/\u009b2J\u202e/x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, more := range [][]string{nil, {"--json"}} {
		screen, out, err := pty.Open()
		if err != nil {
			t.Fatal(err)
		}
		var said bytes.Buffer
		read := make(chan struct{})
		go func() {
			defer close(read)
			_, _ = said.ReadFrom(screen) // it ends with an error when the other side is closed
		}()
		args := append([]string{"doctor", "--url", server.URL, "--settings", settings, "--spool", t.TempDir(), "-q"}, more...)
		if code := Run(args, out, out, "1.2.3"); code != exitDamaged {
			t.Errorf("%v: the exit code is %d", more, code)
		}
		if err := out.Close(); err != nil {
			t.Fatal(err)
		}
		<-read
		_ = screen.Close()
		if text := said.String(); strings.ContainsAny(text, "\x1b\a\u009b\u202e") || !strings.Contains(text, "owned") || !strings.Contains(text, `\u202e`) {
			t.Errorf("%v: the terminal is told %q", more, text)
		}
	}
}
