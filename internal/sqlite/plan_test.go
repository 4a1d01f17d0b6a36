package sqlite

import (
	"context"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"oda"
	"oda/internal/test/must"
	"oda/internal/test/suite"
)

// work makes every kind of request.
func work(t *testing.T, s *Store) {
	t.Helper()
	ctx := context.Background()
	key := &oda.Key{Value: "key"}
	for range 2 { // the second time the keys are known
		must.Get(s.Create(ctx, put(t, "b", `{"request_responses":[{"request":"one"}]}`, 1), key))(t)
		must.Get(s.Append(ctx, oda.Append{Block: "b", By: "anna", At: 2, Records: []oda.NewRecord{{Key: "key", Text: []byte(`{"request":"two"}`)}}}))(t)
	}
	e := must.Get(s.Get(ctx, block("b")))(t)
	definition := several(t, s, 1, "a")[0]
	awaitIndexed(t, s)
	text := `{"metadata":` + string(definition.Metadata.AppendJSON(nil)) + `,"name":"b"}`
	mustPut(t, s, suite.Put(suite.Document(t, oda.SBDefinition, text), definition.ID, "anna", 3))
	if found, err := s.Look(ctx, []oda.Ref{definition.Ref}); err != nil || found[0] == nil {
		t.Fatal(err)
	}
	for range 2 { // before and after it is moved into the index
		q := oda.Question{Kind: oda.SBDefinition, Clauses: []oda.Clause{{Any: []string{"1wb"}}, {Any: []string{"1w"}, Prefix: true}}, Most: 10}
		if places, _, err := s.Candidates(ctx, q); err != nil || len(places) != 1 {
			t.Fatalf("the candidates are %v, %v", places, err)
		}
		awaitIndexed(t, s)
	}
	mustKeep(t, s, "b", mustPut(t, s, put(t, "b", suite.Render(t, e), 3)))
	must.Get(s.Version(ctx, block("b"), 1))(t)
	must.Get(s.AsOf(ctx, block("b"), 1))(t)
	must.Get(s.Versions(ctx, block("b"), math.MaxInt64, 10))(t)
	for _, q := range []oda.Query{
		{Order: oda.ByCreation},
		{Order: oda.ByModification},
		{Order: oda.ByCreation, Match: oda.UserEquals, User: "anna"},
		{Order: oda.ByCreation, Match: oda.UserStartsWith, User: "a"},
		{Order: oda.ByCreation, Match: oda.UserContains, User: "n"},
	} {
		q.Kind = oda.ExecutionBlock
		found := 0
		err := s.List(ctx, q, func(string, oda.Instant) error {
			found++
			return nil
		})
		if err != nil || found != 1 {
			t.Fatalf("list %+v: %d, %v", q, found, err)
		}
	}
	for _, w := range walks() {
		found := 0
		err := s.Walk(ctx, w, func(*oda.Found, oda.Body) error {
			found++
			return nil
		})
		if err != nil || found != 1 && w.Telescope == "" {
			t.Fatalf("walk %+v: %d, %v", w, found, err)
		}
		for order := range oda.ByIdentifierReversed + 1 {
			if places, err := s.Places(ctx, w, order); err != nil || len(places) != found {
				t.Fatalf("the places of the walk %+v: %v, %v", w, places, err)
			}
		}
	}
	must.Get(s.Append(ctx, oda.Append{Block: "b", By: "anna", At: 4, Records: []oda.NewRecord{{Text: []byte(
		`{"request":"r","status":"ERROR","request_sent_at":"1970-01-01T00:00:00Z","response_received_at":"1970-01-01T00:00:09Z"}`,
	)}}}))(t)
	for _, asked := range ranges() {
		for _, err := range s.FailedCalls(ctx, asked) {
			must.Do(t, err)
		}
		for _, err := range s.LongCalls(ctx, asked, 0) {
			must.Do(t, err)
		}
	}
	if changes, _, err := s.Changes(ctx, 0, 100); err != nil || len(changes) == 0 {
		t.Fatalf("%d changes, %v", len(changes), err)
	}
	must.Do(t, s.Ping(ctx))
}

// ranges returns questions for calls of every form.
func ranges() []oda.CallRange {
	var all []oda.CallRange
	for _, asked := range []oda.CallRange{
		{}, {Block: "b"}, {Device: "d"}, {Error: "E"}, {Function: "f"}, {Block: "b", Function: "f"}, {Device: "d", Error: "E", Function: "f"}, {Error: "E", Function: "f"},
	} {
		asked.To = 10
		all = append(all, asked)
		asked.Backwards = true
		all = append(all, asked)
	}
	return all
}

// walks returns walks of every form, with and without bodies.
func walks() []oda.Walk {
	var all []oda.Walk
	for order := range oda.ByIdentifierReversed + 1 {
		for _, bodies := range []bool{false, true} {
			w := oda.Walk{Kind: oda.ExecutionBlock, Sort: order, Limit: 10, Bodies: bodies}
			all = append(all, w)
			if order == oda.NewestFirst || order == oda.OldestFirst {
				user, telescope := w, w
				user.User, telescope.Telescope = "anna", "ska_mid"
				all = append(all, user, telescope)
			}
		}
	}
	return all
}

// plans returns how SQLite runs each prepared statement of a connection.
func plans(c *conn, skip map[string]bool) (map[string][]string, error) {
	found := map[string][]string{}
	for _, query := range slices.Collect(maps.Keys(c.statements)) {
		if skip[query] {
			continue
		}
		stmt, _, err := c.PrepareTransient("EXPLAIN QUERY PLAN " + query)
		if err != nil {
			return nil, err
		}
		found[query] = nil
		for {
			row, err := stmt.Step()
			if err != nil {
				return nil, err
			}
			if !row {
				break
			}
			found[query] = append(found[query], stmt.ColumnText(3))
		}
		if err := stmt.Finalize(); err != nil {
			return nil, err
		}
	}
	return found, nil
}

func TestEveryStatementUsesAnIndexAndSortsNothing(t *testing.T) {
	s := fresh(t)
	atStart := map[string]bool{}
	ctx := context.Background()
	onWriter := func(run func(c *conn) error) {
		t.Helper()
		must.Do(t, s.submit(ctx, 0, func(tx *txn) error { return run(tx.conn) }))
	}
	onWriter(func(c *conn) error {
		for query := range c.statements {
			atStart[query] = true
		}
		return nil
	})
	work(t, s)
	all := map[string][]string{}
	gather := func(c *conn) error {
		found, err := plans(c, atStart)
		maps.Copy(all, found)
		return err
	}
	onWriter(gather)
	for _, p := range []*pool{&s.readers, &s.listers} {
		for range p.size { // the pool hands them out in turn
			c := must.Get(p.take(ctx))(t)
			err := gather(c)
			p.give(c)
			must.Do(t, err)
		}
	}
	for query, steps := range all {
		for _, step := range steps {
			isSearch := strings.Contains(step, "VIRTUAL TABLE INDEX 0:M") || strings.Contains(step, "VIRTUAL TABLE INDEX 0:=") // of FTS5, by terms or a rowid
			if strings.Contains(step, "TEMP B-TREE") || strings.HasPrefix(step, "SCAN") && !strings.HasPrefix(step, "SCAN state") && !isSearch {
				t.Errorf("%s\n  is run with: %s", query, step)
			}
		}
	}
	for _, want := range []struct{ query, step string }{
		{"FROM heads WHERE kind = ? AND identifier = ?", "SEARCH heads USING INDEX heads_identifier (kind=? AND identifier=?)"},
		{"FROM heads h LEFT JOIN versions v ON v.position", "SEARCH h USING INDEX heads_identifier (kind=? AND identifier=?)"},
		{"FROM heads h LEFT JOIN versions v ON v.position", "SEARCH v USING INTEGER PRIMARY KEY (rowid=?) LEFT-JOIN"},
		{"FROM heads h LEFT JOIN versions v ON v.entity = h.entity AND v.version = 1", "SEARCH h USING INDEX heads_create_key (kind=? AND create_key=?)"},
		{"FROM heads h LEFT JOIN versions v ON v.entity = h.entity AND v.version = 1", "SEARCH v USING INDEX versions_entity (entity=? AND version=?) LEFT-JOIN"},
		{selectVersion, "SEARCH v USING INDEX versions_entity (entity=? AND version=?) LEFT-JOIN"},
		{selectVersion, "SEARCH n USING INDEX versions_entity (entity=? AND version=?) LEFT-JOIN"},
		{selectVersion, "SEARCH r USING INDEX records_sequence (entity=? AND sequence=?) LEFT-JOIN"},
		{selectVersions, "SEARCH v USING INDEX versions_entity (entity=? AND version<?)"},
		{"SELECT stored_on FROM versions", "SEARCH versions USING INDEX versions_entity (entity=? AND version=?)"},
		{"SELECT recorded_on FROM records", "SEARCH records USING INDEX records_sequence (entity=? AND sequence=?)"},
		{"SELECT create_digest FROM heads", "SEARCH heads USING INDEX heads_create_key (kind=? AND create_key=?)"},
		{"FROM records WHERE entity = ? AND key = ?", "SEARCH records USING INDEX records_key (entity=? AND key=?)"},
		{"FROM records WHERE entity = ?1 AND sequence BETWEEN", "SEARCH records USING INDEX records_sequence (entity=? AND sequence>? AND sequence<?)"},
		{selectFound, "SEARCH h USING INDEX heads_identifier (kind=? AND identifier=?)"},
		{selectFound, "SEARCH c USING INTEGER PRIMARY KEY (rowid=?)"},
		{"FROM heads h WHERE h.entity = ?", "SEARCH h USING INTEGER PRIMARY KEY (rowid=?)"},
		{"FROM terms t CROSS JOIN heads h", "SCAN t VIRTUAL TABLE INDEX 0:M1"},
		{"FROM terms t CROSS JOIN heads h", "SEARCH h USING INTEGER PRIMARY KEY (rowid=?)"},
		{deleteTerms, "SCAN terms VIRTUAL TABLE INDEX 0:="},
		{"UPDATE heads", "SEARCH heads USING INTEGER PRIMARY KEY (rowid=?)"},
		{listCreated, "SEARCH heads USING COVERING INDEX heads_created (kind=? AND created_on>? AND created_on<?)"},
		{listModified, "SEARCH heads USING COVERING INDEX heads_modified (kind=? AND last_modified_on>? AND last_modified_on<?)"},
		{listUserEquals, "SEARCH heads USING COVERING INDEX heads_user (kind=? AND created_by=? AND created_on>? AND created_on<?)"},
		{listUserStartsWith, "SEARCH heads USING COVERING INDEX heads_created (kind=? AND created_on>? AND created_on<?)"},
		{listUserContains, "SEARCH heads USING COVERING INDEX heads_created (kind=? AND created_on>? AND created_on<?)"},
		{"INDEXED BY heads_created\n", "SEARCH h USING INDEX heads_created (kind=? AND (created_on,identifier)>(?,?) AND (created_on,identifier)<(?,?))"},
		{"INDEXED BY heads_user\n", "SEARCH h USING INDEX heads_user (kind=? AND created_by=? AND (created_on,identifier)>(?,?) AND (created_on,identifier)<(?,?))"},
		{"INDEXED BY heads_telescope\n", "SEARCH h USING INDEX heads_telescope (kind=? AND telescope=? AND (created_on,identifier)>(?,?) AND (created_on,identifier)<(?,?))"},
		{"INDEXED BY heads_modified\n", "SEARCH h USING INDEX heads_modified (kind=? AND (last_modified_on,identifier)>(?,?) AND (last_modified_on,identifier)<(?,?))"},
		{"INDEXED BY heads_identifier\n", "SEARCH h USING INDEX heads_identifier (kind=? AND identifier>? AND identifier<?)"},
		{"FROM failed_calls c WHERE (at, identifier, sequence) >", "SEARCH c USING PRIMARY KEY ((at,identifier,sequence)>(?,?,?) AND (at,identifier,sequence)<(?,?,?))"},
		{"AND +identifier = ?8 AND +function = ?9 ORDER BY at ASC", "SEARCH c USING PRIMARY KEY ((at,identifier,sequence)>(?,?,?) AND (at,identifier,sequence)<(?,?,?))"},
		{"FROM long_calls c WHERE", "SEARCH c USING PRIMARY KEY ((at,identifier,sequence)>(?,?,?) AND (at,identifier,sequence)<(?,?,?))"},
		{hoursForwards, "SEARCH failed_hours USING PRIMARY KEY (what=? AND value=? AND hour>? AND hour<?)"},
		{hoursBackwards, "SEARCH failed_hours USING PRIMARY KEY (what=? AND value=? AND hour>? AND hour<?)"},
	} {
		found := false
		for query, steps := range all {
			found = found || strings.Contains(query, want.query) && slices.Contains(steps, want.step)
		}
		if !found {
			t.Errorf("no statement with %q is run with %q; there are:\n%s", want.query, want.step, describe(all))
		}
	}
}

func describe(all map[string][]string) string {
	var b strings.Builder
	for query, steps := range all {
		b.WriteString(query + "\n  " + strings.Join(steps, "\n  ") + "\n")
	}
	return b.String()
}
