package main

import (
	"bufio"
	"io"
	"net/http"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience bounds every wait of these tests, on a busy machine.
const patience = time.Minute

// command is a program to start in another root directory, as a user that is not root.
type command struct {
	root        string
	user, group uint32
	dir         string
	env         []string
	args        []string
}

// service is a running oda.
type service struct {
	cmd  *exec.Cmd
	done chan struct{}
	err  error // when done

	mu    sync.Mutex
	lines strings.Builder
	more  chan struct{} // closed and replaced with each line
}

// start starts a command. It is stopped at the end of the test.
func start(t *testing.T, c *command) *service {
	t.Helper()
	s := &service{done: make(chan struct{}), more: make(chan struct{})}
	s.cmd = exec.Command(c.args[0], c.args[1:]...)
	s.cmd.Dir, s.cmd.Env = c.dir, c.env
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: c.root, Credential: &syscall.Credential{Uid: c.user, Gid: c.group}, Pdeathsig: syscall.SIGKILL}
	stderr := have(s.cmd.StderrPipe())(t)
	must(t, s.cmd.Start())
	go s.follow(stderr)
	t.Cleanup(func() {
		s.cmd.Process.Kill()
		<-s.done
	})
	return s
}

// follow keeps what the program logs, until it ends.
func (s *service) follow(log io.Reader) {
	for lines := bufio.NewScanner(log); lines.Scan(); {
		s.mu.Lock()
		s.lines.WriteString(lines.Text() + "\n")
		close(s.more)
		s.more = make(chan struct{})
		s.mu.Unlock()
	}
	s.err = s.cmd.Wait()
	close(s.done)
}

func (s *service) log() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lines.String()
}

// await waits until the log has a text.
func (s *service) await(t *testing.T, text string) {
	t.Helper()
	late := time.After(patience)
	for {
		s.mu.Lock()
		found, more := strings.Contains(s.lines.String(), text), s.more
		s.mu.Unlock()
		if found {
			return
		}
		select {
		case <-more:
		case <-s.done:
			if !strings.Contains(s.log(), text) {
				t.Fatalf("it ended without saying %q:\n%s", text, s.log())
			}
			return
		case <-late:
			t.Fatalf("it did not say %q:\n%s", text, s.log())
		}
	}
}

var address = regexp.MustCompile(`"address":"(https?://[^/"]+)`)

// url is where the service listens.
func (s *service) url(t *testing.T) string {
	t.Helper()
	s.await(t, "serving the archive")
	found := address.FindStringSubmatch(s.log())
	if found == nil {
		t.Fatalf("the log has no address:\n%s", s.log())
	}
	return found[1]
}

// ready waits until the service serves, and is ready.
func (s *service) ready(t *testing.T) {
	t.Helper()
	s.request(t, "GET", "/readyz", "", http.StatusOK)
}

// request sends a request and returns the answer, which must have a status.
func (s *service) request(t *testing.T, method, path, body string, want int) string {
	t.Helper()
	request := have(http.NewRequest(method, s.url(t)+path, strings.NewReader(body)))(t)
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	client := http.Client{Timeout: patience}
	answer := have(client.Do(request))(t)
	defer answer.Body.Close()
	text := have(io.ReadAll(answer.Body))(t)
	if answer.StatusCode != want {
		t.Fatalf("%s %s is %d, want %d:\n%s", method, path, answer.StatusCode, want, text)
	}
	return string(text)
}

// wait waits until the program ends by itself.
func (s *service) wait() error {
	select {
	case <-s.done:
	case <-time.After(patience):
		s.cmd.Process.Kill()
		<-s.done
	}
	return s.err
}

// stop stops the service as systemd and Kubernetes do.
func (s *service) stop(t *testing.T) {
	t.Helper()
	must(t, s.cmd.Process.Signal(syscall.SIGTERM))
	if err := s.wait(); err != nil {
		t.Errorf("it ended with %v:\n%s", err, s.log())
	}
}
