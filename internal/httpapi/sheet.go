package httpapi

import (
	"oda/internal/content"
	"oda/internal/rawjson"
	"oda/internal/sheet"
)

// wantsSheet reports whether the client likes a table more than JSON.
func (c *call) wantsSheet() bool {
	c.accept = true
	return content.Preferred(c.r.Header, "application/json", sheet.Media) == sheet.Media
}

// writeSheet answers with values as a table (sheet.Table).
func writeSheet[T any](c *call, columns []string, values []T) error {
	rows := make([][]byte, len(values))
	for i := range values {
		var err error
		if rows[i], err = rawjson.Marshal(values[i]); err != nil {
			return err
		}
	}
	return c.sendError(c.respond(sheet.Media+"; charset=utf-8", "", held).whole(sheet.Table(columns, rows)))
}
