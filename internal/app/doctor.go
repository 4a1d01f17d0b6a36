package app

import (
	"context"

	"oda/internal/doctor"
	"oda/internal/engine/audit"
	"oda/internal/postgres"
	"oda/internal/sqlite"
)

// Examine looks for everything that may be wrong with a database: what is damaged goes
// to damage, the rest to report. The error says why it could not be examined.
func Examine(ctx context.Context, database string, report *doctor.Report, damage *audit.Report) error {
	var err error
	damage.Do("looking at files, times and references")
	if path, ok := sqlitePath(database); ok {
		err = sqlite.Examine(ctx, path, report)
	} else if isPostgres(database) {
		err = postgres.Examine(ctx, database, report)
	} else {
		err = unknownDatabase(database)
	}
	if err != nil || report.Found(doctor.Schema) > 0 {
		return err
	}
	return Verify(ctx, database, damage)
}
