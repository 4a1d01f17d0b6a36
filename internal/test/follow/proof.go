package follow

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"sync"
	"time"

	"oda/internal/test/fault"
)

// How many write, and how many of them share entities.
const (
	writers    = 32
	groupOf    = 4
	harmPause  = 500 * time.Millisecond // the longest between a change that a follower sees and the next fault of its connection
	stallTime  = 50 * time.Millisecond  // the longest
	cutBytes   = 32 << 10               // at most so many pass before a cut
	progressIn = time.Minute            // within which everything must go on after a fault
	patience   = 30 * time.Second
)

// proof is writers and followers of an archive. They reach it through proxies,
// so that what is behind can be replaced, and those of the followers are cut at
// random.
type proof struct {
	ledger    *ledger
	fronts    []*fault.Proxy // of the writers
	links     []*fault.Proxy // of the followers
	writers   []*writer
	followers []*follower

	// patience bounds how late a write may take effect whose writer did not
	// wait for the answer, and how late a follower may come to the end.
	patience time.Duration

	alive       context.Context // of everything
	kill        context.CancelFunc
	stopWriters func() // and wait for the end of their writes
	stopHarm    func()
	following   sync.WaitGroup
	mu          sync.Mutex
	failed      error // of a follower
}

// begin starts writers and followers at servers, each at one of them in turn.
// The caller calls end.
func begin(writeAt, followAt []string) (*proof, error) {
	p := &proof{ledger: newLedger(), patience: patience, stopWriters: func() {}, stopHarm: func() {}}
	p.alive, p.kill = context.WithCancel(context.Background())
	if err := errors.Join(p.hire(writeAt), p.enlist(followAt)); err != nil {
		return nil, errors.Join(err, p.close())
	}
	p.startWriters()
	p.startHarm()
	return p, nil
}

func apiAt(host string) string { return "http://" + host + "/api/v1" }

// hire makes the writers.
func (p *proof) hire(at []string) error {
	for _, host := range at {
		front, err := fault.NewProxy(host)
		if err != nil {
			return err
		}
		p.fronts = append(p.fronts, front)
	}
	series := fmt.Sprintf("%06x", rand.N(1<<24))
	var g *group
	for i := range writers {
		if i%groupOf == 0 {
			g = &group{name: fmt.Sprintf("%s-g%d", series, i/groupOf)}
		}
		w, err := newWriter(p.ledger, apiAt(p.fronts[i%len(at)].Addr()), fmt.Sprintf("%s-w%d", series, i), g)
		if err != nil {
			return err
		}
		p.writers = append(p.writers, w)
	}
	return nil
}

// enlist starts the followers: two of each mode, of which one leaves out some
// kinds, the Go client, and one that begins at the end.
func (p *proof) enlist(at []string) error {
	blocks, others := url.Values{"kind": {"ebs"}}, url.Values{"kind": {"sbds", "prjs"}}
	add := func(name string, m mode, filter url.Values) error {
		link, err := fault.NewProxy(at[len(p.links)%len(at)])
		if err != nil {
			return err
		}
		p.links = append(p.links, link)
		p.followers = append(p.followers, newFollower(name, apiAt(link.Addr()), m, filter, p.ledger.now))
		return nil
	}
	err := errors.Join(
		add("polling", polling, nil), add("long poll", longPoll, nil), add("stream", stream, nil),
		add("polling for blocks", polling, blocks), add("long poll for others", longPoll, others), add("stream of others", stream, others),
		add("the Go client", goClient, nil), add("stream from the end", stream, nil),
	)
	if err != nil {
		return err
	}
	late := p.followers[len(p.followers)-1]
	for {
		_, next, err := late.page(p.alive, url.Values{"after": {"now"}}, 1)
		if err == nil {
			late.start, late.at = next, next
			break
		}
		if !errors.Is(err, errCut) {
			return err
		}
	}
	for _, f := range p.followers {
		p.following.Go(func() {
			if err := f.run(p.alive); err != nil {
				p.mu.Lock()
				defer p.mu.Unlock()
				p.failed = errors.Join(p.failed, err)
			}
		})
	}
	return nil
}

// startWriters lets the writers write until stopWriters is called.
func (p *proof) startWriters() {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for _, w := range p.writers {
		running.Go(func() { w.run(p.alive, ctx) })
	}
	p.stopWriters = func() {
		cancel()
		running.Wait()
	}
}

// startHarm begins to harm the connections of the followers.
func (p *proof) startHarm() {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for i, link := range p.links {
		running.Go(func() {
			// Chance may spare a follower for the few seconds of a short proof.
			for ctx.Err() == nil && link.Cuts() == 0 {
				link.CutAll()
				time.Sleep(rand.N(pollPause))
			}
			for ctx.Err() == nil {
				_, grown := p.followers[i].saw()
				harm(link)
				// Most of the time the follower gets somewhere before the next fault,
				// or on a slow machine it would fall back more and more.
				if rand.N(4) > 0 {
					select {
					case <-ctx.Done():
					case <-grown:
					}
				}
				select {
				case <-ctx.Done():
				case <-time.After(rand.N(harmPause)):
				}
			}
			link.CutAfter(fault.ToClient, -1)
			link.CutAfter(fault.ToServer, -1)
		})
	}
	p.stopHarm = func() {
		cancel()
		running.Wait()
	}
}

// harm damages the connections of a proxy in one way.
func harm(link *fault.Proxy) {
	switch rand.N(6) {
	case 0:
		link.CutAll()
	case 1:
		link.CutAfter(fault.ToServer, rand.N(cutBytes))
	case 2:
		link.Stall(true)
		time.Sleep(rand.N(stallTime))
		link.Stall(false)
	case 3:
		link.Refuse(true)
		link.CutAll()
		time.Sleep(rand.N(stallTime))
		link.Refuse(false)
	default:
		link.CutAfter(fault.ToClient, rand.N(cutBytes))
	}
}

// move leads everybody to other servers. Connections that are open stay as they
// are.
func (p *proof) move(writeAt, followAt []string) {
	for i, front := range p.fronts {
		front.SetTarget(writeAt[i%len(writeAt)])
	}
	for i, link := range p.links {
		link.SetTarget(followAt[i%len(followAt)])
	}
}

// goesOn waits until more has been acknowledged than now, and every follower has
// seen something that was sent after now.
func (p *proof) goesOn(ctx context.Context) error {
	before, since := p.ledger.acknowledged(), p.ledger.now()
	waiting := ""
	err := fault.Poll(ctx, progressIn, "progress", func() (bool, error) {
		if p.ledger.acknowledged() < before+writers {
			waiting = "the writers"
			return false, p.failure()
		}
		for _, f := range p.followers {
			if log, _ := f.saw(); !p.ledger.sentAfter(log, since) {
				waiting = "the follower by " + f.name
				return false, p.failure()
			}
		}
		return true, nil
	})
	if err != nil {
		return fmt.Errorf("wait for %s: %w", waiting, err)
	}
	return nil
}

func (p *proof) failure() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failed
}

// close ends everything.
func (p *proof) close() error {
	p.kill()
	p.stopWriters()
	p.stopHarm()
	p.following.Wait()
	var err error
	for _, proxy := range append(p.fronts, p.links...) {
		err = errors.Join(err, proxy.Close())
	}
	return err
}
