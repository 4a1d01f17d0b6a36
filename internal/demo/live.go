package demo

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"oda"
	"oda/client"
)

// Live observes at a human pace: it opens a block, records its calls one by one
// as they are answered, pauses, and opens the next, until ctx ends. Wait is Sleep,
// except in tests.
func Live(ctx context.Context, acting func(user string) (*client.Client, error), o Options, wait func(context.Context, time.Duration) error) error {
	p := planner{Rand: rand.New(rand.NewPCG(o.Seed, uint64(o.Now.UnixNano()))), plan: *newPlan(o)}
	for {
		telescope := []string{mid, low}[p.IntN(2)]
		observed := p.observation(telescope, 1+p.IntN(2), time.Now(), 20+p.IntN(40), false)
		archive, err := acting(observed.operator())
		if err != nil {
			return err
		}
		observed.block.ID, observed.block.Instance = "", ""
		opened, err := archive.CreateBlock(ctx, encode(observed.block), "")
		if err != nil {
			return err
		}
		if o.Progress != nil {
			o.Progress(fmt.Sprintf("recording into the ExecutionBlock %s", opened.ID))
		}
		say := func(status, reason string) error {
			_, err := archive.Say(ctx, oda.Ref{Kind: oda.ExecutionBlock, ID: opened.ID}, client.NewStatus{Status: status, Reason: reason})
			return err
		}
		if err := say("Executing", ""); err != nil {
			return err
		}
		if err := replay(ctx, archive, opened.ID, observed.calls, wait); err != nil {
			return err
		}
		status, _, reason := observed.outcome()
		if err := say(status, reason); err != nil {
			return err
		}
		if err := wait(ctx, time.Duration(5+p.IntN(20))*time.Second); err != nil {
			return err
		}
	}
}

// Bounds of the pauses between two records, so that something is always going on.
const shortest, longestPause = 300 * time.Millisecond, 6 * time.Second

// replay records calls as if they were made now: what was planned to take
// minutes takes seconds.
func replay(ctx context.Context, archive *client.Client, block string, calls []record, wait func(context.Context, time.Duration) error) error {
	for i := range calls {
		call := calls[i]
		took := shortest
		if call.Sent != nil && call.Received != nil {
			took = min(max(call.Received.Sub(*call.Sent)/10, shortest), longestPause)
		}
		sent := time.Now().UTC().Truncate(time.Microsecond)
		if err := wait(ctx, took); err != nil {
			return err
		}
		received := time.Now().UTC().Truncate(time.Microsecond)
		call.Sent = &sent
		if call.Received != nil {
			call.Received = &received
		}
		if _, err := archive.Record(ctx, block, encode(call), ""); err != nil {
			return err
		}
	}
	return nil
}

// Sleep waits for a time, or until ctx ends.
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
