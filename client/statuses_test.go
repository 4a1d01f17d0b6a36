package client_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"oda"
	"oda/client"
	"oda/internal/test/must"
	"oda/search"
)

func TestAStatusIsSaidAndRead(t *testing.T) {
	t.Parallel()
	c := start(t)
	ctx := t.Context()
	block := oda.Ref{Kind: oda.ExecutionBlock, ID: "eb-1"}
	_, err := c.Say(ctx, block, client.NewStatus{Status: "Executing"})
	refused(t, err, oda.NotFound, 404)
	must.Get(c.Store(ctx, block.Kind, block.ID, []byte(`{"status":"ready"}`)))(t)
	first := must.Get(c.Status(ctx, block))(t)
	equal(t, "what the document says", first, oda.Status{Ref: block, Text: "ready", Class: oda.ClassPlanned, Version: 1})

	ready, none := "Ready", ""
	at := time.Date(2026, 3, 1, 21, 30, 0, 123456789, time.FixedZone("", 3600))
	said := must.Get(c.Say(ctx, block, client.NewStatus{Status: "rained out", Class: oda.ClassStopped, Reason: "rain", At: at, Version: 1, Previous: &ready, Key: "k"}))(t)
	equal(t, "the entry", said, oda.Status{
		Ref: block, Sequence: 1, Text: "rained out", Class: oda.ClassStopped, Reason: "rain", At: oda.InstantOf(at), Version: 1, Previous: "ready",
		By: oda.DefaultUser, On: said.On,
	})
	again := must.Get(c.Say(ctx, block, client.NewStatus{Status: "rained out", Class: oda.ClassStopped, Reason: "rain", At: at, Version: 1, Previous: &ready, Key: "k"}))(t)
	equal(t, "the same again", again, said)
	_, err = c.Say(ctx, block, client.NewStatus{Status: "Observed", Previous: &none})
	refused(t, err, oda.StatusMismatch, 422)
	_, err = c.Say(ctx, block, client.NewStatus{Status: "Observed", Version: 2})
	refused(t, err, oda.UnknownVersion, 422)
	must.Do(t, c.SendStatus(ctx, block, "l", []byte(`{"status":"Observed","at":"2026-02-01"}`)))
	equal(t, "the status", must.Get(c.Status(ctx, block))(t), said)

	found := collect(t, c.Search(ctx, search.Search{Kind: block.Kind, Status: "Rained_Out", Class: oda.ClassStopped}))
	if len(found) != 1 || found[0].Standing != (oda.Standing{Text: "rained out", Class: oda.ClassStopped, At: said.At}) {
		t.Errorf("a search finds %+v", found)
	}
	page := must.Get(c.Changes(ctx, client.ChangesQuery{After: 1}))(t)
	var told []oda.Said
	for _, change := range page.Changes {
		told = append(told, *change.Said)
	}
	if diff := cmp.Diff([]oda.Said{
		{Sequence: 1, Text: "rained out", Class: oda.ClassStopped, At: said.At, Current: true},
		{Sequence: 2, Text: "Observed", Class: oda.ClassDone, At: oda.InstantOf(time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC))},
	}, told); diff != "" {
		t.Errorf("the changes (-want +got):\n%s", diff)
	}
}

func TestStatusesAreReadPageByPage(t *testing.T) {
	t.Parallel()
	c := start(t)
	ctx := t.Context()
	must.Get(c.Store(ctx, oda.Project, "prj-1", []byte(`{}`)))(t)
	project := oda.Ref{Kind: oda.Project, ID: "prj-1"}
	const statuses = oda.MaxStatuses + 5
	for n := range statuses {
		must.Get(c.Say(ctx, project, client.NewStatus{Status: fmt.Sprint("s ", n+1)}))(t)
	}
	told := collect(t, c.Statuses(ctx, project))
	equal(t, "the number of statuses", len(told), statuses)
	for i, s := range told {
		if s.Sequence != int64(statuses-i) || s.Text != fmt.Sprint("s ", s.Sequence) {
			t.Fatalf("at %d there is %+v", i, s)
		}
	}
	for _, err := range c.Statuses(ctx, oda.Ref{Kind: oda.Project, ID: "prj-2"}) {
		refused(t, err, oda.NotFound, 404)
	}
}

// An archive may have changes that this client does not know yet.
func TestChangesOfAnotherSortArePassedOver(t *testing.T) {
	t.Parallel()
	const unknown = `{"position":1,"kind":"ebs","id":"a","change":"noted","version":1,"by":"ada","on":"2026-03-01T20:00:00.000000Z"}`
	const known = `{"position":2,"kind":"ebs","id":"b","change":"stored","version":1,"by":"ada","on":"2026-03-01T20:00:00.000000Z"}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Accept") != "text/event-stream" {
			fmt.Fprintf(w, `{"changes":[%s,%s],"next":2}`, unknown, known)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "id: 1\ndata: %s\n\nid: 2\ndata: %s\n\n", unknown, known)
	}))
	t.Cleanup(server.Close)
	c := must.Get(client.New(server.URL))(t)
	page := must.Get(c.Changes(t.Context(), client.ChangesQuery{}))(t)
	if len(page.Changes) != 1 || page.Changes[0].ID != "b" || page.Next != 2 {
		t.Errorf("the page is %+v", page)
	}
	for change, err := range c.Follow(t.Context(), 0, oda.ChangeFilter{}) {
		if err != nil || change.ID != "b" {
			t.Errorf("the stream begins with %+v, %v", change, err)
		}
		break
	}
}
