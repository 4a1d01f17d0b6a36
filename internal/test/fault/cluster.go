// Package fault makes PostgreSQL clusters to be thrown away. It finds the
// server that is installed on this machine, makes a data directory, and starts,
// stops, kills and copies the server. Whoever asked for a cluster may end in
// any way, also by SIGKILL: a small process that outlives it, the janitor, ends
// the server and removes its files. The server is as durable as a real one:
// only what a setting says is other than Debian's.
//
// It is for tests, which use it through internal/test/env, and for
// measurements. The archive itself never starts a PostgreSQL.
package fault

import (
	"bytes"
	"context"
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
	"time"
)

// Timeout bounds every start, stop and change of a cluster, whatever the
// context of the caller allows. A start can have a recovery to do.
const Timeout = 60 * time.Second

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
	// be empty or missing, and its contents stay. For root, who runs the server
	// as another user, the directories above it must let other users through.
	// Default: a directory that is removed with the cluster.
	DataDir string
}

// Cluster is a PostgreSQL that can be stopped, killed and started again. Its
// methods are for one goroutine at a time.
type Cluster struct {
	Name      string // of a standby: by which its primary knows it
	DataDir   string
	SocketDir string // has a socket, for clients that prefer it to TCP
	Port      int    // on 127.0.0.1, always the same one

	installed installation
	janitor   *janitor
	log       logFile
	process   *exec.Cmd
	ended     chan struct{} // closed when the process is gone; nil: never started
}

// NewCluster makes a cluster and starts it. Close ends it.
func NewCluster(ctx context.Context, options ClusterOptions) (*Cluster, error) {
	c, err := prepare(options.DataDir)
	if err != nil {
		return nil, fmt.Errorf("prepare a PostgreSQL cluster: %w", err)
	}
	if err = c.initialize(ctx, options.Settings); err == nil {
		err = c.Start(ctx)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make a PostgreSQL cluster: %w", err), c.Close())
	}
	return c, nil
}

// prepare makes everything that a cluster needs except its data.
func prepare(dataDir string) (*Cluster, error) {
	installed, err := find(debianPrograms)
	if err != nil {
		return nil, err
	}
	// Not in a directory of the caller: with a long name the socket in it would
	// have a longer path than the system allows.
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
	c.Port, err = FreePort()
	err = errors.Join(err, os.Chmod(root, 0o755), installed.makeDir(c.SocketDir), installed.makeDir(c.DataDir))
	if err != nil {
		return nil, errors.Join(err, c.janitor.close())
	}
	return c, nil
}

// FreePort gives a port that nobody listens on, out of a range from which the
// system takes none for outgoing connections.
func FreePort() (int, error) {
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
func (c *Cluster) initialize(ctx context.Context, settings map[string]string) error {
	// Whether the data of a throw-away cluster survives a power cut before its
	// first start is of no interest, so that is not waited for.
	err := c.run(ctx, "initdb", "--pgdata", c.DataDir, "--username=postgres", "--auth=trust",
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
func (c *Cluster) run(ctx context.Context, name string, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	cmd := c.installed.command(c.SocketDir, name, args...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		return err
	}
	watched := c.janitor.watch(cmd.Process.Pid)
	defer context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })()
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("%s: %w\n%s", name, err, out.String())
	}
	return errors.Join(watched, c.janitor.watch(0))
}

// Close ends the cluster for good.
func (c *Cluster) Close() error {
	var err error
	if c.Running() {
		err = c.signal(syscall.SIGQUIT)
	}
	return errors.Join(err, c.janitor.close())
}

// DSN is how a client connects to a database.
func (c *Cluster) DSN(database string) string {
	return fmt.Sprintf("postgres://postgres@%s/%s?sslmode=disable", c.Addr(), database)
}

// Addr is where it listens, as host:port.
func (c *Cluster) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(c.Port)) }

// Program is the path of one of the programs that came with the server.
func (c *Cluster) Program(name string) string { return filepath.Join(c.installed.programs, name) }

// Log gives the last part of its log.
func (c *Cluster) Log() string { return c.log.since(0) }

// LogSize is the length of its log so far.
func (c *Cluster) LogSize() int64 { return c.log.size() }

// LogSince gives the last part of what was added to its log after a size.
func (c *Cluster) LogSince(size int64) string { return c.log.since(size) }
