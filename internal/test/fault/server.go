package fault

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// PID is the number of the server's first process; 0 if it never ran.
func (c *Cluster) PID() int {
	if c.process == nil {
		return 0
	}
	return c.process.Process.Pid
}

// Running tells whether there is a server process. It may have ended by itself,
// as it does when the disk is full.
func (c *Cluster) Running() bool {
	if c.ended == nil {
		return false
	}
	select {
	case <-c.ended:
		return false
	default:
		return true
	}
}

// Start starts it after a Stop, a Kill or an end of its own, and waits until it
// takes connections.
func (c *Cluster) Start(ctx context.Context) error {
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
	return errors.Join(watched, c.ready(ctx))
}

// ready waits until it takes connections.
func (c *Cluster) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
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

// Stop stops it as "pg_ctl stop -m" does, with the mode "fast" (sessions are
// ended, everything is written) or "immediate" (a crash), and waits for it.
func (c *Cluster) Stop(mode string) error {
	signal, known := map[string]syscall.Signal{"fast": syscall.SIGINT, "immediate": syscall.SIGQUIT}[mode]
	if !known {
		return fmt.Errorf("there is no mode %q to stop it with", mode)
	}
	return c.signal(signal)
}

// signal sends the server a signal that ends it, and waits for its end.
func (c *Cluster) signal(signal syscall.Signal) error {
	if !c.Running() {
		return errors.New("it does not run")
	}
	// A failure means that it has just ended, which is awaited next.
	_ = c.process.Process.Signal(signal)
	select {
	case <-c.ended:
		return nil
	case <-time.After(Timeout):
		return errors.Join(fmt.Errorf("it runs on after %v:\n%s", Timeout, c.Log()), c.Kill())
	}
}

// Kill ends all of its processes at once with SIGKILL, and waits for that.
func (c *Cluster) Kill() error {
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
	ctx, cancel := context.WithTimeout(context.Background(), Timeout)
	defer cancel()
	return poll(ctx, func() (bool, error) {
		return !slices.ContainsFunc(processes, alive), nil
	})
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
