package web

import "context"

// FixedCounts and Refresh are for the tests in the browser, which stand outside
// the package because their tools know it.
var FixedCounts = fixedCounts

// Refresh counts once.
func (s *Site) Refresh(ctx context.Context) error { return s.refresh(ctx) }
