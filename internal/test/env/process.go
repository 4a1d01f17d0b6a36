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

// Bounds of what a test waits for, on a machine that is busy with other tests.
const (
	startTimeout = time.Minute
	stopTimeout  = time.Minute
)

// program is the oda that all tests of a test binary share. It is built when
// the first of them asks for it.
var program struct {
	sync.Once
	dir string // empty: nothing was built
	err error
}

// Program gives the path of an oda that is built from the sources at hand, with
// the linker flags of a release. It is built once for all tests of a test
// binary, whose TestMain calls Clean.
func Program(tb testing.TB) string {
	tb.Helper()
	program.Do(build)
	if program.err != nil {
		tb.Fatalf("build oda: %v", program.err)
	}
	return filepath.Join(program.dir, "oda")
}

func build() {
	program.dir, program.err = os.MkdirTemp("", "oda-program-")
	if program.err != nil {
		return
	}
	cmd := exec.Command("go", "build", "-ldflags", "-s -w -X main.version=test", "-o", program.dir, "oda/cmd/oda")
	// As a release: static, and without the race detector, which would make a
	// test of its time or memory worthless.
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

// Process is an oda in a process of its own.
type Process struct {
	URL string // of its interface, without a slash at the end

	*fault.Process
	tb     testing.TB
	stderr *stderr
}

// Oda starts "oda serve" or "oda skuid" with further arguments and waits until
// it serves. It listens on a free port, logs JSON, runs in a fresh directory,
// and sees no variables that are meant for another oda; arguments may say
// otherwise. It is gone when the test ends.
func Oda(tb testing.TB, args ...string) *Process {
	tb.Helper()
	return start(tb, &stderr{served: make(chan string, 1)}, args)
}

// OdaOpening is Oda for an archive that takes long to open: it waits until the
// probes are answered. The URL is then that of /readyz.
func OdaOpening(tb testing.TB, args ...string) *Process {
	tb.Helper()
	return start(tb, &stderr{served: make(chan string, 1), opening: true}, args)
}

func start(tb testing.TB, log *stderr, args []string) *Process {
	tb.Helper()
	cmd := exec.Command(Program(tb), args...)
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
		tb.Fatalf("oda %s ended at once, %v:\n%s", strings.Join(args, " "), p.State(), p.Log())
	case <-time.After(startTimeout):
		tb.Fatalf("oda %s does not serve after %v:\n%s", strings.Join(args, " "), startTimeout, p.Log())
	}
	return p
}

// environment is that of the test, less what would configure an oda.
func environment() []string {
	env := []string{"ODA_LISTEN=127.0.0.1:0", "ODA_SKUID_LISTEN=127.0.0.1:0", "ODA_LOG_FORMAT=json"}
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "ODA_") && !strings.HasPrefix(variable, "SKUID_URL=") {
			env = append(env, variable)
		}
	}
	return env
}

// Host is where it listens, as host:port.
func (p *Process) Host() string {
	u, err := url.Parse(p.URL)
	if err != nil {
		p.tb.Fatalf("the address in the log: %v", err)
	}
	return u.Host
}

// Log gives what it has written to stderr so far.
func (p *Process) Log() string { return p.stderr.String() }

// Signal sends it a signal.
func (p *Process) Signal(s os.Signal) {
	p.tb.Helper()
	if err := p.Process.Signal(s); err != nil {
		p.tb.Fatalf("send %v to oda: %v", s, err)
	}
}

// Stop asks it to stop, as an operator does, and gives its exit code.
func (p *Process) Stop() int {
	p.tb.Helper()
	p.Signal(syscall.SIGTERM)
	return p.Wait()
}

// Wait waits until it has ended, and gives its exit code.
func (p *Process) Wait() int {
	p.tb.Helper()
	select {
	case <-p.Ended():
	case <-time.After(stopTimeout):
		p.tb.Fatalf("oda runs on %v after it was asked to stop:\n%s", stopTimeout, p.Log())
	}
	return p.State().ExitCode()
}

// stderr keeps the log of a process, and finds in it where it serves.
type stderr struct {
	served  chan string
	opening bool // the archive need not be open
	mu      sync.Mutex
	text    bytes.Buffer
	rest    []byte // a line that is not complete yet
	found   bool
}

// Write takes a part of the log.
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
