package cli

import (
	"bufio"
	"context"
	"io"
	"log"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/creack/pty"

	"oda/internal/test/env"
	"oda/internal/test/must"
)

// What is recorded and stored is printed as it comes, also after the archive was away,
// until the person has enough.
func TestWhatComesIsPrinted(t *testing.T) {
	file := "--db=sqlite:" + t.TempDir() + "/archive.db"
	p := env.Oda(t, "serve", file)
	var at atomic.Value // the address at which the archive is now
	at.Store(p.Host())
	front := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(&url.URL{Scheme: "http", Host: at.Load().(string)})
	}, ErrorLog: log.New(io.Discard, "", 0)})
	t.Cleanup(front.Close)
	host := front.Listener.Addr().String()
	store := func(method, path, body string) {
		t.Helper()
		if status, answer := env.Send(t, method, "http://"+host+"/api/v1"+path, body); status != 200 {
			t.Fatalf("%s %s: %d %s", method, path, status, answer)
		}
	}
	store("PUT", "/ebs/eb-1", `{"request_responses":[{"request":"one"}]}`)
	calls := followed(t, host, false, "ebs", "records", "eb-1", "-f")
	calls.want(`{"sequence":1,`, `"record":{"request":"one"}}`)
	seen := followed(t, host, true, "ebs", "records", "eb-1", "--follow", "--color=never")
	seen.want("SEQUENCE", "REQUEST")
	seen.want("1 ", "one")
	running := followed(t, host, false, "running", "-f")
	running.want(`{"running":[]}`)
	if status, answer := env.Send(t, "PUT", "http://"+host+"/api/v1/ebs/eb-1/running/k", `{"request":"scan"}`); status != 204 {
		t.Fatalf("%d %s", status, answer)
	}
	running.want(`"request":"scan"`)
	all := followed(t, host, false, "changes", "-f", "--after=0")
	all.want(`{"position":2,`, `"change":"stored"`)

	store("POST", "/ebs/eb-1/request_response", `{"request":"two"}`)
	calls.want(`{"sequence":2,`, "two")
	seen.want("2 ", "two")
	all.want(`"id":"eb-1","change":"recorded"`)

	p.Stop()
	at.Store(env.Oda(t, "serve", file).Host())
	store("POST", "/ebs/eb-1/request_response", `{"request":"three","status":"FAILED"}`)
	store("PUT", "/sbds/sbd-1", `{}`)
	calls.want(`{"sequence":3,`, "three")
	seen.want("3 ", "failed", "three")
	all.want(`"id":"eb-1","change":"recorded"`)
	all.want(`"id":"sbd-1","change":"stored"`)
	running.want(`{"running":[]}`) // the recorder has not said it again
	for _, f := range []*follower{calls, seen, running, all} {
		f.interrupt()
	}
}

// follower is a command that prints what comes.
type follower struct {
	t   *testing.T
	cmd *exec.Cmd
	out *bufio.Reader
}

// followed starts a command, on a terminal or in a pipe.
func followed(t *testing.T, host string, terminal bool, args ...string) *follower {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, env.Program(t), args...)
	cmd.Env = append(os.Environ(), "ODA_URL=http://"+host, "TERM=xterm")
	var out io.Reader
	var err error
	if terminal {
		out, err = pty.Start(cmd)
	} else if out, err = cmd.StdoutPipe(); err == nil {
		err = cmd.Start()
	}
	must.Do(t, err)
	return &follower{t, cmd, bufio.NewReader(out)}
}

// want reads the next line, which must have all parts. A terminal also shows that the
// archive did not answer, and that it does again, if that was noticed.
func (f *follower) want(parts ...string) {
	f.t.Helper()
	line, err := f.out.ReadString('\n')
	for strings.Contains(line, " WARN the archive does not answer") || strings.Contains(line, " INFO the archive answers again") {
		line, err = f.out.ReadString('\n')
	}
	for _, part := range parts {
		if !strings.Contains(line, part) {
			f.t.Fatalf("%v prints %q, %v, without %q", f.cmd.Args, line, err, part)
		}
	}
}

// interrupt ends the command with Ctrl-C.
func (f *follower) interrupt() {
	f.t.Helper()
	if err := f.cmd.Process.Signal(os.Interrupt); err != nil {
		f.t.Fatal(err)
	}
	rest, _ := io.ReadAll(f.out) // a terminal ends with an error
	if len(rest) > 0 {
		f.t.Errorf("%v also prints %q", f.cmd.Args, rest)
	}
	_ = f.cmd.Wait() // the signal has ended it
}
