package measure

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// Arm is one of the things compared.
type Arm struct {
	Name string
	// Run works for about the given time and says what was done.
	Run func(ctx context.Context, length time.Duration) (Sample, error)
}

// Plan says how long and how often.
type Plan struct {
	// Warm is how long each arm runs before anything counts; zero is not at
	// all.
	Warm time.Duration
	// Length is that of one sample.
	Length time.Duration
	Rounds int
}

// Interleave warms every arm up, then measures A B C A B C ... It says on
// progress what runs. The series are in the order of the arms. Where an arm
// cannot be measured it returns what was measured until then, with the error.
func Interleave(ctx context.Context, plan Plan, arms []Arm, progress io.Writer) ([]Series, error) {
	if plan.Rounds < 1 || plan.Length <= 0 {
		return nil, errors.New("a plan needs at least one round and a length")
	}
	series := make([]Series, len(arms))
	for i, arm := range arms {
		series[i].Arm = arm.Name
	}
	if plan.Warm > 0 {
		for _, arm := range arms {
			fmt.Fprintf(progress, "  warm up  %s\n", arm.Name)
			if _, err := run(ctx, arm, plan.Warm); err != nil {
				return series, fmt.Errorf("warming %s up: %w", arm.Name, err)
			}
		}
	}
	for round := range plan.Rounds {
		for i, arm := range arms {
			sample, err := run(ctx, arm, plan.Length)
			if err != nil {
				return series, fmt.Errorf("measuring %s in round %d: %w", arm.Name, round+1, err)
			}
			series[i].Samples = append(series[i].Samples, sample)
			say(progress, round+1, plan.Rounds, arm.Name, sample)
		}
	}
	return series, nil
}

// run does not begin an arm once the caller has given up, whatever the arm
// itself makes of the context.
func run(ctx context.Context, arm Arm, length time.Duration) (Sample, error) {
	if err := ctx.Err(); err != nil {
		return Sample{}, err
	}
	return arm.Run(ctx, length)
}

func say(progress io.Writer, round, rounds int, name string, s Sample) {
	fmt.Fprintf(progress, "  %d of %d  %s: %.0f/s, p50 %v, p99 %v\n",
		round, rounds, name, s.Rate(),
		s.P50.Round(time.Microsecond), s.P99.Round(time.Microsecond))
	if s.Failed > 0 {
		fmt.Fprintf(progress, "          %s: %d failed, first: %s\n", name, s.Failed, s.FirstFailure)
	}
}
