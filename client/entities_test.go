package client_test

import (
	"bytes"
	"strings"
	"testing"

	"oda"
	"oda/client"
)

// refused ends the test unless the error has this code and status.
func refused(t *testing.T, err error, code oda.Code, status int) {
	t.Helper()
	if oda.CodeOf(err) != code || client.Status(err) != status {
		t.Fatalf("the error is %v (status %d), want %s with status %d", err, client.Status(err), code, status)
	}
}

func TestADocumentIsReturnedAsStored(t *testing.T) {
	t.Parallel()
	c := start(t, client.WithUser("ada"))
	for _, kind := range oda.Kinds {
		sent := `{ "name" : "M51", "frequency": 0.35e9, "METADATA": 5, "Metadata": {"version": "none"}, "` + strings.ToUpper(kind.IDField()) + `": 7}`
		stored := must(c.Store(t.Context(), kind, "x-1", []byte(sent)))(t)
		if !bytes.Contains(stored.Body, []byte(`"frequency": 0.35e9, "METADATA": 5`)) {
			t.Errorf("%s is stored as %s", kind, stored.Body)
		}
		if m := stored.Metadata; m.Version != 1 || m.CreatedBy != "ada" || m.LastModifiedBy != "ada" ||
			m.CreatedOn == 0 || m.CreatedOn != m.LastModifiedOn || stored.ETag != `"`+m.Tag()+`"` || stored.ID != "x-1" || stored.Kind != kind {
			t.Errorf("%s: %+v", kind, stored)
		}
		equal(t, "the document read", must(c.Get(t.Context(), kind, "x-1"))(t), stored)
	}
}

func TestAnUpdateNeedsTheMetadataThatWasRead(t *testing.T) {
	t.Parallel()
	c := start(t)
	first := must(c.Store(t.Context(), oda.SBDefinition, "sbd-1", []byte(`{"name":"M51"}`)))(t)
	change := bytes.Replace(first.Body, []byte("M51"), []byte("M101"), 1)
	second := must(c.Store(t.Context(), oda.SBDefinition, "sbd-1", change))(t)
	if second.Metadata.Version != 2 || second.ETag == first.ETag {
		t.Errorf("the second version is %+v", second)
	}
	_, err := c.Store(t.Context(), oda.SBDefinition, "sbd-1", change)
	refused(t, err, oda.MetadataMismatch, 422)
}

func TestGetIfChangedReturnsNothingWithoutAChange(t *testing.T) {
	t.Parallel()
	c := start(t)
	// Large enough that an answer would be compressed.
	first := must(c.Store(t.Context(), oda.SBDefinition, "sbd-1", []byte(`{"name":"`+strings.Repeat("M51 ", 5000)+`"}`)))(t)
	if d, err := c.GetIfChanged(t.Context(), oda.SBDefinition, "sbd-1", first.ETag); d != nil || err != nil {
		t.Errorf("an unchanged document: %v, %v", d, err)
	}
	second := must(c.Store(t.Context(), oda.SBDefinition, "sbd-1", first.Body))(t)
	equal(t, "the changed document", must(c.GetIfChanged(t.Context(), oda.SBDefinition, "sbd-1", first.ETag))(t), second)
	_, err := c.GetIfChanged(t.Context(), oda.SBDefinition, "sbd-2", first.ETag)
	refused(t, err, oda.NotFound, 404)
}

func TestACompressedAnswerIsTheSameDocument(t *testing.T) {
	t.Parallel()
	c, err := client.New(start(t).Address()) // the default transport asks for compression
	if err != nil {
		t.Fatal(err)
	}
	stored := must(c.Store(t.Context(), oda.Project, "prj-1", []byte(`{"name":"`+strings.Repeat("M51 ", 5000)+`"}`)))(t)
	if stored.ETag != `"`+stored.Metadata.Tag()+`"` {
		t.Errorf("the entity tag is %s", stored.ETag)
	}
	if d, err := c.GetIfChanged(t.Context(), oda.Project, "prj-1", stored.ETag); d != nil || err != nil {
		t.Errorf("an unchanged document: %v, %v", d, err)
	}
	must(c.Store(t.Context(), oda.Project, "prj-1", stored.Body, client.IfMatch(stored.ETag)))(t)
}

func TestStoreHonoursItsConditions(t *testing.T) {
	t.Parallel()
	c := start(t)
	_, err := c.Store(t.Context(), oda.Project, "prj-1", []byte(`{}`), client.IfMatch(`"1-1"`))
	refused(t, err, oda.Precondition, 412)
	first := must(c.Store(t.Context(), oda.Project, "prj-1", []byte(`{}`), client.CreateOnly()))(t)
	_, err = c.Store(t.Context(), oda.Project, "prj-1", first.Body, client.CreateOnly())
	refused(t, err, oda.Precondition, 412)
	must(c.Store(t.Context(), oda.Project, "prj-1", first.Body, client.IfMatch(first.ETag)))(t)
	_, err = c.Store(t.Context(), oda.Project, "prj-1", first.Body, client.IfMatch(first.ETag))
	refused(t, err, oda.Precondition, 412)
}

func TestABlockIsChangedWhileItIsRecordedInto(t *testing.T) {
	t.Parallel()
	c := start(t)
	block := must(c.CreateBlock(t.Context(), []byte(`{"telescope":"ska_mid"}`), ""))(t)
	recorded := must(c.Record(t.Context(), block.ID, []byte(`{"request":"scan"}`), ""))(t)
	edited := bytes.Replace(block.Body, []byte(`"request_responses":[],`), nil, 1)
	edited = bytes.Replace(edited, []byte("ska_mid"), []byte("ska_low"), 1)
	_, err := c.Store(t.Context(), oda.ExecutionBlock, block.ID, edited)
	refused(t, err, oda.MetadataMismatch, 422)
	kept := must(c.Store(t.Context(), oda.ExecutionBlock, block.ID, edited, client.KeepRecords(), client.KeepRecords()))(t)
	if !bytes.Contains(kept.Body, []byte(`[{"request":"scan"}]`)) || !bytes.Contains(kept.Body, []byte("ska_low")) {
		t.Errorf("the block is stored as %s", kept.Body)
	}
	if kept.Metadata.LastModifiedOn <= recorded.Metadata.LastModifiedOn {
		t.Error("last_modified_on did not advance")
	}
}

func TestStoreSeveralStoresAllOrNone(t *testing.T) {
	t.Parallel()
	c := start(t)
	answer := must(c.StoreSeveral(t.Context(), []byte(`{"prjs":[{"prj_id":"prj-1"}],"sbds":[{"sbd_id":"sbd-1"}]}`)))(t)
	if !bytes.HasPrefix(answer, []byte(`{"prjs":[{"prj_id":"prj-1","metadata":{"version":1,`)) {
		t.Errorf("the answer is %s", answer)
	}
	_, err := c.StoreSeveral(t.Context(), []byte(`{"sbds":[{"sbd_id":"sbd-2"},{"sbd_id":"sbd-1"}]}`))
	refused(t, err, oda.MetadataMismatch, 422)
	_, err = c.Get(t.Context(), oda.SBDefinition, "sbd-2")
	refused(t, err, oda.NotFound, 404)
}

func TestAKeyCreatesOnce(t *testing.T) {
	t.Parallel()
	c := start(t)
	for _, kind := range oda.Kinds {
		first := must(c.Create(t.Context(), kind, []byte(`{"n":1}`), "key-1"))(t)
		equal(t, "the same key", must(c.Create(t.Context(), kind, []byte(`{"n":1}`), "key-1"))(t), first)
		_, err := c.Create(t.Context(), kind, []byte(`{"n":2}`), "key-1")
		refused(t, err, oda.KeyReused, 422)
		a, b := must(c.Create(t.Context(), kind, []byte(`{"n":1}`), ""))(t), must(c.Create(t.Context(), kind, []byte(`{"n":1}`), ""))(t)
		if a.ID == b.ID || a.ID == first.ID || !strings.HasPrefix(a.ID, kind.Prefix()+"-") {
			t.Errorf("without a key: %s and %s", a.ID, b.ID)
		}
	}
	first := must(c.CreateBlock(t.Context(), nil, "key-2"))(t)
	equal(t, "the same key", must(c.CreateBlock(t.Context(), nil, "key-2"))(t), first)
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
