package work

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"oda/bench/load"
	"oda/bench/measure"
	"oda/bench/peers"
)

// rewritingArm records into blocks that are empty each time, since a block that
// grows from round to round would make every round slower than the one before.
func rewritingArm(addr string, connections, blocks int) measure.Arm {
	var made atomic.Int64
	return measure.Arm{Name: rewriting, Run: func(ctx context.Context, length time.Duration) (measure.Sample, error) {
		first := made.Add(int64(blocks)) - int64(blocks)
		name := func(i int) string { return fmt.Sprintf("eb-c%d-b%d-%06d", connections, blocks, first+int64(i%blocks)) }
		for i := range blocks {
			if _, err := send(ctx, addr, peers.Rewriting{}.Create(name(i))); err != nil {
				return measure.Sample{}, fmt.Errorf("making a block: %w", err)
			}
		}
		return load.Closed(ctx, load.Target{Addr: addr, Connections: connections, New: func(i int) load.Worker {
			return newFixed(i, [][]byte{peers.Rewriting{}.Record(name(i), peers.Record(i))}, expected{status: http.StatusOK, first: `"sequence":`})
		}}, length)
	}}
}

// rewritingBlock makes a block that has so many records already.
func rewritingBlock(ctx context.Context, addr, id string, length int) error {
	records := make([][]byte, length)
	for i := range records {
		records[i] = peers.Record(i)
	}
	empty := []byte(`"request_responses":[`)
	body := bytes.Replace(peers.EmptyBlock(id), empty, append(empty, bytes.Join(records, []byte(","))...), 1)
	if _, err := send(ctx, addr, load.Request(nil, "PUT", "/ebs/"+id, jsonBody(), body)); err != nil {
		return fmt.Errorf("making a block of %d records: %w", length, err)
	}
	return nil
}

// rewriteLengths does for the rewriting peer what is done for the engines, up
// to the length that it can do in a bearable time.
func (s *stage) rewriteLengths(ctx context.Context, all *lines) error {
	server, err := s.rewriting(ctx)
	if err != nil {
		return err
	}
	lengths := s.plan.lengths[:rewriteLengths(s.plan)]
	var arms []measure.Arm
	for _, length := range lengths {
		// It records so much more slowly that fewer blocks will do.
		requests := make([][]byte, max(1, s.plan.prepared/3/length))
		err := inParallel(ctx, s.plan.fillers, len(requests), func(ctx context.Context, _, i int) error {
			id := fmt.Sprintf("eb-%d-%06d", length, i)
			requests[i] = peers.Rewriting{}.Record(id, peers.Record(i))
			return rewritingBlock(ctx, server.Addr, id, length)
		})
		if err != nil {
			return err
		}
		arms = append(arms, pooledArm(server.Addr, newPool(length, requests)))
	}
	s.note("*Rewriting* reads, extends and writes the whole block for each record, as the service did that oda replaces. It is measured up to %s records.",
		thousands(lengths[len(lengths)-1]))
	return s.compareLengths(ctx, rewriting, "", lengths, arms, all)
}

// rewritingWhole is a long block at the rewriting peer.
func (s *stage) rewritingWhole(ctx context.Context) (*whole, error) {
	server, err := s.rewriting(ctx)
	if err != nil {
		return nil, err
	}
	const id = "eb-long-000000"
	if err := rewritingBlock(ctx, server.Addr, id, s.plan.longBlock); err != nil {
		return nil, err
	}
	return &whole{arm: rewriting, addr: server.Addr, pid: server.PID, request: peers.Rewriting{}.Get(id)}, nil
}
