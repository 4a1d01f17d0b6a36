package httpapi

import (
	"bytes"

	"oda/internal/content"
	"oda/internal/sheet"
)

// wantsTable reports whether the client likes a table more than JSON.
func (c *call) wantsTable() bool {
	c.accept = true
	return content.Preferred(c.r.Header, "application/json", sheet.Media) == sheet.Media
}

// tableType is the type of the content of a table.
const tableType = sheet.Media + "; charset=utf-8; header=present"

// table answers with a table. What fills it is called once.
func (c *call) table(columns []string, fill func(t *sheet.Table) error) error {
	var text bytes.Buffer
	t, err := sheet.New(&text, columns)
	if err == nil {
		err = fill(t)
	}
	if err != nil {
		return err
	}
	return c.sendError(c.respond(tableType, "", held).whole(text.Bytes()))
}
