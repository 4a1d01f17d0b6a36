package engine

import (
	"crypto/sha256"
	"errors"
	"strconv"

	"oda"
)

// Version names a version of an entity.
type Version struct {
	oda.Ref
	Number int64
}

// Check returns an error if the text of the version is not the one that was
// stored, or if its slots do not make a document. Engines check every text of a
// version before they return it, except in Entries, whose caller does.
func (v Version) Check(body oda.Body) error {
	if body.Text == nil {
		return oda.LostVersion(v.Ref, v.Number)
	}
	return body.Check(v.Ref, v.Number)
}

// Parts of a row, other than its text, that may be damaged.
var (
	ErrRuns = errors.New("the list of records of a stored version is damaged")
	errKey  = errors.New("the key with which it was created does not fit its seal: it was edited")
	errRow  = errors.New("a row of the database does not fit its seal: it was edited, or has changed places with another")
)

// checkRecord is Check for one of the version's records. Asked is the sequence
// number that it should have.
func (v Version) checkRecord(asked int64, r Numbered) error {
	switch {
	case r.Sequence != asked:
		return oda.Lost(v.Ref, v.Number, asked)
	case oda.DigestOf(r.Text) != r.Digest:
		return oda.Damaged(v.Ref, v.Number, asked)
	}
	return nil
}

// VersionRow is the row of a version without its text, for which the digest
// stands.
type VersionRow struct {
	Place         []byte // the key by which the engine finds the row
	Version       int64
	By            string
	On            oda.Instant
	Before, After int64 // the last sequence number before and after it was stored
	Runs          Runs  // nil: no list
	Slots         []oda.Slot
	Digest        oda.Digest

	createdApart bool // the entity was created by another user, or at another time, than the version was stored
	createdBy    string
	createdOn    oda.Instant
}

// OfEntity says which metadata the entity has. What was imported may have been created by
// somebody else than its first version was stored by, or earlier, and only the head says
// so. Therefore that is part of the seal of this version.
func (r *VersionRow) OfEntity(m oda.Metadata) {
	if r.Version == 1 && (m.CreatedBy != r.By || m.CreatedOn != r.On) {
		r.createdApart, r.createdBy, r.createdOn = true, m.CreatedBy, m.CreatedOn
	}
}

// RecordRow is the row of a record without its text.
type RecordRow struct {
	Place    []byte
	Sequence int64
	Version  int64
	By       string
	On       oda.Instant
	Key      string // empty: none
	Digest   oda.Digest
}

// StatusRow is the row of a status.
type StatusRow struct {
	Place []byte
	oda.Status
	Key *oda.Key // nil: none
}

// Digest returns the SHA-256 of the whole row.
func (r *StatusRow) Digest() oda.Digest {
	var room [1024]byte
	b := append(append(append(room[:0], "status\n"...), r.Place...), '\n')
	b = append(r.AppendJSON(b), '\n')
	b = strconv.AppendBool(b, r.Current)
	if r.Key != nil {
		b = append(append(b, '\n'), r.Key.Value...)
		b = append(b, r.Key.Digest[:]...)
	}
	return oda.DigestOf(b)
}

// Check returns an error if the row does not fit its stored digest.
func (r *StatusRow) Check(digest []byte) error {
	if sum := r.Digest(); string(sum[:]) != string(digest) {
		return oda.DamagedStatus(r.Ref, r.Sequence)
	}
	return nil
}

// Seal is stored in each row. It is the beginning of a SHA-256 over the other
// columns, and shows whether one of them was edited or rows have changed places.
// The functions archive_seal_of_version and archive_seal_of_record of PostgreSQL compute
// it in the same way: over one line for each column that is not null, followed by
// the digest.
type Seal [8]byte

// Seal returns the seal of the row.
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
	b = append(b, '}')
	if r.createdApart {
		b = append(append(b, '\n'), r.createdBy...)
		b = strconv.AppendInt(append(b, '\n'), int64(r.createdOn), 10)
	}
	return seal(b, r.Digest)
}

// Seal returns the seal of the row.
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

// SealOf returns the seal of a row of the log, whose columns are lines of a text.
func SealOf(columns []byte) Seal {
	sum := sha256.Sum256(columns)
	return Seal(sum[:8])
}

// SealOfKey returns the seal of the idempotency key that created an entity.
func SealOfKey(of oda.Ref, key oda.Key) Seal {
	b := append(strconv.AppendInt([]byte("key\n"), int64(of.Kind), 10), '\n')
	b = append(append(b, of.ID...), '\n')
	return seal(append(b, key.Value...), key.Digest)
}

// CheckKey returns an error if the key that created an entity does not fit its stored seal.
func CheckKey(of oda.Ref, key oda.Key, seal []byte) error {
	if !SealOfKey(of, key).Fits(seal) {
		return oda.Damaged(of, 1, 0).Because(errKey)
	}
	return nil
}

// Fits reports whether the seal is the one that is stored.
func (s Seal) Fits(stored []byte) bool { return string(s[:]) == string(stored) }

// Check returns an error if the row of the version does not fit its stored seal.
func (r *VersionRow) Check(of oda.Ref, seal []byte) error {
	if !r.Seal().Fits(seal) {
		return oda.Damaged(of, r.Version, 0).Because(errRow)
	}
	return nil
}

// Check returns an error if the row of the record does not fit its stored seal.
func (r *RecordRow) Check(of oda.Ref, seal []byte) error {
	if !r.Seal().Fits(seal) {
		return oda.Damaged(of, r.Version, r.Sequence).Because(errRow)
	}
	return nil
}

// separated appends a comma unless i is the first element of an array.
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
