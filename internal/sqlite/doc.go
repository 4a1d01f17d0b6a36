// Package sqlite is the embedded engine: a Store in one SQLite file, for a
// laptop or a single telescope.
//
// One goroutine writes. It takes what is waiting, judges each request on its
// own, and commits all of it with one fsync (group commit, writer.go). Readers
// have connections of their own and never wait for the writer. An acknowledged
// write is on disk: the write-ahead log is synced at every commit.
//
// One process owns the file, held by locks on it and beside it (file.go). So the
// documents that are read most can be kept in memory (cache.go): nobody else
// can change them.
//
// The schema is in schema/; what each kind of row is for is told there.
package sqlite
