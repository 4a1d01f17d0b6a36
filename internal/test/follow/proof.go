package follow

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/url"
	"slices"
	"sync"
	"time"

	"oda/internal/test/fault"
	"oda/internal/test/load"
)

// Bounds of a proof.
const (
	harmPause  = 500 * time.Millisecond // the longest between a change that a follower sees and the next fault of its connection
	stallTime  = 50 * time.Millisecond  // the longest
	cutBytes   = 32 << 10               // at most so many pass before a cut
	progressIn = time.Minute            // within which everything must go on after a fault
	patience   = 30 * time.Second
	lately     = 32 // how many changes of a log are looked at for a new one
)

// proof is writers and followers of an archive. The followers reach it through
// proxies, which are cut at random.
type proof struct {
	*load.Load
	links     []*fault.Proxy // of the followers
	followers []*follower

	// patience bounds how late a write may take effect whose writer did not
	// wait for the answer, and how late a follower may come to the end.
	patience time.Duration

	alive     context.Context // of the followers
	kill      context.CancelFunc
	stopHarm  func()
	following sync.WaitGroup
	mu        sync.Mutex
	failed    error // of a follower
}

// begin starts writers and followers at servers.
// The caller calls end.
func begin(writeAt, followAt []string) (*proof, error) {
	writers, err := load.Start(load.Options{}, writeAt...)
	if err != nil {
		return nil, err
	}
	p := &proof{Load: writers, patience: patience, stopHarm: func() {}}
	p.alive, p.kill = context.WithCancel(context.Background())
	if err := p.enlist(followAt); err != nil {
		return nil, errors.Join(err, p.close())
	}
	p.startHarm()
	return p, nil
}

func apiAt(host string) string { return "http://" + host + "/api/v1" }

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
		p.followers = append(p.followers, newFollower(name, apiAt(link.Addr()), m, filter, p.Now))
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
	p.Use(writeAt...)
	for i, link := range p.links {
		link.SetTarget(followAt[i%len(followAt)])
	}
}

// goesOn waits until more has been acknowledged than now, and every follower has
// seen something that was sent after now.
func (p *proof) goesOn(ctx context.Context) error {
	since := p.Now()
	if err := p.GoesOn(ctx); err != nil {
		return errors.Join(err, p.failure())
	}
	for _, f := range p.followers {
		err := fault.Poll(ctx, progressIn, "the follower by "+f.name, func() (bool, error) {
			log, _ := f.saw()
			return slices.ContainsFunc(log[max(0, len(log)-lately):], func(s step) bool {
				known, ok := p.Of(s.Unit)
				return ok && known.Write.Sent > since
			}), p.failure()
		})
		if err != nil {
			return err
		}
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
	p.Stop()
	p.stopHarm()
	p.following.Wait()
	var err error
	for _, proxy := range p.links {
		err = errors.Join(err, proxy.Close())
	}
	return err
}
