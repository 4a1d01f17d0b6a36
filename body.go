package oda

import (
	"bytes"
	"errors"
	"io"
	"iter"
)

// Body is a document as it is stored: the text as received without the values
// that the server owns, and the slots where an answer splices them in. So
// recording and versioning never rewrite a text. The digest is stored with the
// text and shows whether it is still the text that was stored.
type Body struct {
	Text   []byte
	Slots  []Slot
	Digest Digest
}

// Slot is a place in a text that takes a value owned by the server.
type Slot struct {
	Offset int
	Value  SlotValue
}

// ErrSlots says that the slots of a stored document are damaged.
var ErrSlots = errors.New("the slots of a stored document are damaged")

// Check returns an error if the body of a version is not the one that was stored: its text
// has another digest, or its slots do not make a document.
func (b Body) Check(ref Ref, version int64) error {
	switch {
	case DigestOf(b.Text) != b.Digest:
		return Damaged(ref, version, 0)
	case !b.Fits(ref.Kind):
		return Damaged(ref, version, 0).Because(ErrSlots)
	}
	return nil
}

// Fits reports whether the slots can be those of a document of that kind: each
// value that the server owns has one slot, where JSON takes a value.
func (b Body) Fits(kind Kind) bool {
	seen, last := 0, -1
	for _, s := range b.Slots {
		if s.Offset <= last || s.Offset >= len(b.Text) || s.Value < SlotVersion || s.Value > SlotRecordsMember || seen&(1<<s.Value) != 0 {
			return false
		}
		before, after := bytes.TrimRight(b.Text[:s.Offset], white), bytes.TrimLeft(b.Text[s.Offset:], white)
		if len(before) == 0 || len(after) == 0 || s.Value != SlotRecordsMember && before[len(before)-1] != ':' || after[0] != ',' && after[0] != '}' {
			return false
		}
		seen |= 1 << s.Value
		last = s.Offset
	}
	const all = 1<<SlotVersion | 1<<SlotCreatedBy | 1<<SlotCreatedOn | 1<<SlotLastModifiedBy | 1<<SlotLastModifiedOn
	if seen&all == 0 { // a document without metadata has no such slots
		return !bytes.Contains(b.Text, []byte(`"metadata"`))
	}
	if kind == ExecutionBlock {
		return seen == all|1<<SlotRecords || seen == all|1<<SlotRecordsMember
	}
	return seen == all
}

// white is the white space of JSON.
const white = " \t\r\n"

// WriteTo renders the document: the text with the server's values spliced in.
func (b Body) WriteTo(w io.Writer, m Metadata, records Texts) error {
	at := 0
	buf := make([]byte, 0, 64)
	for _, s := range b.Slots {
		if _, err := w.Write(b.Text[at:s.Offset]); err != nil {
			return err
		}
		at, buf = s.Offset, buf[:0]
		if s.Value < SlotRecords {
			buf = appendValue(buf, s.Value, m)
		} else if s.Value == SlotRecords || records != nil {
			if s.Value == SlotRecordsMember {
				buf = append(buf, `,"`+RecordsField+`":`...)
			}
			if _, err := w.Write(append(buf, '[')); err != nil {
				return err
			}
			if err := writeRecords(w, records); err != nil {
				return err
			}
			buf = append(buf[:0], ']')
		}
		if _, err := w.Write(buf); err != nil {
			return err
		}
	}
	_, err := w.Write(b.Text[at:])
	return err
}

// WithoutRecords renders the document without its records.
func (b Body) WithoutRecords(m Metadata) ([]byte, error) {
	text := bytes.NewBuffer(make([]byte, 0, len(b.Text)+256))
	err := b.WriteTo(text, m, nil)
	return text.Bytes(), err
}

func writeRecords(w io.Writer, records Texts) error {
	if records == nil {
		return nil
	}
	comma := false
	for r, err := range records {
		if err != nil {
			return err
		}
		if comma {
			if _, err := w.Write([]byte{','}); err != nil {
				return err
			}
		}
		comma = true
		if _, err := w.Write(r); err != nil {
			return err
		}
	}
	return nil
}

// Texts yields the texts of records, in order, until one cannot be read. Nil
// means that the document has no list of records.
type Texts = iter.Seq2[[]byte, error]

// TextsOf returns Texts for texts that are in memory.
func TextsOf(texts [][]byte) Texts {
	return func(yield func([]byte, error) bool) {
		for _, text := range texts {
			if !yield(text, nil) {
				return
			}
		}
	}
}
