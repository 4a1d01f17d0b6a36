package httpapi

import (
	"strconv"

	"oda"
	"oda/internal/rawjson"
)

// emptyObject stands for the body that the creation of an empty block may
// leave out.
var emptyObject = []byte("{}")

// createEmpty stores an ExecutionBlock without records.
func (a *API) createEmpty(c *call) error {
	text, nodes, err := c.body()
	if err != nil {
		return err
	}
	if len(text) == 0 {
		text, nodes = emptyObject, []rawjson.Node{{Kind: rawjson.Object, End: len(emptyObject), Next: 1}}
	}
	d := oda.NewDocument(oda.ExecutionBlock, text, nodes, 0, "")
	e, err := a.archive.Create(c.r.Context(), d, c.write(c.op.ID, text), true)
	if err != nil {
		return err
	}
	return c.stored(e)
}

// record adds a record to an ExecutionBlock. The answer is small whatever the
// length of the block.
func (a *API) record(c *call) error {
	text, nodes, err := c.body()
	if err != nil {
		return err
	}
	// PATCH and POST are one operation, so a key is good for both.
	recorded, err := a.archive.Record(c.r.Context(), c.id, text[nodes[0].Start:nodes[0].End], c.write("record", text))
	if err != nil {
		return err
	}
	c.user = recorded.Metadata.LastModifiedBy
	out := make([]byte, 0, 512)
	out = append(out, `{"eb_id":`...)
	out = rawjson.AppendQuoted(out, c.id)
	out = append(out, `,"sequence":`...)
	out = strconv.AppendInt(out, recorded.Sequence, 10)
	out = append(out, `,"metadata":`...)
	out = recorded.Metadata.AppendJSON(out)
	return c.sent1(c.respond("application/json", "", held).whole(append(out, '}')))
}
