package engine

import (
	"context"
	"iter"

	"oda"
)

// Numbered is the text of a record with its sequence number and its stored digest.
type Numbered struct {
	Sequence   int64
	By         string // who recorded it
	RecordedOn oda.Instant
	Text       []byte
	Digest     oda.Digest

	// Read reads a large text, which is not in Text. It gives its room back with done.
	Read func() (text []byte, done func(), err error)
}

// InParts reads records of a version in order, and checks each. Records never
// change, so each part is a short read of its own, and a slow reader holds nothing
// in the database. Read returns records from first to last; it may leave out some
// at the end.
func InParts(of Version, runs Runs, read func(first, last int64) ([]Numbered, error)) iter.Seq2[Numbered, error] {
	return func(yield func(Numbered, error) bool) {
		for _, run := range runs {
			for at := run.First; at <= run.Last; {
				part, err := read(at, run.Last)
				if err != nil {
					yield(Numbered{}, err)
					return
				}
				if len(part) == 0 {
					yield(Numbered{}, oda.Lost(of.Ref, of.Number, at))
					return
				}
				for _, r := range part {
					if !one(of, at, r, yield) {
						return
					}
					at++
				}
			}
		}
	}
}

// one yields a record that should have that sequence number, with its text. It reports
// whether others are wanted.
func one(of Version, asked int64, r Numbered, yield func(Numbered, error) bool) bool {
	if r.Read != nil {
		text, done, err := r.Read()
		if err != nil {
			yield(Numbered{}, err)
			return false
		}
		defer done()
		r.Text, r.Read = text, nil
	}
	if err := of.checkRecord(asked, r); err != nil {
		yield(Numbered{}, err)
		return false
	}
	return yield(r, nil)
}

// Later returns what reads a large text once there is room for it, for Numbered.Read.
func Later(ctx context.Context, bytes int64, read func() ([]byte, error)) func() (text []byte, done func(), err error) {
	return func() ([]byte, func(), error) {
		room := oda.RoomIn(ctx)
		if err := room.Take(ctx, bytes); err != nil {
			return nil, nil, err
		}
		text, err := read()
		if err != nil {
			room.Give(bytes)
			return nil, nil, err
		}
		return text, func() { room.Give(bytes) }, nil
	}
}

// Records is InParts with the records as package oda has them.
func Records(of Version, runs Runs, read func(first, last int64) ([]Numbered, error)) iter.Seq2[oda.Record, error] {
	return func(yield func(oda.Record, error) bool) {
		for r, err := range InParts(of, runs, read) {
			if !yield(oda.Record{Sequence: r.Sequence, By: r.By, RecordedOn: r.RecordedOn, Text: r.Text}, err) {
				return
			}
		}
	}
}

// Texts is InParts with the texts only.
func Texts(of Version, runs Runs, read func(first, last int64) ([]Numbered, error)) oda.Texts {
	return func(yield func([]byte, error) bool) {
		for r, err := range InParts(of, runs, read) {
			if !yield(r.Text, err) {
				return
			}
		}
	}
}

// Ahead returns the records of a version that is about to be committed. It reads
// the first of them at once with now, and the rest with later when the caller asks
// for them.
func Ahead(runs Runs, now, later func(Runs) oda.Texts) (oda.Texts, error) {
	var first [][]byte
	size := 0
	for text, err := range now(runs) {
		if err != nil {
			return nil, err
		}
		first = append(first, text)
		if size += len(text); size >= oda.AnswerAhead {
			break
		}
	}
	rest := later(runs.Skip(int64(len(first))))
	return func(yield func([]byte, error) bool) {
		for _, text := range first {
			if !yield(text, nil) {
				return
			}
		}
		rest(yield)
	}, nil
}
