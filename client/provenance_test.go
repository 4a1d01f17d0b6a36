package client_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"oda"
	"oda/client"
)

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
