package client_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"testing"

	"oda"
	"oda/client"
	"oda/provenance"
)

func TestProvenanceIsReadAsTheArchiveKnowsIt(t *testing.T) {
	t.Parallel()
	c := start(t)
	for _, e := range []struct {
		kind     oda.Kind
		id, text string
	}{
		{oda.SBDefinition, "sbd-1", `{"name":"Plan","ob_ref":"ob-9"}`},
		{oda.ExecutionBlock, "eb-1", `{"sbd_ref":"sbd-1","sbd_version":1}`},
	} {
		must(c.Store(t.Context(), e.kind, e.id, []byte(e.text)))(t)
	}
	definition, block, project := oda.Ref{Kind: oda.SBDefinition, ID: "sbd-1"}, oda.Ref{Kind: oda.ExecutionBlock, ID: "eb-1"}, oda.Ref{Kind: oda.Project, ID: "ob-9"}
	equal(t, "the provenance", must(c.Provenance(t.Context(), oda.ExecutionBlock, "eb-1"))(t), &provenance.Graph{
		Nodes: []provenance.Node{
			{Ref: block, Exists: true, Version: 1}, {Ref: definition, Exists: true, Version: 1, Name: "Plan"}, {Ref: project},
		},
		Edges: []provenance.Edge{
			{From: block, To: definition, Version: 1, Field: "sbd_ref"}, {From: definition, To: project, Field: "ob_ref"},
		},
	})
	_, err := c.Provenance(t.Context(), oda.SBInstance, "sbd-1")
	refused(t, err, oda.NotFound, 404)
}

// Where an ExecutionBlock comes from, and what else came of that.
func ExampleClient_Provenance() {
	// As an archive answers.
	archive := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprint(w, `{"nodes":[{"kind":"ebs","id":"eb-7","version":1,"exists":true,"name":"Night 1"},
			{"kind":"sbds","id":"sbd-2","version":5,"exists":true,"name":"Calibrator scan"}],
			"edges":[{"from":{"kind":"ebs","id":"eb-7"},"to":{"kind":"sbds","id":"sbd-2","version":3},"field":"sbd_ref"}],"truncated":false}`)
	}))
	defer archive.Close()

	c, err := client.New(archive.URL)
	if err != nil {
		log.Fatal(err)
	}
	p, err := c.Provenance(context.Background(), oda.ExecutionBlock, "eb-7")
	if err != nil {
		log.Fatal(err)
	}
	for _, n := range p.Nodes {
		fmt.Println(n.Kind, n.ID, n.Name)
	}
	for _, e := range p.Edges {
		fmt.Println(e.From.ID, e.Field, e.To.ID, "version", e.Version)
	}
	// Output:
	// ExecutionBlock eb-7 Night 1
	// SBDefinition sbd-2 Calibrator scan
	// eb-7 sbd_ref sbd-2 version 3
}
