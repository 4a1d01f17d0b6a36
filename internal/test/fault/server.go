package fault

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// PID returns the process id of the server's main process, or 0 if it never
// ran.
func (c *Cluster) PID() int {
	if c.process == nil {
		return 0
	}
	return c.process.PID()
}

// Running reports whether the server is running. It may have ended by itself,
// as it does when the disk is full.
func (c *Cluster) Running() bool { return c.process != nil && c.process.Running() }

// Start starts the server after it was stopped or killed or has ended by
// itself, and waits until it accepts connections.
func (c *Cluster) Start(ctx context.Context) error {
	if c.Running() {
		return errors.New("the server is already running")
	}
	// The port and the directories are not set in a file, because a standby
	// begins with a copy of its primary's files.
	process, err := c.yard.Start("postgres", c.command(c.Program("postgres"), "-D", c.DataDir,
		"-h", "127.0.0.1", "-p", strconv.Itoa(c.Port), "-k", c.SocketDir))
	if err != nil {
		return err
	}
	c.process = process
	return Poll(ctx, Timeout, "PostgreSQL to take connections", func() (bool, error) {
		if !c.Running() {
			return false, fmt.Errorf("the server exited at once:\n%s", c.log.Since(0))
		}
		ctx, cancel := context.WithTimeout(ctx, Timeout)
		defer cancel()
		conn, err := pgx.Connect(ctx, c.DSN("postgres"))
		if err != nil {
			return false, nil
		}
		return true, conn.Close(ctx)
	})
}

// Stop stops the server like "pg_ctl stop -m", with the mode "fast" (sessions
// are ended, everything is written) or "immediate" (a crash), and waits for its
// end.
func (c *Cluster) Stop(mode string) error {
	signal, known := map[string]syscall.Signal{"fast": syscall.SIGINT, "immediate": syscall.SIGQUIT}[mode]
	if !known {
		return fmt.Errorf("unknown stop mode %q", mode)
	}
	return c.signal(signal)
}

// signal sends the server a signal that ends it, and waits for its end.
func (c *Cluster) signal(signal syscall.Signal) error {
	if !c.Running() {
		return errors.New("the server is not running")
	}
	// A failure means that the server has just ended, which is awaited next.
	_ = c.process.Signal(signal)
	select {
	case <-c.process.Ended():
		return nil
	case <-time.After(Timeout):
		return errors.Join(fmt.Errorf("the server is still running after %v:\n%s", Timeout, c.log.Since(0)), c.Kill())
	}
}

// Kill kills all processes of the server at once with SIGKILL, and waits for
// their end.
func (c *Cluster) Kill() error {
	if !c.Running() {
		return errors.New("the server is not running")
	}
	// While one of them is still ending, the cluster refuses to start.
	err := KillTree(context.Background(), c.PID())
	<-c.process.Ended()
	return err
}
