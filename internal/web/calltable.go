package web

import (
	"bytes"
	"net/http"
	"time"

	"oda"
	"oda/calls"
	"oda/internal/sheet"
)

// Bounds of a table.
const (
	tableCalls = 10_000
	tableTime  = 20 * time.Second
)

// callTable serves all calls of a question as a table, for a spreadsheet.
func (s *Site) callTable(w http.ResponseWriter, r *http.Request) error {
	params, _ := tidied(r.URL.Query())
	params.Del("limit")
	q, err := calls.Parse(params)
	if err != nil {
		return err
	}
	q.Limit = calls.MaxLimit
	var text bytes.Buffer
	table, err := sheet.New(&text, calls.Columns)
	if err != nil {
		return err
	}
	begun, number := time.Now(), 0
	for {
		page, err := s.cfg.Calls.Page(r.Context(), q)
		if err == nil {
			err = sheet.AddAll(table, page.Calls)
		}
		if err != nil {
			return err
		}
		if number += len(page.Calls); page.Next == nil {
			break
		}
		if number >= tableCalls || time.Since(begun) > tableTime {
			return oda.Errorf(oda.InvalidQuery, "These are more than %d calls, or it takes long to find them: too many for a table on this page. Ask for a shorter time, or use the interface, which gives them in parts.", tableCalls)
		}
		if q, err = calls.Parse(map[string][]string{"cursor": {*page.Next}}); err != nil {
			return err
		}
	}
	if err := oda.RoomIn(r.Context()).Keep(r.Context(), int64(text.Len())); err != nil {
		return err
	}
	w.Header().Set("Content-Disposition", `attachment; filename="calls.csv"`)
	newFile(sheet.Media+"; charset=utf-8", text.Bytes()).serve(w, r, privateCache, filePolicy)
	return nil
}
