// Package work is the work list of the benchmarks: what is measured, on what,
// and against what.
//
// Read the list in scenarios. Each scenario has a file of its own; it starts
// oda on both engines and the peers that can do the same work (package peers),
// gives each of them an arm (a name, and load made of the workers in
// workers.go), measures the arms in turn (package measure), and writes a
// section of the report with tables, plots and the budgets that it settles
// (package report). A scenario works on a stage: archives of its own, which go
// when it ends. All counts and times are in plan.go.
package work

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"time"

	"oda/bench/machine"
	"oda/bench/peers"
	"oda/bench/report"
)

// Options say what to run.
type Options struct {
	// Quick takes small counts and short times, and leaves out what must be
	// downloaded first.
	Quick bool
	// Only leaves out the scenarios whose identifier it does not match.
	Only *regexp.Regexp
	// Dir takes everything that is built and stored; several gigabytes.
	Dir string
	// Profile is a folder for profiles of oda; empty: there are none.
	Profile string
	// Version of oda, for the report.
	Version  string
	Progress io.Writer
}

// scenario is one section of the report.
type scenario struct {
	id    string
	title string
	// takes is about how long it runs, without starting and filling.
	takes func(plan) time.Duration
	run   func(context.Context, *stage) error
}

// scenarios is the work list, in the order of the report.
func scenarios() []scenario {
	return []scenario{
		reading(), storing(), recording(), batches(), oneBlock(), lengths(), longBlock(),
		growth(), several(), night(), processes(), footprint(),
	}
}

// Run runs the work list. A scenario that fails is left out of the result, and
// the others go on; the error tells of all that failed. When the run is
// interrupted, the result has the sections that were finished.
func Run(ctx context.Context, o Options) (*report.Result, error) {
	result, list, p, err := prepare(o)
	if err != nil {
		return nil, err
	}
	return result, inLab(ctx, o, result, func(lab *peers.Lab) error {
		var errs []error
		clock := newClock(list, p)
		for i, sc := range list {
			if ctx.Err() != nil {
				return errors.Join(append(errs, ctx.Err())...)
			}
			fmt.Fprintf(o.Progress, "\n[%d of %d] %s; %v passed, about %v left\n",
				i+1, len(list), sc.title, time.Since(clock.start).Round(time.Second), clock.left())
			if err := play(ctx, sc, p, lab, o.Progress, result); err != nil {
				fmt.Fprintf(o.Progress, "FAILED: %v\n", err)
				errs = append(errs, err)
			}
			clock.done(sc, p)
		}
		return errors.Join(errs...)
	})
}

// clock estimates what is left: what the plan says, as much longer or shorter
// as it took so far.
type clock struct {
	start           time.Time
	passed, planned time.Duration // by the plan
}

func newClock(list []scenario, p plan) *clock {
	c := &clock{start: time.Now()}
	for _, sc := range list {
		c.planned += sc.takes(p)
	}
	return c
}

func (c *clock) done(sc scenario, p plan) { c.passed += sc.takes(p) }

func (c *clock) left() time.Duration {
	left := c.planned - c.passed
	if c.passed > 0 {
		left = time.Duration(float64(left) * float64(time.Since(c.start)) / float64(c.passed))
	}
	return left.Round(10 * time.Second)
}

// prepare chooses the scenarios and describes the machine.
func prepare(o Options) (*report.Result, []scenario, plan, error) {
	p := full()
	if o.Quick {
		p = quick()
	}
	var list []scenario
	for _, sc := range scenarios() {
		if o.Only == nil || o.Only.MatchString(sc.id) {
			list = append(list, sc)
		}
	}
	if len(list) == 0 {
		return nil, nil, p, fmt.Errorf("no scenario matches; there are: %s", names())
	}
	described, err := machine.Describe(o.Dir)
	if err != nil {
		return nil, nil, p, err
	}
	return &report.Result{
		Version: o.Version, Quick: o.Quick, Started: time.Now().UTC(), Machine: described,
	}, list, p, nil
}

func names() string {
	all := ""
	for _, sc := range scenarios() {
		all += " " + sc.id
	}
	return all[1:]
}

// inLab does the work in a lab and closes it whatever happens. What was stored
// is removed before and after; logs stay until the next run.
func inLab(ctx context.Context, o Options, result *report.Result, do func(*peers.Lab) error) error {
	// A run that was killed leaves its archives, and this one must not go on
	// with them.
	if err := sweep(o.Dir, append(data(), logs()...)...); err != nil {
		return err
	}
	lab, err := peers.NewLab(ctx, o.Dir, o.Progress)
	if err != nil {
		return err
	}
	if o.Profile != "" {
		err = lab.Profile(o.Profile)
	}
	if err == nil {
		err = do(lab)
	}
	result.Peers = lab.Versions()
	result.Took = time.Since(result.Started)
	err = errors.Join(err, lab.Close(), sweep(o.Dir, data()...))
	if o.Profile != "" && err == nil {
		err = lab.ReadProfiles(ctx)
	}
	return err
}

// play runs one scenario and adds its section and budgets to the result.
func play(ctx context.Context, sc scenario, p plan, lab *peers.Lab, progress io.Writer, result *report.Result) error {
	s := newStage(p, lab, progress, sc.id)
	s.begin(sc.id, sc.title)
	err := sc.run(ctx, s)
	if err = errors.Join(err, s.end()); err != nil {
		return fmt.Errorf("%s: %w", sc.id, err)
	}
	result.Sections = append(result.Sections, s.sections...)
	result.Budgets = append(result.Budgets, s.budgets...)
	return nil
}
