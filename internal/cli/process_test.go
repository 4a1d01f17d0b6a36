package cli

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
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

	"github.com/google/go-cmp/cmp"

	"oda/internal/test/env"
	"oda/internal/test/fault"
	"oda/internal/test/must"
)

// patience bounds every wait for something that happens at once on an idle
// machine.
const patience = 30 * time.Second

// stopBound is how long a process may take to stop. It cuts off connections
// after 8 s, and should be gone within 10 s.
const stopBound = 20 * time.Second

func TestRunningRequestsFinishWhenTheArchiveIsAskedToStop(t *testing.T) {
	t.Parallel()
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			db := "--db=sqlite:" + filepath.Join(t.TempDir(), "archive.db")
			p := env.Oda(t, "serve", db)
			if status, body := env.Send(t, "PUT", p.URL+"/sbds/before", `{"n":1}`); status != 200 {
				t.Fatalf("status %d: %s", status, body)
			}
			half, rest := `{"name":"`+strings.Repeat("a", 1000), strings.Repeat("b", 1000)+`"}`
			upload := dial(t, p)
			fmt.Fprintf(upload, "PUT /api/v1/sbds/slow HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(half)+len(rest), half)
			awaitUpload(t, p)
			asked := time.Now()
			p.Signal(signal)
			refused(t, p)
			must.Get(io.WriteString(upload, rest))(t)
			response, err := http.ReadResponse(bufio.NewReader(upload), nil)
			if err != nil {
				t.Fatalf("the running upload got no answer: %v", err)
			}
			defer response.Body.Close()
			stored, err := io.ReadAll(response.Body)
			if err != nil || response.StatusCode != 200 {
				t.Fatalf("the running upload got status %d, %v: %s", response.StatusCode, err, stored)
			}
			if code := p.Wait(); code != 0 {
				t.Errorf("exit code %d, want 0:\n%s", code, p.Log())
			}
			if took := time.Since(asked); took > env.AtMost(stopBound) {
				t.Errorf("stopping took %v", took)
			}

			again := env.Oda(t, "serve", db)
			if status, body := env.Send(t, "GET", again.URL+"/sbds/slow", ""); status != 200 || body != string(stored) {
				t.Errorf("after a restart: status %d: %s\nwant: %s", status, body, stored)
			}
			if status, body := env.Send(t, "GET", again.URL+"/sbds?created_after=2026-01-01", ""); status != 200 || body != `["before","slow"]` {
				t.Errorf("after a restart the listing is %d %s", status, body)
			}
			again.MustStop()
		})
	}
}

// One client that never finishes must neither keep the operator waiting nor
// make a requested stop look like a failure.
func TestAHangingClientDoesNotDelayAStop(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		command, says, sends string
	}{
		"in the middle of an upload":     {"serve", "after 8s and was cut off", "PUT /api/v1/sbds/x HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{"},
		"before its first request":       {"serve", "has stopped", ""},
		"at the identifier service":      {"skuid", "has stopped", ""},
		"in the middle of a header line": {"skuid", "has stopped", "GET /skuid/ska_id"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := env.Oda(t, test.command)
			conn := dial(t, p)
			must.Get(io.WriteString(conn, test.sends))(t)
			if strings.HasPrefix(test.sends, "PUT") {
				awaitUpload(t, p)
			} else {
				env.Send(t, "GET", "http://"+p.Host()+"/livez", "") // by now the first connection was accepted
			}
			asked := time.Now()
			p.MustStop()
			if took := time.Since(asked); took > env.AtMost(stopBound) {
				t.Errorf("stopping took %v", took)
			}
			if !strings.Contains(p.Log(), test.says) {
				t.Errorf("the log does not say %q:\n%s", test.says, p.Log())
			}
		})
	}
}

func TestAServerSurvivesSIGHUP(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"serve", "skuid"} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			p := env.Oda(t, command)
			for range 2 {
				p.Signal(syscall.SIGHUP)
			}
			p.AwaitLog("SIGHUP: no setting has changed")
			if status, body := env.Send(t, "GET", "http://"+p.Host()+"/livez", ""); status != 200 {
				t.Errorf("afterwards the server answers %d: %s", status, body)
			}
			p.MustStop()
		})
	}
}

// A command that waits for what it reads cannot end by itself. A second signal ends it.
func TestASecondSignalEndsACommandThatWaits(t *testing.T) {
	t.Parallel()
	pipe := filepath.Join(t.TempDir(), "pipe")
	must.Do(t, syscall.Mkfifo(pipe, 0o600))
	p := must.Get(fault.Start(exec.Command(env.Program(t), "token", "list", "--file="+pipe)))(t)
	t.Cleanup(p.Kill)
	deadline := time.Now().Add(patience)
	for ; ; time.Sleep(time.Millisecond) {
		writer, err := os.OpenFile(pipe, os.O_WRONLY|syscall.O_NONBLOCK, 0)
		if err == nil { // it reads
			defer writer.Close()
			break
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	for p.Running() {
		if time.Now().After(deadline) {
			t.Fatal("it does not end")
		}
		_ = p.Signal(os.Interrupt) // it may have ended
		time.Sleep(10 * time.Millisecond)
	}
	if status := p.State().Sys().(syscall.WaitStatus); !status.Signaled() || status.Signal() != syscall.SIGINT {
		t.Errorf("it ended with %v", p.State())
	}
}

// Only what goes on until it is interrupted has done its work then.
func TestAnInterruptedDemoHasFailed(t *testing.T) {
	t.Parallel()
	silent, asked := make(chan struct{}), make(chan struct{}, 100)
	busy := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		asked <- struct{}{}
		<-silent
	}))
	defer busy.Close()
	defer close(silent)
	interrupted := func(log *env.Journal, begun func() bool, args ...string) int {
		t.Helper()
		cmd := exec.Command(env.Program(t), args...)
		cmd.Stderr = log
		p := must.Get(fault.Start(cmd))(t)
		t.Cleanup(p.Kill)
		for deadline := time.Now().Add(patience); !begun(); time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) || !p.Running() {
				t.Fatalf("it does not begin: %s", log)
			}
		}
		must.Do(t, p.Signal(os.Interrupt))
		<-p.Ended()
		return p.State().ExitCode()
	}
	var said, live env.Journal
	code := interrupted(&said, func() bool { return len(asked) > 0 }, "demo", "--live", "--url="+busy.URL)
	if code != exitFailed || !strings.Contains(said.String(), "stopped before the week was stored") {
		t.Errorf("in the middle it exits with %d: %s", code, &said)
	}
	code = interrupted(&live, func() bool { return strings.Contains(live.String(), "recording into") }, "demo", "--live", "--longest=10", "--url="+env.Oda(t, "serve").Host())
	if code != exitOK {
		t.Errorf("after the week it exits with %d: %s", code, &live)
	}
}

func TestEveryLineOfTheLogIsJSONAndSaysWhoDidWhat(t *testing.T) {
	p := env.Oda(t, "serve", "--log-format=json", "--log-level=debug")
	const secret = "of-no-concern-to-the-log"
	document := `{"note":"` + secret + `"}`
	for _, request := range []struct{ method, path, body string }{
		{"PUT", "/sbds/sbd-1", document},
		{"GET", "/sbds/sbd-1", ""},
		{"PUT", "/ebs/eb-1", document},
		{"PATCH", "/ebs/eb-1/request_response", `{"request":"` + secret + `"}`},
		{"GET", "/prjs/prj-none", ""},
		{"PUT", "/sbis/sbi-1", `{"` + secret + `":`},
	} {
		env.Send(t, request.method, p.URL+request.path, request.body, "X-Forwarded-User", "ada", "X-Request-Id", request.method+request.path)
	}
	p.MustStop()
	if strings.Contains(p.Log(), secret) {
		t.Errorf("the log contains a part of a document:\n%s", p.Log())
	}
	got := make(map[string][]any)
	for line := range strings.Lines(p.Log()) {
		var entry map[string]any
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Fatalf("not JSON: %v: %s", err, line)
		}
		for _, key := range []string{"time", "level", "msg"} {
			if entry[key] == nil {
				t.Errorf("no %s: %s", key, line)
			}
		}
		if entry["msg"] != "request" {
			continue
		}
		if took, ok := entry["duration"].(float64); !ok || took <= 0 {
			t.Errorf("no duration: %s", line)
		}
		id, _ := entry["request_id"].(string)
		if id == "" {
			t.Errorf("no request_id: %s", line)
		}
		got[id] = []any{entry["user"], entry["kind"], entry["identifier"], entry["status"]}
	}
	want := map[string][]any{
		"PUT/sbds/sbd-1":                  {"ada", "SBDefinition", "sbd-1", 200.0},
		"GET/sbds/sbd-1":                  {"ada", "SBDefinition", "sbd-1", 200.0},
		"PUT/ebs/eb-1":                    {"ada", "ExecutionBlock", "eb-1", 200.0},
		"PATCH/ebs/eb-1/request_response": {"ada", "ExecutionBlock", "eb-1", 200.0},
		"GET/prjs/prj-none":               {"ada", "Project", "prj-none", 404.0},
		"PUT/sbis/sbi-1":                  {"ada", "SBInstance", "sbi-1", 400.0},
	}
	for id, line := range want {
		if diff := cmp.Diff(line, got[id]); diff != "" {
			t.Errorf("the line of %s: user, kind, identifier, status (-want +got):\n%s", id, diff)
		}
	}
}

func TestTheLogIsTextUnlessJSONIsRequested(t *testing.T) {
	for format, want := range map[string]string{
		"text": `level=INFO msg="serving the archive" address=x`,
		"json": `"level":"INFO","msg":"serving the archive","address":"x"`,
	} {
		var out strings.Builder
		log, _ := logging{LogFormat: format, LogLevel: "info"}.logger(&out)
		log.Info("serving the archive", "address", "x")
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s: %s", format, out.String())
		}
	}
	var out strings.Builder
	log, _ := logging{LogFormat: "text", LogLevel: "warn"}.logger(&out)
	log.Info("serving the archive")
	if out.Len() > 0 {
		t.Errorf("at level warn the log has: %s", out.String())
	}
}

func dial(t *testing.T, p *env.Process) net.Conn {
	t.Helper()
	conn := must.Get(net.DialTimeout("tcp", p.Host(), patience))(t)
	t.Cleanup(func() { _ = conn.Close() })
	must.Do(t, conn.SetDeadline(time.Now().Add(patience)))
	return conn
}

// awaitUpload waits until an earlier upload is being read. Answers to later
// requests show that connections are accepted at once, and reading a request's
// header takes less time than that.
func awaitUpload(t *testing.T, p *env.Process) {
	t.Helper()
	for range 3 {
		env.Send(t, "GET", "http://"+p.Host()+"/livez", "")
	}
}

// refused waits until the process accepts no new connections.
func refused(t *testing.T, p *env.Process) {
	t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		conn, err := net.DialTimeout("tcp", p.Host(), time.Second)
		if errors.Is(err, syscall.ECONNREFUSED) {
			return
		}
		if err == nil {
			_ = conn.Close()
		}
	}
	t.Fatal("the process still accepts connections after it was asked to stop")
}

// logrotate renames the audit log and sends SIGHUP.
func TestSIGHUPBeginsANewFileOfTheAuditLog(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.log")
	p := env.Oda(t, "serve", "--audit-log="+path)
	put := func(id string) {
		t.Helper()
		if status, body := env.Send(t, "PUT", "http://"+p.Host()+"/api/v1/sbds/"+id, `{"sbd_id":"`+id+`"}`); status != 200 {
			t.Fatalf("%d: %s", status, body)
		}
	}
	put("sbd-1")
	must.Do(t, os.Rename(path, path+".1"))
	put("sbd-2")
	p.Signal(syscall.SIGHUP)
	p.AwaitLog("the audit log was reopened")
	put("sbd-3")
	p.MustStop()
	for file, want := range map[string]string{path + ".1": "sbd-1 sbd-2", path: "sbd-3"} {
		text := must.Get(os.ReadFile(file))(t)
		if got := strings.Join(regexp.MustCompile(`sbd-\d`).FindAllString(string(text), -1), " "); got != want {
			t.Errorf("%s has lines about %s, want %s", filepath.Base(file), got, want)
		}
	}
}
