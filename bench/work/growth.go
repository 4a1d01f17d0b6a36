package work

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"oda/bench/load"
	"oda/bench/measure"
	"oda/bench/peers"
	"oda/bench/report"
)

// growth fills an archive on each engine up to its largest size and measures on
// the way whether anything becomes dearer. What needs a large archive follows
// on the same one, since filling it takes longer than all the rest: listings
// and starts.
func growth() scenario {
	return scenario{
		id: "growth", title: "A growing archive",
		takes: func(p plan) time.Duration {
			entities := 2 * p.sizes[len(p.sizes)-1]
			filling := time.Duration(entities) * 100 * time.Microsecond
			return filling + estimate(len(p.sizes)*len(growthWorks(nil))*3, p.brief) + estimate(4, p.usual)
		},
		run: runGrowth,
	}
}

// large is an archive that is being filled.
type large struct {
	*engine
	entities int
	blocks   []string
	created  atomic.Int64 // entities beyond those filled in
	began    time.Time
}

// growthWork is one operation that is measured at every size.
type growthWork struct {
	id, name string
	run      func(s *stage, addr string, a *large) func(context.Context, time.Duration) (measure.Sample, error)
}

// growthWorks are the operations. The bare server is given the same requests.
func growthWorks(s *stage) []growthWork {
	busy := func(worker func(a *large, i int) load.Worker) func(*stage, string, *large) func(context.Context, time.Duration) (measure.Sample, error) {
		return func(s *stage, addr string, a *large) func(context.Context, time.Duration) (measure.Sample, error) {
			return closed("", addr, s.plan.busy, func(i int) load.Worker { return worker(a, i) }).Run
		}
	}
	return []growthWork{
		{"get", "GET one entity, any of them", busy(func(a *large, i int) load.Worker { return newReader(i, "sbd-big", a.entities, "sbd_id") })},
		{"new", "PUT a new entity", busy(func(a *large, i int) load.Worker {
			return newCreator(createRequest(s.plan.documentSize), "sbd-new", &a.created, http.StatusOK)
		})},
		{"update", "PUT an update", func(s *stage, addr string, a *large) func(context.Context, time.Duration) (measure.Sample, error) {
			return updating([]string{addr}, s.plan.busy, scattered(a.entities, updated(s.plan.busy)))
		}},
		{"record", "Record", busy(func(a *large, i int) load.Worker { return newRecorder(i, a.blocks[i]) })},
		{"page", "List, the first 100", busy(func(a *large, i int) load.Worker {
			after := a.began.UTC().Format(time.RFC3339)
			return newFixed(i, [][]byte{get(api + "/sbds?limit=100&created_after=" + after)}, expected{status: http.StatusOK})
		})},
	}
}

// scattered are entities from everywhere in the archive.
func scattered(entities, count int) []string {
	paths := make([]string, min(count, entities))
	for i := range paths {
		paths[i] = api + "/sbds/" + identifier("sbd-big", int64(i)*int64(entities)/int64(len(paths)))
	}
	return paths
}

func runGrowth(ctx context.Context, s *stage) error {
	plain, err := s.bare(ctx)
	if err != nil {
		return err
	}
	sqlite, postgres, err := s.engines(ctx, s.name)
	if err != nil {
		return err
	}
	archives := []*large{{engine: sqlite}, {engine: postgres}}
	for _, a := range archives {
		a.began = time.Now().Add(-time.Second)
		if a.blocks, err = s.blocks(ctx, a.addr(), "growth", s.plan.busy); err != nil {
			return err
		}
	}
	s.note("An archive on each engine is filled with SBDefinitions of %d bytes by `PUT /` of %d at a time over %d connections. Filling stops at each "+
		"size, and every operation is measured, over %d connections. *Cost* is the time that one operation takes of the busy machine: the inverse "+
		"of the rate. Before measuring, PostgreSQL is given what its autovacuum does within minutes anyway (`VACUUM ANALYZE`), and a checkpoint.",
		s.plan.documentSize, s.plan.several, s.plan.fillers, s.plan.busy)
	table := newGrowthTable(s)
	for _, size := range s.plan.sizes {
		if err := s.growTo(ctx, size, archives, &table.filling); err != nil {
			return err
		}
		for i, work := range growthWorks(s) {
			if err := table.measure(ctx, i, work, plain, archives, size); err != nil {
				return err
			}
		}
	}
	table.present()
	if err := s.uniform(ctx, plain, archives); err != nil {
		return err
	}
	if err := s.listing(ctx, archives); err != nil {
		return err
	}
	return s.starting(ctx, archives)
}

// growTo fills the archives up to a size, one after the other.
func (s *stage) growTo(ctx context.Context, size int, archives []*large, filling *report.Table) error {
	for _, a := range archives {
		before, err := storedBytes(ctx, a.engine)
		if err != nil {
			return err
		}
		begin := time.Now()
		from := a.entities
		if err := s.fill(ctx, a.addr(), "sbd-big", from, size, s.plan.documentSize); err != nil {
			return err
		}
		took := time.Since(begin)
		a.entities = size
		if a.arm == onPostgres {
			if err := settle(ctx, a.db); err != nil {
				return err
			}
		}
		bytes, err := storedBytes(ctx, a.engine)
		if err != nil {
			return err
		}
		filling.Rows = append(filling.Rows, []string{
			a.arm, thousands(size), report.Num(float64(size-from) / took.Seconds()),
			report.Bytes(bytes), report.Bytes((bytes - before) / float64(size-from)),
		})
		s.say("  %s has %d entities", a.arm, size)
	}
	return nil
}

// growthTable gathers the points of all curves.
type growthTable struct {
	s       *stage
	filling report.Table
	works   []report.Table
	rows    []map[string][][]string // of each work, by arm
	costs   []lines
	first   []map[string]float64 // ratio to bare at the smallest size
}

func newGrowthTable(s *stage) *growthTable {
	works := growthWorks(s)
	t := &growthTable{
		s: s, works: make([]report.Table, len(works)), costs: make([]lines, len(works)),
		rows: make([]map[string][][]string, len(works)), first: make([]map[string]float64, len(works)),
		filling: report.Table{Title: "Filling", Columns: []string{"", "up to", "entities/s", "archive on disk", "for one more entity"}},
	}
	for i, work := range works {
		t.first[i], t.rows[i] = map[string]float64{}, map[string][][]string{}
		t.works[i] = report.Table{
			Title:   work.name,
			Columns: []string{"", "entities", "operations/s", "÷ bare", "cost", "p99", fmt.Sprintf("cost ÷ at %s", thousands(s.plan.sizes[0]))},
		}
	}
	return t
}

// measure measures one operation at one size. What it costs is compared with
// what it cost at the smallest size through the bare server, which was
// measured both times: the machine may have become slower meanwhile.
func (t *growthTable) measure(ctx context.Context, i int, work growthWork, plain *peers.Server, archives []*large, size int) error {
	// The bare server stores nothing, so what it is sent must not count.
	nowhere := &large{entities: size, blocks: archives[0].blocks, began: archives[0].began}
	arms := []measure.Arm{{Name: bare, Run: work.run(t.s, plain.Addr, nowhere)}}
	for _, a := range archives {
		arms = append(arms, measure.Arm{Name: a.arm, Run: work.run(t.s, a.addr(), a)})
	}
	c, err := t.s.measure(ctx, fmt.Sprintf("%s, %s entities", work.name, thousands(size)), t.s.plan.brief, arms)
	if err != nil {
		return err
	}
	for _, series := range c.series {
		t.costs[i].add(series.Arm, float64(size), cost(series))
		ratio := c.ratio(series.Arm, bare)
		if _, found := t.first[i][series.Arm]; !found {
			t.first[i][series.Arm] = ratio.Median
		}
		growth := t.first[i][series.Arm] / ratio.Median
		t.rows[i][series.Arm] = append(t.rows[i][series.Arm], []string{
			series.Arm, thousands(size), report.Times(series.Rate()), ratioText(c, series.Arm, bare),
			report.SpreadValue(cost(series), "s"), latency(series.Quantile(measure.P99)), report.Num(growth),
		})
	}
	return nil
}

func (t *growthTable) present() {
	t.s.note("The last column is the cost at this size divided by the cost at the smallest, each first divided by what the bare server " +
		"took in the same rounds. 1 means that growth costs nothing. oda on SQLite keeps up to 64 MiB of documents in its memory: a small archive fits " +
		"into it, and a large one is read from the files.")
	for i := range t.works {
		t.works[i].Rows = slices.Concat(t.rows[i][bare], t.rows[i][onSQLite], t.rows[i][onPostgres])
	}
	t.s.section.Tables = append(append(t.s.section.Tables, t.filling), t.works...)
	for i, work := range growthWorks(t.s) {
		t.s.section.Plots = append(t.s.section.Plots, report.Plot{
			ID: "growth-" + work.id, Title: work.name, XLabel: "entities in the archive", YLabel: "cost of one operation",
			Unit: "s", LogX: true, LogY: true, Lines: t.costs[i].all,
		})
	}
}
