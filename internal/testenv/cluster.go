package testenv

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// clusterTimeout bounds every start, stop and change of a cluster. A start can
// have a recovery to do.
const clusterTimeout = 60 * time.Second

// Bounds of the ports of clusters. They are below those that a system gives to
// outgoing connections: one of these could otherwise take the port of a cluster
// that is down.
const lowestPort, highestPort = 15000, 32000

// defaults of every cluster. Everything else, fsync above all, is as in a
// cluster that Debian made.
var defaults = map[string]string{
	"max_connections":             "200",
	"shared_buffers":              "64MB",
	"min_wal_size":                "32MB",
	"max_wal_size":                "256MB",
	"wal_retrieve_retry_interval": "200ms", // a standby finds its primary again
	"log_line_prefix":             "%m [%p] %d ",
}

// ClusterOptions say how a cluster differs from the usual one.
type ClusterOptions struct {
	// Settings go into postgresql.conf, above the defaults.
	Settings map[string]string
	// DataDir is where the data is kept, such as a small file system. It must
	// be empty or missing, and its contents stay. If the tests run as root, the
	// directories above it must let other users through, which those of
	// tb.TempDir do not. Default: a directory that is removed after the test.
	DataDir string
}

// Cluster is a PostgreSQL that a test can stop, kill and start again. Its
// methods are for the goroutine of the test.
type Cluster struct {
	Name      string // of a standby: by which its primary knows it
	DataDir   string
	SocketDir string // has a socket, for clients that prefer it to TCP
	Port      int    // on 127.0.0.1, always the same one

	tb        testing.TB
	installed installation
	janitor   *janitor
	log       logFile
	process   *exec.Cmd
	ended     chan struct{} // closed when the process is gone; nil: never started
}

// NewCluster makes a cluster for one test and starts it. It is gone when the
// test ends. The tail of its log is shown if the test fails.
func NewCluster(tb testing.TB, options ClusterOptions) *Cluster {
	tb.Helper()
	c, err := newCluster(options)
	if err != nil {
		tb.Fatal(err)
	}
	c.endWith(tb)
	return c
}

func newCluster(options ClusterOptions) (*Cluster, error) {
	c, err := prepare(options.DataDir)
	if err != nil {
		return nil, fmt.Errorf("prepare a PostgreSQL cluster: %w", err)
	}
	if err = c.initialize(options.Settings); err == nil {
		err = c.start()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make a PostgreSQL cluster: %w", err), c.close())
	}
	return c, nil
}

// prepare makes everything that a cluster needs except its data.
func prepare(dataDir string) (*Cluster, error) {
	installed, err := findPostgres(debianPrograms)
	if err != nil {
		return nil, err
	}
	// Not tb.TempDir: with a long test name the socket in it would have a
	// longer path than the system allows.
	root, err := os.MkdirTemp("", "oda-pg-")
	if err != nil {
		return nil, err
	}
	c := &Cluster{
		DataDir: dataDir, SocketDir: filepath.Join(root, "socket"),
		installed: installed, log: logFile(filepath.Join(root, "log")),
	}
	if c.DataDir == "" {
		c.DataDir = filepath.Join(root, "data")
	}
	if c.janitor, err = newJanitor(root); err != nil {
		return nil, errors.Join(err, os.RemoveAll(root))
	}
	c.Port, err = freePort()
	err = errors.Join(err, os.Chmod(root, 0o755), installed.makeDir(c.SocketDir), installed.makeDir(c.DataDir))
	if err != nil {
		return nil, errors.Join(err, c.janitor.close())
	}
	return c, nil
}

// freePort gives a port that nobody listens on.
func freePort() (int, error) {
	var err error
	for range 100 {
		port := lowestPort + rand.IntN(highestPort-lowestPort)
		var listener net.Listener
		if listener, err = net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); err == nil {
			return port, listener.Close()
		}
	}
	return 0, fmt.Errorf("find a free port: %w", err)
}

// initialize makes the data of an empty cluster.
func (c *Cluster) initialize(settings map[string]string) error {
	// Whether the data of a throw-away cluster survives a power cut before its
	// first start is of no interest, so that is not waited for.
	err := c.run("initdb", "--pgdata", c.DataDir, "--username=postgres", "--auth=trust",
		"--encoding=UTF8", "--locale=C", "--no-sync")
	if err != nil {
		return err
	}
	all := maps.Clone(defaults)
	maps.Copy(all, settings)
	var lines strings.Builder
	for _, name := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(&lines, "%s = %s\n", name, literal(all[name]))
	}
	return appendTo(filepath.Join(c.DataDir, "postgresql.conf"), lines.String())
}

// literal quotes a value, for a configuration file as for a statement.
func literal(value string) string { return "'" + strings.ReplaceAll(value, "'", "''") + "'" }

func appendTo(path, text string) error {
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	return errors.Join(err, file.Close())
}

// run runs one of PostgreSQL's programs to its end.
func (c *Cluster) run(name string, args ...string) error {
	cmd := c.installed.command(c.SocketDir, name, args...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		return err
	}
	watched := c.janitor.watch(cmd.Process.Pid)
	timer := time.AfterFunc(clusterTimeout, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("%s: %w\n%s", name, err, out.String())
	}
	return errors.Join(watched, c.janitor.watch(0))
}

// endWith ties the cluster to a test.
func (c *Cluster) endWith(tb testing.TB) {
	c.tb = tb
	tb.Cleanup(func() {
		if tb.Failed() {
			tb.Logf("PostgreSQL on port %d logged:\n%s", c.Port, c.log.since(0))
		}
		if err := c.close(); err != nil {
			tb.Errorf("end the PostgreSQL cluster: %v", err)
		}
	})
}

// close ends the cluster for good.
func (c *Cluster) close() error {
	var err error
	if c.Running() {
		err = c.stop(syscall.SIGQUIT)
	}
	return errors.Join(err, c.janitor.close())
}

// DSN is how a client connects to a database.
func (c *Cluster) DSN(database string) string {
	return fmt.Sprintf("postgres://postgres@%s/%s?sslmode=disable", c.Addr(), database)
}

// Addr is where it listens, as host:port.
func (c *Cluster) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(c.Port)) }

// Log gives the last part of its log.
func (c *Cluster) Log() string { return c.log.since(0) }

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
func (c *Cluster) Start() {
	c.tb.Helper()
	if err := c.start(); err != nil {
		c.tb.Fatalf("start PostgreSQL: %v", err)
	}
}

// Stop stops it as "pg_ctl stop -m" does, with the mode "fast" (sessions are
// ended, everything is written) or "immediate" (a crash), and waits for it.
func (c *Cluster) Stop(mode string) {
	c.tb.Helper()
	signal, known := map[string]syscall.Signal{"fast": syscall.SIGINT, "immediate": syscall.SIGQUIT}[mode]
	if !known {
		c.tb.Fatalf("there is no mode %q to stop PostgreSQL with", mode)
	}
	if err := c.stop(signal); err != nil {
		c.tb.Fatalf("stop PostgreSQL: %v", err)
	}
}

// Restart stops it in a mode of Stop and starts it again.
func (c *Cluster) Restart(mode string) {
	c.tb.Helper()
	c.Stop(mode)
	c.Start()
}

// Kill ends all of its processes at once with SIGKILL, and waits for that.
func (c *Cluster) Kill() {
	c.tb.Helper()
	if err := c.kill(); err != nil {
		c.tb.Fatalf("kill PostgreSQL: %v", err)
	}
}
