package oda

import (
	"fmt"
	"iter"
)

// Record is a record as it is kept.
type Record struct {
	Sequence   int64
	Key        string // empty where it came without one
	RecordedOn Instant
	Text       []byte // as sent
}

// RecordPage is some of the records of a block, in the order of their sequence
// numbers.
type RecordPage struct {
	Records []Record
	More    bool // there are more behind these
}

// NewRecord is a record to be added, checked against the API description.
type NewRecord struct {
	Key  string // empty where it comes without one
	Text []byte // as sent
}

// Append is records to be added to an ExecutionBlock, in order, all or none. No
// key stands twice among them.
type Append struct {
	Block   string
	By      string
	At      Instant
	Records []NewRecord
}

// Size is the number of bytes of the records.
func (a Append) Size() int {
	size := 0
	for _, r := range a.Records {
		size += len(r.Text)
	}
	return size
}

// Digests works out the digests of the records.
func (a Append) Digests() []Digest {
	digests := make([]Digest, len(a.Records))
	for i, r := range a.Records {
		digests[i] = DigestOf(r.Text)
	}
	return digests
}

// checkKeys refuses a key that stands twice.
func (a Append) checkKeys() error {
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

// Receipt says where a record stands, and the metadata of the block at that
// moment.
type Receipt struct {
	Sequence int64
	Metadata Metadata
}

// Latest is the metadata that answers a request with several records: that of
// the record that was added last. Those whose keys were used before may be older
// than the others, wherever they stand in the request.
func Latest(receipts []Receipt) Metadata {
	latest := receipts[0].Metadata
	for _, r := range receipts[1:] {
		if r.Metadata.LastModifiedOn > latest.LastModifiedOn {
			latest = r.Metadata
		}
	}
	return latest
}

// Texts are the texts of records, in order. Reading may fail on the way. Where
// nil is allowed, it means that the document has no list of records.
type Texts = iter.Seq2[[]byte, error]

// TextsOf gives texts that are in memory.
func TextsOf(texts [][]byte) Texts {
	return func(yield func([]byte, error) bool) {
		for _, text := range texts {
			if !yield(text, nil) {
				return
			}
		}
	}
}

// MaxNewRecords is how many records that are not stored yet one request may
// bring in lists: others must not wait long until all of them are written.
const MaxNewRecords = 100_000

// CheckNewRecords holds the number of new records of a request against the
// bound.
func CheckNewRecords(n int) error {
	if n <= MaxNewRecords {
		return nil
	}
	return Errorf(InvalidRequest, "This request has %d records that are not stored yet; at most %d are taken at once. "+
		"Nothing was stored. Store the block with fewer of them, and record the rest.", n, MaxNewRecords)
}
