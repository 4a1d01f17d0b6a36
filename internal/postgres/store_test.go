package postgres_test

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oda"
	"oda/internal/engine/audit"
	"oda/internal/postgres"
	"oda/internal/test/env"
	"oda/internal/test/must"
	"oda/internal/test/suite"
)

func TestTheEngineIsAStore(t *testing.T) {
	t.Parallel()
	empty := env.Postgres(t)
	must.Do(t, postgres.Prepare(t.Context(), empty))
	suite.Run(t, func(tb testing.TB) oda.Engine {
		dsn := env.PostgresCopy(tb, empty)   // making the tables takes longer than most tests
		if env.InProof() || rand.N(3) == 0 { // it takes longer than most scenarios
			tb.Cleanup(func() { wantWhole(tb, dsn) })
		}
		return open(tb, dsn)
	})
}

// wantWhole checks that an archive has no damage.
func wantWhole(tb testing.TB, dsn string) {
	tb.Helper()
	report := audit.NewReport(20, func(f audit.Fault) { tb.Errorf("%s: %s: %s", f.Class, f.Place, f.Detail) })
	if err := postgres.Verify(context.Background(), dsn, report); err != nil {
		tb.Error(err)
	}
}

// documentedGrants returns the rights that docs/postgres.md gives to the role of a
// service.
func documentedGrants(tb testing.TB, schema, role string) []string {
	tb.Helper()
	page := must.Get(os.ReadFile("../../docs/postgres.md"))(tb)
	var grants []string
	for line := range strings.Lines(string(page)) {
		if strings.HasPrefix(line, "GRANT ") && strings.Contains(line, " TO oda_service;") {
			grants = append(grants, strings.NewReplacer("SCHEMA public", "SCHEMA "+schema, "oda_service", role).Replace(line))
		}
	}
	if len(grants) == 0 {
		tb.Fatal("docs/postgres.md gives no rights")
	}
	return grants
}

func TestTheViewsShowWhatIsAnswered(t *testing.T) {
	t.Parallel()
	s, conn, _ := fresh(t)
	kept := func(ref oda.Ref, text string) oda.Put {
		put := write(t, ref, text)
		put.KeepRecords, put.Compare = true, oda.KeptFields
		return put
	}
	record := func(id string, requests ...string) oda.Metadata {
		var m oda.Metadata
		for _, r := range requests {
			m = mustRecord(t, s, id, r).Metadata
		}
		return m
	}
	const two = `"request_responses":[{"request":"one","n":1.50},{"request":"two","response":{"é":"\u20ac\""}}]`

	for ref, make := range map[oda.Ref]func(ref oda.Ref){
		sbd("plain"): func(ref oda.Ref) {
			mustPut(t, s, write(t, ref, `{"a": [1, 2.5e3, null, {}], "é\"\\": "\ud83d\ude00"}`))
		},
		sbd("with-metadata"): func(ref oda.Ref) {
			put := write(t, ref, `{"metadata":{"pdm_version":"1"},"sbd_id":"with-metadata"}`)
			put.Creator = "Ann \"é\" \\ O'Hara"
			mustPut(t, s, put)
		},
		sbd("updated"): func(ref oda.Ref) {
			e := mustPut(t, s, write(t, ref, `{"n":1}`))
			mustPut(t, s, next(t, ref, e.Metadata, `"n":2`))
		},
		{Kind: oda.Project, ID: "project"}:     func(ref oda.Ref) { mustPut(t, s, write(t, ref, `{}`)) },
		{Kind: oda.SBInstance, ID: "instance"}: func(ref oda.Ref) { mustPut(t, s, write(t, ref, ` { } `)) },
		block("no-list"):                       func(ref oda.Ref) { mustPut(t, s, write(t, ref, `{"a":1}`)) },
		block("empty-list"):                    func(ref oda.Ref) { mustPut(t, s, write(t, ref, `{"request_responses":[],"a":1}`)) },
		block("list"):                          func(ref oda.Ref) { mustPut(t, s, write(t, ref, `{`+two+`}`)) },
		block("list-and-records"): func(ref oda.Ref) {
			mustPut(t, s, write(t, ref, `{"a":1,`+two+`,"z":2}`))
			record(ref.ID, "three", "four")
		},
		block("only-records"): func(ref oda.Ref) {
			mustPut(t, s, write(t, ref, `{"a":1}`))
			record(ref.ID, "one", "two")
		},
		block("edited"): func(ref oda.Ref) {
			mustPut(t, s, write(t, ref, `{`+two+`}`))
			m := record(ref.ID, "three", "four")
			mustPut(t, s, next(t, ref, m, `"request_responses":[{"request":"four"},{"request":"new"},{"request":"one","n":1.50}]`))
			record(ref.ID, "five")
		},
		block("kept"): func(ref oda.Ref) {
			e := mustPut(t, s, write(t, ref, `{`+two+`}`))
			record(ref.ID, "three")
			mustPut(t, s, kept(ref, `{"metadata":`+string(e.Metadata.AppendJSON(nil))+`,"b":1}`))
			record(ref.ID, "four")
		},
		block("dropped"): func(ref oda.Ref) {
			e := mustPut(t, s, write(t, ref, `{`+two+`}`))
			mustPut(t, s, next(t, ref, e.Metadata))
		},
	} {
		make(ref)
		answered := suite.Render(t, mustGet(t, s, ref))
		shown := query[*string](t, conn, "SELECT document::text FROM documents WHERE kind = $1 AND identifier = $2", ref.Kind.String(), ref.ID)
		if shown == nil {
			t.Errorf("%s: the view does not show %s", ref.ID, answered)
			continue
		}
		if diff := cmp.Diff(decoded(t, answered), decoded(t, *shown)); diff != "" {
			t.Errorf("%s: the view shows something else (- answered, + shown):\n%s", ref.ID, diff)
		}
	}

	for ref, text := range map[oda.Ref]string{sbd("zero"): `{"a":"\u0000"}`, sbd("huge"): `{"a":1e999999}`} {
		mustPut(t, s, write(t, ref, text))
		if query[*string](t, conn, "SELECT document::text FROM documents WHERE identifier = $1", ref.ID) != nil {
			t.Errorf("%s: the view shows a document that jsonb cannot hold", ref.ID)
		}
		if query[int64](t, conn, "SELECT version FROM documents WHERE identifier = $1", ref.ID) != 1 {
			t.Errorf("%s: the view does not show its metadata", ref.ID)
		}
	}

	got := query[string](t, conn, `SELECT string_agg(sequence || ' ' || version || ' ' || (record ->> 'request'), ', ' ORDER BY sequence)
		FROM record_documents WHERE eb_id = 'edited'`)
	if want := "1 1 one, 2 1 two, 3 1 three, 4 1 four, 5 2 new, 6 2 five"; got != want {
		t.Errorf("the records of the block are shown as %s, want %s", got, want)
	}
}

func decoded(t *testing.T, text string) (value any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return value
}
