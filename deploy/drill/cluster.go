package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"oda/internal/test/fault"
)

const nodeCount = 3

// The passwords of the drill are not secret: the cluster lives for minutes, and
// only on 127.0.0.1.
const password = "drill"

// cluster is etcd and three nodes.
type cluster struct {
	yard    *fault.Yard
	config  string // configuration of the example
	bin     string // directory of PostgreSQL's programs
	etcd    *process
	etcdURL string
	nodes   [nodeCount]*node
	client  http.Client
}

// startCluster starts everything and waits until the cluster is complete.
func startCluster(ctx context.Context, y *fault.Yard, config, bin string) (*cluster, error) {
	c := &cluster{yard: y, config: config, bin: bin, client: http.Client{Timeout: 5 * time.Second}}
	if err := c.startEtcd(ctx); err != nil {
		return nil, err
	}
	for i := range c.nodes {
		n, err := c.newNode(fmt.Sprintf("node%d", i+1))
		if err != nil {
			return nil, fmt.Errorf("prepare a node: %w", err)
		}
		c.nodes[i] = n
		if err := c.startNode(n); err != nil {
			return nil, err
		}
	}
	_, err := c.awaitWhole(ctx, "")
	return c, err
}

func (c *cluster) startEtcd(ctx context.Context) error {
	data := filepath.Join(c.yard.Dir, "etcd")
	client, clientErr := fault.FreeAddr()
	peer, peerErr := fault.FreeAddr()
	if err := errors.Join(c.yard.MakeDir(data), clientErr, peerErr); err != nil {
		return err
	}
	c.etcdURL = "http://" + client
	var err error
	c.etcd, err = start(c.yard, "etcd", nil, "etcd", "--name", "etcd", "--data-dir", data,
		"--listen-client-urls", c.etcdURL, "--advertise-client-urls", c.etcdURL,
		"--listen-peer-urls", "http://"+peer, "--initial-advertise-peer-urls", "http://"+peer,
		"--initial-cluster", "etcd=http://"+peer)
	if err != nil {
		return err
	}
	return fault.Poll(ctx, time.Minute, "etcd to answer", func() (bool, error) {
		var health struct{ Health string }
		err := c.get(ctx, c.etcdURL+"/health", &health)
		return err == nil && health.Health == "true", c.etcd.running()
	})
}

// member is what Patroni says about a node.
type member struct {
	Name, Role, State string
	Timeline          int
}

// members asks a node for the state of the cluster.
func (c *cluster) members(ctx context.Context, from *node) ([]member, error) {
	var answer struct{ Members []member }
	err := c.get(ctx, "http://"+from.rest+"/cluster", &answer)
	return answer.Members, err
}

func (c *cluster) get(ctx context.Context, url string, into any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := c.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

// leader returns the leader as the other nodes see it, or nil if there is none
// or it is the excepted node.
func (c *cluster) leader(ctx context.Context, except *node) *node {
	for _, from := range c.nodes {
		if from == except {
			continue
		}
		members, err := c.members(ctx, from)
		if err != nil {
			continue
		}
		for _, m := range members {
			for _, n := range c.nodes {
				if m.Role == "leader" && m.State == "running" && m.Name == n.name && n != except {
					return n
				}
			}
		}
	}
	return nil
}

// awaitWhole waits until there is a leader that both others follow, one of them
// synchronously, and returns the leader.
func (c *cluster) awaitWhole(ctx context.Context, why string) (leader *node, err error) {
	err = fault.Poll(ctx, 3*time.Minute, "the cluster to be whole"+why, func() (bool, error) {
		for _, n := range c.nodes {
			if err := n.patroni.running(); err != nil {
				return false, err
			}
		}
		leader = c.leader(ctx, nil)
		return leader != nil && c.whole(ctx, leader), nil
	})
	return leader, err
}

func (c *cluster) whole(ctx context.Context, leader *node) bool {
	members, err := c.members(ctx, leader)
	if err != nil || len(members) != nodeCount {
		return false
	}
	synchronous := 0
	for _, m := range members {
		if m.State != "running" && m.State != "streaming" || m.Timeline != members[0].Timeline {
			return false
		}
		if m.Role == "sync_standby" {
			synchronous++
		}
	}
	if synchronous == 0 {
		return false
	}
	conn, err := pgx.Connect(ctx, leader.dsn("postgres"))
	if err != nil {
		return false
	}
	defer conn.Close(ctx)
	var streaming, waitedFor int
	err = conn.QueryRow(ctx, `SELECT count(*), count(*) FILTER (WHERE sync_state IN ('sync', 'quorum'))
		FROM pg_stat_replication WHERE state = 'streaming' AND application_name LIKE 'node%'`).Scan(&streaming, &waitedFor)
	return err == nil && streaming == nodeCount-1 && waitedFor > 0
}

// archiveDSN returns the DSN for oda. It lists all nodes; oda uses the one that
// accepts writes.
func (c *cluster) archiveDSN() string {
	var hosts []string
	for _, n := range c.nodes {
		hosts = append(hosts, n.fromClients.Addr())
	}
	return fmt.Sprintf("postgres://oda:%s@%s/oda?target_session_attrs=read-write&connect_timeout=2&pool_max_conns=16&sslmode=disable",
		password, strings.Join(hosts, ","))
}

// makeDatabase creates the role and the database of the archive, and waits
// until all nodes have them: a client that finds no such database on one node
// does not ask the others.
func (c *cluster) makeDatabase(ctx context.Context, leader *node) error {
	conn, err := pgx.Connect(ctx, leader.dsn("postgres"))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	for _, statement := range []string{"CREATE ROLE oda LOGIN PASSWORD '" + password + "'", "CREATE DATABASE oda OWNER oda"} {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return err
		}
	}
	own, err := pgx.Connect(ctx, leader.dsn("oda"))
	if err != nil {
		return err
	}
	defer own.Close(ctx)
	if _, err := own.Exec(ctx, makeOwnTable); err != nil {
		return err
	}
	return fault.Poll(ctx, time.Minute, "the standbys to have the database", func() (bool, error) {
		for _, n := range c.nodes {
			conn, err := pgx.Connect(ctx, n.dsn("oda"))
			if err != nil {
				return false, nil
			}
			if err := conn.Close(ctx); err != nil {
				return false, err
			}
		}
		return true, nil
	})
}
