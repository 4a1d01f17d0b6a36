package app

import (
	"context"
	"fmt"
	"strings"

	"oda/internal/engine/audit"
	"oda/internal/postgres"
	"oda/internal/sqlite"
)

// Verify reads everything in a database and reports what does not fit. The error
// says why it could not be verified.
func Verify(ctx context.Context, database string, report *audit.Report) error {
	if path, ok := strings.CutPrefix(database, "sqlite:"); ok && path != "" {
		return sqlite.Verify(ctx, path, report)
	}
	if strings.HasPrefix(database, "postgres://") || strings.HasPrefix(database, "postgresql://") {
		return postgres.Verify(ctx, database, report)
	}
	return fmt.Errorf("unknown database %q; write it as sqlite:PATH or postgres://USER@HOST/NAME", shown(database))
}
