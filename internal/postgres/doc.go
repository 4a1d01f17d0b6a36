// Package postgres is the engine for an observatory: an archive in a PostgreSQL
// database that several oda processes may share. The observatory replicates it and
// backs it up as it does with its other databases.
//
// Every operation is one round trip if possible. A store is one statement that
// creates the entity, or updates it if its metadata is the expected one (putstatements.go).
// If it does neither, the stored metadata is read and oda.Judge says why. Records
// that arrive at the same time are gathered into few transactions (gather.go,
// record.go). A block that another session holds is left out of them (held.go).
// Storing and recording lock the row of the head and nothing larger. Statements
// that change several heads lock them in the order of their identifiers, so there
// are no deadlocks.
//
// An acknowledged write is on disk: synchronous_commit is never weakened. A write
// that failed before the server can have seen it is tried again. A write that may
// have been committed is not, and the caller is told so.
package postgres
