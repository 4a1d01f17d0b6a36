package client_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"oda"
	"oda/client"
	"oda/internal/test/must"
	"oda/search"
)

// What a search finds is tested with the engines.
func TestASearchGivesIdentifiersSummariesOrDocuments(t *testing.T) {
	t.Parallel()
	c := start(t, client.WithUser("ada"))
	first := must.Get(c.Store(t.Context(), oda.SBDefinition, "s1", []byte(`{"name":"Centaurus A","telescope":"ska_mid","prj_ref":"p1","n":1,"targets":[{"name":"Cen A","ra":201.365,"dec":-43.019}]}`)))(t)
	for _, id := range []string{"s2", "s3"} {
		must.Get(c.Store(t.Context(), oda.SBDefinition, id, []byte(`{"name":"Centaurus B"}`)))(t)
	}
	must.Get(c.Store(t.Context(), oda.ExecutionBlock, "e1", []byte(`{"sbd_ref":"s1","sbd_version":1}`)))(t)
	for _, page := range []int{0, 1, 2} {
		all := search.Search{Kind: oda.SBDefinition, Limit: page}
		equal(t, "the identifiers", collect(t, c.SearchIDs(t.Context(), all)), []string{"s3", "s2", "s1"})
		var read []string
		for _, d := range collect(t, c.SearchDocuments(t.Context(), all)) {
			equal(t, "the document", string(d.Body), string(must.Get(c.Get(t.Context(), oda.SBDefinition, d.ID))(t).Body))
			read = append(read, d.ID)
		}
		equal(t, "the documents", read, []string{"s3", "s2", "s1"})
	}
	for f, err := range c.Search(t.Context(), search.Search{Kind: oda.ExecutionBlock, Reference: "s1", ReferenceVersion: 1}) {
		if err != nil || f.Kind != oda.ExecutionBlock || len(f.Summary.References) != 1 ||
			f.Summary.References[0] != (oda.Reference{Kind: oda.SBDefinition, ID: "s1", Version: 1, Field: "sbd_ref"}) {
			t.Errorf("found %+v, %v", f, err)
		}
	}
	for f, err := range c.Search(t.Context(), search.Search{Kind: oda.SBDefinition, Words: "Centaurus A"}) {
		if err != nil || f.Metadata != first.Metadata || f.Summary.Name != "Centaurus A" || f.Summary.Telescope != "ska_mid" ||
			len(f.Summary.Targets) != 1 || f.Summary.Targets[0] != (oda.Target{Name: "Cen A", RA: 201.365, Dec: -43.019}) {
			t.Errorf("found %+v, %v", f, err)
		}
	}
	pages := 0
	for page, err := range c.SearchPages(t.Context(), search.Search{Kind: oda.SBDefinition, Limit: 2}) {
		if pages++; err != nil || len(page) != 3-pages {
			t.Errorf("page %d has %d items, %v", pages, len(page), err)
		}
	}
	for _, err := range c.SearchIDs(t.Context(), search.Search{Kind: oda.SBDefinition, Where: []string{"n = 1"}}) {
		if oda.CodeOf(err) != oda.InvalidQuery {
			t.Errorf("a condition without a slash: %v", err)
		}
	}
}

// Who loops over a sequence again, or after breaking off, gets all of it again.
func TestASequenceBeginsAnewWithEachLoop(t *testing.T) {
	t.Parallel()
	c := start(t)
	block := must.Get(c.CreateBlock(t.Context(), nil, ""))(t)
	for range 3 {
		must.Get(c.Record(t.Context(), block.ID, []byte(`{"request":"a"}`), ""))(t)
		must.Get(c.Create(t.Context(), oda.SBDefinition, []byte(`{}`), ""))(t)
	}
	records := c.Records(t.Context(), block.ID, 0)
	found := c.SearchIDs(t.Context(), search.Search{Kind: oda.SBDefinition, Limit: 1})
	query := everything(oda.SBDefinition)
	query.Limit = 1
	listed := c.List(t.Context(), query)
	for range records {
		break
	}
	for range found {
		break
	}
	for range listed {
		break
	}
	for range 2 {
		equal(t, "the number of records", len(collect(t, records)), 3)
		equal(t, "the number of those found", len(collect(t, found)), 3)
		equal(t, "the number of those listed", len(collect(t, listed)), 3)
	}
}

func ExampleClient_Search() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"items":[{"kind":"ebs","id":"eb-1k5v3r8q4x","metadata":{"version":1,"created_by":"mary",
			"created_on":"2026-03-01T20:59:58.000000Z","last_modified_by":"mary","last_modified_on":"2026-03-01T21:04:05.000000Z"},
			"telescope":"ska_mid","name":null,"targets":[],"references":[]}],"next":null}`)
	}))
	defer server.Close()
	archive, err := client.New(server.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	// Which ExecutionBlocks ran version 3 of this SBDefinition?
	blocks := search.Search{Kind: oda.ExecutionBlock, Reference: "sbd-1k5v3r8m0q", ReferenceVersion: 3, Sort: oda.OldestFirst}
	for block, err := range archive.Search(bg, blocks) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(block.ID, "on", block.Summary.Telescope, "at", block.Metadata.CreatedOn)
	}
	// Output: eb-1k5v3r8q4x on ska_mid at 2026-03-01T20:59:58.000000Z
}
