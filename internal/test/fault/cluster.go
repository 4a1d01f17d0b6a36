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
	"sync"
	"syscall"
	"time"
)

// Timeout bounds every start, stop and change of a cluster, whatever the
// caller's context allows. A start may include a recovery.
const Timeout = 60 * time.Second

// Bounds of the ports of clusters. They are below the system's range for
// outgoing connections: otherwise one of those could take the port of a stopped
// cluster.
const lowestPort, highestPort = 15000, 32000

// defaults are the settings of every cluster. Everything else, fsync above all,
// is as in a cluster of Debian.
var defaults = map[string]string{
	"max_connections":             "200",
	"shared_buffers":              "64MB",
	"min_wal_size":                "32MB",
	"max_wal_size":                "256MB",
	"wal_retrieve_retry_interval": "200ms", // how soon a standby finds its primary again
	"log_line_prefix":             "%m [%p] %d ",
}

// ClusterOptions configure a cluster.
type ClusterOptions struct {
	// Settings go into postgresql.conf, and override the defaults.
	Settings map[string]string
	// DataDir is the data directory, for example on a small file system. It
	// must be empty or missing, and is not removed. For root, who runs the
	// server as another user, the directories above it must be accessible to
	// other users. By default it is a directory that is removed with the
	// cluster.
	DataDir string
	// InMemory puts a cluster without a DataDir into memory, if the machine has a
	// file system there that is large enough.
	InMemory bool
}

// Cluster is a PostgreSQL that can be stopped, killed and started again. Its
// methods must not be called concurrently.
type Cluster struct {
	Name      string // the primary's name for this standby
	DataDir   string
	SocketDir string // directory of its Unix socket
	Port      int    // always the same, on 127.0.0.1

	programs string // directory of the server's programs
	yard     *Yard
	log      Log
	process  *Process // nil if never started
}

// NewCluster makes a cluster and starts it. Close ends it.
func NewCluster(ctx context.Context, options ClusterOptions) (*Cluster, error) {
	parent := ""
	if options.InMemory {
		parent = memory()
	}
	c, err := prepare(parent, options.DataDir)
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

// memory returns a directory in memory with room for many databases, or nothing.
func memory() string {
	const dir, room = "/dev/shm", 4 << 30
	var fs syscall.Statfs_t
	if err := syscall.Statfs(dir, &fs); err != nil || fs.Bavail*uint64(fs.Bsize) < room {
		return ""
	}
	return dir
}

// prepare makes everything that a cluster needs except its data.
func prepare(parent, dataDir string) (*Cluster, error) {
	programs, err := FindPostgres()
	if err != nil {
		return nil, err
	}
	yard, err := NewYard(parent, "oda-pg-")
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

// FreePort returns a port that nobody listens on, from a range that the system
// does not use for outgoing connections.
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

// FreeAddr returns an address of 127.0.0.1 with a free port.
func FreeAddr() (string, error) {
	port, err := FreePort()
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), err
}

// pristine is an empty cluster that is never started. Its data are copied, since making
// them takes five times as long. They are removed when the process ends.
var pristine = sync.OnceValues(func() (*Cluster, error) {
	c, err := prepare("", "")
	if err != nil {
		return nil, err
	}
	// A throw-away cluster need not survive a power cut before its first start,
	// so nothing is synced.
	return c, c.run(context.Background(), c.Program("initdb"), "--pgdata", c.DataDir, "--username=postgres", "--auth=trust",
		"--encoding=UTF8", "--locale=C", "--no-sync")
})

// initialize makes the data of an empty cluster.
func (c *Cluster) initialize(ctx context.Context, settings map[string]string) error {
	from, err := pristine()
	if err == nil {
		err = c.run(ctx, "cp", "-a", from.DataDir+"/.", c.DataDir)
	}
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

// literal quotes a value for a configuration file or a statement.
func literal(value string) string { return "'" + strings.ReplaceAll(value, "'", "''") + "'" }

func appendTo(path, text string) error {
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	return errors.Join(err, file.Close())
}

// run runs a program as the user of the cluster and waits for its end.
func (c *Cluster) run(ctx context.Context, program string, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	name := filepath.Base(program)
	p, err := c.yard.Start(name, c.command(program, args...))
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

// command prepares a program, without environment variables that would lead it to
// another server.
func (c *Cluster) command(program string, args ...string) *exec.Cmd {
	cmd := exec.Command(program, args...)
	cmd.Dir = c.SocketDir
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "PG") && !strings.HasPrefix(variable, "LC_") {
			cmd.Env = append(cmd.Env, variable)
		}
	}
	cmd.Env = append(cmd.Env, "LC_ALL=C")
	return cmd
}

// Close stops the cluster and removes it.
func (c *Cluster) Close() error {
	var err error
	if c.Running() {
		err = c.signal(syscall.SIGQUIT)
	}
	return errors.Join(err, c.yard.Close())
}

// DSN returns the DSN of a database.
func (c *Cluster) DSN(database string) string {
	return fmt.Sprintf("postgres://postgres@%s/%s?sslmode=disable", c.Addr(), database)
}

// Addr returns the address that the server listens on, as host:port.
func (c *Cluster) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(c.Port)) }

// Program returns the path of one of the server's programs.
func (c *Cluster) Program(name string) string { return filepath.Join(c.programs, name) }

// Log returns the log of the server.
func (c *Cluster) Log() Log { return c.log }
