package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"oda/internal/test/fault"
)

// Time limits for a server. At a start it may have to inspect a large archive.
const (
	startTimeout = time.Minute
	stopTimeout  = 20 * time.Second
)

// process is a running server on 127.0.0.1.
type process struct {
	*fault.Process
	program, log string
	addr         string
	pprof        string // address of the profiles of an oda that is profiled
}

// startProcess starts a server and waits until the path ready answers 200. In
// an argument, {addr} stands for the address to listen on. Servers end with
// this program, even if it is killed.
func startProcess(ctx context.Context, log, ready, program string, args ...string) (*process, error) {
	addr, err := fault.FreeAddr()
	if err != nil {
		return nil, err
	}
	pprof, err := fault.FreeAddr()
	if err != nil {
		return nil, err
	}
	args = slices.Clone(args)
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], "{addr}", addr)
	}
	file, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	defer file.Close() // the process has its own
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr = file, file
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	// The environment of this shell must not configure an oda.
	cmd.Env = slices.DeleteFunc(os.Environ(), func(variable string) bool {
		return strings.HasPrefix(variable, "ODA_") || strings.HasPrefix(variable, "SKUID_URL=")
	})
	cmd.Env = append(cmd.Env, "BENCH_PPROF="+pprof)
	started, err := fault.Start(cmd)
	if err != nil {
		return nil, err
	}
	p := &process{started, program, log, addr, pprof}
	if err := p.ready(ctx, ready); err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", program, err), p.stop())
	}
	return p, nil
}

func (p *process) ready(ctx context.Context, path string) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		_, err := p.do(ctx, http.MethodGet, path, nil)
		if err == nil || !p.Running() {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the server is not ready: %w\n%s", err, p.tail())
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// client is for preparations; load has its own. Answers are not decompressed.
var client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: fillers, DisableCompression: true}}

// do sends one request, for preparations; the answer must be 200.
func (p *process) do(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	return exchange(ctx, method, "http://"+p.addr+path, body)
}

func exchange(ctx context.Context, method, url string, body []byte) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s %s answered %d: %.300s", method, url, resp.StatusCode, answer)
	}
	return answer, err
}

// stop ends the process, and removes its log, which has a line per request.
func (p *process) stop() error {
	early := !p.Running()
	if !early {
		_ = p.Signal(syscall.SIGTERM) // fails only if the process has just ended
		late := time.AfterFunc(stopTimeout, p.Kill)
		<-p.Ended()
		late.Stop()
	}
	if early || !p.State().Success() {
		return fmt.Errorf("%s ended, %v\n%s", p.program, p.State(), p.tail())
	}
	return os.Remove(p.log)
}

// tail returns the end of the log.
func (p *process) tail() []byte {
	text, _ := os.ReadFile(p.log) // empty if it cannot be read
	return text[max(0, len(text)-4<<10):]
}

// proc returns a number from a file of a process in /proc, such as VmRSS in
// status.
func proc(pid int, file, name string) (float64, error) {
	path := fmt.Sprintf("/proc/%d/%s", pid, file)
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if rest, found := strings.CutPrefix(line, name+":"); found {
			return strconv.ParseFloat(strings.Fields(rest)[0], 64)
		}
	}
	return 0, fmt.Errorf("no %s in %s", name, path)
}

// resident returns the memory of the process.
func (p *process) resident() (float64, error) { return p.kibibytes("VmRSS") }

func (p *process) kibibytes(name string) (float64, error) {
	n, err := proc(p.PID(), "status", name)
	return n * 1024, err
}

// effort measures how long work takes and, if a server does it, how far its memory
// rises meanwhile.
func effort(server *process, work func() error) (sample, error) {
	var before float64
	if server != nil {
		var err error
		if before, err = server.resident(); err == nil {
			err = os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", server.PID()), []byte("5"), 0) // forgets the peak
		}
		if err != nil {
			return nil, err
		}
	}
	begin := time.Now()
	err := work()
	got := sample{took: time.Since(begin).Seconds()}
	if err == nil && server != nil {
		var peak float64
		peak, err = server.kibibytes("VmHWM")
		got[memory] = max(0, peak-before)
	}
	return got, err
}

// run runs a program and returns its output.
func run(ctx context.Context, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "CGO_ENABLED=0")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out[max(0, len(out)-4<<10):])
	}
	return strings.TrimSpace(string(out)), nil
}
