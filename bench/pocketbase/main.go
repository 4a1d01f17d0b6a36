// Command pocketbase is PocketBase with the collections that the measurements
// need, open to everybody. It is a separate module, so that PocketBase's
// dependencies affect neither the archive nor the measurements. All settings
// are PocketBase's defaults.
package main

import (
	"fmt"
	"log"

	"github.com/pocketbase/pocketbase"
	"github.com/pocketbase/pocketbase/core"
	"github.com/pocketbase/pocketbase/tools/types"
)

func main() {
	app := pocketbase.New()
	app.OnServe().BindFunc(func(e *core.ServeEvent) error {
		if err := prepare(e.App); err != nil {
			return fmt.Errorf("make the collections: %w", err)
		}
		return e.Next()
	})
	if err := app.Start(); err != nil {
		log.Fatal(err)
	}
}

// prepare makes the collections if they are missing: documents with identifiers
// chosen by the caller, and the records of blocks.
func prepare(app core.App) error {
	if _, err := app.FindCollectionByNameOrId("sbds"); err == nil {
		return nil
	}
	sbds := open("sbds")
	id := sbds.Fields.GetByName("id").(*core.TextField)
	id.Min, id.Max, id.Pattern = 1, 128, `^[A-Za-z0-9][A-Za-z0-9._-]*$`
	sbds.Fields.Add(&core.JSONField{Name: "document", Required: true})

	records := open("records")
	records.Fields.Add(&core.TextField{Name: "eb_id", Required: true}, &core.JSONField{Name: "document", Required: true})
	records.AddIndex("records_eb_id", false, "eb_id", "")

	for _, collection := range []*core.Collection{sbds, records} {
		if err := app.Save(collection); err != nil {
			return err
		}
	}
	return nil
}

// open makes a collection that everybody may read and write.
func open(name string) *core.Collection {
	c := core.NewBaseCollection(name)
	everybody := types.Pointer("")
	c.ListRule, c.ViewRule, c.CreateRule, c.UpdateRule, c.DeleteRule = everybody, everybody, everybody, everybody, everybody
	return c
}
