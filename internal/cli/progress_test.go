package cli

import (
	"encoding/base64"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"oda/internal/test/env"
	"oda/internal/test/must"
)

// On a terminal, commands that move an archive show a bar with the rate, the time left
// and what was set aside, which fits into a line and is removed at the end. In a pipe
// there is nothing of it.
func TestProgressIsABarOnATerminal(t *testing.T) {
	t.Parallel()
	p := env.Oda(t, "serve")
	random := rand.NewChaCha8([32]byte{})
	for i := range 8 {
		text := make([]byte, 750_000)
		random.Read(text)
		if status, body := env.Send(t, "PUT", fmt.Sprintf("%s/sbds/sbd-%d", p.URL, i), fmt.Sprintf(`{"note":%q}`, base64.StdEncoding.EncodeToString(text))); status != 200 {
			t.Fatalf("%d: %s", status, body)
		}
	}
	oda := func(args ...string) *exec.Cmd {
		cmd := exec.Command(env.Program(t), args...)
		cmd.Env = append(os.Environ(), "TERM=xterm")
		return cmd
	}
	copied, saved := "sqlite:"+filepath.Join(t.TempDir(), "archive.db"), filepath.Join(t.TempDir(), "backup")
	for _, cmd := range []*exec.Cmd{oda("backup", "-q", "-o", saved, "--url", p.URL), oda("restore", "-q", saved, "--db", copied)} {
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	// Each command is held in the middle until the bar was seen.
	const half = 3 << 20
	relay := func(t *testing.T, hold <-chan struct{}) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			answer, err := http.Get("http://" + p.Host() + r.URL.Path)
			if err != nil {
				panic(err)
			}
			defer answer.Body.Close()
			if passOn(w, answer.Body, half, hold) != nil {
				panic(http.ErrAbortHandler)
			}
		}))
		t.Cleanup(s.Close)
		return s.URL
	}
	for name, test := range map[string]struct {
		command func(t *testing.T, hold <-chan struct{}) *exec.Cmd
		bar     string
	}{
		"import": {func(t *testing.T, hold <-chan struct{}) *exec.Cmd {
			return oda("import", older(t, hold), "--db=sqlite:"+filepath.Join(t.TempDir(), "archive.db"), "--report="+filepath.Join(t.TempDir(), "report"))
		}, `\[=+ +\] importing: \d of 10, \d+/s, \d+m?\d*s left, 1 set aside`},
		"export": {func(t *testing.T, hold <-chan struct{}) *exec.Cmd {
			cmd := oda("export", "-o", "-", "--db", copied)
			out := must.Get(cmd.StdoutPipe())(t)
			go passOn(io.Discard, out, half, hold)
			return cmd
		}, `\[=+ +\] exporting: \d of 8, \d+/s, \d+m?\d*s left`},
		"export over HTTP": {func(t *testing.T, hold <-chan struct{}) *exec.Cmd {
			return oda("export", "-o", filepath.Join(t.TempDir(), "export"), "--url", relay(t, hold))
		}, `exporting: \d+ KiB, \d+ [KM]iB/s`},
		"backup": {func(t *testing.T, hold <-chan struct{}) *exec.Cmd {
			return oda("backup", "-o", filepath.Join(t.TempDir(), "backup"), "--url", relay(t, hold))
		}, `\[=+ +\] backing up: \d+ KiB of \d+ KiB, \d+ [KM]iB/s, \d+m?\d*s left`},
		"restore": {func(t *testing.T, hold <-chan struct{}) *exec.Cmd {
			pipe := filepath.Join(t.TempDir(), "pipe")
			must.Do(t, syscall.Mkfifo(pipe, 0o600))
			go func() {
				from, err := os.Open(saved)
				if err != nil {
					panic(err)
				}
				defer from.Close()
				to, err := os.OpenFile(pipe, os.O_WRONLY, 0)
				if err != nil {
					panic(err)
				}
				defer to.Close()
				_ = passOn(to, from, half, hold) // what is missing fails the restore
			}()
			return oda("restore", pipe, "--db=sqlite:"+filepath.Join(t.TempDir(), "archive.db"))
		}, `\[=+ +\] restoring: \d+ KiB of \d+ KiB, \d+ [KM]iB/s, \d+m?\d*s left`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hold := make(chan struct{})
			shown := watched(t, test.command(t, hold), regexp.MustCompile(test.bar), hold)
			for line := range strings.SplitSeq(shown, "\r") {
				if line = strings.TrimPrefix(line, "\x1b[K"); strings.HasPrefix(line, "[=") && len(line) >= 80 {
					t.Errorf("a line has %d characters: %q", len(line), line)
				}
			}
			if rest := shown[strings.LastIndex(shown, "/s")+1:]; !strings.Contains(rest, "\r\x1b[K") {
				t.Errorf("the bar was not removed at the end: %q", shown)
			}
			open := make(chan struct{})
			close(open)
			var stderr strings.Builder
			cmd := test.command(t, open)
			cmd.Stderr = &stderr
			if err := cmd.Run(); err != nil && name != "import" { // one is set aside
				t.Errorf("%v: %s", err, stderr.String())
			}
			if strings.ContainsAny(stderr.String(), "\r\x1b") || strings.Contains(stderr.String(), "[=") {
				t.Errorf("in a pipe there is %q", stderr.String())
			}
		})
	}
}

// passOn copies the first bytes, and the rest when hold is closed.
func passOn(to io.Writer, from io.Reader, first int64, hold <-chan struct{}) error {
	if _, err := io.CopyN(to, from, first); err != nil {
		return err
	}
	<-hold
	_, err := io.Copy(to, from)
	return err
}

// older serves ten SBDefinitions as an older archive does. One of them is not valid, and
// the last ones come when hold is closed.
func older(t *testing.T, hold <-chan struct{}) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := filepath.Base(r.URL.Path)
		switch {
		case strings.HasSuffix(r.URL.Path, "/sbds"):
			fmt.Fprint(w, `["sbd-0","sbd-1","sbd-2","sbd-3","sbd-4","sbd-5","sbd-6","sbd-7","sbd-8","sbd-9"]`)
		case id == "sbis" || id == "ebs" || id == "prjs":
			fmt.Fprint(w, `[]`)
		case id == "sbd-2":
			fmt.Fprint(w, `{"sbd_id":"sbd-2","metadata":7}`)
		case strings.HasPrefix(id, "sbd-"):
			if id > "sbd-6" {
				<-hold
			}
			fmt.Fprintf(w, `{"sbd_id":%q,"metadata":{"version":1,"created_by":"ada","created_on":"2022-10-01T10:00:00Z"}}`, id)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL + "/oda/api/v1"
}

// watched runs a command on a terminal of 80 columns until it shows something, then
// closes hold, and returns everything that was shown.
func watched(t *testing.T, cmd *exec.Cmd, want *regexp.Regexp, hold chan struct{}) string {
	t.Helper()
	screen, terminal, err := pty.Open()
	must.Do(t, err)
	defer screen.Close()
	must.Do(t, pty.Setsize(screen, &pty.Winsize{Rows: 24, Cols: 80}))
	cmd.Stderr = terminal
	err = cmd.Start()
	_ = terminal.Close()
	must.Do(t, err)
	timeout := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
	defer timeout.Stop()
	var shown []byte
	seen := false
	for part := make([]byte, 4096); ; {
		n, err := screen.Read(part)
		shown = append(shown, part[:n]...)
		if !seen && want.Match(shown) {
			seen = true
			close(hold)
		}
		if err != nil { // the program has ended
			break
		}
	}
	_ = cmd.Wait() // the test without a terminal looks at its end
	if !seen {
		close(hold)
		t.Errorf("the terminal shows %q, want %s", shown, want)
	}
	return string(shown)
}
