package oda

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"oda/internal/rawjson"
)

// DefaultUser is the user of requests that name none.
const DefaultUser = "DefaultUser"

// Metadata holds the five fields that the archive manages. Versions count from
// 1. LastModifiedOn grows with every change of the entity, so that it and the
// version together name one state.
type Metadata struct {
	Version        int64
	CreatedBy      string
	CreatedOn      Instant
	LastModifiedBy string
	LastModifiedOn Instant
}

// Tag returns a name for the state that the metadata belongs to. It is the entity
// tag on the wire.
func (m Metadata) Tag() string {
	var room [40]byte // enough for two numbers of 64 bits
	tag := append(strconv.AppendInt(room[:0], m.Version, 10), '-')
	return string(strconv.AppendInt(tag, int64(m.LastModifiedOn), 10))
}

// first returns the metadata of an entity that is stored for the first time.
func first(by string, now Instant) Metadata {
	return Metadata{Version: 1, CreatedBy: by, CreatedOn: now, LastModifiedBy: by, LastModifiedOn: now}
}

// Touched returns the metadata after a change that makes no new version, that
// is, after a record. LastModifiedOn grows even if the clock does not.
func (m Metadata) Touched(by string, now Instant) Metadata {
	m.LastModifiedBy = by
	m.LastModifiedOn = max(now, m.LastModifiedOn+1)
	return m
}

// next returns the metadata of the next version.
func (m Metadata) next(by string, now Instant) Metadata {
	m = m.Touched(by, now)
	m.Version++
	return m
}

// Fields is a set of managed fields.
type Fields uint8

// The managed fields, in the order in which they are written.
const (
	FieldVersion Fields = 1 << iota
	FieldCreatedBy
	FieldCreatedOn
	FieldLastModifiedBy
	FieldLastModifiedOn

	// AllFields must match on an ordinary update.
	AllFields = FieldVersion | FieldCreatedBy | FieldCreatedOn | FieldLastModifiedBy | FieldLastModifiedOn
	// KeptFields must match when an ExecutionBlock is updated while records come
	// in, since these change the other two.
	KeptFields = FieldVersion | FieldCreatedBy | FieldCreatedOn
)

// managed lists the managed fields, each with its name in a document and its
// slot.
var managed = [...]struct {
	field Fields
	name  string
	slot  SlotValue
}{
	{FieldVersion, "version", SlotVersion},
	{FieldCreatedBy, "created_by", SlotCreatedBy},
	{FieldCreatedOn, "created_on", SlotCreatedOn},
	{FieldLastModifiedBy, "last_modified_by", SlotLastModifiedBy},
	{FieldLastModifiedOn, "last_modified_on", SlotLastModifiedOn},
}

// ManagedPointers returns the JSON pointers to the managed fields of a document.
func ManagedPointers() []string {
	pointers := make([]string, len(managed))
	for i, m := range managed {
		pointers[i] = "/metadata/" + m.name
	}
	return pointers
}

// Received is the metadata of a document as the caller sent it. Has says which
// fields were there and not null.
type Received struct {
	Has            Fields
	Version        int64
	CreatedBy      string
	CreatedOn      time.Time
	LastModifiedBy string
	LastModifiedOn time.Time
}

// Or returns the fields with those that are missing taken from another.
func (r Received) Or(other Received) Received {
	missing := other.Has &^ r.Has
	if missing&FieldVersion != 0 {
		r.Version = other.Version
	}
	if missing&FieldCreatedBy != 0 {
		r.CreatedBy = other.CreatedBy
	}
	if missing&FieldCreatedOn != 0 {
		r.CreatedOn = other.CreatedOn
	}
	if missing&FieldLastModifiedBy != 0 {
		r.LastModifiedBy = other.LastModifiedBy
	}
	if missing&FieldLastModifiedOn != 0 {
		r.LastModifiedOn = other.LastModifiedOn
	}
	r.Has |= missing
	return r
}

// faults compares the fields with the stored ones. It compares times as
// instants, so their spelling does not matter. Pointer is that of the document.
func (r Received) faults(stored Metadata, compare Fields, pointer string) []Fault {
	var faults []Fault
	for _, m := range managed {
		if compare&m.field == 0 {
			continue
		}
		has := r.Has&m.field != 0
		if has && r.equal(m.field, stored) {
			continue
		}
		sent, kept := r.read(m.field, stored)
		detail := "is missing, stored is " + kept
		if has {
			detail = "is " + sent + ", stored is " + kept
		}
		faults = append(faults, Fault{pointer + "/metadata/" + m.name, detail})
	}
	return faults
}

// equal reports whether a field equals the stored one.
func (r *Received) equal(f Fields, stored Metadata) bool {
	switch f {
	case FieldVersion:
		return r.Version == stored.Version
	case FieldCreatedBy:
		return r.CreatedBy == stored.CreatedBy
	case FieldLastModifiedBy:
		return r.LastModifiedBy == stored.LastModifiedBy
	case FieldCreatedOn:
		return r.CreatedOn.Equal(stored.CreatedOn.Time())
	default:
		return r.LastModifiedOn.Equal(stored.LastModifiedOn.Time())
	}
}

// read returns a field as it was sent and as it is stored, for a message.
func (r *Received) read(f Fields, stored Metadata) (sent, kept string) {
	switch f {
	case FieldVersion:
		return strconv.FormatInt(r.Version, 10), strconv.FormatInt(stored.Version, 10)
	case FieldCreatedBy:
		return strconv.Quote(r.CreatedBy), strconv.Quote(stored.CreatedBy)
	case FieldLastModifiedBy:
		return strconv.Quote(r.LastModifiedBy), strconv.Quote(stored.LastModifiedBy)
	case FieldCreatedOn:
		return spell(r.CreatedOn), stored.CreatedOn.String()
	default:
		return spell(r.LastModifiedOn), stored.LastModifiedOn.String()
	}
}

// spell formats a received time at full resolution, so that a difference of less
// than a microsecond shows.
func spell(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// Condition is what a caller demands of the stored state besides the metadata:
// HTTP's If-Match and If-None-Match.
type Condition struct {
	Match     *Tags // the stored state must be one of these
	NoneMatch *Tags // the stored state must be none of these
}

// Tags is a list of entity tags; Any stands for every state that exists.
type Tags struct {
	Any  bool
	List []string
}

func (t *Tags) include(stored *Metadata) bool {
	return stored != nil && (t.Any || slices.Contains(t.List, stored.Tag()))
}

// Holds reports whether the condition is met. Stored is nil if the entity is not
// stored.
func (c Condition) Holds(stored *Metadata) bool {
	return (c.Match == nil || c.Match.include(stored)) && (c.NoneMatch == nil || !c.NoneMatch.include(stored))
}

// Check returns the error for a condition that does not hold.
func (c Condition) Check(ref Ref, stored *Metadata) *Error {
	switch {
	case c.Holds(stored):
		return nil
	case stored == nil:
		return Errorf(Precondition, "If-Match was given, but there is no %s %s. Leave the header out to create it.", ref.Kind, ref.ID)
	case c.Match != nil && !c.Match.include(stored):
		return Errorf(Precondition, "If-Match failed: %s %s now has the entity tag %q. Read it, apply your change again and store it.",
			ref.Kind, ref.ID, stored.Tag())
	default:
		return Errorf(Precondition, "If-None-Match failed: %s %s exists, with the entity tag %q.", ref.Kind, ref.ID, stored.Tag())
	}
}

// firstArchive is a time before which nothing was archived.
var firstArchive = InstantOf(time.Date(1990, 1, 1, 0, 0, 0, 0, time.UTC))

// CanHaveCreated reports whether an entity with this metadata can have a first version
// that was stored by that user at that time. They are who created it, and when. But
// other archives modify documents in place, so what was imported from them may have
// been created earlier, by somebody else.
func CanHaveCreated(m Metadata, by string, on Instant) bool {
	if m.CreatedOn == on {
		return m.CreatedBy == by
	}
	return firstArchive <= m.CreatedOn && m.CreatedOn < on
}

// Matchable returns the stored metadata that the received metadata matches, for
// an engine that compares in the database. It returns false if none can match: a
// field to compare is missing, or a time is finer than a microsecond.
func (r Received) Matchable(compare Fields) (Metadata, bool) {
	m := Metadata{
		Version:        r.Version,
		CreatedBy:      r.CreatedBy,
		CreatedOn:      InstantOf(r.CreatedOn),
		LastModifiedBy: r.LastModifiedBy,
		LastModifiedOn: InstantOf(r.LastModifiedOn),
	}
	return m, r.faults(m, compare, "") == nil
}

// SlotValue says which value a slot takes. Archives store these numbers.
type SlotValue uint8

// The values that the server owns.
const (
	SlotVersion SlotValue = iota + 1
	SlotCreatedBy
	SlotCreatedOn
	SlotLastModifiedBy
	SlotLastModifiedOn
	// SlotRecords is the list of records.
	SlotRecords
	// SlotRecordsMember is the whole member with the list of records. It is left
	// out while the ExecutionBlock has no list.
	SlotRecordsMember
)

// members has the beginning of each managed field in an object that has others before it.
var members = func() (all [len(managed)]string) {
	for i, m := range managed {
		all[i] = `,"` + m.name + `":`
	}
	return all
}()

// member returns the beginning of a managed field, with a comma unless it is the first.
func member(i int, isFirst bool) string {
	if isFirst {
		return members[i][1:]
	}
	return members[i]
}

func appendValue(dst []byte, v SlotValue, m Metadata) []byte {
	switch v {
	case SlotVersion:
		return strconv.AppendInt(dst, m.Version, 10)
	case SlotCreatedBy:
		return rawjson.AppendQuoted(dst, m.CreatedBy)
	case SlotLastModifiedBy:
		return rawjson.AppendQuoted(dst, m.LastModifiedBy)
	case SlotCreatedOn:
		dst = m.CreatedOn.AppendTo(append(dst, '"'))
	default:
		dst = m.LastModifiedOn.AppendTo(append(dst, '"'))
	}
	return append(dst, '"')
}

// AppendJSON appends the metadata as an object of its own.
func (m Metadata) AppendJSON(dst []byte) []byte {
	dst = append(dst, '{')
	for i, f := range managed {
		dst = append(dst, member(i, i == 0)...)
		dst = appendValue(dst, f.slot, m)
	}
	return append(dst, '}')
}

// RecordsField is the member of an ExecutionBlock that lists its records.
const RecordsField = "request_responses"

// ReadMetadata reads the managed fields from the metadata of a document, or of another
// answer that has them. It compares their names exactly.
func ReadMetadata(text []byte) (m Metadata, err error) {
	fields := map[string]any{
		"version": &m.Version, "created_by": &m.CreatedBy, "created_on": (*Moment)(&m.CreatedOn),
		"last_modified_by": &m.LastModifiedBy, "last_modified_on": (*Moment)(&m.LastModifiedOn),
	}
	for key, value := range rawjson.Members(text) {
		if into := fields[string(key)]; into != nil {
			if err := json.Unmarshal(value, into); err != nil {
				return Metadata{}, fmt.Errorf("the %s in its metadata: %w", key, err)
			}
			delete(fields, string(key))
		}
	}
	if len(fields) > 0 {
		return Metadata{}, fmt.Errorf("its metadata has no %s", slices.Min(slices.Collect(maps.Keys(fields))))
	}
	return m, nil
}
