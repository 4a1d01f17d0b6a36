package testenv

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// start starts the server of a cluster and waits until it takes connections.
func (c *Cluster) start() error {
	if c.Running() {
		return errors.New("it runs already")
	}
	log, err := os.OpenFile(string(c.log), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	// The port and the directories are no settings in a file: a standby begins
	// with a copy of its primary's files.
	process := c.installed.command(c.SocketDir, "postgres", "-D", c.DataDir,
		"-h", "127.0.0.1", "-p", strconv.Itoa(c.Port), "-k", c.SocketDir)
	process.Stdout, process.Stderr = log, log
	if err := process.Start(); err != nil {
		return err
	}
	watched := c.janitor.watch(process.Process.Pid)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = process.Wait()     // how it ended stands in its log
		_ = c.janitor.watch(0) // nobody else may get its number and be ended
	}()
	c.process, c.ended = process, ended
	return errors.Join(watched, c.ready())
}

// ready waits until it takes connections.
func (c *Cluster) ready() error {
	ctx, cancel := context.WithTimeout(context.Background(), clusterTimeout)
	defer cancel()
	return poll(ctx, func() (bool, error) {
		if !c.Running() {
			return false, fmt.Errorf("it ended at once:\n%s", c.Log())
		}
		conn, err := pgx.Connect(ctx, c.DSN("postgres"))
		if err != nil {
			return false, nil
		}
		return true, conn.Close(ctx)
	})
}

func (c *Cluster) stop(signal syscall.Signal) error {
	if !c.Running() {
		return errors.New("it does not run")
	}
	// A failure means that it has just ended, which is awaited next.
	_ = c.process.Process.Signal(signal)
	select {
	case <-c.ended:
		return nil
	case <-time.After(clusterTimeout):
		return errors.Join(fmt.Errorf("it runs on after %v:\n%s", clusterTimeout, c.Log()), c.kill())
	}
}

func (c *Cluster) kill() error {
	if !c.Running() {
		return errors.New("it does not run")
	}
	pid := c.process.Process.Pid
	// Stopped, it makes no further processes between the look and the kill.
	_ = c.process.Process.Signal(syscall.SIGSTOP)
	processes := children(pid)
	for _, child := range processes {
		_ = syscall.Kill(child, syscall.SIGKILL) // fails only if it is gone
	}
	_ = c.process.Process.Kill()
	<-c.ended
	// While one of them still ends, the cluster refuses to start.
	ctx, cancel := context.WithTimeout(context.Background(), clusterTimeout)
	defer cancel()
	return poll(ctx, func() (bool, error) {
		return !slices.ContainsFunc(processes, alive), nil
	})
}

// children gives the processes that a process has started. It finds them on
// Linux only; elsewhere they end by themselves soon after their parent.
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

// alive tells whether a process runs. One that only waits for somebody to note
// its end does not.
func alive(pid int) bool {
	state, _ := processState(pid)
	return state != "" && state != "Z"
}

// processState gives the state and the parent of a process; "" if it is gone.
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

// poll asks until the answer is yes.
func poll(ctx context.Context, done func() (bool, error)) error {
	for {
		if yes, err := done(); yes || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// logFile is the path of a log.
type logFile string

// size is its length so far.
func (l logFile) size() int64 {
	info, err := os.Stat(string(l))
	if err != nil {
		return 0
	}
	return info.Size()
}

// since gives what was added to it after a size, at most the last 16 KiB.
func (l logFile) since(begin int64) string {
	const most = 16 << 10
	file, err := os.Open(string(l))
	if err != nil {
		return ""
	}
	defer file.Close()
	begin = max(begin, l.size()-most)
	text, err := io.ReadAll(io.NewSectionReader(file, begin, most))
	if err != nil {
		return ""
	}
	return string(text)
}
