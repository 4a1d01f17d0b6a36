package httpapi

import (
	"oda"
	"oda/internal/rawjson"
)

// emptyObject stands for a body that a request for an empty block left out, or sent
// as null.
var emptyObject = []byte("{}")

// createEmpty stores an ExecutionBlock without records.
func (a *API) createEmpty(c *call) error {
	text, index, err := c.documents()
	if err != nil {
		return err
	}
	if index.Nodes == nil {
		text, index.Nodes = emptyObject, []rawjson.Node{{Kind: rawjson.Object, End: len(emptyObject), Next: 1}}
	}
	d := oda.NewDocument(oda.ExecutionBlock, text, index, 0, "")
	e, err := a.cfg.Archive.CreateEmpty(c.r.Context(), d, c.write(c.op.ID, text))
	if err != nil {
		return err
	}
	return c.stored(e)
}
