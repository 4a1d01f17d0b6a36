package vfs

import (
	"path/filepath"
	"testing"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"

	"oda/internal/test/must"
)

// FTS5 asks each of its segments with the same statement.
func TestAStatementIsPlannedOnce(t *testing.T) {
	Install()
	tls := libc.NewTLS()
	defer tls.Close()
	text := func(s string) uintptr { return must.Get(libc.CString(s))(t) }
	place := placed(tls, uintptr(0))
	do := func(rc int32) {
		t.Helper()
		if rc != lib.SQLITE_OK && rc != lib.SQLITE_DONE {
			t.Fatalf("SQLite answered %d", rc)
		}
	}
	do(lib.Xsqlite3_open_v2(tls, text(filepath.Join(t.TempDir(), "plans.db")), place, lib.SQLITE_OPEN_READWRITE|lib.SQLITE_OPEN_CREATE, 0))
	db := *At[uintptr](place)
	defer func() { do(lib.Xsqlite3_close(tls, db)) }()
	do(lib.Xsqlite3_exec(tls, db, text("CREATE TABLE segments (segment, term, page, PRIMARY KEY (segment, term)) WITHOUT ROWID"), 0, 0, 0))
	do(lib.Xsqlite3_prepare_v2(tls, db, text("SELECT page FROM segments WHERE segment = ? AND term <= ? ORDER BY term DESC LIMIT 1"), -1, place, 0))
	statement := *At[uintptr](place)
	defer func() { do(lib.Xsqlite3_finalize(tls, statement)) }()
	for segment := range int64(6) {
		do(lib.Xsqlite3_bind_int64(tls, statement, 1, segment%3))
		do(lib.Xsqlite3_step(tls, statement))
		do(lib.Xsqlite3_reset(tls, statement))
	}
	if n := lib.Xsqlite3_stmt_status(tls, statement, lib.SQLITE_STMTSTATUS_REPREPARE, 0); n != 0 {
		t.Errorf("it was planned %d times more", n)
	}
}
