// Package sqlite is the embedded engine: an archive in one SQLite file, for a
// laptop or a single telescope.
//
// One goroutine writes. It takes the requests that are waiting, judges each on its
// own, and commits all of them with one fsync (group commit, writer.go). Readers
// have connections of their own and never wait for the writer. An acknowledged
// write is on disk: the write-ahead log is synced at every commit (package vfs).
//
// One process owns the file. It holds locks on the file and on a second one next
// to it (file.go). Nobody else can change the documents, so those that are read
// most can be kept in memory (cache.go).
//
// The schema is in schema/, which says what each kind of row is for.
package sqlite
