package peers

import (
	"time"

	"zombiezen.com/go/sqlite"
)

// The statements of the embedded engine, copied from internal/sqlite: conn.go
// has the pragmas, read.go the reading, txn.go the heads and the state, put.go
// the rest. A test fails when one is no longer there.
const (
	rawPragmas = `
PRAGMA journal_mode = WAL;
PRAGMA synchronous = FULL;
PRAGMA wal_autocheckpoint = 8000;
PRAGMA journal_size_limit = 67108864;
PRAGMA cache_size = -16384;
PRAGMA temp_store = MEMORY;
PRAGMA foreign_keys = ON;
`
	rawSelectCurrent = `SELECT h.entity, h.version, h.created_by, h.created_on, h.last_modified_by, h.last_modified_on, h.last_sequence,
	v.sequence_after, v.runs, v.slots, v.text
	FROM heads h JOIN versions v ON v.position = h.position WHERE h.kind = ? AND h.identifier = ?`
	rawSelectHead = `SELECT entity, version, created_by, created_on, last_modified_by, last_modified_on, last_sequence, position
		FROM heads WHERE kind = ? AND identifier = ?`
	rawInsertHead = `INSERT INTO heads (kind, identifier, version, created_by, created_on, last_modified_by, last_modified_on,
		last_sequence, position, create_key, create_digest) VALUES (?, ?, ?, ?, ?, ?, ?, 0, 0, ?, ?)`
	rawInsertVersion = `INSERT INTO versions (position, entity, version, stored_by, stored_on, sequence_before, sequence_after, runs, slots, text)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
	rawInsertRecord = `INSERT INTO records (position, entity, sequence, version, recorded_by, recorded_on, key, digest, text)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`
	rawUpdateHead = `UPDATE heads SET version = ?, last_modified_by = ?, last_modified_on = ?, last_sequence = ?, position = ?
			WHERE entity = ?`
	rawUpdateState = `UPDATE state SET last_position = ?, sbdefinitions = ?, sbinstances = ?, executionblocks = ?, projects = ?`
)

// rawConn is a connection that keeps its statements prepared, as those of the
// engine do.
type rawConn struct {
	*sqlite.Conn
	statements map[string]*sqlite.Stmt
}

func openRaw(path string) (*rawConn, error) {
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadWrite)
	if err != nil {
		return nil, err
	}
	conn.SetBusyTimeout(10 * time.Second)
	c := &rawConn{conn, make(map[string]*sqlite.Stmt)}
	for text := rawPragmas; len(text) > 1; { // the last line ends the text
		stmt, rest, err := c.PrepareTransient(text)
		if err == nil {
			_, err = stmt.Step()
			_ = stmt.Finalize() // says the same again
		}
		if err != nil {
			_ = c.Close() // the first error is the one to tell
			return nil, err
		}
		text = text[len(text)-rest:]
	}
	return c, nil
}

// exec runs a statement and calls row, which may be nil, for each of its rows.
func (c *rawConn) exec(query string, row func(*sqlite.Stmt), args ...any) error {
	stmt, ok := c.statements[query]
	if !ok {
		var err error
		if stmt, _, err = c.PrepareTransient(query); err != nil {
			return err
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
		default:
			// Without the argument, as in the engine: it would have all of them
			// on the heap.
			panic("an argument of a type that is not bound in " + query)
		}
	}
	for {
		more, err := stmt.Step()
		if err != nil || !more {
			if resetErr := stmt.Reset(); err == nil {
				err = resetErr
			}
			return err
		}
		if row != nil {
			row(stmt)
		}
	}
}

func (c *rawConn) close() error {
	for _, stmt := range c.statements {
		_ = stmt.Finalize() // reports the error of its last run, which was handled
	}
	return c.Close()
}
