// Command go is the round trip with the client of oapi-codegen: what was read
// is what is stored, of one type.
package main

import (
	"context"
	"log"
	"os"
	"slices"

	"oda/api/clients/go/archive"
)

func main() {
	log.SetFlags(log.Lshortfile)
	ctx := context.Background()
	client, err := archive.NewClientWithResponses(os.Getenv("ODA_URL"))
	check(err)
	user, id := "go", "sbd-go"
	by := archive.StoreSBDParams{XForwardedUser: &user}

	// Create, read, change, store again.
	var sent archive.SBDefinition
	sent.Set("name", "M51")
	created, err := client.StoreSBDWithResponse(ctx, id, &by, sent)
	check(err)
	must(created.JSON200 != nil, string(created.Body))
	got, err := client.GetSBDWithResponse(ctx, id, nil)
	check(err)
	must(got.JSON200 != nil && *got.JSON200.Metadata.Version == 1, string(got.Body))
	first := *got.JSON200
	first.Set("name", "M101")
	changed, err := client.StoreSBDWithResponse(ctx, id, &by, first)
	check(err)
	must(changed.JSON200 != nil && *changed.JSON200.Metadata.Version == 2, string(changed.Body))

	// A change that was made from an old reading is refused.
	conflict, err := client.StoreSBDWithResponse(ctx, id, &by, first)
	check(err)
	problem := conflict.ApplicationproblemJSON422
	must(problem != nil && problem.Type == archive.UrnOdaProblemMetadataMismatch, string(conflict.Body))

	// Record, twice with the same key.
	block, err := client.CreateEmptyEBWithResponse(ctx, nil, archive.ExecutionBlock{SbdRef: &id})
	check(err)
	must(block.JSON200 != nil, string(block.Body))
	eb, key, status := *block.JSON200.EbId, "scan-1", "OK"
	call := archive.Record{Request: "scan", Status: &status, Response: &map[string]any{"result": "done"}}
	for range 2 {
		recorded, err := client.RecordPostWithResponse(ctx, eb, &archive.RecordPostParams{IdempotencyKey: &key}, call)
		check(err)
		must(recorded.JSON200 != nil && recorded.JSON200.Sequence == 1, string(recorded.Body))
	}
	read, err := client.GetEBWithResponse(ctx, eb, nil)
	check(err)
	must(read.JSON200 != nil && len(*read.JSON200.RequestResponses) == 1, string(read.Body))
	must((*read.JSON200.RequestResponses)[0].Request == "scan", string(read.Body))

	// List.
	listed, err := client.ListSBDsWithResponse(ctx, &archive.ListSBDsParams{User: &user})
	check(err)
	must(listed.JSON200 != nil && slices.Equal(*listed.JSON200, []string{id}), string(listed.Body))
	nothing, err := client.ListSBDsWithResponse(ctx, nil)
	check(err)
	must(nothing.ApplicationproblemJSON400 != nil, string(nothing.Body))

	// Store several, among them what was read.
	prj := "prj-go"
	several, err := client.StoreSeveralWithResponse(ctx, nil, archive.Entities{
		Sbds: &[]archive.SBDefinition{*changed.JSON200}, Prjs: &[]archive.Project{{PrjId: &prj}},
	})
	check(err)
	must(several.JSON200 != nil && *(*several.JSON200.Sbds)[0].Metadata.Version == 3, string(several.Body))

	// Read a document of many members, and store it again as it is.
	real, err := client.GetSBDWithResponse(ctx, os.Getenv("ODA_SBD"), nil)
	check(err)
	must(real.JSON200 != nil, string(real.Body))
	again, err := client.StoreSBDWithResponse(ctx, os.Getenv("ODA_SBD"), nil, *real.JSON200)
	check(err)
	must(again.JSON200 != nil, string(again.Body))
}

func check(err error) {
	if err != nil {
		must(false, err.Error())
	}
}

func must(holds bool, said string) {
	if !holds {
		if err := log.Output(2, said); err != nil {
			panic(err)
		}
		os.Exit(1)
	}
}
