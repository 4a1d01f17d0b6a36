package web

import "context"

// FixedCounts and Refresh are for the browser tests, which are outside the
// package because their tools import it.
var FixedCounts = fixedCounts

// Refresh counts once.
func (s *Site) Refresh(ctx context.Context) error { return s.refresh(ctx) }
