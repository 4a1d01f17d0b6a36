package client_test

import (
	"bytes"
	"strings"
	"testing"

	"oda"
	"oda/client"
	"oda/internal/test/must"
)

// refused ends the test unless the error has this code and status.
func refused(t *testing.T, err error, code oda.Code, status int) {
	t.Helper()
	if oda.CodeOf(err) != code || client.Status(err) != status {
		t.Fatalf("the error is %v (status %d), want %s with status %d", err, client.Status(err), code, status)
	}
}

// Members whose names are those of the archive in other letters mean nothing.
func TestADocumentIsReturnedAsStored(t *testing.T) {
	t.Parallel()
	c := start(t, client.WithUser("ada"))
	for _, kind := range oda.Kinds {
		sent := `{ "name" : "M51", "frequency": 0.35e9, "METADATA": 5, "Metadata": {"version": "none"}, "text": "a note", "` + strings.ToUpper(kind.IDField()) + `": 7}`
		stored := must.Get(c.Store(t.Context(), kind, "x-1", []byte(sent)))(t)
		if !bytes.Contains(stored.Body, []byte(`"frequency": 0.35e9, "METADATA": 5`)) {
			t.Errorf("%s is stored as %s", kind, stored.Body)
		}
		if m := stored.Metadata; m.Version != 1 || m.CreatedBy != "ada" || m.LastModifiedBy != "ada" ||
			m.CreatedOn == 0 || m.CreatedOn != m.LastModifiedOn || stored.ETag != `"`+m.Tag()+`"` || stored.ID != "x-1" || stored.Kind != kind {
			t.Errorf("%s: %+v", kind, stored)
		}
		equal(t, "the document read", must.Get(c.Get(t.Context(), kind, "x-1"))(t), stored)
	}
}

func TestGetIfChangedReturnsNothingWithoutAChange(t *testing.T) {
	t.Parallel()
	c := start(t)
	// Large enough that an answer would be compressed.
	first := must.Get(c.Store(t.Context(), oda.SBDefinition, "sbd-1", []byte(`{"name":"`+strings.Repeat("M51 ", 5000)+`"}`)))(t)
	if d, err := c.GetIfChanged(t.Context(), oda.SBDefinition, "sbd-1", first.ETag); d != nil || err != nil {
		t.Errorf("an unchanged document: %v, %v", d, err)
	}
	second := must.Get(c.Store(t.Context(), oda.SBDefinition, "sbd-1", first.Body))(t)
	equal(t, "the changed document", must.Get(c.GetIfChanged(t.Context(), oda.SBDefinition, "sbd-1", first.ETag))(t), second)
	_, err := c.GetIfChanged(t.Context(), oda.SBDefinition, "sbd-2", first.ETag)
	refused(t, err, oda.NotFound, 404)
}

func TestACompressedAnswerIsTheSameDocument(t *testing.T) {
	t.Parallel()
	c, err := client.New(start(t).Address()) // the default transport asks for compression
	if err != nil {
		t.Fatal(err)
	}
	stored := must.Get(c.Store(t.Context(), oda.Project, "prj-1", []byte(`{"name":"`+strings.Repeat("M51 ", 5000)+`"}`)))(t)
	if stored.ETag != `"`+stored.Metadata.Tag()+`"` {
		t.Errorf("the entity tag is %s", stored.ETag)
	}
	if d, err := c.GetIfChanged(t.Context(), oda.Project, "prj-1", stored.ETag); d != nil || err != nil {
		t.Errorf("an unchanged document: %v, %v", d, err)
	}
	must.Get(c.Store(t.Context(), oda.Project, "prj-1", stored.Body, client.IfMatch(stored.ETag)))(t)
}

func TestAKeyCreatesOneBlock(t *testing.T) {
	t.Parallel()
	c := start(t)
	first := must.Get(c.CreateBlock(t.Context(), nil, "key-1"))(t)
	equal(t, "the same key", must.Get(c.CreateBlock(t.Context(), nil, "key-1"))(t), first)
	other := must.Get(c.CreateBlock(t.Context(), []byte(`{"n":1}`), ""))(t)
	if again := must.Get(c.CreateBlock(t.Context(), []byte(`{"n":1}`), ""))(t); again.ID == other.ID || other.ID == first.ID {
		t.Errorf("without a key: %s and %s", other.ID, again.ID)
	}
}

// Any identifier stays a single segment of the path.
func TestAnOddIdentifierStaysOnePathSegment(t *testing.T) {
	t.Parallel()
	c := start(t)
	for _, id := range []string{"", ".", "..", "a/b", "../ebs", "a?b", "a#b", "a%2Fb", "a b", "ä", "create"} {
		if _, err := c.Get(t.Context(), oda.ExecutionBlock, id); client.Status(err) != 404 {
			t.Errorf("reading %q: %v", id, err)
		}
		_, err := c.Store(t.Context(), oda.ExecutionBlock, id, []byte(`{}`))
		refused(t, err, oda.InvalidIdentifier, 400)
	}
}
