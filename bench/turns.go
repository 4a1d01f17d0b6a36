package main

import "context"

// Details of arms.
const (
	said      = ", a status"
	updated   = ", an update"
	succeeded = ", a call"
	failed    = ", a failed call"
)

// namedWork is work with the detail of its arm.
type namedWork struct {
	name string
	work work
}

// inTurn measures several kinds of work on each oda, in turn.
func inTurn(columns []column, all ...namedWork) func(context.Context, *stage) error {
	return func(ctx context.Context, s *stage) error {
		arms, err := s.arms(ctx, func(ctx context.Context, srv *server) (arms []arm, err error) {
			for _, one := range all {
				workers, err := one.work(ctx, srv, s.plan.busy)
				if err != nil {
					return nil, err
				}
				arms = append(arms, loadArm(srv, one.name, workers, 1))
			}
			return arms, nil
		})
		if err != nil {
			return err
		}
		return s.measure(ctx, table{Columns: columns}, arms)
	}
}
