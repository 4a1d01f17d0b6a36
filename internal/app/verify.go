package app

import (
	"context"

	"oda/internal/engine/audit"
	"oda/internal/postgres"
	"oda/internal/sqlite"
)

// Verify reads everything in a database and reports what does not fit. The error
// says why it could not be verified.
func Verify(ctx context.Context, database string, report *audit.Report) error {
	if path, ok := sqlitePath(database); ok {
		return sqlite.Verify(ctx, path, report)
	}
	if isPostgres(database) {
		return postgres.Verify(ctx, database, report)
	}
	return unknownDatabase(database)
}
