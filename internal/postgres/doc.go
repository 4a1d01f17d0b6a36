// Package postgres is the engine of an observatory: a Store in a PostgreSQL
// database that several oda processes may share, replicated and backed up as
// the observatory does it.
//
// Every operation is one round trip where it can be. A store is one statement
// that creates the entity or updates it if its metadata is the expected one
// (put.go); where it did neither, the stored metadata is read and the rules say
// why. Records that come in at the same time are gathered into few
// transactions (gather.go, record.go); who holds one of them up is left out
// (held.go). Storing and recording meet at the row of the head,
// and at nothing larger. Statements that touch several heads take them in the
// order of their identifiers, so nothing deadlocks.
//
// An acknowledged write is on disk: synchronous_commit is never weakened. What
// failed before the server can have heard of it is tried again; what may have
// been committed is not, and the caller is told so.
package postgres
