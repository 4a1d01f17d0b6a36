package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"oda/internal/test/fault"
)

// node is a machine of the cluster: Patroni and its PostgreSQL. All connections
// to and from it lead through proxies.
type node struct {
	name     string
	dir      string // directory of its configuration
	dataDir  string
	postgres string // its address
	rest     string // address of its Patroni
	patroni  *process

	toEtcd      *fault.Proxy
	fromNodes   []*fault.Proxy // to PostgreSQL and to Patroni
	fromClients *fault.Proxy   // to PostgreSQL
}

// newNode prepares a node: its directories, its proxies, and its additions to
// the example's configuration.
func (c *cluster) newNode(name string) (*node, error) {
	n := &node{name: name}
	n.dir = filepath.Join(c.yard.Dir, name)
	n.dataDir = filepath.Join(n.dir, "data")
	var errs [4]error
	errs[0], errs[1] = c.yard.MakeDir(n.dir), c.yard.MakeDir(n.dataDir)
	n.postgres, errs[2] = fault.FreeAddr()
	n.rest, errs[3] = fault.FreeAddr()
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	etcd := strings.TrimPrefix(c.etcdURL, "http://")
	for _, p := range []struct {
		to     string
		target func(*fault.Proxy)
	}{
		{etcd, func(p *fault.Proxy) { n.toEtcd = p }},
		{n.postgres, func(p *fault.Proxy) { n.fromNodes = append(n.fromNodes, p) }},
		{n.rest, func(p *fault.Proxy) { n.fromNodes = append(n.fromNodes, p) }},
		{n.postgres, func(p *fault.Proxy) { n.fromClients = p }},
	} {
		made, err := fault.NewProxy(p.to)
		if err != nil {
			return nil, err
		}
		p.target(made)
	}
	example, err := os.ReadFile(c.config)
	if err != nil {
		return nil, err
	}
	// Patroni reads both files in the order of their names; JSON is YAML.
	deviations, err := json.Marshal(n.deviations(c.bin))
	if err != nil {
		return nil, err
	}
	for file, text := range map[string][]byte{"10-example.yml": example, "20-drill.yml": deviations} {
		path := filepath.Join(n.dir, file)
		if err := errors.Join(os.WriteFile(path, text, 0o600), c.yard.Give(path)); err != nil {
			return nil, err
		}
	}
	return n, nil
}

// deviations are the settings that three nodes on one machine need beyond the
// example.
func (n *node) deviations(bin string) map[string]any {
	type m = map[string]any
	return m{
		// Use the proxy, not the address that etcd announces for itself.
		"etcd3": m{"use_proxies": true, "hosts": []string{n.toEtcd.Addr()}},
		"bootstrap": m{"dcs": m{"postgresql": m{
			"parameters": m{"shared_buffers": "64MB", "max_wal_size": "256MB", "min_wal_size": "64MB"},
			"pg_hba": []string{
				"local all all scram-sha-256",
				"host replication replicator 127.0.0.0/8 scram-sha-256",
				"host all all 127.0.0.0/8 scram-sha-256",
			},
		}}},
		"postgresql": m{
			"data_dir": n.dataDir, "bin_dir": bin, "pgpass": filepath.Join(n.dir, "pgpass"),
			"parameters": m{"unix_socket_directories": n.dir},
		},
		// Patroni must not reset the machine on which the drill runs.
		"watchdog": m{"mode": "off"},
	}
}

// environment returns the settings of node.env for a node.
func (n *node) environment() []string {
	return []string{
		"PATRONI_NAME=" + n.name,
		"PATRONI_RESTAPI_LISTEN=" + n.rest,
		"PATRONI_RESTAPI_CONNECT_ADDRESS=" + n.fromNodes[1].Addr(),
		"PATRONI_POSTGRESQL_LISTEN=" + n.postgres,
		"PATRONI_POSTGRESQL_CONNECT_ADDRESS=" + n.fromNodes[0].Addr(),
		"PATRONI_SUPERUSER_PASSWORD=" + password,
		"PATRONI_REPLICATION_PASSWORD=" + password,
		"PATRONI_REWIND_PASSWORD=" + password,
		"PATRONI_RESTAPI_USERNAME=patroni",
		"PATRONI_RESTAPI_PASSWORD=" + password,
	}
}

func (c *cluster) startNode(n *node) (err error) {
	n.patroni, err = start(c.yard, n.name, n.environment(), "patroni", n.dir)
	return err
}

// killNode kills Patroni and PostgreSQL of a node at once, like a power cut.
func (c *cluster) killNode(n *node) error {
	n.patroni.Kill()
	text, err := os.ReadFile(filepath.Join(n.dataDir, "postmaster.pid"))
	if err != nil {
		return fmt.Errorf("find the PostgreSQL of %s: %w", n.name, err)
	}
	first, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(first)
	if err != nil {
		return fmt.Errorf("find the PostgreSQL of %s: %w", n.name, err)
	}
	return fault.KillTree(context.Background(), pid)
}

// cutNode isolates a node from etcd and the other nodes, and if requested from
// the clients, or reconnects it.
func (n *node) cutNode(on, clients bool) {
	n.toEtcd.Stall(on)
	for _, p := range n.fromNodes {
		p.Stall(on)
	}
	if clients || !on {
		n.fromClients.Stall(on)
	}
}

// dsn returns a DSN with which the drill itself connects to a node, without a
// proxy.
func (n *node) dsn(database string) string {
	return fmt.Sprintf("postgres://postgres:%s@%s/%s?connect_timeout=5&sslmode=disable", password, n.postgres, database)
}
