// Command ogen reads a document with the client of ogen, and stores it again as it
// is.
package main

import (
	"context"
	"log"
	"os"

	"oda/api/clients/ogen/archive"
)

// anonymous is a caller of an archive that is open.
type anonymous struct{}

func (anonymous) Bearer(context.Context, archive.OperationName) (archive.Bearer, error) {
	return archive.Bearer{}, nil
}

func main() {
	ctx := context.Background()
	client, err := archive.NewClient(os.Getenv("ODA_URL"), anonymous{})
	if err != nil {
		log.Fatal(err)
	}
	read, err := client.GetSBD(ctx, archive.GetSBDParams{SbdID: os.Getenv("ODA_SBD")})
	if err != nil {
		log.Fatal(err)
	}
	document, ok := read.(*archive.SBDefinitionAnswerHeaders)
	if !ok {
		log.Fatalf("the document cannot be read: %+v", read)
	}
	stored, err := client.StoreSBD(ctx, &document.Response, archive.StoreSBDParams{SbdID: archive.Identifier(os.Getenv("ODA_SBD"))})
	if err != nil {
		log.Fatal(err)
	}
	if _, ok := stored.(*archive.SBDefinitionAnswerHeaders); !ok {
		log.Fatalf("the document cannot be stored: %+v", stored)
	}
}
