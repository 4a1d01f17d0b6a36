package peers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"oda/internal/pgcluster"
)

// Bounds of the life of a server. A start may have a large archive to look at.
const (
	startTimeout = 60 * time.Second
	stopTimeout  = 10 * time.Second
)

// Server is a process that answers HTTP on 127.0.0.1.
type Server struct {
	Name string
	Addr string // host:port
	PID  int
	Log  string // the file that it logs to

	cmd   *exec.Cmd
	ended chan struct{} // closed when the process is gone
	once  sync.Once     // it is stopped
}

// command says how to start a server. {addr} in an argument stands for where
// it is to listen.
type command struct {
	name  string
	path  string
	args  []string
	env   []string // besides that of this process
	ready string   // path that answers 200 when it can work
}

// start starts a server and waits until it is ready.
func (l *Lab) start(ctx context.Context, c command) (*Server, error) {
	port, err := pgcluster.FreePort()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", c.name, err)
	}
	addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	args := make([]string, len(c.args))
	for i, arg := range c.args {
		args[i] = strings.ReplaceAll(arg, "{addr}", addr)
	}
	file, err := os.Create(filepath.Join(l.Dir, l.numbered(c.name)+".log"))
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", c.name, err)
	}
	defer file.Close() // the process has its own
	s := &Server{
		Name: c.name, Addr: addr, Log: file.Name(),
		cmd: exec.Command(c.path, args...), ended: make(chan struct{}),
	}
	s.cmd.Dir, s.cmd.Env = l.Dir, append(environment(), c.env...)
	s.cmd.Stdout, s.cmd.Stderr = file, file
	s.cmd.SysProcAttr = attributes()
	if err := s.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", c.name, err)
	}
	s.PID = s.cmd.Process.Pid
	go func() {
		defer close(s.ended)
		_ = s.cmd.Wait() // how it ended stands in its state
	}()
	if err := s.ready(ctx, c.ready); err != nil {
		_ = endGroup(s.PID)
		<-s.ended
		return nil, fmt.Errorf("start %s: %w\n%s", c.name, err, s.tail())
	}
	l.mu.Lock()
	l.servers = append(l.servers, s)
	l.mu.Unlock()
	return s, nil
}

// numbered makes a name for files that no other server of the lab has.
func (l *Lab) numbered(name string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.started[name]++
	return fmt.Sprintf("%s-%d", strings.ToLower(name), l.started[name])
}

// environment is that of this process, less what would configure an oda.
func environment() []string {
	var env []string
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "ODA_") && !strings.HasPrefix(variable, "SKUID_URL=") {
			env = append(env, variable)
		}
	}
	return env
}

// ready waits until a path answers 200.
func (s *Server) ready(ctx context.Context, path string) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.Addr+path, nil)
		if err != nil {
			return err
		}
		response, err := client.Do(request)
		if err == nil {
			_ = response.Body.Close() // nothing of it matters
			if response.StatusCode == http.StatusOK {
				return nil
			}
			err = fmt.Errorf("%s answers %s", path, response.Status)
		}
		select {
		case <-s.ended:
			return fmt.Errorf("it ended at once, %v", s.cmd.ProcessState)
		case <-ctx.Done():
			return fmt.Errorf("it is not ready: %w", err)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// Stop asks the process to end, and ends it after ten seconds if it does not.
// The error says whether it ended badly. Only the first call does anything.
func (s *Server) Stop(ctx context.Context) (err error) {
	s.once.Do(func() { err = s.stop(ctx) })
	return err
}

func (s *Server) stop(ctx context.Context) error {
	select {
	case <-s.ended:
		return fmt.Errorf("%s ended by itself, %v:\n%s", s.Name, s.cmd.ProcessState, s.tail())
	default:
	}
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	_ = s.cmd.Process.Signal(syscall.SIGTERM) // fails only if it has just ended
	var late error
	select {
	case <-s.ended:
	case <-ctx.Done():
		late = fmt.Errorf("%s did not stop when it was asked to:\n%s", s.Name, s.tail())
	}
	// What it started may still be there.
	_ = endGroup(s.PID)
	<-s.ended
	if late == nil && !s.cmd.ProcessState.Success() {
		return fmt.Errorf("%s ended badly, %v:\n%s", s.Name, s.cmd.ProcessState, s.tail())
	}
	return late
}

// endGroup kills a process and all that it started.
func endGroup(pid int) error {
	if err := syscall.Kill(-pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return err
	}
	return nil
}

// logTail is how much of a log stands in an error.
const logTail = 4 << 10

func (s *Server) tail() string {
	file, err := os.Open(s.Log)
	if err != nil {
		return err.Error()
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil && info.Size() > logTail {
		_, _ = file.Seek(-logTail, io.SeekEnd) // if it fails, the beginning is shown
	}
	text, err := io.ReadAll(io.LimitReader(file, logTail))
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// last is the end of what a program said.
func last(out []byte) []byte { return out[max(0, len(out)-logTail):] }
