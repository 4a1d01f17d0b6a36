package oda

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"

	"oda/internal/rawjson"
)

// LogEntry is an entry of the log with everything that is stored for it: a
// version with the records that came with it, a record that was recorded, or a status
// that was said. All entries in their order are the whole archive; everything else
// follows from them.
type LogEntry struct {
	Ref
	Version  int64 // that was stored, that the block had when the record came, or that the status means
	Sequence int64 // of the record, or of the status; 0: a version was stored
	By       string
	On       Instant
	Body     Body // of the version; without slots, that of the record

	// Of a version.
	CreatedBy     string // of the entity
	CreatedOn     Instant
	CreateKey     *Key  // with which the entity was created; only version 1 has it
	Before, After int64 // the last sequence number before and after it was stored
	Runs          []Run // the records that it holds; nil: no list
	Came          []Body
	List          *Digest         // of the digests of the records that it holds; nil: its source has records as entries of their own
	Entry         *CatalogueEntry // what search knows; nil until it is prepared

	Key string // of the record or the status; empty if it was sent without one

	Said      *Status // what was said; nil: it is no status
	KeyDigest Digest  // of the request that came with the key of the status
}

// EntryOf returns the entry of the log for a status that was said with a key, or without
// one.
func EntryOf(s *Status, key *Key) LogEntry {
	e := LogEntry{Ref: s.Ref, Version: s.Version, Sequence: s.Sequence, By: s.By, On: s.On, Said: s}
	if key != nil {
		e.Key, e.KeyDigest = key.Value, key.Digest
	}
	return e
}

// Run is a range of sequence numbers, both ends included.
type Run struct{ First, Last int64 }

// SaidWith returns the key with which the status was said, nil if there was none.
func (e *LogEntry) SaidWith() *Key {
	if e.Key == "" {
		return nil
	}
	return &Key{e.Key, e.KeyDigest}
}

// Stored reports whether the entry is that of a version.
func (e *LogEntry) Stored() bool { return e.Sequence == 0 }

// Recorded reports whether the entry is that of a record.
func (e *LogEntry) Recorded() bool { return e.Sequence != 0 && e.Said == nil }

// Positions returns how many positions of the log the entry takes.
func (e *LogEntry) Positions() int64 { return 1 + int64(len(e.Came)) }

// Size returns the bytes of its texts.
func (e *LogEntry) Size() int {
	size := len(e.Body.Text)
	for i := range e.Came {
		size += len(e.Came[i].Text)
	}
	if e.Said != nil {
		size += len(e.Said.Text) + len(e.Said.Reason)
	}
	return size
}

// Check returns an error if the entry is not as it was stored: a text does not fit its
// digest, or no archive can have stored such an entry.
func (e *LogEntry) Check() error {
	if e.Said != nil {
		if err := e.checkValues(); err != nil {
			return DamagedStatus(e.Ref, e.Sequence).Because(err)
		}
		return nil
	}
	if DigestOf(e.Body.Text) != e.Body.Digest {
		return Damaged(e.Ref, e.Version, e.Sequence)
	}
	for i := range e.Came {
		if DigestOf(e.Came[i].Text) != e.Came[i].Digest {
			return Damaged(e.Ref, e.Version, e.Before+1+int64(i))
		}
	}
	if err := e.checkValues(); err != nil {
		return Damaged(e.Ref, e.Version, e.Sequence).Because(err)
	}
	return nil
}

// Metadata returns the metadata of the entity once the entry was stored. Of a
// record's, only the version and the last modification are known.
func (e *LogEntry) Metadata() Metadata {
	return Metadata{Version: e.Version, CreatedBy: e.CreatedBy, CreatedOn: e.CreatedOn, LastModifiedBy: e.By, LastModifiedOn: e.On}
}

// Checked checks the entry by itself, and returns the document of a version. An error
// says what is wrong with it.
func (e *LogEntry) Checked() (document []byte, err error) {
	if err := e.checkValues(); err != nil {
		return nil, err
	}
	if err := e.checkRecords(); err != nil || !e.Stored() {
		return nil, err
	}
	return e.AppendDocument(make([]byte, 0, len(e.Body.Text)+256))
}

// checkValues checks the entry without reading its texts.
func (e *LogEntry) checkValues() error {
	switch {
	case !e.Kind.known():
		return errors.New("its kind is unknown")
	case !ValidID(e.ID):
		return errors.New("its identifier is not valid")
	case e.Version < 1 || e.Version == math.MaxInt64:
		return errors.New("its version is not a number from 1")
	case !wasValidUser(e.By):
		return errors.New("its user is not 1 to 256 characters without control characters")
	case !e.On.storable() || !e.CreatedOn.storable():
		return errYears
	}
	if e.Said != nil {
		return e.checkStatusValues()
	}
	if e.Recorded() {
		return e.checkRecordValues()
	}
	switch {
	case !wasValidUser(e.CreatedBy):
		return errors.New("its creator is not 1 to 256 characters without control characters")
	case e.Version == 1 && e.CreatedOn <= e.On && !CanHaveCreated(e.Metadata(), e.By, e.On):
		return fmt.Errorf("it was created by %q at %s, which does not go with its first version, by %q at %s", e.CreatedBy, e.CreatedOn, e.By, e.On)
	case e.CreatedOn > e.On:
		return fmt.Errorf("it was created at %s, but last modified at %s, which is earlier", e.CreatedOn, e.On)
	case e.CreateKey != nil && (e.Version != 1 || !validKey(e.CreateKey.Value)):
		return errors.New("the key with which it was created is not valid")
	case !e.Body.Fits(e.Kind):
		return errors.New("its slots do not make a document")
	case e.Before < 0 || e.After-e.Before != int64(len(e.Came)):
		return errors.New("the records that came with it are not those that it counts")
	case e.Kind != ExecutionBlock && (e.After != 0 || e.Runs != nil):
		return errors.New("only an ExecutionBlock can have records")
	}
	held := int64(0)
	for _, run := range e.Runs {
		if run.First < 1 || run.Last < run.First || run.Last > e.After {
			return errors.New("its list names records that were not there yet")
		}
		if held += run.Last - run.First + 1; held > e.After {
			return errors.New("its list names records twice")
		}
	}
	return nil
}

var errKey = errors.New("its key is not valid")

func (e *LogEntry) checkRecordValues() error {
	switch {
	case e.Kind != ExecutionBlock:
		return errors.New("only an ExecutionBlock can have records")
	case e.Sequence < 1:
		return errSequence
	case e.Key != "" && !validKey(e.Key):
		return errKey
	}
	return nil
}

func (e *LogEntry) checkStatusValues() error {
	s := e.Said
	switch {
	case e.Key != "" && !validKey(e.Key):
		return errKey
	case s.Ref != e.Ref || s.Sequence != e.Sequence || s.Version != e.Version || s.By != e.By || s.On != e.On:
		return errors.New("its status is another one")
	case s.At > s.On:
		return fmt.Errorf("it is of %s, and its status of later, %s", s.On, s.At)
	}
	return s.check()
}

// checkRecords checks the texts of the records.
func (e *LogEntry) checkRecords() error {
	if e.Recorded() {
		return checkRecordText(e.Body)
	}
	for i := range e.Came {
		if err := checkRecordText(e.Came[i]); err != nil {
			return err
		}
	}
	return nil
}

func checkRecordText(body Body) error {
	if DigestOf(body.Text) != body.Digest {
		return errors.New("the text of a record does not fit its digest")
	}
	err := rawjson.Check(body.Text, MaxStoredDepth)
	if err == nil && bytes.TrimLeft(body.Text, white)[0] != '{' {
		err = errors.New("it is not an object")
	}
	if err != nil {
		return fmt.Errorf("a record is not valid: %w", err)
	}
	return nil
}

// AppendDocument appends the document of a version without its records. It returns an
// error if that is not the document of the entity.
func (e *LogEntry) AppendDocument(dst []byte) ([]byte, error) {
	b := bytes.NewBuffer(dst)
	if err := e.Body.WriteTo(b, e.Metadata(), nil); err != nil {
		return nil, err
	}
	return b.Bytes(), e.isOf(b.Bytes()[len(dst):])
}

// isOf returns an error if a document is not that of the entity.
func (e *LogEntry) isOf(document []byte) error {
	for key, value := range rawjson.Members(document) {
		switch {
		case string(key) != e.Kind.IDField():
		case string(textIn(value)) != e.ID:
			return errors.New("its document has another identifier")
		default:
			return nil
		}
	}
	return fmt.Errorf("its document has no %s", e.Kind.IDField())
}

// LogState is what the log of an entity has come to: what its next entry must
// follow.
type LogState struct {
	Metadata     Metadata
	LastSequence int64 // of the records
	LastStatus   int64
}

// Follow returns why the entry cannot be the next one of its entity, or nil. State is
// nil if the entity is not stored.
func (e *LogEntry) Follow(state *LogState) error {
	var version, sequence int64
	if state != nil {
		version, sequence = state.Metadata.Version, state.LastSequence
	}
	if e.Said != nil {
		return e.followStatus(state)
	}
	switch {
	case e.Stored() && e.Version != version+1:
		return fmt.Errorf("version %d is not stored, so version %d cannot follow; it can only be stored as a new one", version+1, e.Version)
	case !e.Stored() && (state == nil || e.Version != version):
		return fmt.Errorf("it was recorded into version %d, but the archive has version %d", e.Version, version)
	case e.Stored() && e.Before != sequence:
		return fmt.Errorf("%d records came before it, but the archive has %d", e.Before, sequence)
	case !e.Stored() && e.Sequence != sequence+1:
		return fmt.Errorf("record %d is not stored, so record %d cannot follow", sequence+1, e.Sequence)
	case state != nil && e.On <= state.Metadata.LastModifiedOn:
		return fmt.Errorf("it is of %s, which is not after what precedes it (%s)", e.On, state.Metadata.LastModifiedOn)
	case state != nil && e.Stored() && (e.CreatedBy != state.Metadata.CreatedBy || e.CreatedOn != state.Metadata.CreatedOn):
		return fmt.Errorf("it was created by %q at %s, but what precedes it by %q at %s",
			e.CreatedBy, e.CreatedOn, state.Metadata.CreatedBy, state.Metadata.CreatedOn)
	}
	return nil
}

// followStatus is Follow for a status.
func (e *LogEntry) followStatus(state *LogState) error {
	switch {
	case state == nil || e.Version > state.Metadata.Version:
		return fmt.Errorf("version %d is not stored, so nothing can be said of it", e.Version)
	case e.Sequence != state.LastStatus+1:
		return fmt.Errorf("status %d is not stored, so status %d cannot follow", state.LastStatus+1, e.Sequence)
	}
	return nil
}

// Known reports whether the archive may have the entry already, since its entity has
// come further.
func (e *LogEntry) Known(state *LogState) bool {
	switch {
	case state == nil:
		return false
	case e.Stored():
		return e.Version <= state.Metadata.Version
	case e.Said != nil:
		return e.Sequence <= state.LastStatus
	}
	return e.Sequence <= state.LastSequence
}

// Same returns why what the archive has in the place of the entry is not the same, or
// nil. Head is the metadata of the entity, and digest that of the stored text.
func (e *LogEntry) Same(head Metadata, by string, on Instant, digest Digest) error {
	if e.Stored() && e.Version == 1 && (e.CreatedBy != head.CreatedBy || e.CreatedOn != head.CreatedOn) {
		return fmt.Errorf("it was created by %q at %s, but the archive says by %q at %s", e.CreatedBy, e.CreatedOn, head.CreatedBy, head.CreatedOn)
	}
	if e.By == by && e.On == on && e.Body.Digest == digest {
		return nil
	}
	what := fmt.Sprintf("version %d", e.Version)
	if !e.Stored() {
		what = fmt.Sprintf("record %d", e.Sequence)
	}
	return fmt.Errorf("the archive has another %s, by %q of %s", what, by, on)
}

// SameStatus returns why the status that the archive has in the place of the entry is not
// the same, or nil.
func (e *LogEntry) SameStatus(stored *Status) error {
	if e.Said.same(stored) {
		return nil
	}
	return fmt.Errorf("the archive has another status %d, by %q of %s", e.Sequence, stored.By, stored.On)
}

// SameRecords returns why the version that the archive has is not the same, or nil. List
// is the digest of the digests of the records that it was stored with.
func (e *LogEntry) SameRecords(list Digest) error {
	if *e.List == list {
		return nil
	}
	return fmt.Errorf("the archive has another version %d, with other records", e.Version)
}

// ErrPresent is the answer to an entry that the archive has already.
var ErrPresent = errors.New("the archive has it already")

// Mover reads and writes the log with everything in it, to move archives.
type Mover interface {
	// Entries calls emit for the entries up to a position that are those of a wanted
	// entity, in order. The position was once the end of the log. A reader may take as
	// long as it likes: the log up to a position never changes, so it is read in parts.
	// What the rows of the database say fits their seals; the caller checks the rest of
	// an entry with its Check.
	Entries(ctx context.Context, until Position, wanted func(Ref) bool, emit func(*LogEntry) error) error

	// SaidSince calls emit for each entity that was given a status at an instant or later,
	// once. It stops at the first error of emit and returns it.
	SaidSince(ctx context.Context, since Instant, emit func(Ref) error) error

	// Load adds entries to the log as they are, in order. They were prepared. The
	// answer to each is nil if it was added, ErrPresent if the archive has it already,
	// or else why it cannot be added. The entries are added together, or none if there
	// is an error. Until Sync returns, a crash may lose them, with everything that was
	// loaded later.
	Load(ctx context.Context, entries []LogEntry) (answers []error, err error)

	// Sync makes durable what was loaded.
	Sync(ctx context.Context) error
}

// Unrender returns the body of a document that was rendered with that metadata and
// without records.
func Unrender(rendered []byte, slots []Slot, m Metadata) (Body, error) {
	body := Body{Text: make([]byte, 0, len(rendered)), Slots: slots}
	var room [64]byte
	for _, s := range slots {
		length := s.Offset - len(body.Text)
		if length < 0 || length > len(rendered) {
			return Body{}, errUnrender
		}
		body.Text = append(body.Text, rendered[:length]...)
		value := room[:0]
		switch {
		case s.Value < SlotVersion || s.Value > SlotRecordsMember:
			return Body{}, errUnrender
		case s.Value < SlotRecords:
			value = appendValue(value, s.Value, m)
		case s.Value == SlotRecords:
			value = append(value, "[]"...)
		}
		rest, ok := bytes.CutPrefix(rendered[length:], value)
		if !ok {
			return Body{}, errUnrender
		}
		rendered = rest
	}
	body.Text = append(body.Text, rendered...)
	body.Digest = DigestOf(body.Text)
	return body, nil
}

var errUnrender = errors.New("its document does not have the metadata of its line")
