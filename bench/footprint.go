package main

import (
	"context"
	"os"
	"time"
)

// runFootprint starts oda repeatedly.
func runFootprint(ctx context.Context, s *stage) error {
	arms, err := s.arms(ctx, func(_ context.Context, srv *server) ([]arm, error) {
		return []arm{{name: srv.arm(""), run: func(ctx context.Context, _ time.Duration) (sample, error) {
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
		}}}, nil
	})
	if err != nil {
		return err
	}
	return s.measure(ctx, table{sized: true, Columns: plain(memory, disk)}, arms)
}
