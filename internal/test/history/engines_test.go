package history

import (
	"context"
	"math/rand/v2"
	"net/url"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"oda/internal/test/env"
	"oda/internal/test/fault"
	"oda/internal/test/must"
)

var usual = Options{Teams: 4, Players: 4, Turns: 50}

// harmed are the operations that must occur while an archive is harmed.
var harmed = []string{
	"read done", "store done", "store mismatch", "store precondition", "store unclear",
	"several done", "several mismatch", "record done", "record unclear", "repeat done",
}

// Two servers share a PostgreSQL, and their connections are cut before, inside
// and after statements and commits.
func TestTwoServersOnPostgreSQLAreLinearizableWhileTheirConnectionsAreCut(t *testing.T) {
	t.Parallel()
	dsn := env.Postgres(t)
	server := must.Get(url.Parse(dsn))(t)
	var proxies []*fault.Proxy
	var urls []string
	for range 2 {
		proxy := env.NewProxy(t, server.Host)
		proxies = append(proxies, proxy)
		urls = append(urls, env.Oda(t, "serve", "--db="+proxy.DSN(dsn)).URL)
	}
	target := Target{
		URL:  func(context.Context) (string, error) { return urls[rand.N(len(urls))], nil },
		HTTP: newClient(t),
	}
	over, outcome := playing(t, target, usual, harmed...)
	for running := true; running; {
		harm(proxies[rand.N(len(proxies))])
		select {
		case <-over:
			running = false
		case <-time.After(20*time.Millisecond + rand.N(100*time.Millisecond)):
		}
	}
	cuts := 0
	for _, proxy := range proxies {
		cuts += proxy.Cuts()
		proxy.OnClientMessage(nil)
		proxy.CutAfter(fault.ToServer, -1)
		proxy.CutAfter(fault.ToClient, -1)
	}
	t.Logf("%d connections were cut", cuts)
	outcome()
	if cuts < 10 {
		t.Errorf("%d connections were cut; this is too little to prove anything", cuts)
	}
}

// harm damages the connections of a proxy in one way.
func harm(proxy *fault.Proxy) {
	switch rand.N(8) {
	case 0:
		proxy.CutAll()
	case 1:
		proxy.CutAfter(fault.ToServer, rand.N(4096))
	case 2:
		proxy.CutAfter(fault.ToClient, rand.N(4096))
	case 3:
		proxy.Stall(true)
		time.Sleep(rand.N(50 * time.Millisecond))
		proxy.Stall(false)
	case 4:
		proxy.Refuse(true)
		proxy.CutAll()
		time.Sleep(rand.N(50 * time.Millisecond))
		proxy.Refuse(false)
	default:
		// Cut at one of the next messages: a statement, its end, or a commit.
		cut := []fault.Cut{fault.CutBefore, fault.CutInside, fault.CutAnswer}[rand.N(3)]
		var left atomic.Int64
		left.Store(1 + rand.Int64N(40))
		proxy.OnClientMessage(func([]byte) fault.Cut {
			if left.Add(-1) == 0 {
				return cut
			}
			return fault.NoCut
		})
	}
}

// A server on the embedded engine is killed with SIGKILL and restarted.
func TestTheEmbeddedEngineIsLinearizableThroughKills(t *testing.T) {
	t.Parallel()
	db := "--db=sqlite:" + filepath.Join(t.TempDir(), "archive.db")
	var serving atomic.Pointer[env.Process]
	start := func() { serving.Store(env.Oda(t, "serve", db)) }
	start()
	target := Target{
		URL: func(ctx context.Context) (string, error) {
			for {
				if p := serving.Load(); p != nil {
					return p.URL, nil
				}
				select {
				case <-ctx.Done():
					return "", ctx.Err()
				case <-time.After(5 * time.Millisecond):
				}
			}
		},
		HTTP: newClient(t),
	}
	over, outcome := playing(t, target, usual, harmed...)
	kills := 0
	for running := true; running; {
		select {
		case <-over:
			running = false
		case <-time.After(200*time.Millisecond + rand.N(500*time.Millisecond)):
		}
		serving.Load().Kill()
		serving.Store(nil)
		start()
		kills++
	}
	t.Logf("%d kills", kills)
	outcome()
}
