package postgres_test

import (
	"fmt"
	"testing"
	"time"

	"oda/internal/testenv"
)

// pair is a primary with a synchronous standby.
func pair(t *testing.T) (primary, standby *testenv.Cluster) {
	t.Helper()
	primary = testenv.NewCluster(t, testenv.ClusterOptions{})
	standby = primary.Standby(t)
	primary.SetSynchronous(standby.Name)
	return primary, standby
}

// either is the DSN of the one of two servers that takes writes.
func either(first, second string) string {
	return fmt.Sprintf("postgres://postgres@%s,%s/postgres?sslmode=disable&target_session_attrs=read-write", first, second)
}

func TestThePrimaryDiesAndItsStandbyTakesOver(t *testing.T) {
	t.Parallel()
	primary, standby := pair(t)
	dsn := either(primary.Addr(), standby.Addr())
	first, second := open(t, dsn), open(t, dsn)
	l := startLoad(t, first, second)
	l.goesOn(t)
	primary.Kill()
	standby.Promote()
	l.goesOn(t)
	l.verify(t, first, standby.DSN("postgres"))
	if l.longest > 15*time.Second {
		t.Errorf("nothing was acknowledged for %v", l.longest)
	}
}

// A primary whose machine hangs, or whose network swallows everything, closes
// no connection and refuses none.
func TestThePrimaryFallsSilentAndItsStandbyTakesOver(t *testing.T) {
	t.Parallel()
	primary, standby := pair(t)
	proxy := testenv.NewProxy(t, primary.Addr())
	dsn := either(proxy.Addr(), standby.Addr())
	first, second := open(t, dsn), open(t, dsn)
	l := startLoad(t, first, second)
	l.goesOn(t)
	proxy.Stall(true)
	standby.Promote()
	l.goesOn(t)
	// To keep the old one from being used again is the work of whoever promoted
	// the other. Connections to it that come alive now find that done.
	primary.Kill()
	proxy.Stall(false)
	l.goesOn(t)
	l.verify(t, first, standby.DSN("postgres"))
	if l.longest > 20*time.Second {
		t.Errorf("nothing was acknowledged for %v", l.longest)
	}
}
