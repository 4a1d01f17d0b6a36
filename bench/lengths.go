package main

import "context"

const lengthConnections = 16

// at returns the name of a length.
func at(length int) string { return ", " + format(float64(length), "") + " records" }

// runLengths measures whether recording gets slower as a block gets longer.
func runLengths(ctx context.Context, s *stage) error {
	arms, err := s.arms(ctx, func(ctx context.Context, srv *server) (arms []arm, err error) {
		for _, length := range s.plan.lengths {
			all, err := recordAt(length, max(1, s.plan.prepared/length))(ctx, srv, lengthConnections)
			if err != nil {
				return nil, err
			}
			a := loadArm(srv, at(length), all, 1)
			a.line, a.x = srv.arm(""), float64(length)
			arms = append(arms, a)
		}
		return arms, nil
	})
	if err != nil {
		return err
	}
	return s.measure(ctx, table{
		Columns: plain(cost, rate, p50, p99),
		Plot:    &plotted{Title: "What one more record costs", X: "records in the block", Y: cost, LogX: true},
	}, arms)
}
