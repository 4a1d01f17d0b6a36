package work

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"oda/bench/load"
	"oda/bench/measure"
	"oda/bench/peers"
	"oda/bench/report"
)

// recording records single calls, each connection into a block of its own.
func recording() scenario {
	return scenario{
		id: "recording", title: "Recording",
		takes: func(p plan) time.Duration {
			return estimate(8*(len(p.connections)-1), p.usual) + estimate(9, p.budgeted)
		},
		run: runRecording,
	}
}

// Budgets of recording.
const (
	recordBare       = 0.33
	recordPocketBase = 5
	recordPgbench    = 1.0
)

// pgbenchMost is the most connections for pgbench beside those of the servers:
// PostgreSQL is set for 200.
const pgbenchMost = 100

// studio has the servers that are recorded into. PocketBase and Kinto may be
// nil.
type studio struct {
	*stage
	bare, pocket, kinto, rewriter *peers.Server
	sqlite, postgres              *engine
	raw                           *peers.RawSQLite
	blocks                        []string // on both engines
}

func (s *stage) studio(ctx context.Context, blocks int) (*studio, error) {
	st := &studio{stage: s}
	var err error
	if st.bare, err = s.bare(ctx); err != nil {
		return nil, err
	}
	if st.sqlite, st.postgres, err = s.engines(ctx, s.name); err != nil {
		return nil, err
	}
	for _, e := range []*engine{st.sqlite, st.postgres} {
		if st.blocks, err = s.blocks(ctx, e.addr(), "record", blocks); err != nil {
			return nil, err
		}
	}
	if st.raw, err = s.rawSQLite(ctx); err != nil {
		return nil, err
	}
	if st.pocket, err = s.pocketBase(ctx); err != nil {
		return nil, err
	}
	if st.kinto, err = s.kinto(ctx); err != nil {
		return nil, err
	}
	st.rewriter, err = s.rewriting(ctx)
	return st, err
}

// rawRecords runs oda's statements without oda, with so many records in a
// transaction.
func (st *studio) rawRecords(arm string, together int) measure.Arm {
	return measure.Arm{Name: arm, Run: func(ctx context.Context, length time.Duration) (measure.Sample, error) {
		return st.raw.Record(ctx, together, length)
	}}
}

// recorders record over connection i into the block that block says.
func recorders(blocks []string, block func(i int) int) func(i int) load.Worker {
	return func(i int) load.Worker { return newRecorder(i, blocks[block(i)]) }
}

// peerRecorders record in the way of a peer.
func peerRecorders(request func(block string, record []byte) []byte, block func(i int) int, status int) func(i int) load.Worker {
	return func(i int) load.Worker {
		requests := make([][]byte, 16)
		for n := range requests {
			requests[n] = request(fmt.Sprintf("eb-peer-%06d", block(i)), peers.Record(n))
		}
		return newFixed(i, requests, expected{status: status})
	}
}

// arms are all that record over so many connections into so many blocks.
func (st *studio) arms(ctx context.Context, connections, blocks int) ([]measure.Arm, error) {
	block := func(i int) int { return i % blocks }
	oda := recorders(st.blocks, block)
	arms := []measure.Arm{
		closed(bare, st.bare.Addr, connections, oda),
		closed(onSQLite, st.sqlite.addr(), connections, oda),
		closed(onPostgres, st.postgres.addr(), connections, oda),
		st.rawRecords(rawSQLite, connections),
	}
	if connections == st.plan.busy {
		arms = append(arms, st.rawRecords(rawSQLite+", a commit each", 1))
	}
	if connections <= pgbenchMost {
		inserts, err := st.pgbenchArm(ctx, st.postgres.db, peers.RecordScript("eb-pgbench", blocks), connections)
		if err != nil {
			return nil, err
		}
		arms = append(arms, inserts)
	}
	if st.pocket != nil {
		arms = append(arms, closed(pocketBase, st.pocket.Addr, connections, peerRecorders(peers.PocketBase{}.Record, block, http.StatusOK)))
	}
	arms = append(arms, rewritingArm(st.rewriter.Addr, connections, blocks))
	if st.kinto != nil {
		arms = append(arms, closed(kinto, st.kinto.Addr, connections, peerRecorders(peers.Kinto{}.Record, block, http.StatusCreated)))
	}
	return arms, nil
}

func runRecording(ctx context.Context, s *stage) error {
	most := s.plan.connections[len(s.plan.connections)-1]
	st, err := s.studio(ctx, most)
	if err != nil {
		return err
	}
	s.note("One request/response in a request (about %d bytes), every connection into an ExecutionBlock of its own. An answer means that the record "+
		"is on disk. *pgbench* inserts the row alone, one in a transaction. *Raw SQLite* does oda's statements from Go, with as many "+
		"records in a transaction as there are connections. *Rewriting* "+
		"reads, extends and writes the whole block for each record, as the service did that oda replaces; its blocks begin empty each time.", len(peers.Record(0)))
	if most > pgbenchMost {
		s.note("pgbench is left out above %d connections: PostgreSQL has room for 200 in all.", pgbenchMost)
	}
	var rates lines
	for _, connections := range s.plan.connections {
		p := s.plan.usual
		if connections == s.plan.busy {
			p = s.plan.budgeted
		}
		arms, err := st.arms(ctx, connections, connections)
		if err != nil {
			return err
		}
		c, err := s.measure(ctx, "Record, "+connected(connections), p, arms)
		if err != nil {
			return err
		}
		s.section.Tables = append(s.section.Tables, c.table("records", bare, pgbench, pocketBase))
		for _, series := range c.series {
			rates.add(series.Arm, float64(connections), series.Rate())
		}
		if connections == s.plan.busy {
			s.recordBudgets(c)
			plot := c.bars("recording-busy", fmt.Sprintf("Recording over %d connections", connections), "records", bare)
			plot.Headline = true
			s.section.Plots = append(s.section.Plots, plot)
		}
	}
	s.section.Plots = append(s.section.Plots, report.Plot{
		ID: "recording", Title: "Recording", XLabel: "connections", YLabel: "records in a second", LogX: true, LogY: true, Lines: rates.all,
	})
	return nil
}

// connected says over how many connections.
func connected(n int) string {
	if n == 1 {
		return "1 connection"
	}
	return fmt.Sprintf("%d connections", n)
}

func (s *stage) recordBudgets(c compared) {
	const work = "record one request/response, durable"
	s.atLeast(work, "SQLite", "of bare", recordBare, c.ratio(onSQLite, bare))
	s.atLeast(work, "SQLite", "× PocketBase", recordPocketBase, c.ratio(onSQLite, pocketBase))
	s.atLeast(work, "PostgreSQL", "of pgbench", recordPgbench, c.ratio(onPostgres, pgbench))
}

// oneBlock records from many connections into the same block.
func oneBlock() scenario {
	return scenario{
		id: "one-block", title: "Recording into one block from many connections",
		takes: func(p plan) time.Duration { return estimate(8, p.usual) },
		run: func(ctx context.Context, s *stage) error {
			st, err := s.studio(ctx, 1)
			if err != nil {
				return err
			}
			arms, err := st.arms(ctx, s.plan.busy, 1)
			if err != nil {
				return err
			}
			c, err := s.measure(ctx, fmt.Sprintf("Record into one block, %d connections", s.plan.busy), s.plan.usual, arms)
			if err != nil {
				return err
			}
			s.note("As above, but all %d connections record into one block, so all of them meet at its head.", s.plan.busy)
			s.section.Tables = append(s.section.Tables, c.table("records", bare, pgbench, pocketBase))
			return nil
		},
	}
}
