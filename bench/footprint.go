package main

import (
	"context"
	"os"
	"time"
)

// runFootprint starts oda repeatedly.
func runFootprint(ctx context.Context, s *stage) error {
	odas, err := s.startOdas(ctx)
	if err != nil {
		return err
	}
	var arms []arm
	for _, srv := range odas {
		arms = append(arms, arm{name: srv.arm(""), run: func(ctx context.Context, _ time.Duration) (sample, error) {
			if _, err := srv.restart(ctx); err != nil {
				return nil, err
			}
			time.Sleep(s.plan.idle)
			resident, err := srv.resident()
			if err != nil {
				return nil, err
			}
			info, err := os.Stat(srv.command[0])
			if err != nil {
				return nil, err
			}
			return sample{memory: resident, disk: float64(info.Size())}, nil
		}})
	}
	_, err = s.measure(ctx, table{sized: true, Columns: plain(memory, disk)}, arms)
	return err
}
