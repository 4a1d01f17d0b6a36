package main

import "context"

// Details of arms.
const (
	said    = ", a status"
	updated = ", an update"
)

// runSaying says statuses, and updates entities in turn.
func runSaying(ctx context.Context, s *stage) error {
	arms, err := s.arms(ctx, func(ctx context.Context, srv *server) (arms []arm, err error) {
		for _, one := range []struct {
			name string
			work work
		}{{updated, updateEntities}, {said, sayStatuses}} {
			all, err := one.work(ctx, srv, s.plan.busy)
			if err != nil {
				return nil, err
			}
			arms = append(arms, loadArm(srv, one.name, all, 1))
		}
		return arms, nil
	})
	if err != nil {
		return err
	}
	return s.measure(ctx, table{Columns: plain(rate, p50, p99)}, arms)
}
