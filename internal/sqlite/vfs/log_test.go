package vfs

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"oda/internal/test/must"
)

// written counts what reaches the log in SQLite's own layer.
var written struct {
	own           *lib.Tsqlite3_io_methods
	writes, syncs int
	refuses       int // the next writes for which there is no room
}

// countLog counts from zero until the end of the test.
func countLog(t *testing.T) {
	t.Helper()
	counted := *ownLog
	counted.FxWrite, counted.FxSync = Function(countWrite), Function(countSync)
	written.own, written.writes, written.syncs, written.refuses = ownLog, 0, 0, 0
	ownLog = &counted
	t.Cleanup(func() { ownLog = written.own })
}

func countWrite(tls *libc.TLS, file, text uintptr, length int32, offset lib.Tsqlite3_int64) int32 {
	if written.refuses > 0 {
		written.refuses--
		return lib.SQLITE_FULL
	}
	written.writes++
	return Called[func(*libc.TLS, uintptr, uintptr, int32, lib.Tsqlite3_int64) int32](written.own.FxWrite)(tls, file, text, length, offset)
}

func countSync(tls *libc.TLS, file uintptr, flags int32) int32 {
	written.syncs++
	return Called[func(*libc.TLS, uintptr, int32) int32](written.own.FxSync)(tls, file, flags)
}

// connect opens a connection until the end of the test.
func connect(t *testing.T, path string) *sqlite.Conn {
	t.Helper()
	Install()
	c := must.Get(sqlite.OpenConn(path, sqlite.OpenReadWrite|sqlite.OpenCreate))(t)
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	run(t, c, "PRAGMA journal_mode = WAL", "PRAGMA synchronous = FULL")
	return c
}

// scratch opens a new database with a table.
func scratch(t *testing.T) (*sqlite.Conn, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "scratch.db")
	c := connect(t, path)
	run(t, c, "CREATE TABLE rows (text TEXT)", "CREATE INDEX texts ON rows (text)")
	return c, path
}

// afterKill copies a database as the next process would find it after this one was
// killed.
func afterKill(t *testing.T, path string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "killed.db")
	for _, suffix := range []string{"", "-wal"} {
		text := must.Get(os.ReadFile(path + suffix))(t)
		must.Do(t, os.WriteFile(to+suffix, text, 0o600))
	}
	return to
}

func run(t *testing.T, c *sqlite.Conn, statements ...string) {
	t.Helper()
	for _, statement := range statements {
		if err := sqlitex.ExecuteTransient(c, statement, nil); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

// number returns the number that a query finds.
func number(t *testing.T, c *sqlite.Conn, query string) (n int) {
	t.Helper()
	err := sqlitex.ExecuteTransient(c, query, &sqlitex.ExecOptions{ResultFunc: func(stmt *sqlite.Stmt) error {
		n = stmt.ColumnInt(0)
		return nil
	}})
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return n
}

func TestATransactionReachesTheLogInOneWrite(t *testing.T) {
	c, _ := scratch(t)
	countLog(t)
	for range 2 {
		run(t, c, "BEGIN", "INSERT INTO rows VALUES ('one')", "INSERT INTO rows VALUES ('two')", "COMMIT")
	}
	if written.writes != 2 {
		t.Errorf("two transactions took %d writes", written.writes)
	}
	if runtime.GOOS == "linux" && written.syncs != 0 {
		t.Errorf("SQLite itself synced the log, which includes its times, %d times", written.syncs)
	}
}

func TestANewLogIsSyncedWithItsDirectory(t *testing.T) {
	scratch(t) // from now on, SQLite's own functions are known
	countLog(t)
	scratch(t)
	if written.syncs == 0 {
		t.Error("SQLite itself did not sync a new log, so its directory may lack it after a power cut")
	}
}

func TestWhatIsCommittedIsInTheLog(t *testing.T) {
	for name, rows := range map[string]int{"one row": 1, "more than is gathered": 200, "more than the cache holds": 1000} {
		t.Run(name, func(t *testing.T) {
			c, path := scratch(t)
			other := connect(t, path)
			// Without syncs, nothing else would bring the log into its file.
			run(t, c, "PRAGMA synchronous = OFF", "PRAGMA wal_autocheckpoint = 0", "PRAGMA cache_size = 100")
			insert := func(end string) {
				t.Helper()
				run(t, c, "BEGIN")
				for range rows {
					run(t, c, "INSERT INTO rows VALUES ('"+strings.Repeat("x", 500)+"' || hex(randomblob(500)))")
				}
				run(t, c, end)
			}
			count := func(who string, of *sqlite.Conn) {
				t.Helper()
				if got := number(t, of, "SELECT count(*) FROM rows"); got != 2*rows {
					t.Errorf("%s has %d rows, want %d", who, got, 2*rows)
				}
			}
			insert("ROLLBACK")
			insert("COMMIT")
			insert("ROLLBACK")
			insert("COMMIT")
			count("another connection", other)
			copied := connect(t, afterKill(t, path))
			count("the next process", copied)
			if found := number(t, copied, "SELECT count(*) FROM pragma_integrity_check WHERE integrity_check <> 'ok'"); found != 0 {
				t.Errorf("the next process finds %d faults", found)
			}
		})
	}
}

// gathered returns how much of transactions is gathered and not written.
func gathered() (bytes int) {
	for log := range opened.logs {
		bytes += len(log.text)
	}
	return bytes
}

func TestWhatIsRolledBackIsNotWrittenLater(t *testing.T) {
	c, path := scratch(t)
	other := connect(t, path)
	// The pages are read from the file itself, so that what is gathered need not be
	// written to be read.
	run(
		t, c, "PRAGMA cache_size = 10", "DROP INDEX texts",
		`WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 60)
		INSERT INTO rows SELECT replace(hex(zeroblob(750)), '0', 'a') FROM n`,
		"PRAGMA wal_checkpoint", "BEGIN", "UPDATE rows SET text = replace(text, 'a', 'b')",
	)
	if gathered() == 0 {
		t.Fatal("nothing was gathered")
	}
	run(t, c, "ROLLBACK")
	run(t, other, "UPDATE rows SET text = replace(text, 'a', 'c')")
	for range 2 { // the first one to read may write what it has gathered
		for who, of := range map[string]*sqlite.Conn{"the connection that rolled back": c, "the one that wrote": other} {
			if n := number(t, of, "SELECT count(*) FROM rows WHERE text LIKE 'c%'"); n != 60 {
				t.Errorf("%s finds %d of the 60 rows that were changed", who, n)
			}
		}
	}
}

// fill begins a transaction that adds 100 rows to one, and of which something is
// gathered.
func fill(t *testing.T, c *sqlite.Conn) {
	t.Helper()
	run(
		t, c, "PRAGMA cache_size = 10", "DROP INDEX texts", "CREATE TABLE copies (text TEXT)", "INSERT INTO rows VALUES ('first')", "BEGIN",
		"WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 100) INSERT INTO rows SELECT hex(zeroblob(750)) FROM n",
	)
	if gathered() == 0 {
		t.Fatal("nothing was gathered")
	}
}

// has checks how many rows the connections find, and the next process.
func has(t *testing.T, rows int, path string, c *sqlite.Conn) {
	t.Helper()
	for who, of := range map[string]*sqlite.Conn{"the connection": c, "another": connect(t, path), "the next process": connect(t, afterKill(t, path))} {
		if n := number(t, of, "SELECT count(*) FROM rows"); n != rows {
			t.Errorf("%s finds %d rows, want %d", who, n, rows)
		}
	}
}

func TestAStatementThatFindsNoRoomLosesNothingOfOthers(t *testing.T) {
	c, path := scratch(t)
	countLog(t)
	fill(t, c)
	written.refuses = 1
	// A function in a statement may fail, so SQLite can undo this statement alone.
	err := sqlitex.ExecuteTransient(c, "INSERT INTO copies SELECT substr(text, 1, 10) FROM rows", nil)
	if sqlite.ErrCode(err) != sqlite.ResultFull || c.AutocommitEnabled() {
		t.Fatalf("SQLite has not undone just the statement: %v", err)
	}
	run(t, c, "COMMIT")
	has(t, 101, path, c)
}

func TestACommitThatFindsNoRoomIsNotInTheLog(t *testing.T) {
	c, path := scratch(t)
	countLog(t)
	fill(t, c)
	written.refuses = 1
	if err := sqlitex.ExecuteTransient(c, "COMMIT", nil); sqlite.ErrCode(err) != sqlite.ResultFull {
		t.Fatalf("there was no room: %v", err)
	}
	has(t, 1, path, c)
}
