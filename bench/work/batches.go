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
	"oda/bench/report"
)

// batches records several calls in one request, as the recorders do that come
// with oda.
func batches() scenario {
	return scenario{
		id: "batches", title: "Recording in batches",
		takes: func(p plan) time.Duration { return estimate(5*len(p.connections)+2, p.usual) },
		run:   runBatches,
	}
}

// kintoMost is the most connections over which Kinto is sent batches: with
// more of them a request takes longer than the generator waits.
const kintoMost = 16

// each counts the records of a batch, not the requests.
func each(records int, arm measure.Arm) measure.Arm {
	run := arm.Run
	arm.Run = func(ctx context.Context, length time.Duration) (measure.Sample, error) {
		sample, err := run(ctx, length)
		sample.Operations *= int64(records)
		return sample, err
	}
	return arm
}

func runBatches(ctx context.Context, s *stage) error {
	st, err := s.studio(ctx, s.plan.connections[len(s.plan.connections)-1])
	if err != nil {
		return err
	}
	s.note("%d records in a request, every connection into a block of its own; for oda each record has its idempotency key. Rates count records, latencies "+
		"are of requests. *Raw SQLite* writes as many records in a transaction as all connections send at a time. pgbench and the rewriting peer "+
		"are left out: they have no such request.", s.plan.batch)
	if st.kinto != nil {
		s.note("Kinto is left out above %s, where one of its answers takes many seconds.", connected(kintoMost))
	}
	var keys atomic.Int64
	oda := func(i int) load.Worker { return newBatcher(st.blocks[i], s.plan.batch, &keys) }
	texts := make([][]byte, s.plan.batch)
	for i := range texts {
		texts[i] = peers.Record(i)
	}
	var rates lines
	for _, connections := range s.plan.connections {
		together := min(connections*s.plan.batch, rawMost)
		arms := []measure.Arm{
			each(s.plan.batch, closed(bare, st.bare.Addr, connections, oda)),
			each(s.plan.batch, closed(onSQLite, st.sqlite.addr(), connections, oda)),
			each(s.plan.batch, closed(onPostgres, st.postgres.addr(), connections, oda)),
			st.rawRecords(rawSQLite, together),
		}
		if st.pocket != nil {
			arms = append(arms, each(s.plan.batch, closed(pocketBase, st.pocket.Addr, connections, func(i int) load.Worker {
				request := peers.PocketBase{}.Batch(fmt.Sprintf("eb-batch-%06d", i), texts)
				return newFixed(i, [][]byte{request}, expected{status: http.StatusOK})
			})))
		}
		if st.kinto != nil && connections <= kintoMost {
			arms = append(arms, each(s.plan.batch, closed(kinto, st.kinto.Addr, connections, func(i int) load.Worker {
				return newFixed(i, [][]byte{kintoBatch(fmt.Sprintf("eb-batch-%06d", i), texts)}, expected{status: http.StatusOK, first: `"status":201`})
			})))
		}
		c, err := s.measure(ctx, fmt.Sprintf("Record %d at a time, %s", s.plan.batch, connected(connections)), s.plan.usual, arms)
		if err != nil {
			return err
		}
		s.section.Tables = append(s.section.Tables, c.table("records", bare, rawSQLite, pocketBase))
		for _, series := range c.series {
			rates.add(series.Arm, float64(connections), series.Rate())
		}
	}
	s.section.Plots = append(s.section.Plots, report.Plot{
		ID: "batches", Title: "Recording in batches", XLabel: "connections", YLabel: "records in a second", LogX: true, LogY: true, Lines: rates.all,
	})
	return nil
}

// kintoBatch is one request of Kinto's that holds several; Kinto runs them in
// one transaction.
func kintoBatch(block string, records [][]byte) []byte {
	var body bytes.Buffer
	body.WriteString(`{"defaults":{"method":"POST","path":"/v1/buckets/oda/collections/records/records"},"requests":[`)
	for i, record := range records {
		if i > 0 {
			body.WriteByte(',')
		}
		fmt.Fprintf(&body, `{"body":{"data":{"eb_id":%q,"document":%s}}}`, block, record)
	}
	body.WriteString(`]}`)
	return load.Request(nil, "POST", "/v1/batch", jsonBody(), body.Bytes())
}
