package follow

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"oda"
	"oda/internal/test/load"
)

// end stops the writers, lets the followers come to the end, reads everything
// from a server, and judges. The report says what happened.
func (p *proof) end(ctx context.Context, host string) (report string, err error) {
	defer func() { err = errors.Join(err, p.close()) }()
	p.Pause()
	errs := []error{p.failure()}
	whole, all, v, err := p.readUntilTheyAgree(ctx, host)
	if errs = append(errs, err, v.err("a reading from the beginning")); err != nil {
		return "", errors.Join(errs...)
	}
	p.stopHarm()
	expected := make([][]step, len(p.followers))
	var reaching sync.WaitGroup
	for i, f := range p.followers {
		if expected[i] = only(whole, f.filter, f.start); len(expected[i]) > 0 {
			last := expected[i][len(expected[i])-1].position
			reaching.Go(func() { f.reach(ctx, last, p.patience) })
		}
	}
	reaching.Wait()
	p.kill()
	p.following.Wait()
	for i, f := range p.followers {
		v := &verdict{}
		if f.start == 0 {
			v = judge(f.log, onlyTrue(all, f.filter))
		}
		v.compare(f.log, expected[i])
		v.promptly(f.ends, whole, all)
		errs = append(errs, v.err(f.name))
	}
	errs = append(errs, p.failure(), p.reread(ctx, apiAt(host), whole))
	return p.report(len(whole)), errors.Join(errs...)
}

// readUntilTheyAgree reads what is stored and the log from the beginning, until both agree
// or the time is over.
func (p *proof) readUntilTheyAgree(ctx context.Context, host string) (whole []step, all load.Truth, v *verdict, err error) {
	reader := newFollower("reading", apiAt(host), polling, nil, p.Now)
	reader.most = 10_000
	for begun := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		if err = reader.readAll(ctx); err != nil {
			return nil, nil, &verdict{}, err
		}
		if all, err = p.Read(ctx, host); err != nil {
			return nil, nil, &verdict{}, err
		}
		v = judge(reader.log, all)
		if v.missed+v.unknown == 0 || time.Since(begun) > p.patience {
			return reader.log, all, v, p.Check(all)
		}
	}
}

// rereadings is how many further readings from random positions are made.
const rereadings = 30

// reread reads the feed again, in other pages, as a stream, and from random
// positions.
func (p *proof) reread(ctx context.Context, api string, whole []step) error {
	if len(whole) == 0 {
		return errors.New("the feed is empty")
	}
	end := whole[len(whole)-1].position
	again := newFollower("reading again", api, polling, nil, p.Now)
	again.most = 500
	if err := again.readAll(ctx); err != nil {
		return err
	}
	v := &verdict{}
	v.compare(again.log, whole)
	errs := []error{v.err(again.name)}

	streamed := newFollower("streaming again", api, stream, nil, p.Now)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- streamed.run(ctx) }()
	streamed.reach(ctx, end, p.patience)
	cancel()
	errs = append(errs, <-ended)
	v = &verdict{}
	v.compare(streamed.log, whole)
	errs = append(errs, v.err(streamed.name))

	for range rereadings {
		from := newFollower("reading from the middle", api, polling, nil, p.Now)
		from.at = oda.Position(rand.Int64N(int64(end)))
		rest := only(whole, nil, from.at)
		if err := from.readPage(context.WithoutCancel(ctx)); err != nil {
			return errors.Join(append(errs, err)...)
		}
		v := &verdict{}
		v.compare(from.log, rest[:min(len(from.log), len(rest))])
		if len(from.log) == 0 {
			v.compare(nil, rest)
		}
		errs = append(errs, v.err(from.name))
	}
	return errors.Join(errs...)
}

// matches reports whether a filter lets changes of an entity pass.
func matches(filter url.Values, ref oda.Ref) bool {
	kinds := filter["kind"]
	return len(kinds) == 0 || strings.Contains(strings.Join(kinds, " "), ref.Kind.Collection())
}

// only returns what a filter lets pass of a log after a position.
func only(log []step, filter url.Values, after oda.Position) []step {
	var passed []step
	for _, s := range log {
		if s.position > after && matches(filter, s.Ref) {
			passed = append(passed, s)
		}
	}
	return passed
}

func onlyTrue(all load.Truth, filter url.Values) load.Truth {
	passed := make(load.Truth)
	for u, f := range all {
		if matches(filter, u.Ref) {
			passed[u] = f
		}
	}
	return passed
}

// report says what happened.
func (p *proof) report(units int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d versions, records and statuses; %v", units, p.Load)
	for i, f := range p.followers {
		var delays []time.Duration
		for _, s := range f.log {
			if fact, ok := p.Of(s.Unit); ok {
				delays = append(delays, s.seen-fact.Write.Answered)
			}
		}
		slices.Sort(delays)
		quantile := func(q float64) time.Duration {
			if len(delays) == 0 {
				return 0
			}
			return delays[int(q*float64(len(delays)-1))].Round(100 * time.Microsecond)
		}
		fmt.Fprintf(&b, "\n  %s: cut %d times, resumed %d times, saw half within %v of the answer, 99 %% within %v, all within %v",
			f.name, p.links[i].Cuts(), f.resumes, quantile(0.5), quantile(0.99), quantile(1))
	}
	return b.String()
}

// enough returns an error if one of the actions did not occur, or a follower
// was never cut off, so that nothing is proved.
func (p *proof) enough(actions ...string) error {
	if err := p.Enough(slices.Concat(load.Everything, actions)...); err != nil {
		return err
	}
	for i, f := range p.followers {
		if p.links[i].Cuts() == 0 {
			return fmt.Errorf("the follower by %s was never cut off, so nothing is proved about it", f.name)
		}
	}
	return nil
}
