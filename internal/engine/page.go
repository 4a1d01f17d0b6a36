package engine

import (
	"context"
	"errors"

	"oda"
)

// PageBytes is how many bytes of records fill a page.
const PageBytes = 4 << 20

// errPageFull stops the reading of a page.
var errPageFull = errors.New("the page is full")

// Paged is a record for a page. A large text is left out, and read by Complete.
type Paged struct {
	oda.Record
	Digest oda.Digest
	Bytes  int64 // of the text
}

// Page is a page of the records of a version.
type Page struct {
	oda.RecordPage
	of    Version
	large []unread
}

// unread is a large text that is still missing in a page.
type unread struct {
	index  int
	bytes  int64
	digest oda.Digest
}

// ReadPage reads records of a version in the order of the runs, and checks each, until
// the page is full. Read calls add for up to most records of a run, in order, and
// returns the first error of add.
func ReadPage(of Version, runs Runs, limit int, read func(run Run, most int, add func(Paged) error) error) (*Page, error) {
	page, size := &Page{of: of}, int64(0)
	for _, run := range runs {
		at := run.First
		err := read(run, limit+1, func(r Paged) error {
			n := len(page.Records)
			isLarge := r.Text == nil && r.Bytes > oda.LargeText
			if n >= limit || size >= PageBytes || isLarge && n > 0 && size+r.Bytes > PageBytes {
				page.More = true
				return errPageFull
			}
			if isLarge && r.Sequence == at {
				page.large = append(page.large, unread{n, r.Bytes, r.Digest})
			} else if err := of.checkRecord(at, Numbered{Sequence: r.Sequence, Text: r.Text, Digest: r.Digest}); err != nil {
				return err
			}
			page.Records = append(page.Records, r.Record)
			size += r.Bytes
			at++
			return nil
		})
		switch {
		case errors.Is(err, errPageFull):
			return page, nil
		case err != nil:
			return nil, err
		case at <= run.Last:
			return nil, oda.Lost(of.Ref, of.Number, at)
		}
	}
	return page, nil
}

// Complete reads the large texts of the page, each once there is room for it.
func (p *Page) Complete(ctx context.Context, read func(sequence int64) ([]byte, error)) (_ oda.RecordPage, err error) {
	room := oda.RoomIn(ctx)
	defer func() {
		if err != nil {
			room.Give(p.Room)
		}
	}()
	for _, l := range p.large {
		if err := room.Take(ctx, l.bytes); err != nil {
			return oda.RecordPage{}, err
		}
		p.Room += l.bytes
		r := &p.Records[l.index]
		if r.Text, err = read(r.Sequence); err != nil {
			return oda.RecordPage{}, err
		}
		if err := p.of.checkRecord(r.Sequence, Numbered{Sequence: r.Sequence, Text: r.Text, Digest: l.digest}); err != nil {
			return oda.RecordPage{}, err
		}
	}
	return p.RecordPage, nil
}
