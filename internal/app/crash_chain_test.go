package app_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// chain writes successive versions of one entity, or of several at once. Every
// round stores its number in all of them.
type chain struct {
	several          bool
	collections, ids []string

	states       []state // as last read
	acked, tried int64   // rounds
	versions     []int64 // acknowledged versions
}

// state is the part of an entity that a chain needs.
type state struct {
	Round    int64           `json:"round"`
	Raw      json.RawMessage `json:"-"` // the metadata as received
	Metadata struct {
		Version int64 `json:"version"`
	} `json:"metadata"`
}

// UnmarshalJSON also keeps the metadata as received.
func (s *state) UnmarshalJSON(text []byte) error {
	type plain state
	var raw struct {
		Metadata json.RawMessage `json:"metadata"`
	}
	if err := json.Unmarshal(text, &raw); err != nil {
		return err
	}
	s.Raw = raw.Metadata
	return json.Unmarshal(text, (*plain)(s))
}

func (c *chain) write(l *load, url string) error {
	if c.states == nil && c.tried > 0 {
		// The answer was lost with the process: only reading shows what was
		// stored.
		if err := c.read(l, url); err != nil {
			return err
		}
		for _, complaint := range c.check(c.states) {
			l.t.Error(complaint)
		}
		c.acked = c.states[0].Round
	}
	c.tried = c.acked + 1
	documents := make([]string, len(c.ids))
	for i, id := range c.ids {
		metadata := ""
		if c.tried > 1 {
			metadata = `,"metadata":` + string(c.states[i].Raw)
		}
		documents[i] = fmt.Sprintf(`{"%s_id":%q,"round":%d%s}`, strings.TrimSuffix(c.collections[i], "s"), id, c.tried, metadata)
	}
	c.states = nil
	if !c.several {
		var next state
		if err := l.send(&next, "PUT", url+"/"+c.collections[0]+"/"+c.ids[0], documents[0]); err != nil {
			return err
		}
		c.states = []state{next}
	} else {
		var body strings.Builder
		for i, document := range documents {
			fmt.Fprintf(&body, `,%q:[%s]`, c.collections[i], document)
		}
		var next map[string][]state
		if err := l.send(&next, "PUT", url+"/", "{"+body.String()[1:]+"}"); err != nil {
			return err
		}
		for _, collection := range c.collections {
			c.states = append(c.states, next[collection]...)
		}
	}
	c.acked = c.tried
	c.versions = append(c.versions, c.acked)
	return nil
}

// read reads the entities. Those of a lost first round may be missing.
func (c *chain) read(l *load, url string) error {
	states := make([]state, len(c.ids))
	for i, id := range c.ids {
		address := url + "/" + c.collections[i] + "/" + id
		status, _, err := try("GET", address, "")
		if err != nil {
			return err
		}
		if status == 404 && c.acked == 0 {
			continue
		}
		if err := l.send(&states[i], "GET", address, ""); err != nil {
			return err
		}
	}
	c.states = states
	return nil
}

// check complains about states that are impossible after the rounds so far. A
// version counts the rounds, since each round stores one.
func (c *chain) check(states []state) []string {
	var complaints []string
	for i, s := range states {
		switch {
		case s.Round != c.acked && s.Round != c.tried:
			complaints = append(complaints, fmt.Sprintf("%s is at round %d; %d was acknowledged, %d was tried", c.ids[i], s.Round, c.acked, c.tried))
		case s.Metadata.Version != s.Round:
			complaints = append(complaints, fmt.Sprintf("%s is at version %d in round %d", c.ids[i], s.Metadata.Version, s.Round))
		case s.Round != states[0].Round:
			complaints = append(complaints, fmt.Sprintf("%s is at round %d, but %s is at %d: half of a write is stored", c.ids[i], s.Round, c.ids[0], states[0].Round))
		}
	}
	return complaints
}

// A check that finds nothing is worthless if it cannot find anything.
func TestTheCrashTestNoticesHalfOfAWrite(t *testing.T) {
	link := &chain{ids: []string{"a", "b"}, acked: 7, tried: 8}
	for about, test := range map[string]struct {
		states []state
		fine   bool
	}{
		"the acknowledged round":      {[]state{{Round: 7}, {Round: 7}}, true},
		"the unanswered round":        {[]state{{Round: 8}, {Round: 8}}, true},
		"a part of a round":           {[]state{{Round: 8}, {Round: 7}}, false},
		"an earlier round":            {[]state{{Round: 6}, {Round: 6}}, false},
		"a round that was never sent": {[]state{{Round: 9}, {Round: 9}}, false},
	} {
		for i := range test.states {
			test.states[i].Metadata.Version = test.states[i].Round
		}
		if got := link.check(test.states); (len(got) == 0) != test.fine {
			t.Errorf("%s: got %q", about, got)
		}
	}
}

func (c *chain) judge(l *load, url string, _ map[string][]string) []string {
	if err := c.read(l, url); err != nil {
		return []string{err.Error()}
	}
	return c.check(c.states)
}

// checkFile inspects the file itself: SQLite finds no damage, and every chain
// has all its versions, each with the document of its round.
func checkFile(t *testing.T, path string, writers []writer) {
	t.Helper()
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadOnly)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if got := column(t, conn, "PRAGMA integrity_check"); !slices.Equal(got, []string{"ok"}) {
		t.Errorf("the file is damaged: %v", got)
	}
	for _, w := range writers {
		c, ok := w.(*chain)
		if !ok {
			continue
		}
		for i, id := range c.ids {
			texts := column(t, conn, `SELECT v.version || ' ' || CAST(v.text AS TEXT) FROM versions v JOIN heads h ON h.entity = v.entity
				WHERE h.identifier = ? ORDER BY v.version`, id)
			if int64(len(texts)) != c.states[i].Metadata.Version {
				t.Errorf("%s is at version %d, but %d are stored", id, c.states[i].Metadata.Version, len(texts))
			}
			for j, text := range texts {
				if want := fmt.Sprintf(`"round":%d`, j+1); !strings.HasPrefix(text, fmt.Sprint(j+1, " ")) || !strings.Contains(text, want+",") && !strings.Contains(text, want+"}") {
					t.Errorf("version %d of %s is %s", j+1, id, text)
				}
			}
			for _, version := range c.versions {
				if version > int64(len(texts)) {
					t.Errorf("version %d of %s was acknowledged and is lost", version, id)
				}
			}
		}
	}
}

// column returns the first column of a query.
func column(t *testing.T, conn *sqlite.Conn, query string, args ...any) []string {
	t.Helper()
	var values []string
	err := sqlitex.Execute(conn, query, &sqlitex.ExecOptions{Args: args, ResultFunc: func(stmt *sqlite.Stmt) error {
		values = append(values, stmt.ColumnText(0))
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	return values
}
