package app

import (
	"context"
	"errors"
	"io"

	"oda/internal/backup"
	"oda/internal/sqlite"
)

// errOwnTools says how an archive on PostgreSQL is backed up.
var errOwnTools = errors.New("an archive on PostgreSQL is backed up and restored with PostgreSQL's own tools, pg_dump or pg_basebackup; docs/backup.md has the commands")

// Backup writes a copy of an archive that no server has open.
func Backup(ctx context.Context, database string, to io.Writer, version string) (backup.End, error) {
	if path, ok := sqlitePath(database); ok {
		return sqlite.BackupFile(ctx, path, to, version)
	}
	if isPostgres(database) {
		return backup.End{}, errOwnTools
	}
	return backup.End{}, unknownDatabase(database)
}

// Restore makes an archive from a backup. It calls note with how many bytes were read, of
// roughly how many.
func Restore(database string, from io.Reader, note func(read, total int64)) (backup.Header, backup.End, error) {
	if path, ok := sqlitePath(database); ok {
		return sqlite.Restore(from, path, note)
	}
	if isPostgres(database) {
		return backup.Header{}, backup.End{}, errOwnTools
	}
	return backup.Header{}, backup.End{}, unknownDatabase(database)
}

// DatabaseOf returns the name of the embedded engine's database that a file is or belongs
// to, "" if there is none.
func DatabaseOf(path string) string { return sqlite.DatabaseOf(path) }

// backups returns how the archive is backed up while it is served, nil if its engine
// leaves that to other tools.
func backups(s store, version string) func(context.Context, io.Writer) error {
	embedded, ok := s.(*sqlite.Store)
	if !ok {
		return nil
	}
	return func(ctx context.Context, to io.Writer) error { return embedded.Backup(ctx, to, version) }
}
