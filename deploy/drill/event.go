package main

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"oda/internal/test/fault"
	"oda/internal/test/load"
)

// The longest waits after an event, and the pause before the next one.
const (
	electionTime = 2 * time.Minute
	writesTime   = 2 * time.Minute
	calm         = 10 * time.Second
)

// harm is a fault of the leader, and how to undo it.
type harm struct {
	words string
	do    func(*cluster, *node) error
	undo  func(*cluster, *node) error
}

// harms are all faults by name.
var harms = map[string]harm{
	"kill": {
		"SIGKILL for Patroni and PostgreSQL of the leader", (*cluster).killNode, (*cluster).startNode,
	},
	"cut": {
		"the leader is cut off from etcd, the other nodes and the clients",
		func(_ *cluster, n *node) error { n.cutNode(true, true); return nil },
		func(_ *cluster, n *node) error { n.cutNode(false, true); return nil },
	},
	"isolate": {
		"the leader is cut off from etcd and the other nodes; the clients still reach it",
		func(_ *cluster, n *node) error { n.cutNode(true, false); return nil },
		func(_ *cluster, n *node) error { n.cutNode(false, true); return nil },
	},
}

func kinds() []string { return slices.Sorted(maps.Keys(harms)) }

// event is a fault that happened, and how long recovery took.
type event struct {
	kind     string
	from, to string // the leaders before and after
	elected  time.Duration
	database time.Duration        // until the database itself accepted a write
	firsts   [paths]time.Duration // until the first successful write
	whole    time.Duration
}

// mostDelay is how long after the database itself accepts writes again both
// servers must have written.
const mostDelay = time.Second

// delay returns how long after the database the slowest path through oda wrote.
func (e event) delay() time.Duration { return max(0, slices.Max(e.firsts[:])-e.database) }

// strike harms the leader and waits until another leads, both servers store
// again and, after the harm is undone, the cluster is complete.
func (c *cluster) strike(ctx context.Context, p progress, l *load.Load, w *watch, kind string) (event, error) {
	if !pause(ctx, calm) {
		return event{}, ctx.Err()
	}
	old := c.leader(ctx, nil)
	if old == nil {
		return event{}, errors.New("the cluster has no leader before the event")
	}
	h := harms[kind]
	before := l.Acknowledged()
	p.say("%s: %s (%s)", kind, h.words, old.name)
	e := event{kind: kind, from: old.name}
	if err := h.do(c, old); err != nil {
		return e, err
	}
	since := w.begin()
	database := make(chan time.Duration, 1)
	probing, enough := context.WithTimeout(ctx, electionTime+writesTime)
	defer enough()
	go func() { database <- c.takesWrites(probing, old, since) }()
	err := fault.Poll(ctx, electionTime, "another leader", func() (bool, error) {
		n := c.leader(ctx, old)
		if n != nil {
			e.to = n.name
		}
		return n != nil, nil
	})
	if err != nil {
		return e, err
	}
	e.elected = time.Since(since)
	p.say("  %s leads", e.to)
	err = fault.Poll(ctx, writesTime, "both servers to write again", func() (bool, error) {
		e.firsts = w.firsts()
		return !slices.Contains(e.firsts[:], 0), nil
	})
	if err != nil {
		return e, err
	}
	e.database = <-database
	p.say("  the database takes writes again %.1f s after the event", e.database.Seconds())
	for i, d := range e.firsts {
		p.say("  %v again %.1f s after the event", path(i), d.Seconds())
	}
	if !pause(ctx, calm) {
		return e, ctx.Err()
	}
	p.say("  %s is brought back", old.name)
	if err := h.undo(c, old); err != nil {
		return e, err
	}
	back := time.Now()
	if _, err := c.awaitWhole(ctx, " again"); err != nil {
		return e, err
	}
	e.whole = time.Since(back)
	p.say("  the cluster is whole again; %d versions and records were acknowledged since the event", l.Acknowledged()-before)
	return e, nil
}
