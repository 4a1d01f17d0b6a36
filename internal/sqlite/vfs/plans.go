package vfs

import (
	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
)

// keepPlans has a connection that was just opened keep the plan of a statement whatever
// is bound to it (SQLITE_DBCONFIG_ENABLE_QPSG). Otherwise SQLite compiles some statements
// again with almost every value: FTS5's look into the segment with the number 1, for each
// term of a question.
func keepPlans(tls *libc.TLS, connection, _, _ uintptr) int32 {
	arguments := libc.NewVaList(int32(1), uintptr(0))
	defer libc.Xfree(tls, arguments)
	return lib.Xsqlite3_db_config(tls, connection, lib.SQLITE_DBCONFIG_ENABLE_QPSG, arguments)
}
