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

// PID is the number of the server's first process; 0 if it never ran.
func (c *Cluster) PID() int {
	if c.process == nil {
		return 0
	}
	return c.process.PID()
}

// Running tells whether there is a server process. It may have ended by itself,
// as it does when the disk is full.
func (c *Cluster) Running() bool { return c.process != nil && c.process.Running() }

// Start starts it after a Stop, a Kill or an end of its own, and waits until it
// takes connections.
func (c *Cluster) Start(ctx context.Context) error {
	if c.Running() {
		return errors.New("it runs already")
	}
	// The port and the directories are no settings in a file: a standby begins
	// with a copy of its primary's files.
	process, err := c.yard.Start("postgres", c.command("postgres", "-D", c.DataDir,
		"-h", "127.0.0.1", "-p", strconv.Itoa(c.Port), "-k", c.SocketDir))
	if err != nil {
		return err
	}
	c.process = process
	return Poll(ctx, Timeout, "PostgreSQL to take connections", func() (bool, error) {
		if !c.Running() {
			return false, fmt.Errorf("it ended at once:\n%s", c.log.Since(0))
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
	_ = c.process.Signal(signal)
	select {
	case <-c.process.Ended():
		return nil
	case <-time.After(Timeout):
		return errors.Join(fmt.Errorf("it runs on after %v:\n%s", Timeout, c.log.Since(0)), c.Kill())
	}
}

// Kill ends all of its processes at once with SIGKILL, and waits for that.
func (c *Cluster) Kill() error {
	if !c.Running() {
		return errors.New("it does not run")
	}
	// While one of them still ends, the cluster refuses to start.
	err := KillTree(context.Background(), c.PID())
	<-c.process.Ended()
	return err
}
