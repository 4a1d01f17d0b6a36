package fault

import (
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

	programs string // of the server: a directory
	yard     *Yard
	log      Log
	process  *Process // nil: never started
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
	programs, err := FindPostgres()
	if err != nil {
		return nil, err
	}
	yard, err := NewYard("oda-pg-")
	if err != nil {
		return nil, err
	}
	c := &Cluster{
		DataDir: dataDir, SocketDir: filepath.Join(yard.Dir, "socket"),
		programs: programs, yard: yard, log: yard.Log("postgres"),
	}
	if c.DataDir == "" {
		c.DataDir = filepath.Join(yard.Dir, "data")
	}
	c.Port, err = FreePort()
	if err := errors.Join(err, yard.MakeDir(c.SocketDir), yard.MakeDir(c.DataDir)); err != nil {
		return nil, errors.Join(err, yard.Close())
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

// FreeAddr gives an address of 127.0.0.1 with a free port.
func FreeAddr() (string, error) {
	port, err := FreePort()
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), err
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
	p, err := c.yard.Start(name, c.command(name, args...))
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, p.Kill)()
	<-p.Ended()
	if !p.State().Success() {
		return fmt.Errorf("%s: %v\n%s", name, p.State(), c.yard.Log(name).Since(0))
	}
	return nil
}

// command prepares one of the programs. Of the environment it sees nothing that
// would lead it to another server.
func (c *Cluster) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(c.Program(name), args...)
	cmd.Dir = c.SocketDir
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "PG") && !strings.HasPrefix(variable, "LC_") {
			cmd.Env = append(cmd.Env, variable)
		}
	}
	cmd.Env = append(cmd.Env, "LC_ALL=C")
	return cmd
}

// Close ends the cluster for good.
func (c *Cluster) Close() error {
	var err error
	if c.Running() {
		err = c.signal(syscall.SIGQUIT)
	}
	return errors.Join(err, c.yard.Close())
}

// DSN is how a client connects to a database.
func (c *Cluster) DSN(database string) string {
	return fmt.Sprintf("postgres://postgres@%s/%s?sslmode=disable", c.Addr(), database)
}

// Addr is where it listens, as host:port.
func (c *Cluster) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(c.Port)) }

// Program is the path of one of the programs that came with the server.
func (c *Cluster) Program(name string) string { return filepath.Join(c.programs, name) }

// Log is that of the server.
func (c *Cluster) Log() Log { return c.log }
