package sqlite

import (
	"runtime"
	"strings"
	"testing"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
	"zombiezen.com/go/sqlite"
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
	counted.FxWrite, counted.FxSync = function(countWrite), function(countSync)
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
	return called[func(*libc.TLS, uintptr, uintptr, int32, lib.Tsqlite3_int64) int32](written.own.FxWrite)(tls, file, text, length, offset)
}

func countSync(tls *libc.TLS, file uintptr, flags int32) int32 {
	written.syncs++
	return called[func(*libc.TLS, uintptr, int32) int32](written.own.FxSync)(tls, file, flags)
}

// connect opens a connection until the end of the test.
func connect(t *testing.T, path string) *conn {
	t.Helper()
	c, err := openConn(path, sqlite.OpenReadWrite|sqlite.OpenCreate)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// scratch opens a database that is no archive, with a table.
func scratch(t *testing.T) (*conn, string) {
	t.Helper()
	path := archivePath(t)
	c := connect(t, path)
	must(t, c.script("CREATE TABLE rows (text TEXT); CREATE INDEX texts ON rows (text)"))
	return c, path
}

func TestATransactionReachesTheLogInOneWrite(t *testing.T) {
	c, _ := scratch(t)
	countLog(t)
	for range 2 {
		must(t, c.script("BEGIN; INSERT INTO rows VALUES ('one'); INSERT INTO rows VALUES ('two'); COMMIT"))
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
			must(t, c.script("PRAGMA synchronous = OFF; PRAGMA wal_autocheckpoint = 0; PRAGMA cache_size = 100"))
			insert := func(end string) {
				t.Helper()
				must(t, c.exec("BEGIN"))
				for range rows {
					must(t, c.exec("INSERT INTO rows VALUES (? || hex(randomblob(500)))", strings.Repeat("x", 500)))
				}
				must(t, c.exec(end))
			}
			count := func(who string, of *conn, want int) {
				t.Helper()
				if got, err := of.number("SELECT count(*) FROM rows"); err != nil || got != int64(want) {
					t.Errorf("%s has %d rows, want %d: %v", who, got, want, err)
				}
			}
			insert("ROLLBACK")
			insert("COMMIT")
			insert("ROLLBACK")
			insert("COMMIT")
			count("another connection", other, 2*rows)
			copied := connect(t, afterKill(t, path))
			count("the next process", copied, 2*rows)
			if found, err := copied.number("SELECT count(*) FROM pragma_integrity_check WHERE integrity_check <> 'ok'"); err != nil || found != 0 {
				t.Errorf("the next process finds %d faults: %v", found, err)
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
	err := c.script(`PRAGMA cache_size = 10; DROP INDEX texts;
		WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 60) INSERT INTO rows SELECT replace(hex(zeroblob(750)), '0', 'a') FROM n;
		PRAGMA wal_checkpoint; BEGIN; UPDATE rows SET text = replace(text, 'a', 'b')`)
	if err != nil {
		t.Fatal(err)
	}
	if gathered() == 0 {
		t.Fatal("nothing was gathered")
	}
	must(t, c.exec("ROLLBACK"))
	must(t, other.exec("UPDATE rows SET text = replace(text, 'a', 'c')"))
	for range 2 { // the first one to read may write what it has gathered
		for who, of := range map[string]*conn{"the connection that rolled back": c, "the one that wrote": other} {
			if n, err := of.number("SELECT count(*) FROM rows WHERE text LIKE 'c%'"); err != nil || n != 60 {
				t.Errorf("%s finds %d of the 60 rows that were changed: %v", who, n, err)
			}
		}
	}
}

// fill begins a transaction that adds 100 rows to one, and of which something is
// gathered.
func fill(t *testing.T, c *conn) {
	t.Helper()
	err := c.script(`PRAGMA cache_size = 10; DROP INDEX texts; CREATE TABLE copies (text TEXT); INSERT INTO rows VALUES ('first'); BEGIN;
		WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 100) INSERT INTO rows SELECT hex(zeroblob(750)) FROM n`)
	if err != nil {
		t.Fatal(err)
	}
	if gathered() == 0 {
		t.Fatal("nothing was gathered")
	}
}

// has checks how many rows the connections find, and the next process.
func has(t *testing.T, rows int64, path string, c *conn) {
	t.Helper()
	for who, of := range map[string]*conn{"the connection": c, "another": connect(t, path), "the next process": connect(t, afterKill(t, path))} {
		if n, err := of.number("SELECT count(*) FROM rows"); err != nil || n != rows {
			t.Errorf("%s finds %d rows, want %d: %v", who, n, rows, err)
		}
	}
}

func TestAStatementThatFindsNoRoomLosesNothingOfOthers(t *testing.T) {
	c, path := scratch(t)
	countLog(t)
	fill(t, c)
	written.refuses = 1
	// A function in a statement may fail, so SQLite can undo this statement alone.
	err := c.exec("INSERT INTO copies SELECT substr(text, 1, 10) FROM rows")
	if sqlite.ErrCode(err) != sqlite.ResultFull || c.AutocommitEnabled() {
		t.Fatalf("SQLite has not undone just the statement: %v", err)
	}
	must(t, c.exec("COMMIT"))
	has(t, 101, path, c)
}

func TestACommitThatFindsNoRoomIsNotInTheLog(t *testing.T) {
	c, path := scratch(t)
	countLog(t)
	fill(t, c)
	written.refuses = 1
	if err := c.exec("COMMIT"); sqlite.ErrCode(err) != sqlite.ResultFull {
		t.Fatalf("there was no room: %v", err)
	}
	has(t, 1, path, c)
}
