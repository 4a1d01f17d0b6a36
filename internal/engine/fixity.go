package engine

import (
	"crypto/sha256"
	"errors"
	"strconv"

	"oda"
)

// Version names a version of an entity that is being read.
type Version struct {
	oda.Ref
	Number int64
}

// Check reports whether the text of the version is the one that was stored, and its
// slots are such that a document comes of it. All
// texts of versions that leave an engine come through here.
func (v Version) Check(body oda.Body) error {
	switch {
	case body.Text == nil:
		return oda.LostVersion(v.Ref, v.Number)
	case oda.DigestOf(body.Text) != body.Digest:
		return oda.Damaged(v.Ref, v.Number, 0)
	case !body.Fits(v.Kind):
		return oda.Damaged(v.Ref, v.Number, 0).Because(ErrSlots)
	}
	return nil
}

// What of a row of a version may be damaged besides its text.
var (
	ErrSlots = errors.New("the slots of a stored document are damaged")
	ErrRuns  = errors.New("the list of records of a stored version is damaged")
)

// checkRecord is Check for one of its records: the one that was asked for.
func (v Version) checkRecord(asked int64, r Numbered) error {
	switch {
	case r.Sequence != asked:
		return oda.Lost(v.Ref, v.Number, asked)
	case oda.DigestOf(r.Text) != r.Digest:
		return oda.Damaged(v.Ref, v.Number, asked)
	}
	return nil
}

// VersionRow is a row of a version but for its text, which the digest stands for.
type VersionRow struct {
	Place         []byte // by which the engine finds the row
	Version       int64
	By            string
	On            oda.Instant
	Before, After int64 // last sequence when it was stored, without and with its own records
	Runs          Runs  // nil: no list
	Slots         []oda.Slot
	Digest        oda.Digest
}

// RecordRow is a row of a record but for its text.
type RecordRow struct {
	Place    []byte
	Sequence int64
	Version  int64
	By       string
	On       oda.Instant
	Key      string // empty: none
	Digest   oda.Digest
}

// Seal is kept in each row. It is the beginning of a SHA-256 over the other
// columns, so that it tells when one of them was edited, or when rows have
// changed places. The functions archive_version_seal and archive_record_seal of
// PostgreSQL work it out in the same way: over one line for each column, without
// those that are null, followed by the digest.
type Seal [8]byte

// Seal computes the seal of the row.
func (r *VersionRow) Seal() Seal {
	var room [512]byte
	b := append(room[:0], "version\n"...)
	b = append(append(b, r.Place...), '\n')
	b = append(strconv.AppendInt(b, r.Version, 10), '\n')
	b = append(append(b, r.By...), '\n')
	b = append(strconv.AppendInt(b, int64(r.On), 10), '\n')
	b = append(strconv.AppendInt(b, r.Before, 10), '\n')
	b = append(strconv.AppendInt(b, r.After, 10), '\n')
	if r.Runs != nil {
		b = append(b, '{')
		for i, run := range r.Runs {
			b = strconv.AppendInt(separated(b, i), run.First, 10)
			b = strconv.AppendInt(append(b, ','), run.Last, 10)
		}
		b = append(b, "}\n"...)
	}
	b = append(b, '{')
	for i, slot := range r.Slots {
		b = strconv.AppendInt(separated(b, i), int64(slot.Value), 10)
		b = strconv.AppendInt(append(b, ','), int64(slot.Offset), 10)
	}
	return seal(append(b, '}'), r.Digest)
}

// Seal computes the seal of the row.
func (r *RecordRow) Seal() Seal {
	var room [512]byte
	b := append(room[:0], "record\n"...)
	b = append(append(b, r.Place...), '\n')
	b = append(strconv.AppendInt(b, r.Sequence, 10), '\n')
	b = append(strconv.AppendInt(b, r.Version, 10), '\n')
	b = append(append(b, r.By...), '\n')
	b = strconv.AppendInt(b, int64(r.On), 10)
	if r.Key != "" {
		b = append(append(b, '\n'), r.Key...)
	}
	return seal(b, r.Digest)
}

// separated puts a comma before all elements of an array but the first.
func separated(b []byte, i int) []byte {
	if i > 0 {
		return append(b, ',')
	}
	return b
}

func seal(columns []byte, digest oda.Digest) Seal {
	sum := sha256.Sum256(append(columns, digest[:]...))
	return Seal(sum[:8])
}
