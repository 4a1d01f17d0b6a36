package vfs

import (
	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
)

// keepPlans has SQLite plan a statement of a new connection once. Otherwise it does so again
// when a parameter that was 0 or 1 becomes another, since it believes such values to be
// frequent. That takes a third of the time in which FTS5 looks up a term: it asks each of
// its segments with the same statement, and they count from 1.
func keepPlans(tls *libc.TLS, db, _, _ uintptr) int32 {
	const room = 2 * 8 // for two arguments
	args := libc.Xmalloc(tls, room)
	defer libc.Xfree(tls, args)
	return lib.Xsqlite3_db_config(tls, db, lib.SQLITE_DBCONFIG_ENABLE_QPSG, libc.VaList(args, int32(1), uintptr(0)))
}
