package env

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"oda/internal/test/fault"
	"oda/internal/test/must"
)

// ClusterOptions configure a cluster. If the tests run as root, the directories
// above a DataDir must be accessible to other users, which those of tb.TempDir
// are not.
type ClusterOptions = fault.ClusterOptions

// Cluster is a PostgreSQL that a test can stop, kill and start again. Its
// methods must be called from the goroutine of the test, which they end if they
// fail.
type Cluster struct {
	*fault.Cluster
	tb testing.TB
}

// NewCluster makes and starts a cluster, which ends with the test. If the test
// fails, the tail of its log is shown.
func NewCluster(tb testing.TB, options ClusterOptions) *Cluster {
	tb.Helper()
	c := must.Get(newCluster(options))(tb)
	return tie(tb, c)
}

func newCluster(options ClusterOptions) (*fault.Cluster, error) {
	c, err := fault.NewCluster(context.Background(), options)
	return c, explain(err)
}

// explain adds how to do without a server on this machine.
func explain(err error) error {
	if errors.Is(err, fault.ErrMissing) {
		return fmt.Errorf("%w, or set %s to the DSN of a server", err, serverVariable)
	}
	return err
}

// tie ties a cluster to a test.
func tie(tb testing.TB, c *fault.Cluster) *Cluster {
	tb.Cleanup(func() {
		if tb.Failed() {
			tb.Logf("PostgreSQL on port %d logged:\n%s", c.Port, c.Log().Since(0))
		}
		if err := c.Close(); err != nil {
			tb.Errorf("end the PostgreSQL cluster: %v", err)
		}
	})
	return &Cluster{c, tb}
}

// Start starts the server after it was stopped or killed or has ended by
// itself, and waits until it accepts connections.
func (c *Cluster) Start() {
	c.tb.Helper()
	if err := c.Cluster.Start(context.Background()); err != nil {
		c.tb.Fatalf("start PostgreSQL: %v", err)
	}
}

// Stop stops the server like "pg_ctl stop -m", with the mode "fast" (sessions
// are ended, everything is written) or "immediate" (a crash), and waits for its
// end.
func (c *Cluster) Stop(mode string) {
	c.tb.Helper()
	if err := c.Cluster.Stop(mode); err != nil {
		c.tb.Fatalf("stop PostgreSQL: %v", err)
	}
}

// Kill kills all processes of the server at once with SIGKILL, and waits for
// their end.
func (c *Cluster) Kill() {
	c.tb.Helper()
	if err := c.Cluster.Kill(); err != nil {
		c.tb.Fatalf("kill PostgreSQL: %v", err)
	}
}

// Standby makes a standby of the cluster and waits until it streams. It has its
// own replication slot and Name; SetSynchronous makes it synchronous. It ends
// with the test.
func (c *Cluster) Standby(tb testing.TB) *Cluster {
	tb.Helper()
	standby := must.Get(c.Cluster.Standby(context.Background()))(tb)
	return tie(tb, standby)
}

// SetSynchronous makes commits wait for the standby of this name from now on;
// with "" they wait for none.
func (c *Cluster) SetSynchronous(name string) {
	c.tb.Helper()
	if err := c.Cluster.SetSynchronous(context.Background(), name); err != nil {
		c.tb.Fatalf("set the synchronous standby to %q: %v", name, err)
	}
}

// Promote turns a standby into a primary, and returns when it accepts writes.
func (c *Cluster) Promote() {
	c.tb.Helper()
	if err := c.Cluster.Promote(context.Background()); err != nil {
		c.tb.Fatalf("promote the standby: %v", err)
	}
}

// NewProxy starts a proxy to the PostgreSQL at target, as host:port. It ends
// with the test.
func NewProxy(tb testing.TB, target string) *fault.Proxy {
	tb.Helper()
	proxy := must.Get(fault.NewPostgresProxy(target))(tb)
	tb.Cleanup(func() {
		if err := proxy.Close(); err != nil {
			tb.Errorf("end the proxy: %v", err)
		}
	})
	return proxy
}
