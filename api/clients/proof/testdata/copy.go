// Command copy reads a document with openapi-generator's client, and stores it again
// as it is. It also creates a block without a body, for which this client sends null.
package main

import (
	"context"
	"log"
	"os"

	archive "github.com/GIT_USER_ID/GIT_REPO_ID"
)

func main() {
	ctx, id := context.Background(), os.Getenv("ODA_SBD")
	settings := archive.NewConfiguration()
	settings.Servers = archive.ServerConfigurations{{URL: os.Getenv("ODA_URL")}}
	client := archive.NewAPIClient(settings)
	read, _, err := client.SBDefinitionAPI.GetSBD(ctx, id).Execute()
	if err != nil {
		log.Fatal(err)
	}
	if _, _, err := client.SBDefinitionAPI.StoreSBD(ctx, id).SBDefinition(*read).Execute(); err != nil {
		log.Fatal(err)
	}
	if _, _, err := client.ExecutionBlockAPI.CreateEmptyEB(ctx).Execute(); err != nil {
		log.Fatal(err)
	}
}
