package oda_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"oda"
	"oda/internal/test/embedded"
)

// dictation is an identifier service that returns given words in order, and then
// the last word again and again. After 100 calls it fails, so that no test asks
// for ever.
type dictation struct {
	words []string
	err   error
	asked int
}

func (d *dictation) Mint(context.Context, oda.Kind) (string, error) {
	if d.err != nil {
		return "", d.err
	}
	if d.asked++; d.asked > 100 {
		return "", errors.New("asked too often")
	}
	return d.words[min(d.asked, len(d.words))-1], nil
}

func TestAGeneratedIdentifierNeverOverwritesAnEntity(t *testing.T) {
	store := embedded.Engine(t)
	create := func(d *dictation, text string, w oda.Write) (*oda.Entity, error) {
		return oda.NewArchive(store, d).Create(t.Context(), mustRead(t, "createSBD", oda.SBDefinition, text), w)
	}
	e, err := create(&dictation{words: []string{"taken"}}, `{"sbd_id":"asked","n":1}`, oda.Write{})
	first := textOf(t, e, err)
	if !strings.HasPrefix(first, `{"sbd_id":"taken","n":1,`) {
		t.Errorf("got %s", first)
	}

	service := &dictation{words: []string{"taken", "taken", "free"}}
	e, err = create(service, `{}`, oda.Write{})
	if err != nil || e.ID != "free" || service.asked != 3 {
		t.Errorf("got %v after %d calls, %v", e, service.asked, err)
	}

	service = &dictation{words: []string{"taken"}}
	_, err = create(service, `{"n":2}`, oda.Write{})
	refused(t, err, oda.IdentifierService, "identifier service", "already in use", "Nothing was stored")
	if service.asked < 2 || service.asked > 10 {
		t.Errorf("the service was asked %d times", service.asked)
	}
	a := oda.NewArchive(store, service)
	e, err = a.Get(t.Context(), oda.Ref{Kind: oda.SBDefinition, ID: "taken"})
	if got := textOf(t, e, err); got != first {
		t.Errorf("got  %s\nwant %s", got, first)
	}

	for _, word := range []string{"", "create", "a/b"} {
		_, err = create(&dictation{words: []string{word}}, `{}`, oda.Write{})
		refused(t, err, oda.IdentifierService, "identifier service", "Nothing was stored")
	}
	away := errors.New("nobody answers")
	if _, err = create(&dictation{err: away}, `{}`, oda.Write{}); !errors.Is(err, away) {
		t.Errorf("got %v", err)
	}
	holds(t, a, map[oda.Kind]int64{oda.SBDefinition: 2})
}

func TestARetryIsAnsweredWithoutTheIdentifierService(t *testing.T) {
	store := embedded.Engine(t)
	create := func(d *dictation, operation, text string) (*oda.Entity, error) {
		w := oda.Write{Key: "k", Operation: operation, Received: []byte(text)}
		return oda.NewArchive(store, d).Create(t.Context(), mustRead(t, "createEB", oda.ExecutionBlock, text), w)
	}
	service := &dictation{words: []string{"x"}}
	e, err := create(service, "createEB", `{"n":1}`)
	first := textOf(t, e, err)

	away := &dictation{err: errors.New("nobody answers")}
	e, err = create(away, "createEB", `{"n":1}`)
	if got := textOf(t, e, err); got != first {
		t.Errorf("got  %s\nwant %s", got, first)
	}
	_, err = create(away, "createEB", `{"n":2}`)
	refused(t, err, oda.KeyReused, "another request")
	_, err = create(away, "createEmptyEB", `{"n":1}`)
	refused(t, err, oda.KeyReused)
	holds(t, oda.NewArchive(store, service), map[oda.Kind]int64{oda.ExecutionBlock: 1})
}

func TestAnEmptyBlockAlwaysHasAList(t *testing.T) {
	a := openArchive(t)
	for _, text := range []string{`{}`, `{"request_responses":[]}`, `{"request_responses":null}`, `{"metadata":null}`} {
		e, err := a.CreateEmpty(t.Context(), mustRead(t, "createEmptyEB", oda.ExecutionBlock, text), oda.Write{})
		created := textOf(t, e, err)
		if list, _ := member(created, "request_responses"); list != `[]` {
			t.Errorf("%s is created as %s", text, created)
		}
		e, err = a.Get(t.Context(), e.Ref)
		if got := textOf(t, e, err); got != created {
			t.Errorf("got  %s\nwant %s", got, created)
		}
	}
}
