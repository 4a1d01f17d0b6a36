package sqlite

import (
	"strings"
	"time"

	"zombiezen.com/go/sqlite"

	"oda"
	"oda/internal/sqlite/vfs"
)

// conn is a connection with its prepared statements. SQLite plans a statement
// again when its bindings are cleared, so statements are prepared once and every
// run binds all parameters.
type conn struct {
	*sqlite.Conn
	statements map[string]*sqlite.Stmt
	given      []byte // what the SQL function given returns
}

// pragmas make commits durable and let connections read while one writes. The
// writer itself checkpoints the write-ahead log, every 32 MiB, as part of a commit.
// A second connection that did so in parallel would never catch up under load, and
// the log would grow without bound.
const pragmas = `
PRAGMA journal_mode = WAL;
PRAGMA synchronous = FULL;
PRAGMA wal_autocheckpoint = 8000;
PRAGMA journal_size_limit = 67108864;
PRAGMA cache_size = -16384;
PRAGMA temp_store = MEMORY;
PRAGMA foreign_keys = ON;
`

// Settings of connections that read. A listing walks along an index once, so its
// connection needs only a small cache.
const (
	queryOnly  = "PRAGMA query_only = ON;"
	smallCache = "PRAGMA cache_size = -1024;"
)

// openConn opens a connection. It makes the checks before it changes anything in
// the file.
func openConn(path string, flags sqlite.OpenFlags, checks ...func(*conn) error) (*conn, error) {
	vfs.Install()
	raw, err := sqlite.OpenConn(path, flags)
	if err != nil {
		return nil, err
	}
	raw.SetBusyTimeout(10 * time.Second)
	c := &conn{Conn: raw, statements: make(map[string]*sqlite.Stmt)}
	for _, check := range checks {
		if err = check(c); err != nil {
			break
		}
	}
	if err == nil {
		err = c.script(pragmas)
	}
	if err == nil {
		err = raw.CreateFunction("given", &sqlite.FunctionImpl{Scalar: func(sqlite.Context, []sqlite.Value) (sqlite.Value, error) {
			return sqlite.BlobValue(c.given), nil
		}})
	}
	if err != nil {
		_ = c.close() // the first error matters
		return nil, err
	}
	return c, nil
}

// script runs several statements and ignores their rows.
func (c *conn) script(text string) error {
	for strings.TrimSpace(text) != "" {
		stmt, rest, err := c.PrepareTransient(text)
		if err != nil {
			return err
		}
		for {
			row, err := stmt.Step()
			if err != nil {
				_ = stmt.Finalize() // returns the same error
				return err
			}
			if !row {
				break
			}
		}
		if err := stmt.Finalize(); err != nil {
			return err
		}
		text = text[len(text)-rest:]
	}
	return nil
}

// bind prepares a statement, unless it is already prepared, and binds all of its
// parameters in order.
func (c *conn) bind(query string, args ...any) (*sqlite.Stmt, error) {
	stmt, ok := c.statements[query]
	if !ok {
		var rest int
		var err error
		if stmt, rest, err = c.PrepareTransient(query); err != nil {
			return nil, err
		}
		if rest != 0 {
			panic("sqlite: more than one statement in " + query)
		}
		c.statements[query] = stmt
	}
	for i, arg := range args {
		switch v := arg.(type) {
		case nil:
			stmt.BindNull(i + 1)
		case int64:
			stmt.BindInt64(i+1, v)
		case string:
			stmt.BindText(i+1, v)
		case []byte:
			stmt.BindBytes(i+1, v)
		case *string:
			if stmt.BindNull(i + 1); v != nil {
				stmt.BindText(i+1, *v)
			}
		case *oda.Moment:
			if stmt.BindNull(i + 1); v != nil {
				stmt.BindInt64(i+1, int64(*v))
			}
		default:
			// The message must not contain the argument: then all arguments of all
			// statements would escape to the heap.
			panic("sqlite: an argument has an unsupported type in " + query)
		}
	}
	return stmt, nil
}

// exec runs a statement that returns no rows.
func (c *conn) exec(query string, args ...any) error {
	return c.query(query, nil, args...)
}

// execGiven runs a statement that reads a text as given(). The driver copies what is
// bound byte by byte, but all at once what a function returns: for a document of 5 KB
// that saves a twentieth of all instructions of a PUT.
func (c *conn) execGiven(text []byte, query string, args ...any) error {
	c.given = text
	defer func() { c.given = nil }()
	return c.exec(query, args...)
}

// query runs a statement and calls row for each of its rows. It always resets the
// statement, so that no snapshot stays open.
func (c *conn) query(query string, row func(*sqlite.Stmt) error, args ...any) (err error) {
	stmt, err := c.bind(query, args...)
	if err != nil {
		return err
	}
	defer func() {
		if resetErr := stmt.Reset(); err == nil {
			err = resetErr
		}
	}()
	for {
		more, err := stmt.Step()
		if err != nil || !more {
			return err
		}
		if err := row(stmt); err != nil {
			return err
		}
	}
}

// number runs a statement that returns one number.
func (c *conn) number(query string) (int64, error) {
	var n int64
	err := c.query(query, func(stmt *sqlite.Stmt) error {
		n = stmt.ColumnInt64(0)
		return nil
	})
	return n, err
}

// close finalises the statements and closes the connection.
func (c *conn) close() error {
	for _, stmt := range c.statements {
		_ = stmt.Finalize() // reports the error of its last run, which was handled
	}
	return c.Close()
}

// digestOf reads the digest of a text. If the column has none, it returns a digest
// that no text has.
func digestOf(stmt *sqlite.Stmt, column int) (digest oda.Digest) {
	if stmt.ColumnLen(column) == len(digest) {
		stmt.ColumnBytes(column, digest[:])
	}
	return digest
}

// bytesOf copies a blob from the current row. It returns nil for NULL.
func bytesOf(stmt *sqlite.Stmt, column int) []byte {
	if stmt.ColumnIsNull(column) {
		return nil
	}
	b := make([]byte, stmt.ColumnLen(column))
	stmt.ColumnBytes(column, b)
	return b
}
