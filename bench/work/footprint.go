package work

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"oda/bench/machine"
	"oda/bench/measure"
	"oda/bench/report"
)

// footprintBudget is the most that an idle oda holds, and that its program
// takes on disk.
const footprintBudget = 40 << 20 // bytes

// settled is how long a started server is left alone before its memory is read.
const settled = time.Second

// footprint is what oda takes while nobody asks it anything.
func footprint() scenario {
	return scenario{
		id: "footprint", title: "Idle memory and size of the program",
		takes: func(p plan) time.Duration { return time.Duration(p.listings*3) * settled },
		run:   runFootprint,
	}
}

func runFootprint(ctx context.Context, s *stage) error {
	info, err := os.Stat(filepath.Join(s.lab.Dir, "bin", "oda"))
	if err != nil {
		return fmt.Errorf("looking at the program: %w", err)
	}
	size := float64(info.Size())
	s.note("Resident memory %v after a start on an empty archive, and the size of the program on disk (%s).", settled, report.Bytes(size))
	memory := map[string][]float64{}
	for range s.plan.listings {
		if err := s.idle(ctx, memory); err != nil {
			return err
		}
	}
	table := report.Table{Columns: []string{"", "resident", "÷ bare"}}
	for _, arm := range []string{bare, onSQLite, onPostgres} {
		table.Rows = append(table.Rows, []string{
			arm, report.SpreadValue(measure.SpreadOf(memory[arm]), "B"), report.Times(quotients(memory[arm], memory[bare])),
		})
	}
	s.section.Tables = append(s.section.Tables, table)
	s.atMost("idle memory", "SQLite", "resident", footprintBudget, "B", measure.SpreadOf(memory[onSQLite]))
	s.atMost("idle memory", "PostgreSQL", "resident", footprintBudget, "B", measure.SpreadOf(memory[onPostgres]))
	s.atMost("the program", "both", "size on disk", footprintBudget, "B", measure.Spread{Median: size, Low: size, High: size})
	return nil
}

// idle starts each server anew, and reads what it holds when it has settled.
func (s *stage) idle(ctx context.Context, memory map[string][]float64) (err error) {
	inner := newStage(s.plan, s.lab, s.progress, s.name)
	defer func() { err = errors.Join(err, inner.end()) }()
	plain, err := inner.bare(ctx)
	if err != nil {
		return err
	}
	sqlite, postgres, err := inner.engines(ctx, s.name)
	if err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(settled):
	}
	for arm, pid := range map[string]int{bare: plain.PID, sqlite.arm: sqlite.server.PID, postgres.arm: postgres.server.PID} {
		usage, err := machine.Process(pid)
		if err != nil {
			return err
		}
		memory[arm] = append(memory[arm], float64(usage.RSS))
		s.say("  idle  %s: %s", arm, report.Bytes(float64(usage.RSS)))
	}
	return nil
}
