package oda_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"oda"
	"oda/internal/skuid"
	"oda/internal/test/embedded"
)

func openArchive(t testing.TB) *oda.Archive {
	t.Helper()
	generator, err := skuid.NewGenerator(7)
	if err != nil {
		t.Fatal(err)
	}
	return oda.NewArchive(embedded.Engine(t), generator)
}

func textOf(t testing.TB, e *oda.Entity, err error) string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if _, err := e.WriteTo(&out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// mustStore stores an SBDefinition and returns what the archive answers.
func mustStore(t testing.TB, a *oda.Archive, id, text string, w oda.Write) *oda.Entity {
	t.Helper()
	e, err := a.Store(t.Context(), id, mustRead(t, "storeSBD", oda.SBDefinition, text), w)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// refused checks that an error has that code, and that its text says all that.
func refused(t testing.TB, err error, code oda.Code, says ...string) *oda.Error {
	t.Helper()
	e, ok := errors.AsType[*oda.Error](err)
	if !ok || e.Code != code {
		t.Fatalf("got %v, want the code %s", err, code)
	}
	for _, want := range says {
		if !strings.Contains(e.Detail, want) {
			t.Errorf("%q does not say %q", e.Detail, want)
		}
	}
	return e
}

// holds checks how many entities of each kind the archive has.
func holds(t testing.TB, a *oda.Archive, want map[oda.Kind]int64) {
	t.Helper()
	counts, err := a.Counts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range oda.Kinds {
		if counts[kind] != want[kind] {
			t.Errorf("there are %d of kind %s, want %d", counts[kind], kind, want[kind])
		}
	}
}

func TestTheActingUser(t *testing.T) {
	a := openArchive(t)
	tests := []struct{ name, user, metadata, creator, modifier string }{
		{"nobody", "", `{}`, "DefaultUser", "DefaultUser"},
		{"somebody", "mary", `{}`, "mary", "mary"},
		{"named in the document", "", `{"created_by":"john"}`, "john", "DefaultUser"},
		{"named in the document as null", "", `{"created_by":null}`, "DefaultUser", "DefaultUser"},
		{"somebody, and someone else named in the document", "mary", `{"created_by":"john","last_modified_by":"jane"}`, "mary", "mary"},
		{"last_modified_by in the document is ignored", "", `{"last_modified_by":"jane"}`, "DefaultUser", "DefaultUser"},
	}
	for i, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			text := `{"metadata":` + test.metadata + `}`
			w := oda.Write{User: test.user}
			created, err := a.Create(t.Context(), mustRead(t, "createSBD", oda.SBDefinition, text), w)
			if err != nil {
				t.Fatal(err)
			}
			id := fmt.Sprint("sbd-", i)
			stored := mustStore(t, a, id, text, w)
			for _, e := range []*oda.Entity{created, stored} {
				if m := e.Metadata; m.CreatedBy != test.creator || m.LastModifiedBy != test.creator {
					t.Errorf("%s is created by %q and modified by %q, want %q", e.ID, m.CreatedBy, m.LastModifiedBy, test.creator)
				}
			}
			updated := mustStore(t, a, id, textOf(t, stored, nil), w).Metadata
			if updated.CreatedBy != test.creator || updated.LastModifiedBy != test.modifier {
				t.Errorf("updated: created by %q and modified by %q, want %q and %q", updated.CreatedBy, updated.LastModifiedBy, test.creator, test.modifier)
			}
		})
	}
}

func TestAnInvalidUserIsRefused(t *testing.T) {
	a := openArchive(t)
	for _, user := range []string{"a\nb", "\xff", "\u202enimda", "a\u2028b", strings.Repeat("é", 257)} {
		d := mustRead(t, "createSBD", oda.SBDefinition, `{}`)
		_, err := a.Create(t.Context(), d, oda.Write{User: user})
		refused(t, err, oda.InvalidUser, "1 to 256 characters")
		_, err = a.Store(t.Context(), "x", d, oda.Write{User: user})
		refused(t, err, oda.InvalidUser, "1 to 256 characters")
	}
	holds(t, a, nil)
}

func TestInvalidIdentifiersAreRefused(t *testing.T) {
	a := openArchive(t)
	for _, id := range []string{"", "create", "search", "..", "a/b", "é", strings.Repeat("x", 129), strings.Repeat("x", 1<<16)} {
		_, err := a.Store(t.Context(), id, mustRead(t, "storeEB", oda.ExecutionBlock, `{}`), oda.Write{})
		e := refused(t, err, oda.InvalidIdentifier, "This identifier is not valid")
		if len(e.Faults) != 1 || e.Faults[0].Pointer != "/eb_id" {
			t.Errorf("%.20q: the faults are %v", id, e.Faults)
		}
		_, err = a.Get(t.Context(), oda.Ref{Kind: oda.ExecutionBlock, ID: id})
		e = refused(t, err, oda.NotFound, "could not be found")
		if len(e.Detail) > 300 {
			t.Errorf("the answer repeats %d bytes", len(e.Detail))
		}
		_, err = a.Record(t.Context(), id, []oda.NewRecord{{Text: []byte(`{"request":"a"}`)}}, oda.Write{})
		refused(t, err, oda.NotFound, "could not be found")
	}
	holds(t, a, nil)
}

func TestPathAndDocumentMustNameTheSameEntity(t *testing.T) {
	a := openArchive(t)
	_, err := a.Store(t.Context(), "x", mustRead(t, "storeSBI", oda.SBInstance, `{"sbi_id":"y"}`), oda.Write{})
	e := refused(t, err, oda.IdentifierMismatch, "SBInstance x", "says y", "sbi_id")
	if len(e.Faults) != 1 || e.Faults[0].Pointer != "/sbi_id" {
		t.Errorf("the faults are %v", e.Faults)
	}
	holds(t, a, nil)
}

func TestRecordsAreKeptOnlyIfTheDocumentHasNone(t *testing.T) {
	a := openArchive(t)
	ctx := t.Context()
	store := func(text string, keep bool) (*oda.Entity, error) {
		return a.Store(ctx, "x", mustRead(t, "storeEB", oda.ExecutionBlock, text), oda.Write{KeepRecords: keep})
	}
	for _, list := range []string{`[]`, `[{"request":"a"}]`} {
		_, err := store(`{"request_responses":`+list+`}`, true)
		e := refused(t, err, oda.InvalidRequest, "records=keep", "Leave request_responses out")
		if len(e.Faults) != 1 || e.Faults[0].Pointer != "/request_responses" {
			t.Errorf("the faults are %v", e.Faults)
		}
	}
	holds(t, a, nil)

	e, err := store(`{}`, true)
	before := textOf(t, e, err)
	if _, listed := member(before, "request_responses"); listed {
		t.Errorf("a new block has records that nobody sent: %s", before)
	}
	if _, err := a.Record(ctx, "x", []oda.NewRecord{{Text: []byte(`{ "request": "a" }`)}}, oda.Write{User: "script"}); err != nil {
		t.Fatal(err)
	}
	_, err = store(before, false)
	refused(t, err, oda.MetadataMismatch, `last_modified_by is "DefaultUser", stored is "script"`)
	e, err = store(before, true)
	after := textOf(t, e, err)
	if list, _ := member(after, "request_responses"); list != `[{ "request": "a" }]` || e.Metadata.Version != 2 {
		t.Errorf("the record is not there: %s", after)
	}
	e, err = a.Get(ctx, oda.Ref{Kind: oda.ExecutionBlock, ID: "x"})
	if got := textOf(t, e, err); got != after {
		t.Errorf("got  %s\nwant %s", got, after)
	}
}

// several parses a body with several entities, in the order of the kinds.
func several(t testing.TB, text string) []*oda.Document {
	t.Helper()
	d, err := description()
	if err != nil {
		t.Fatal(err)
	}
	index, err := d.Operation("storeSeveral").CheckWatched([]byte(text), maxDepth, oda.Watched)
	if err != nil {
		t.Fatal(err)
	}
	var all []*oda.Document
	nodes := index.Nodes
	for list := 1; list < len(nodes); list = nodes[list].Next {
		kind, _ := oda.KindOf(nodes[list].Name)
		n := 0
		for i := list + 1; i < nodes[list].Next; i = nodes[i].Next {
			all = append(all, oda.NewDocument(kind, []byte(text), index, i, fmt.Sprintf("/%s/%d", kind.Collection(), n)))
			n++
		}
	}
	return all
}

func TestAnEntityMayAppearOnceInARequestForSeveral(t *testing.T) {
	a := openArchive(t)
	text := `{"sbds": [{"sbd_id":"a"},{"sbd_id":"b"},{"sbd_id":"a"},{"sbd_id":"\u0061"}], "ebs": [{"eb_id":"a"},{"eb_id":"e"},{"eb_id":"e"}]}`
	_, err := a.StoreAll(t.Context(), several(t, text), oda.Write{})
	e := refused(t, err, oda.DuplicateEntity, "Nothing was stored")
	var places []string
	for _, f := range e.Faults {
		places = append(places, f.Pointer+" "+f.Detail)
	}
	want := []string{
		"/sbds/2 SBDefinition a is already at /sbds/0",
		"/sbds/3 SBDefinition a is already at /sbds/0",
		"/ebs/2 ExecutionBlock e is already at /ebs/1",
	}
	if !slices.Equal(places, want) {
		t.Errorf("got %q", places)
	}
	holds(t, a, nil)

	// Identifiers are unique per kind only.
	entities, err := a.StoreAll(t.Context(), several(t, `{"sbds": [{"sbd_id":"a"}], "prjs": [{"prj_id":"a"}], "sbis": []}`), oda.Write{})
	if err != nil || len(entities) != 2 {
		t.Fatalf("got %v, %v", entities, err)
	}
	holds(t, a, map[oda.Kind]int64{oda.SBDefinition: 1, oda.Project: 1})
}

func TestSeveralEntitiesAreStoredAllOrNone(t *testing.T) {
	a := openArchive(t)
	first := mustStore(t, a, "a", `{"sbd_id":"a","n":1}`, oda.Write{})
	mustStore(t, a, "b", `{"sbd_id":"b"}`, oda.Write{})
	before := textOf(t, first, nil)

	_, err := a.StoreAll(t.Context(), several(t, `{"prjs":[{"prj_id":"p"}],"sbds":[`+before+`,{"sbd_id":"b"},{"sbd_id":"c"}]}`), oda.Write{})
	e := refused(t, err, oda.MetadataMismatch, "1 of 4 entities", "Nothing was stored")
	for _, f := range e.Faults {
		if !strings.HasPrefix(f.Pointer, "/sbds/1/metadata/") {
			t.Errorf("a fault at %s", f.Pointer)
		}
	}
	holds(t, a, map[oda.Kind]int64{oda.SBDefinition: 2})
	e2, err := a.Get(t.Context(), oda.Ref{Kind: oda.SBDefinition, ID: "a"})
	if got := textOf(t, e2, err); got != before {
		t.Errorf("got  %s\nwant %s", got, before)
	}

	entities, err := a.StoreAll(t.Context(), several(t, `{"prjs":[{"prj_id":"p"}],"sbds":[{"sbd_id":"c"},`+before+`]}`), oda.Write{User: "mary"})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entities {
		got = append(got, fmt.Sprintf("%s %s %d %s", e.Kind, e.ID, e.Metadata.Version, e.Metadata.LastModifiedBy))
	}
	if want := []string{"Project p 1 mary", "SBDefinition c 1 mary", "SBDefinition a 2 mary"}; !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	if entities, err := a.StoreAll(t.Context(), nil, oda.Write{}); len(entities) != 0 || err != nil {
		t.Errorf("a request without entities: %v, %v", entities, err)
	}
}

func TestAListingReturnsWhereThePageEnded(t *testing.T) {
	a := openArchive(t)
	for _, id := range []string{"a", "b", "c"} {
		mustStore(t, a, id, `{}`, oda.Write{User: "mary"})
	}
	mustStore(t, a, "d", `{}`, oda.Write{User: "john"})
	tests := []struct {
		limit int
		want  []string // the pages
	}{{0, []string{"abc"}}, {1, []string{"a", "b", "c"}}, {2, []string{"ab", "c"}}, {3, []string{"abc"}}, {4, []string{"abc"}}}
	for _, test := range tests {
		q := oda.Query{Kind: oda.SBDefinition, Order: oda.ByCreation, User: "mary", Match: oda.UserEquals, Limit: test.limit}
		var pages []string
		for range 10 {
			page := ""
			last, err := a.List(t.Context(), q, func(id string) error {
				page += id
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			pages = append(pages, page)
			if last == nil {
				break
			}
			if last.ID != page[len(page)-1:] {
				t.Errorf("the page %s ended at %s", page, last.ID)
			}
			q.Start = last
		}
		if !slices.Equal(pages, test.want) {
			t.Errorf("in pages of %d: %q, want %q", test.limit, pages, test.want)
		}
	}
}
