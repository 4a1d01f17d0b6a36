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
	"time"

	"github.com/creack/pty"

	"oda/client"
	"oda/internal/doctor"
	"oda/internal/test/must"
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
	must.Do(t, os.WriteFile(settings, []byte("audit-log: /none/\u009b2J\u202e/x\n"), 0o600))
	for _, more := range [][]string{nil, {"-o", "json"}} {
		screen, out, err := pty.Open()
		must.Do(t, err)
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
		must.Do(t, out.Close())
		<-read
		_ = screen.Close()
		if text := said.String(); strings.ContainsAny(text, "\x1b\a\u009b\u202e") || !strings.Contains(text, "owned") || !strings.Contains(text, `\u202e`) {
			t.Errorf("%v: the terminal is told %q", more, text)
		}
	}
}

// What a server says about itself is judged: one finding for each thing that is wrong.
func TestTheDoctorJudgesWhatAServerSays(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		ready   string // why it is not; empty if it is
		metrics string
		ago     time.Duration // its clock
		want    string
	}{
		{"all is well", "", "oda_disk_free_bytes 5e+12\noda_wal_bytes 4096\noda_build_info{engine=\"sqlite\",version=\"1.2.3\"} 1\n", 0, ""},
		{"it is not ready", "its disk is full", "", 0, "wrong server: it is not ready: its disk is full"},
		{"little room", "", "oda_disk_free_bytes 1.048576e+06\n", 0, "wrong space: its disk has 1 MiB left"},
		{"a long log", "", "oda_wal_bytes 1.073741824e+09\n", 0, "warning space: its write-ahead log has 1024 MiB"},
		{"damage", "", `oda_problems_total{problem="damaged"} 3` + "\n", 0, "wrong damage: 3 requests since it started have met damaged data"},
		{"failed commits", "", "oda_commit_failures_total 2\n", 0, "warning server: 2 transactions since it started have failed"},
		{"recorders wait", "", "oda_recorder_lag_records 17\noda_recorder_lag_seconds 90\n", 0, "warning spool: 17 records are waiting in recorders, the oldest for 90 seconds"},
		{"another release", "", `oda_build_info{goversion="go1",version="1.2.2"} 1` + "\n", 0, "warning server: it runs oda 1.2.2, but this is oda 1.2.3"},
		{"another clock", "", "", time.Hour, "wrong clock: its clock and the clock of this machine differ by 1h0m"},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Date", time.Now().Add(-test.ago).UTC().Format(http.TimeFormat))
			if r.URL.Path == "/readyz" && test.ready != "" {
				w.Header().Set("Content-Type", "application/problem+json")
				w.WriteHeader(http.StatusServiceUnavailable)
				fmt.Fprintf(w, `{"type":"urn:oda:problem:unavailable","title":"x","status":503,"detail":%q,"instance":"x"}`, test.ready)
				return
			}
			fmt.Fprint(w, test.metrics)
		}))
		archive := must.Get(client.New(server.URL))(t)
		var got []string
		report := doctor.NewReport(10, func(f doctor.Finding) {
			level := "warning"
			if f.Wrong {
				level = "wrong"
			}
			if f.Do == "" || f.Place == "" {
				t.Errorf("%s: the finding %+v does not say where, or what to do", test.name, f)
			}
			got = append(got, fmt.Sprintf("%s %s: %s", level, f.Check, f.Detail))
		})
		if err := askServer(t.Context(), archive, report, "1.2.3"); err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
		if found := strings.Join(got, "\n"); !strings.HasPrefix(found, test.want) || (found == "") != (test.want == "") || len(got) > 1 {
			t.Errorf("%s: got %q, want %q", test.name, found, test.want)
		}
		archive.CloseIdleConnections()
		server.Close()
	}
}
