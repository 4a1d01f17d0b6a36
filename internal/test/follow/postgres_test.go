package follow

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"oda/internal/test/env"
	"oda/internal/test/fault"
)

// heldTime is how long a transaction is held open between its last statement
// and its commit.
const heldTime = 2 * time.Second

// Two processes write, and followers are at a third. Transactions commit late:
// some are held up on the way to the database, others wait for somebody with
// psql, who must not hold up the feed.
func TestFollowersOnPostgreSQLMissNothingWhileTransactionsAreHeldOpen(t *testing.T) {
	t.Parallel()
	dsn := env.Postgres(t)
	proxy := env.NewProxy(t, hostOf(t, dsn))
	first, second := env.Oda(t, "serve", "--db="+proxy.DSN(dsn)), env.Oda(t, "serve", "--db="+dsn)
	reading := env.Oda(t, "serve", "--db="+dsn)
	p := start(t, hosts(first, second), hosts(reading, second))
	psql := env.Connect(t, dsn)
	// held runs statements in a transaction, and ends it when everybody has
	// gone on meanwhile.
	held := func(end string, statements ...string) func() {
		return func() {
			env.Exec(t, psql, append([]string{"BEGIN"}, statements...)...)
			mustGoOn(t, p)
			env.Exec(t, psql, end)
		}
	}
	rounds(t, p,
		held("COMMIT", "SELECT FROM heads WHERE identifier LIKE 'eb-%' ORDER BY random() LIMIT 3 FOR UPDATE"),
		held("ROLLBACK", "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ", "SELECT pg_current_xact_id()", "SELECT count(*) FROM heads"),
		// A number of a change that is not there for long, and then never.
		held("ROLLBACK", "SELECT pg_current_xact_id(), nextval('numbers')"),
		func() { holdCommits(t, proxy, 5) },
	)
	nothingMissed(t, p, reading.Host())
}

// holdCommits holds some transactions back for a while before their end. What
// they wrote is in the database, and others go on.
func holdCommits(t *testing.T, proxy *fault.Proxy, n int64) {
	t.Helper()
	released, all := make(chan struct{}), make(chan struct{})
	var left atomic.Int64
	left.Store(n)
	proxy.OnClientMessage(func(message []byte) fault.Cut {
		if message[0] != 'S' || rand.N(4) > 0 { // the end of what the server does as one transaction
			return fault.NoCut
		}
		switch now := left.Add(-1); {
		case now < 0:
			return fault.NoCut
		case now == 0:
			close(all)
		}
		<-released
		return fault.NoCut
	})
	defer close(released)
	defer proxy.OnClientMessage(nil)
	select {
	case <-all:
	case <-time.After(progressIn):
		t.Fatal("not enough was sent to the database")
	}
	time.Sleep(rand.N(heldTime))
}

// The processes that number changes are killed while they do it: before, while
// and after the database has got the statement.
func TestFollowersOnPostgreSQLMissNothingWhenThoseWhoNumberChangesAreKilled(t *testing.T) {
	t.Parallel()
	dsn := env.Postgres(t)
	var proxies [2]*fault.Proxy
	var strikes [2]*striker
	var servers [2]*env.Process
	for i := range proxies {
		proxies[i] = env.NewProxy(t, hostOf(t, dsn))
		strikes[i] = newStriker(proxies[i])
		servers[i] = env.Oda(t, "serve", "--db="+proxies[i].DSN(dsn))
	}
	p := start(t, hosts(servers[0]), hosts(servers[1], servers[0]))
	strike := func(i int, cut fault.Cut) func() {
		return func() {
			select {
			case <-strikes[i].next(cut):
			case <-time.After(progressIn):
				t.Fatal("nobody numbers changes")
			}
			servers[i].Kill()
			servers[i] = env.Oda(t, "serve", "--db="+proxies[i].DSN(dsn))
			p.move(hosts(servers[0]), hosts(servers[1], servers[0]))
		}
	}
	rounds(t, p, strike(0, fault.CutBefore), strike(1, fault.CutAnswer), strike(0, fault.NoCut), strike(1, fault.CutInside), strike(0, fault.CutAnswer))
	nothingMissed(t, p, servers[1].Host(), "unclear")
}

// numbers finds the statement that numbers changes.
var numbers = regexp.MustCompile(`(?s)INSERT INTO rounds.*ON CONFLICT`)

// striker strikes when a process numbers changes.
type striker struct {
	mu     sync.Mutex
	name   string        // of the prepared statement, the same on all connections
	armed  chan struct{} // nil unless armed; is closed at the strike
	within fault.Cut
}

func newStriker(proxy *fault.Proxy) *striker {
	s := &striker{}
	proxy.OnClientMessage(s.see)
	return s
}

// next cuts the next connection over which changes are numbered, and says when.
func (s *striker) next(cut fault.Cut) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.armed, s.within = make(chan struct{}), cut
	return s.armed
}

// see looks for the statement in a message from the archive.
func (s *striker) see(message []byte) fault.Cut {
	body := string(message[min(5, len(message)):])
	first, rest, _ := strings.Cut(body, "\x00")
	second, _, _ := strings.Cut(rest, "\x00")
	s.mu.Lock()
	defer s.mu.Unlock()
	if message[0] == 'P' && numbers.MatchString(second) { // a statement's name and text
		s.name = first
	}
	if message[0] != 'B' || s.name == "" || second != s.name || s.armed == nil { // a portal's name, and its statement's
		return fault.NoCut
	}
	close(s.armed)
	s.armed = nil
	return s.within
}

// PostgreSQL is killed and started again, and so is the server. Then the
// database is dumped and restored into a new cluster, where everybody goes on.
func TestFollowersOnPostgreSQLMissNothingThroughKillsAndARestore(t *testing.T) {
	t.Parallel()
	cluster := env.NewCluster(t, env.ClusterOptions{})
	dsn := cluster.DSN("postgres")
	writing, reading := env.Oda(t, "serve", "--db="+dsn), env.Oda(t, "serve", "--db="+dsn)
	p := start(t, hosts(writing), hosts(reading))
	rounds(t, p, func() {
		cluster.Kill()
		cluster.Start()
	}, func() {
		writing.Kill()
		writing = env.Oda(t, "serve", "--db="+dsn)
		p.move(hosts(writing), hosts(reading))
	}, func() {
		reading.Kill()
		reading = env.Oda(t, "serve", "--db="+dsn)
		p.move(hosts(writing), hosts(reading))
	}, func() {
		// The processes have no time to number what they have written last. What
		// is sent from now on is not acknowledged.
		writing.Kill()
		reading.Kill()
		p.Pause()
		restored := env.NewCluster(t, env.ClusterOptions{})
		restore(t, cluster, restored)
		cluster.Stop("fast")
		cluster, dsn = restored, restored.DSN("postgres")
		writing, reading = env.Oda(t, "serve", "--db="+dsn), env.Oda(t, "serve", "--db="+dsn)
		p.move(hosts(writing), hosts(reading))
		p.Resume()
	})
	nothingMissed(t, p, reading.Host(), "unclear")
}

// restore copies a database into another cluster as an operator does it.
func restore(t *testing.T, from, to *env.Cluster) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "archive.dump")
	for _, command := range []*exec.Cmd{
		exec.CommandContext(t.Context(), from.Program("pg_dump"), "--format=custom", "--file="+file, from.DSN("postgres")),
		exec.CommandContext(t.Context(), to.Program("pg_restore"), "--exit-on-error", "--dbname="+to.DSN("postgres"), file),
	} {
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", command, err, out)
		}
	}
}

// The primary is killed, and its synchronous standby takes over. Before that,
// commits wait for the standby together.
func TestFollowersOnPostgreSQLMissNothingThroughAFailover(t *testing.T) {
	t.Parallel()
	primary := env.NewCluster(t, env.ClusterOptions{})
	standby := primary.Standby(t)
	primary.SetSynchronous(standby.Name)
	places := []*fault.Proxy{env.NewProxy(t, primary.Addr()), env.NewProxy(t, standby.Addr())}
	dsn := fmt.Sprintf("postgres://postgres@%s,%s/postgres?sslmode=disable&target_session_attrs=read-write", places[0].Addr(), places[1].Addr())
	writing, reading := env.Oda(t, "serve", "--db="+dsn), env.Oda(t, "serve", "--db="+dsn)
	p := start(t, hosts(writing), hosts(reading))
	free := 0 // the place of the primary
	rounds(t, p, func() {
		if standby == nil {
			standby = primary.Standby(t)
			primary.SetSynchronous(standby.Name)
			places[free].SetTarget(standby.Addr())
			free = 1 - free
		}
		standby.Stop("fast")
		awaitUnconfirmed(t, primary)
		standby.Start()
	}, func() {
		primary.Kill()
		standby.Promote()
		primary, standby = standby, nil
	})
	nothingMissed(t, p, reading.Host(), "unclear")
}

// awaitUnconfirmed waits until several commits wait for the standby.
func awaitUnconfirmed(t *testing.T, primary *env.Cluster) {
	t.Helper()
	conn := env.Connect(t, primary.DSN("postgres"))
	defer func() { _ = conn.Close(context.Background()) }()
	err := fault.Poll(t.Context(), fault.Timeout, "commits that wait", func() (bool, error) {
		var waiting int
		err := conn.QueryRow(t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'").Scan(&waiting)
		return waiting >= 4, err
	})
	if err != nil {
		t.Fatal(err)
	}
}
