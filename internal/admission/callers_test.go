package admission

import (
	"fmt"
	"testing"
	"time"

	"oda"
)

func TestACallerSavesUpRequests(t *testing.T) {
	c, now := NewCallers(Limits{Rate: 2}), time.Now()
	for range 20 { // of ten seconds
		p, _, err := c.Enter("anna", now)
		if err != nil {
			t.Fatal(err)
		}
		c.Leave(p)
	}
	_, wait, err := c.Enter("anna", now)
	if oda.CodeOf(err) != oda.RateLimited || wait <= 0 || wait > 500*time.Millisecond {
		t.Errorf("got %v, to wait %v", err, wait)
	}
	if _, _, err := c.Enter("ben", now); err != nil {
		t.Errorf("another caller: %v", err)
	}
	if _, _, err := c.Enter("anna", now.Add(wait)); err != nil {
		t.Errorf("after the wait: %v", err)
	}
}

func TestACallerHasSoManyRequestsInProgress(t *testing.T) {
	c, now := NewCallers(Limits{Concurrent: 2}), time.Now()
	first, _, _ := c.Enter("anna", now)
	if _, _, err := c.Enter("anna", now); err != nil {
		t.Fatal(err)
	}
	if _, wait, err := c.Enter("anna", now); oda.CodeOf(err) != oda.RateLimited || wait != time.Second {
		t.Errorf("got %v, to wait %v", err, wait)
	}
	c.Leave(first)
	if _, _, err := c.Enter("anna", now); err != nil {
		t.Error(err)
	}
}

// However many call, only some are remembered, and never one less that has requests in
// progress.
func TestCallersAreForgotten(t *testing.T) {
	c, now := NewCallers(Limits{Concurrent: 1}), time.Now()
	if _, _, err := c.Enter("busy", now); err != nil {
		t.Fatal(err)
	}
	for i := range 3 * callersMost {
		p, _, err := c.Enter(fmt.Sprint(i), now)
		if err != nil {
			t.Fatal(err)
		}
		c.Leave(p)
	}
	if n := len(c.byName); n != callersMost || c.recent.Len() != n {
		t.Errorf("%d callers are known", n)
	}
	if _, _, err := c.Enter("busy", now); oda.CodeOf(err) != oda.RateLimited {
		t.Errorf("the caller with a request in progress was forgotten: %v", err)
	}
}

func TestAddresses(t *testing.T) {
	for remote, want := range map[string]string{
		"127.0.0.1": "127.0.0.1", "::ffff:10.0.0.1": "10.0.0.1",
		"2001:db8:0:1:2::3": "2001:db8:0:1::/64", "fe80::1%eth0": "fe80::/64", "pipe": "pipe",
	} {
		if got := Address(remote); got != want {
			t.Errorf("%s is %s, want %s", remote, got, want)
		}
	}
}
