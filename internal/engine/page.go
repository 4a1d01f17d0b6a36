package engine

import (
	"errors"

	"oda"
)

// PageBytes is how many bytes of records fill a page.
const PageBytes = 4 << 20

// errPageFull stops the reading of a page.
var errPageFull = errors.New("the page is full")

// Page reads records of a version in the order of the runs, and checks each, until
// the page is full. Read calls add for up to most records of a run, in order, and
// returns the first error of add.
func Page(of Version, runs Runs, limit int, read func(run Run, most int, add func(oda.Record, oda.Digest) error) error) (oda.RecordPage, error) {
	var page oda.RecordPage
	size := 0
	for _, run := range runs {
		at := run.First
		err := read(run, limit+1, func(r oda.Record, digest oda.Digest) error {
			if len(page.Records) >= limit || size >= PageBytes {
				page.More = true
				return errPageFull
			}
			if err := of.checkRecord(at, Numbered{Sequence: r.Sequence, Text: r.Text, Digest: digest}); err != nil {
				return err
			}
			page.Records = append(page.Records, r)
			size += len(r.Text)
			at++
			return nil
		})
		switch {
		case errors.Is(err, errPageFull):
			return page, nil
		case err != nil:
			return oda.RecordPage{}, err
		case at <= run.Last:
			return oda.RecordPage{}, oda.Lost(of.Ref, of.Number, at)
		}
	}
	return page, nil
}
