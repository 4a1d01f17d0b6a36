package main

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"time"
)

// Details of arms.
const (
	byCreation     = ", list by creation"
	byModification = ", list by last modification"
	onSmall        = ", small archive"
)

// Figures of filling an archive.
const (
	firstTenth figure = "first tenth per second"
	lastTenth  figure = "last tenth per second"
	written    figure = "written to disk"
	logged     figure = "of that, write-ahead log"
)

// runLarge lists, starts and uses an archive with many entities.
func runLarge(ctx context.Context, s *stage) error {
	count := s.plan.entities
	var arms []arm
	large, small, err := s.fillTwo(ctx, count, func(ctx context.Context, srv *server, part int) (int, error) {
		return count / tenths, srv.storeEntities(ctx, fmt.Sprintf("sbd-%03d", part), count/tenths)
	})
	if err != nil {
		return err
	}
	for _, srv := range large {
		arms = append(arms,
			listArm(srv, byCreation, "created_after=2000-01-01", count),
			listArm(srv, byModification, "last_modified_after=2000-01-01", count))
	}
	if err := s.measure(ctx, table{sized: true, Title: "Listing all identifiers", Columns: plain(rate, took, memory)}, arms); err != nil {
		return err
	}
	return s.grown(ctx, small, large, []op{
		{"GET one entity", readEntities, func(_ context.Context, _ *server, connections int) ([]worker, error) {
			return workers(connections, func(i int) worker {
				random := rand.New(rand.NewPCG(8, uint64(i)))
				return worker{next: func() request {
					id := identifier(fmt.Sprintf("sbd-%03d", random.IntN(tenths)), random.IntN(count/tenths))
					return get(api + "/sbds/" + id)
				}}
			}), nil
		}},
		{"PUT a new entity", createEntities, createEntities},
		{"PUT an update", updateEntities, updateEntities},
		{"record", recordEach, recordEach},
		{"list, the first 100", listPage("sbds"), listPage("sbds")},
	})
}

// listArm requests everything in one answer, over one connection, from an oda
// that was just started: one that has been working has free memory, which would
// hide the cost of a listing.
func listArm(srv *server, detail, query string, count int) arm {
	return arm{name: srv.arm(detail), run: func(ctx context.Context, _ time.Duration) (sample, error) {
		if _, err := srv.restart(ctx); err != nil {
			return nil, err
		}
		// The first request also connects to the database.
		if _, err := srv.do(ctx, "GET", api+"/sbds?limit=1&"+query, nil); err != nil {
			return nil, err
		}
		got, err := effort(srv.process, func() error {
			answer, err := srv.do(ctx, "GET", api+"/sbds?"+query, nil)
			if n := bytes.Count(answer, []byte(`"sbd-`)); err == nil && n != count {
				err = fmt.Errorf("a listing has %d identifiers, not %d", n, count)
			}
			return err
		})
		if err == nil {
			got[rate] = float64(count) / got[took]
		}
		return got, err
	}}
}

// listPage lists the first 100 of a collection.
func listPage(collection string) work {
	return func(_ context.Context, _ *server, connections int) ([]worker, error) {
		return shuffled(connections, get(api+"/"+collection+"?limit=100&created_after=2000-01-01")), nil
	}
}

// tenths is the number of parts in which an archive is filled.
const tenths = 10

// fillTwo starts every oda twice, fills one of the two with count rows, part by
// part, and returns what that cost for one oda. fill returns the number of rows
// of its part.
func (s *stage) fillTwo(ctx context.Context, count int, fill func(ctx context.Context, srv *server, part int) (int, error)) (large, small []*server, err error) {
	if large, err = s.startOdas(ctx); err != nil {
		return nil, nil, err
	}
	if small, err = s.startOdas(ctx); err != nil {
		return nil, nil, err
	}
	filling := &table{
		Title:   fmt.Sprintf("Filling: what one of %s takes", format(float64(count), "")),
		Columns: plain(firstTenth, lastTenth, disk, written, logged),
	}
	each := float64(count)
	for _, srv := range large {
		wroteBefore, logBefore, err := srv.output(ctx)
		if err != nil {
			return nil, nil, err
		}
		var rates []float64
		for part := range tenths {
			begin := time.Now()
			rows, err := fill(ctx, srv, part)
			if err != nil {
				return nil, nil, err
			}
			rates = append(rates, float64(rows)/time.Since(begin).Seconds())
			s.say("  %s: %d %% filled, %s per second", srv.arm(""), 100*(part+1)/tenths, format(rates[part], ""))
		}
		if err := srv.tidy(ctx); err != nil {
			return nil, nil, err
		}
		wrote, log, err := srv.output(ctx)
		if err != nil {
			return nil, nil, err
		}
		sizes, err := srv.sizes(ctx)
		if err != nil {
			return nil, nil, err
		}
		stored := 0.0
		for _, size := range sizes {
			stored += size
		}
		figures := map[figure][]float64{
			firstTenth: {rates[0]}, lastTenth: {rates[tenths-1]}, disk: {stored / each}, written: {(wrote - wroteBefore) / each},
		}
		if log > 0 {
			figures[logged] = []float64{(log - logBefore) / each}
		}
		filling.Series = append(filling.Series, series{Arm: srv.arm(""), Rounds: figures})
	}
	s.section.Tables = append(s.section.Tables, filling)
	return large, small, nil
}

// op is a kind of work that is done on a small and on a large archive.
type op struct {
	name         string
	small, large work
}

// grown starts oda on small and large archives, and does the same work on both.
func (s *stage) grown(ctx context.Context, small, large []*server, ops []op) error {
	starting := func(srv *server, detail string) arm {
		return arm{name: srv.arm(detail), run: func(ctx context.Context, _ time.Duration) (sample, error) {
			lasted, err := srv.restart(ctx)
			return sample{took: lasted.Seconds()}, err
		}}
	}
	var starts, arms []arm
	for i := range large {
		starts = append(starts, starting(large[i], ", start"), starting(small[i], ", start"+onSmall))
	}
	if err := s.measure(ctx, table{sized: true, Title: "Starting", Columns: []column{over(took), over(took, onSmall)}}, starts); err != nil {
		return err
	}
	for i := range large {
		for _, o := range ops {
			many, err := o.large(ctx, large[i], s.plan.busy)
			if err != nil {
				return err
			}
			few, err := o.small(ctx, small[i], s.plan.busy)
			if err != nil {
				return err
			}
			arms = append(arms, loadArm(large[i], ", "+o.name, many, 1), loadArm(small[i], ", "+o.name+onSmall, few, 1))
		}
	}
	return s.measure(ctx, table{Title: "Working", Columns: []column{over(cost), over(cost, onSmall), over(p50), over(p99)}}, arms)
}
