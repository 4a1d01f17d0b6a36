package httpapi

import (
	"fmt"
	"net/url"
	"strconv"

	"oda"
)

// pageHold is the size of the largest page: the longest identifiers with quotes
// and commas. A page is held back as a whole, because the link to the next one is
// in the headers.
const pageHold = oda.MaxLimit * (128 + 3)

// list answers with the identifiers that match the query.
func (a *API) list(c *call) error {
	q, err := oda.ParseQuery(c.kind, c.query)
	if err != nil {
		return err
	}
	hold := held
	if q.Limit > 0 {
		hold = pageHold
	}
	w := c.respond("application/json", "", hold)
	// Identifiers are written in pieces, since writing one costs more than finding
	// it.
	piece := make([]byte, 0, 16<<10)
	piece = append(piece, '[')
	more, err := a.cfg.Archive.List(c.r.Context(), q, func(id string) error {
		if cap(piece)-len(piece) < len(id)+3 {
			if _, err := w.Write(piece); err != nil {
				return err
			}
			piece = piece[:0]
		}
		piece = append(piece, '"')
		piece = append(piece, id...)
		piece = append(piece, '"', ',')
		return nil
	})
	if err != nil {
		return c.sendError(err)
	}
	if n := len(piece) - 1; n >= 0 && piece[n] == ',' {
		piece = piece[:n]
	}
	if more != nil {
		c.head("Link", fmt.Sprintf(`<%s?cursor=%s&limit=%s>; rel="next"`,
			c.kind.Collection(), url.QueryEscape(q.Cursor(*more)), strconv.Itoa(q.Limit)))
	}
	if _, err := w.Write(append(piece, ']')); err != nil {
		return c.sendError(err)
	}
	return c.sendError(w.close())
}
