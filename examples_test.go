package oda_test

import (
	"cmp"
	"testing"

	"oda"
	"oda/archive"
	"oda/internal/test/embedded"
	"oda/internal/test/env"
	"oda/internal/test/suite"
)

func TestOwnDocumentsComeBackAsSent(t *testing.T) { storeAndCompare(t, env.OwnDocuments(t)) }

func TestRealDocumentsComeBackAsSent(t *testing.T) { storeAndCompare(t, env.RealDocuments(t)) }

// storeAndCompare stores each document under a generated identifier, under its
// own, and once more as an update; it records into it if it is a block. Every
// answer and every GET must have all bytes of the document, except for the values
// that the server owns. Each document gets an archive of its own, since many have
// the same identifier.
func storeAndCompare(t *testing.T, all []env.Document) {
	for _, e := range all {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			a := archive.New(embedded.Engine(t), &suite.Minter{})
			created, err := a.Create(t.Context(), readExample(t, "create", e), archive.Write{})
			compare(t, a, e, created, err)

			d := readExample(t, "store", e)
			id := cmp.Or(d.ID, "x")
			stored, err := a.Store(t.Context(), id, d, archive.Write{User: "mary"})
			e.Text = []byte(compare(t, a, e, stored, err))
			if m := stored.Metadata; m.Version != 1 || m.CreatedBy != "mary" {
				t.Errorf("stored with %+v", m)
			}

			updated, err := a.Store(t.Context(), id, readExample(t, "store", e), archive.Write{User: "john"})
			compare(t, a, e, updated, err)
			if m := updated.Metadata; m.Version != 2 || m.LastModifiedBy != "john" || m.CreatedBy != "mary" {
				t.Errorf("updated to %+v", m)
			}
			if e.Kind == oda.ExecutionBlock {
				recordAndCompare(t, a, e, id)
			}
		})
	}
}

func readExample(t *testing.T, operation string, e env.Document) *oda.Document {
	t.Helper()
	d, err := suite.Read(operation, e.Kind, e.Text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// compare compares the answer to a store, and a read after it, with what was
// sent. It returns the answer.
func compare(t *testing.T, a *archive.Archive, e env.Document, stored *oda.Entity, err error) string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	answer := suite.Render(t, stored)
	want := suite.Spliced(e.Kind, e.Text, stored.ID, stored.Metadata, suite.Listed(e.Kind, e.Text))
	if answer != want {
		t.Errorf("answered\n%s\nwant\n%s", answer, want)
	}
	if got := get(t, a, stored.Ref); got != answer {
		t.Errorf("answered\n%s\nbut read\n%s", answer, got)
	}
	return answer
}

// get reads a document.
func get(t *testing.T, a *archive.Archive, ref oda.Ref) string {
	t.Helper()
	e, err := a.Get(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	return suite.Render(t, e)
}

func recordAndCompare(t *testing.T, a *archive.Archive, e env.Document, id string) {
	t.Helper()
	record := `{ "request" : "\u0073can", "duration" : 1.50e0 }`
	recorded, err := a.Record(t.Context(), id, []oda.NewRecord{{Text: []byte(record)}}, archive.Write{})
	if err != nil {
		t.Fatal(err)
	}
	held := append(suite.Listed(e.Kind, e.Text), record)
	if recorded[0].Sequence != int64(len(held)) || recorded[0].Metadata.Version != 2 {
		t.Errorf("recorded as %+v", recorded)
	}
	want := suite.Spliced(e.Kind, e.Text, id, recorded[0].Metadata, held)
	if got := get(t, a, oda.Ref{Kind: e.Kind, ID: id}); got != want {
		t.Errorf("with a record it is\n%s\nwant\n%s", got, want)
	}
}
