package oda

import (
	"fmt"
	"math"
	"strconv"

	"oda/internal/rawjson"
)

// Record is a stored record.
type Record struct {
	Sequence   int64
	Key        string // empty if it was sent without one
	By         string // who recorded it
	RecordedOn Instant
	Text       []byte // as sent
}

// Sequences is a range of sequence numbers, both ends included.
type Sequences struct{ First, Last int64 }

// AllSequences are all sequence numbers that a block can have.
var AllSequences = Sequences{1, math.MaxInt64}

// AppendJSON appends the record with what the server knows of it, as an object.
func (r *Record) AppendJSON(dst []byte) []byte {
	dst = strconv.AppendInt(append(dst, `{"sequence":`...), r.Sequence, 10)
	if r.Key != "" {
		dst = rawjson.AppendQuoted(append(dst, `,"key":`...), r.Key)
	}
	dst = append(r.RecordedOn.AppendTo(append(dst, `,"recorded_at":"`...)), '"')
	return append(append(append(dst, `,"record":`...), r.Text...), '}')
}

// RecordPage is a page of the records of a block, in the order of their sequence
// numbers.
type RecordPage struct {
	Records []Record
	More    bool  // more follow
	Last    int64 // the last sequence number that the block has given, also to a record that it no longer has
	Room    int64 // bytes that large texts of the page have taken of the room, for who no longer needs them to give back
}

// NewRecord is a record to be added. It has been checked against the API
// description.
type NewRecord struct {
	Key  string // empty if it was sent without one
	Text []byte // as sent
}

// Append holds records to be added to an ExecutionBlock, in order, all or none.
// No two have the same key.
type Append struct {
	Block   string
	By      string
	At      Instant
	Records []NewRecord

	// Batch says that the request has a list of records, each with its key.
	Batch bool

	// Telescopes are those for which the caller may record, nil if any.
	Telescopes *Telescopes
}

// Size returns the number of bytes of the records.
func (a Append) Size() int {
	size := 0
	for _, r := range a.Records {
		size += len(r.Text)
	}
	return size
}

// Digests returns the digest of each record.
func (a Append) Digests() []Digest {
	digests := make([]Digest, len(a.Records))
	for i, r := range a.Records {
		digests[i] = DigestOf(r.Text)
	}
	return digests
}

// CheckKeys returns an error if two records have the same key.
func (a Append) CheckKeys() error {
	if len(a.Records) < 2 {
		return nil
	}
	seen := make(map[string]int, len(a.Records))
	for i, r := range a.Records {
		if r.Key == "" {
			continue
		}
		if first, twice := seen[r.Key]; twice {
			return &Error{
				Code: KeyReused, Detail: "A key appears twice in this request. Nothing was stored. Give each record its own key.",
				Faults: []Fault{{fmt.Sprintf("/records/%d/key", i), fmt.Sprintf("is already used at /records/%d/key", first)}},
			}
		}
		seen[r.Key] = i
	}
	return nil
}

// CheckKey returns an error if the key of a record was first used with another digest.
func (a Append) CheckKey(i int, digest Digest, first []byte) error {
	err := Key{a.Records[i].Key, digest}.Check(first)
	if err == nil || !a.Batch {
		return err
	}
	return &Error{
		Code: KeyReused, Detail: "A key of this request was used before, with another body. Nothing was stored. " +
			"Send the same record to retry, or give it a new key.",
		Faults: []Fault{{fmt.Sprintf("/records/%d/key", i), "was used before, with another record"}},
	}
}

// Receipt is the answer to a record: its sequence number, and the metadata of the
// block once it was added.
type Receipt struct {
	Sequence int64
	Metadata Metadata
}

// Latest returns the metadata that answers a request with several records: that
// of the record that was added last. It need not be the last of the request,
// since records whose keys were used before are older.
func Latest(receipts []Receipt) Metadata {
	latest := receipts[0].Metadata
	for _, r := range receipts[1:] {
		if r.Metadata.LastModifiedOn > latest.LastModifiedOn {
			latest = r.Metadata
		}
	}
	return latest
}

// MaxNewRecords is how many records that are not yet stored one request may bring
// in lists. Other writers wait while they are written.
const MaxNewRecords = 100_000

// CheckNewRecords returns an error if a request has too many new records.
func CheckNewRecords(n int) error {
	if n <= MaxNewRecords {
		return nil
	}
	return Errorf(InvalidRequest, "This request has more than %d records that are not stored yet, and no more are taken at once. "+
		"Nothing was stored. Store the block with fewer of them, and record the rest.", MaxNewRecords)
}

// Admit returns an error if the caller may not record into a block with that
// telescope. Everyone who may record may do it into a block that has none. The
// engine asks within the transaction that adds the records.
func (a *Append) Admit(stored string) error {
	return a.Telescopes.admitAbout("the block "+a.Block, stored)
}

// Keys returns what the call of each record to be added is found by.
func (a Append) Keys() []CallKeys {
	keys := make([]CallKeys, len(a.Records))
	for i, r := range a.Records {
		keys[i] = KeysOfCall(r.Text)
	}
	return keys
}

// UnknownSequence returns the error for a follower of a block that has seen more
// records than the block has ever had.
func UnknownSequence(block string, last, seen int64) error {
	return Errorf(UnknownPosition, "The records of %s end at sequence %d, before sequence %d. "+
		"The archive was probably restored from a backup that is older than what you have seen. "+
		"Read the records again from after=0.", block, last, seen)
}
