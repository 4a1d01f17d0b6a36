package suite

import (
	"errors"
	"strings"
	"testing"

	"oda"
	"oda/archive"
	"oda/internal/test/must"
)

// create stores a new entity under this identifier, as for a request with this
// body and, unless empty, this key.
func (d *desk) create(ref oda.Ref, key, text string) (*oda.Entity, error) {
	d.tb.Helper()
	return d.store.Create(d.ctx, d.write(ref, text), key)
}

func (d *desk) mustCreate(ref oda.Ref, key, text string) *oda.Entity {
	d.tb.Helper()
	e, err := d.create(ref, key, text)
	if err != nil {
		d.tb.Fatalf("create %s %s: %v", ref.Kind, ref.ID, err)
	}
	return e
}

var creation = []scenario{
	{"an identifier in use is never overwritten", func(t *testing.T, d *desk) {
		d.mustPut(sbd("taken"), `{"n":1}`)
		before := d.text(sbd("taken"))
		for _, key := range []string{"", "key"} {
			if _, err := d.create(sbd("taken"), key, `{"n":2}`); !errors.Is(err, oda.ErrTaken) {
				t.Fatalf("got %v, want ErrTaken", err)
			}
		}
		same(t, "the document", d.text(sbd("taken")), before)
		// The key stored nothing, so it is still free.
		e := d.mustCreate(sbd("free"), "key", `{"n":3}`)
		same(t, "the entity", e.Ref, sbd("free"))
		same(t, "the count", d.counts()[oda.SBDefinition], int64(2))
	}},
	{"a key creates once and is then answered as the first time", func(t *testing.T, d *desk) {
		text := `{"n":1,` + listing(`{"request":"one"}`) + `}`
		want := Render(t, d.mustCreate(eb("first"), "key", text))
		for _, change := range []func(){
			func() {},
			func() { d.mustRecord("first", `{"request":"two"}`) },
			func() { d.as("bob").mustUpdate(eb("first"), `"n":2`) },
			func() { d.mustRecord("first", `{"request":"three"}`) },
		} {
			change()
			e := d.as("carol").mustCreate(eb("second"), "key", text)
			same(t, "the entity", e.Ref, eb("first"))
			same(t, "the answer", Render(t, e), want)
		}
		_, err := d.store.Get(d.ctx, eb("second"))
		refused(t, err, oda.NotFound)
		same(t, "the count", d.counts()[oda.ExecutionBlock], int64(1))
	}},
	{"a key works for a document without a list of records", func(t *testing.T, d *desk) {
		want := Render(t, d.mustCreate(eb("b"), "key", `{}`))
		d.mustRecord("b", `{"request":"one"}`)
		same(t, "the answer", Render(t, d.mustCreate(eb("c"), "key", `{}`)), want)
	}},
	{"a key with another body is refused", func(t *testing.T, d *desk) {
		d.mustCreate(sbd("a"), "key", `{"n":1}`)
		_, err := d.create(sbd("b"), "key", `{"n": 1}`)
		refused(t, err, oda.KeyReused)
		_, err = d.store.Get(d.ctx, sbd("b"))
		refused(t, err, oda.NotFound)
	}},
	{"a key belongs to one kind", func(t *testing.T, d *desk) {
		for i, kind := range oda.Kinds {
			ref := oda.Ref{Kind: kind, ID: "e"}
			e := d.mustCreate(ref, "key", `{"n":`+strings.Repeat("1", i+1)+`}`)
			same(t, "the entity", e.Ref, ref)
		}
	}},
	{"keys are compared byte for byte", func(t *testing.T, d *desk) {
		for i, key := range []string{"key", "KEY", "key%", "k_y", strings.Repeat("k", 255), `'"\`} {
			ref := sbd("s" + strings.Repeat("x", i))
			same(t, "the entity", d.mustCreate(ref, key, `{}`).Ref, ref)
		}
	}},
	{"a created entity is updated like any other", func(t *testing.T, d *desk) {
		d.mustCreate(sbd("s"), "key", `{"n":1}`)
		same(t, "the version", d.mustUpdate(sbd("s"), `"n":2`).Metadata.Version, int64(2))
	}},
}

// creationInside need an engine itself.
var creationInside = []scenario{
	{"what a key has created is known, as it was created", func(t *testing.T, d *desk) {
		created := func(kind oda.Kind, body string) (*oda.Entity, error) {
			return d.engine.Created(d.ctx, kind, *keyOf("key", body))
		}
		if e, err := created(oda.ExecutionBlock, `{}`); e != nil || err != nil {
			t.Fatalf("an unused key returned %v, %v", e, err)
		}
		want := Render(t, d.mustCreate(eb("b"), "key", `{}`))
		d.mustRecord("b", `{"request":"one"}`)
		d.mustUpdate(eb("b"), `"n":2`)
		e := must.Get(created(oda.ExecutionBlock, `{}`))(t)
		same(t, "what the key created", Render(t, e), want)
		same(t, "its version", e.Metadata.Version, int64(1))
		_, err := created(oda.ExecutionBlock, `{"n":2}`)
		refused(t, err, oda.KeyReused)
		if e, err := created(oda.SBDefinition, `{}`); e != nil || err != nil {
			t.Fatalf("a key of another kind returned %v, %v", e, err)
		}
	}},
	{"a block is created with an empty list of records", func(t *testing.T, d *desk) {
		document := Document(t, oda.ExecutionBlock, `{"a":1}`)
		document.Listed = true
		e := must.Get(d.engine.Create(d.ctx, Put(document, "b", "anna", d.clock.Now()), nil))(t)
		same(t, "the document", d.text(eb("b")), fill(`{"eb_id":"b","a":1,"request_responses":[],"metadata":{<M>}}`, "", e.Metadata))
		r := d.mustRecord("b", `{"request":"one"}`)
		same(t, "the sequence", r.Sequence, int64(1))
		same(t, "the document", d.text(eb("b")),
			fill(`{"eb_id":"b","a":1,"request_responses":[{"request":"one"}],"metadata":{<M>}}`, "", r.Metadata))
	}},
	{"the archive asks for another identifier if one is in use, but not for ever", func(t *testing.T, d *desk) {
		minter := &Minter{}
		a := archive.New(d.engine, minter)
		d.mustPut(sbd("old"), `{"n":1}`)
		before := d.text(sbd("old"))
		create := func(key string) (*oda.Entity, error) {
			return a.Create(d.ctx, Document(t, oda.SBDefinition, `{"n":2}`),
				archive.Write{User: "anna", Key: key, Operation: "createSBD", Received: []byte(`{"n":2}`)})
		}
		minter.Queue("old", "old", "fresh")
		e := must.Get(create("key"))(t)
		same(t, "the entity", e.Ref, sbd("fresh"))
		same(t, "the number of identifiers", minter.Minted(), 3)
		e = must.Get(create("key"))(t)
		same(t, "the entity of the retry", e.Ref, sbd("fresh"))
		same(t, "the number of identifiers after a retry", minter.Minted(), 3)
		minter.Queue("old", "fresh", "old", "fresh", "old", "old", "old")
		_, err := create("")
		refused(t, err, oda.IdentifierService)
		same(t, "the document", d.text(sbd("old")), before)
		same(t, "the count", d.counts()[oda.SBDefinition], int64(2))
	}},
}
