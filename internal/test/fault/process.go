package fault

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Process is a started program.
type Process struct {
	cmd   *exec.Cmd
	ended chan struct{}
}

// Start starts a program.
func Start(cmd *exec.Cmd) (*Process, error) {
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &Process{cmd: cmd, ended: make(chan struct{})}
	go func() {
		defer close(p.ended)
		_ = cmd.Wait() // its state says how it ended
	}()
	return p, nil
}

// PID returns the process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Ended returns a channel that is closed when the process is gone and its
// output complete.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Running reports whether the process is running.
func (p *Process) Running() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// State says how the process ended. It is nil while the process is running.
func (p *Process) State() *os.ProcessState {
	if p.Running() {
		return nil
	}
	return p.cmd.ProcessState
}

// Signal sends a signal.
func (p *Process) Signal(s os.Signal) error { return p.cmd.Process.Signal(s) }

// Kill ends the process like kill -9, and waits until it is gone. It may be
// called again.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // fails only if the process is gone
	<-p.ended
}

// KillTree kills a process and its children at once, like a power cut, and
// waits until all are gone.
func KillTree(ctx context.Context, pid int) error {
	// Stop the process first, so that it starts no children between the search
	// and the kill. Both signals fail only if it is gone.
	_ = syscall.Kill(pid, syscall.SIGSTOP)
	all := append(children(pid), pid)
	for _, one := range all {
		_ = syscall.Kill(one, syscall.SIGKILL)
	}
	return Poll(ctx, Timeout, fmt.Sprintf("the end of the processes %v", all), func() (bool, error) {
		return !slices.ContainsFunc(all, alive), nil
	})
}

// children returns the child processes of a process. It finds them only on
// Linux; elsewhere they end by themselves soon after their parent.
func children(pid int) []int {
	paths, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is valid
	var found []int
	for _, path := range paths {
		child, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if _, parent := processState(child); parent == pid {
			found = append(found, child)
		}
	}
	return found
}

// alive reports whether a process is running. A zombie is not.
func alive(pid int) bool {
	state, _ := processState(pid)
	return state != "" && state != "Z"
}

// processState returns the state and the parent of a process, or "" if it is
// gone.
func processState(pid int) (state string, parent int) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", 0
	}
	// The name before the state is in parentheses and may contain anything.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 2 {
		return "", 0
	}
	parent, _ = strconv.Atoi(fields[1])
	return fields[0], parent
}

// Bounds for the pauses of Poll.
const shortPause, longPause = 5 * time.Millisecond, 100 * time.Millisecond

// Poll asks until the answer is yes, or the time is over.
func Poll(ctx context.Context, most time.Duration, what string, done func() (bool, error)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, most, fmt.Errorf("gave up after waiting %v for %s", most, what))
	defer cancel()
	for pause := shortPause; ; pause = min(2*pause, longPause) {
		yes, err := done()
		if ctx.Err() != nil && !yes {
			return context.Cause(ctx)
		}
		if yes || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pause):
		}
	}
}

// ProcessorTime returns how long this process has kept processors busy.
func ProcessorTime() time.Duration {
	var used syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &used) // cannot fail
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
