package postgres_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"oda"
	"oda/internal/postgres"
	"oda/internal/test/env"
	"oda/internal/test/fault"
)

// pair starts a primary with a synchronous standby.
func pair(t *testing.T) (primary, standby *env.Cluster) {
	t.Helper()
	primary = env.NewCluster(t, env.ClusterOptions{})
	standby = primary.Standby(t)
	primary.SetSynchronous(standby.Name)
	return primary, standby
}

// either returns the DSN of whichever of two servers accepts writes.
func either(first, second string) string {
	return fmt.Sprintf("postgres://postgres@%s,%s/postgres?sslmode=disable&target_session_attrs=read-write", first, second)
}

func TestThePrimaryDiesAndItsStandbyTakesOver(t *testing.T) {
	t.Parallel()
	primary, standby := pair(t)
	dsn := either(primary.Addr(), standby.Addr())
	first, second := open(t, dsn), open(t, dsn)
	followers := []func() []oda.Change{startFollowing(t, first), startFollowing(t, second)}
	l := startLoad(t, first, second)
	l.More()
	primary.Kill()
	standby.Promote()
	l.More()
	wantStored(t, l, first, standby.DSN("postgres"))
	log := tell(follow(t, first, 0, 10_000))
	for i, stop := range followers {
		if seen := tell(joined(stop())); seen != log {
			t.Errorf("follower %d has seen\n%s\nbut the log has\n%s", i, seen, log)
		}
	}
	if l.Quiet() > 15*time.Second {
		t.Errorf("nothing was acknowledged for %v", l.Quiet())
	}
}

// A primary whose machine hangs, or whose network swallows everything, closes
// no connection and refuses none.
func TestThePrimaryFallsSilentAndItsStandbyTakesOver(t *testing.T) {
	t.Parallel()
	primary, standby := pair(t)
	proxy := env.NewProxy(t, primary.Addr())
	dsn := either(proxy.Addr(), standby.Addr())
	proxy.Stall(true)
	time.AfterFunc(time.Second, func() { proxy.Stall(false) }) // a busy primary answers long after its standby
	first, second := open(t, dsn), open(t, dsn)
	l := startLoad(t, first, second)
	l.More()
	proxy.Stall(true)
	standby.Promote()
	l.More()
	// Whoever promotes the standby must also fence off the old primary. Connections
	// to it that come alive now find that done.
	primary.Kill()
	proxy.Stall(false)
	l.More()
	wantStored(t, l, first, standby.DSN("postgres"))
	if l.Quiet() > 20*time.Second {
		t.Errorf("nothing was acknowledged for %v", l.Quiet())
	}
}

// Every process writes within a second after the database accepts writes again.
func TestProcessesWriteWithinASecondOfAFailover(t *testing.T) {
	t.Parallel()
	for name, goAway := range map[string]func(*env.Cluster, *fault.Proxy){
		"the primary is killed": func(primary *env.Cluster, _ *fault.Proxy) { primary.Kill() },
		"the primary is silent": func(_ *env.Cluster, proxy *fault.Proxy) { proxy.Stall(true) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			primary, standby := pair(t)
			proxy := env.NewProxy(t, primary.Addr())
			dsn := either(proxy.Addr(), standby.Addr())
			stores := []*postgres.Store{open(t, dsn), open(t, dsn)}
			mustPut(t, stores[0], write(t, block("b"), `{}`))
			goAway(primary, proxy)
			// Running requests are given up, and all writers look for a server.
			var writers sync.WaitGroup
			lost := make(chan struct{}, 2*len(stores))
			first := make([]time.Time, 2*len(stores))
			for i := range first {
				store := stores[i%len(stores)]
				writers.Go(func() {
					for n := 0; ; n++ {
						var err error
						if i < len(stores) {
							_, err = one(context.Background(), store, adding("b", "x", ""))
						} else {
							_, err = store.Put(context.Background(), []oda.Put{write(t, sbd(fmt.Sprintf("s-%d-%d", i, n)), `{}`)})
						}
						if first[i] = time.Now(); err == nil {
							return
						}
						if n == 0 {
							lost <- struct{}{}
						}
						time.Sleep(10 * time.Millisecond)
					}
				})
			}
			for range cap(lost) {
				<-lost
			}
			standby.Promote()
			promoted := time.Now()
			writers.Wait()
			for i, at := range first {
				took := at.Sub(promoted)
				t.Logf("writer %d: %v after the database accepted writes again", i, took)
				if took > env.AtMost(time.Second) {
					t.Errorf("writer %d wrote %v after the database accepted writes again", i, took)
				}
			}
		})
	}
}
