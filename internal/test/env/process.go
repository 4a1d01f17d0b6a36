package env

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"oda/internal/test/fault"
)

// Bounds for the waits of a test on a busy machine.
const (
	startTimeout = time.Minute
	stopTimeout  = time.Minute
)

// program is the oda that all tests of a test binary share. The first of them
// builds it.
var program struct {
	sync.Once
	path string
	dir  string // empty if nothing was built
	err  error
}

// Program returns the path of an oda with the linker flags of a release: the one that
// ODA_BIN names, as "make test" does, which has just built it; or one that is built
// from the current sources, once per test binary, whose TestMain must call Clean.
func Program(tb testing.TB) string {
	tb.Helper()
	program.Do(build)
	if program.err != nil {
		tb.Fatalf("build oda: %v", program.err)
	}
	return program.path
}

func build() {
	if program.path = os.Getenv("ODA_BIN"); program.path != "" {
		_, program.err = os.Stat(program.path) // so that "go test" knows when it was built
		return
	}
	program.dir, program.err = os.MkdirTemp("", "oda-program-")
	if program.err != nil {
		return
	}
	program.path = filepath.Join(program.dir, "oda")
	cmd := exec.Command("go", "build", "-ldflags", "-s -w -X main.version=test", "-o", program.path, "oda/cmd/oda")
	// As in a release: static, and without the race detector, which would spoil
	// measurements of time and memory.
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		program.err = fmt.Errorf("%w: %s", err, out)
	}
}

// Clean removes what the tests of a test binary shared. TestMain calls it after
// the last test.
func Clean() error {
	if program.dir == "" {
		return nil
	}
	return os.RemoveAll(program.dir)
}

// Process is an oda in its own process.
type Process struct {
	URL string // URL of its API, without a trailing slash

	*fault.Process
	tb     testing.TB
	stderr *stderr
}

// Oda starts "oda serve" or "oda skuid" with further arguments and waits until
// it serves. By default it listens on a free port, logs JSON, runs in a fresh
// directory, and sees no environment variables meant for another oda. It ends
// with the test.
func Oda(tb testing.TB, args ...string) *Process {
	tb.Helper()
	return OdaOf(tb, Program(tb), args...)
}

// OdaOf is like Oda, with another program.
func OdaOf(tb testing.TB, program string, args ...string) *Process {
	tb.Helper()
	return start(tb, program, &stderr{served: make(chan string, 1)}, args)
}

// OdaOpening is like Oda, for an archive that takes long to open: it waits
// until probes are answered. The URL is that of /readyz.
func OdaOpening(tb testing.TB, args ...string) *Process {
	tb.Helper()
	return start(tb, Program(tb), &stderr{served: make(chan string, 1), opening: true}, args)
}

func start(tb testing.TB, program string, log *stderr, args []string) *Process {
	tb.Helper()
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.Env, cmd.Stderr = tb.TempDir(), environment(), log
	process, err := fault.Start(cmd)
	if err != nil {
		tb.Fatalf("start oda %s: %v", strings.Join(args, " "), err)
	}
	p := &Process{Process: process, tb: tb, stderr: log}
	tb.Cleanup(p.Kill)
	select {
	case p.URL = <-p.stderr.served:
	case <-p.Ended():
		tb.Fatalf("oda %s exited at once, %v:\n%s", strings.Join(args, " "), p.State(), p.Log())
	case <-time.After(startTimeout):
		tb.Fatalf("oda %s does not serve after %v:\n%s", strings.Join(args, " "), startTimeout, p.Log())
	}
	return p
}

// environment returns the environment of the test without the settings of oda.
func environment() []string {
	env := []string{"ODA_LISTEN=127.0.0.1:0", "ODA_SKUID_LISTEN=127.0.0.1:0", "ODA_LOG_FORMAT=json"}
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "ODA_") && !strings.HasPrefix(variable, "SKUID_URL=") {
			env = append(env, variable)
		}
	}
	return env
}

// Host returns the address that the process listens on, as host:port.
func (p *Process) Host() string {
	u, err := url.Parse(p.URL)
	if err != nil {
		p.tb.Fatalf("the address in the log: %v", err)
	}
	return u.Host
}

// Log returns what the process has written to stderr so far.
func (p *Process) Log() string { return p.stderr.String() }

// AwaitLog waits until the log has a text.
func (p *Process) AwaitLog(text string) {
	p.tb.Helper()
	Await(p.tb, "the log says "+text, func() bool { return strings.Contains(p.Log(), text) })
}

// Signal sends a signal to the process.
func (p *Process) Signal(s os.Signal) {
	p.tb.Helper()
	if err := p.Process.Signal(s); err != nil {
		p.tb.Fatalf("send %v to oda: %v", s, err)
	}
}

// Stop asks the process to stop, as an operator would, and returns its exit
// code.
func (p *Process) Stop() int {
	p.tb.Helper()
	p.Signal(syscall.SIGTERM)
	return p.Wait()
}

// MustStop stops the process, which must end well.
func (p *Process) MustStop() {
	p.tb.Helper()
	if code := p.Stop(); code != 0 {
		p.tb.Errorf("asked to stop, oda exits with %d:\n%s", code, p.Log())
	}
}

// Wait waits until the process has ended, and returns its exit code.
func (p *Process) Wait() int {
	p.tb.Helper()
	select {
	case <-p.Ended():
	case <-time.After(stopTimeout):
		p.tb.Fatalf("oda is still running %v after it was asked to stop:\n%s", stopTimeout, p.Log())
	}
	return p.State().ExitCode()
}

// stderr keeps the log of a process, and finds its address in it.
type stderr struct {
	served  chan string
	opening bool // the archive need not be open
	mu      sync.Mutex
	text    bytes.Buffer
	rest    []byte // an incomplete line
	found   bool
}

// Write adds a part of the log.
func (s *stderr) Write(part []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text.Write(part)
	if s.found {
		return len(part), nil
	}
	s.rest = append(s.rest, part...)
	for !s.found {
		line, rest, complete := bytes.Cut(s.rest, []byte("\n"))
		if !complete {
			break
		}
		s.rest = rest
		var entry struct{ Msg, Address string }
		if json.Unmarshal(line, &entry) != nil {
			continue
		}
		switch {
		case entry.Msg == "serving the archive", s.opening && entry.Msg == "opening the archive takes long":
			s.served <- strings.TrimSuffix(entry.Address, "/")
			s.found = true
		case entry.Msg == "the identifier service listens":
			s.served <- "http://" + entry.Address
			s.found = true
		}
	}
	return len(part), nil
}

func (s *stderr) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}
