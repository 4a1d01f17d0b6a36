// Package audit finds out whether an archive is whole. It reads everything that
// an engine keeps, adds it up again, and names each place that does not fit: a
// text that is not the one that was stored, rows that were edited, exchanged or
// lost, heads that are not what the log adds up to.
//
// Both engines share it. They give their rows in the order of entities, so that
// one pass over three streams is enough, and memory does not grow with the
// archive.
package audit

import (
	"cmp"
	"fmt"
	"iter"
	"math"
	"sync/atomic"

	"oda"
	"oda/internal/engine"
)

// Class is a kind of fault.
type Class string

// The classes.
const (
	Text     Class = "text"     // a text does not fit its digest
	Row      Class = "row"      // a row does not fit its seal: a column was edited, or rows have changed places
	Gap      Class = "gap"      // a version, a record or a position is missing
	Head     Class = "head"     // a head is not what the log adds up to
	Log      Class = "log"      // rows of one entity contradict each other
	Document Class = "document" // what would be answered is not the JSON document of the entity
	Orphan   Class = "orphan"   // rows without a head
	Index    Class = "index"    // what is kept for listings and keys does not fit the heads
	File     Class = "file"     // the database itself cannot read what it keeps
)

// Classes lists every class.
var Classes = []Class{Text, Row, Gap, Head, Log, Document, Orphan, Index, File}

// Fault is one place that does not fit.
type Fault struct {
	Class  Class  `json:"class"`
	Place  string `json:"place"`
	Detail string `json:"detail"`
}

// Report is what has been found so far. Its numbers may be read while the audit
// goes on.
type Report struct {
	Total    atomic.Int64 // versions and records that there should be; 0: not known yet
	Entities atomic.Int64
	Versions atomic.Int64
	Records  atomic.Int64
	Faulty   atomic.Int64 // faults
	byClass  map[Class]int64
	most     int64
	tell     func(Fault)
	doing    atomic.Pointer[string]
}

// NewReport makes an empty report. Tell hears of the first faults of each class,
// at most so many.
func NewReport(most int, tell func(Fault)) *Report {
	return &Report{byClass: make(map[Class]int64), most: int64(most), tell: tell}
}

// Do says what is being done.
func (r *Report) Do(what string) { r.doing.Store(&what) }

// Doing is what is being done.
func (r *Report) Doing() string {
	if what := r.doing.Load(); what != nil {
		return *what
	}
	return ""
}

// Add adds a fault.
func (r *Report) Add(class Class, place, format string, args ...any) {
	r.Faulty.Add(1)
	if r.byClass[class]++; r.byClass[class] <= r.most {
		r.tell(Fault{class, place, fmt.Sprintf(format, args...)})
	}
}

// Faults returns the number of faults of each class that has any.
func (r *Report) Faults() map[Class]int64 { return r.byClass }

// Key is what the rows of one entity have in common, and by which they are
// ordered.
type Key struct {
	Number int64   // of the entity, or of its kind
	Ref    oda.Ref // empty on an engine that numbers entities
}

// KindOf returns the kind that a row names, 0 for a number that can be none.
func KindOf(number int64) oda.Kind {
	if number < 0 || number > math.MaxUint8 {
		return 0
	}
	return oda.Kind(number)
}

func (k Key) compare(other Key) int {
	return cmp.Or(cmp.Compare(k.Number, other.Number), cmp.Compare(k.Ref.Kind, other.Ref.Kind), cmp.Compare(k.Ref.ID, other.Ref.ID))
}

// HeadRow is the head of an entity.
type HeadRow struct {
	Entity       Key
	Ref          oda.Ref
	Metadata     oda.Metadata
	LastSequence int64
	Position     int64 // of the current version's body; 0 where heads have none
	Telescope    string
	SummaryHash  int64
}

// VersionRow is a version with its text.
type VersionRow struct {
	Entity Key
	engine.VersionRow
	Position int64
	Text     []byte
	Seal     []byte
	Damage   error // what of the row cannot be read
}

// RecordRow is a record with its text.
type RecordRow struct {
	Entity Key
	engine.RecordRow
	Position int64
	Text     []byte
	Seal     []byte
}

// EntryRow is what listings and searches know of an entity.
type EntryRow struct {
	Entity  Key
	Summary []byte   // nil: there is none
	Terms   []string // nil where the engine keeps them elsewhere

	// Listed is what listings have in a table of their own; nil: there is no such
	// row.
	Listed *Listed
}

// Listed is what listings by user and by creation know of an entity.
type Listed struct {
	CreatedBy string
	CreatedOn oda.Instant
	Telescope string
}

// DayRow is a row of the index of days.
type DayRow struct {
	Entity Key
	Day    oda.Day
	Part   int64
	First  int64
}

// Rows are all rows of an archive, of one snapshot, each in the order of entities
// and then of versions or sequences.
type Rows struct {
	Heads    iter.Seq2[HeadRow, error]
	Versions iter.Seq2[VersionRow, error]
	Records  iter.Seq2[RecordRow, error]
	Entries  iter.Seq2[EntryRow, error]
	Days     iter.Seq2[DayRow, error]
	Ordered  bool // positions are given in the order of commits
	Listed   bool // listings have a table of their own
}

// Run audits the rows. The error is one of reading.
func Run(rows Rows, report *Report) error {
	a := &auditor{
		report: report, ordered: rows.Ordered, listedApart: rows.Listed,
		heads: pull(rows.Heads), versions: pull(rows.Versions), records: pull(rows.Records), entries: pull(rows.Entries), days: pull(rows.Days),
	}
	defer a.heads.stop()
	defer a.versions.stop()
	defer a.records.stop()
	defer a.entries.stop()
	defer a.days.stop()
	for {
		if err := cmp.Or(a.heads.err, a.versions.err, a.records.err, a.entries.err, a.days.err); err != nil {
			return err
		}
		key, more := a.next()
		if !more {
			return nil
		}
		a.entity(key)
	}
}

// stream is rows of which the next one can be looked at.
type stream[T any] struct {
	row  T
	more bool
	err  error
	next func() (T, error, bool)
	stop func()
}

func pull[T any](rows iter.Seq2[T, error]) *stream[T] {
	s := &stream[T]{}
	s.next, s.stop = iter.Pull2(rows)
	s.advance()
	return s
}

func (s *stream[T]) advance() {
	s.row, s.err, s.more = s.next()
	s.more = s.more && s.err == nil
}

// auditor goes through the entities.
type auditor struct {
	report               *Report
	ordered, listedApart bool
	heads                *stream[HeadRow]
	versions             *stream[VersionRow]
	records              *stream[RecordRow]
	entries              *stream[EntryRow]
	days                 *stream[DayRow]
	document             document
}

// next returns the next entity of which there is any row.
func (a *auditor) next() (first Key, more bool) {
	note := func(there bool, key Key) {
		if there && (!more || key.compare(first) < 0) {
			first, more = key, true
		}
	}
	note(a.heads.more, a.heads.row.Entity)
	note(a.versions.more, a.versions.row.Entity)
	note(a.records.more, a.records.row.Entity)
	note(a.entries.more, a.entries.row.Entity)
	note(a.days.more, a.days.row.Entity)
	return first, more
}
