package engine

import (
	"errors"

	"oda"
)

// PageBytes is the size of records from which on a page takes no more.
const PageBytes = 4 << 20

// Page gathers records until there are enough of them.
type Page struct {
	oda.RecordPage
	bytes int
}

// ErrPageFull ends the gathering of a page.
var ErrPageFull = errors.New("the page is full")

// Add takes the next record, or says that the page is full.
func (p *Page) Add(r oda.Record, limit int) error {
	if len(p.Records) >= limit || p.bytes >= PageBytes {
		p.More = true
		return ErrPageFull
	}
	p.Records = append(p.Records, r)
	p.bytes += len(r.Text)
	return nil
}
