// Package audit finds the damage in an archive. It reads everything that an engine
// stores, works out what it should be, and reports each place that differs: a text
// that is not the one that was stored, rows that were edited, exchanged or lost,
// heads that do not match the log.
//
// Both engines share it. They return their rows in the order of entities, so that
// one pass is enough and memory does not grow with the archive.
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
	Text     Class = "text"     // a text does not match its digest
	Row      Class = "row"      // a row does not match its seal: a column was edited, or rows have changed places
	Gap      Class = "gap"      // a version, a record or a position is missing
	Head     Class = "head"     // a head does not match the log
	Log      Class = "log"      // rows of one entity contradict each other
	Document Class = "document" // a stored text is not the JSON document of the entity
	Orphan   Class = "orphan"   // rows have no head
	Index    Class = "index"    // an index does not match the heads
	File     Class = "file"     // the database cannot read its own file
)

// Classes lists every class.
var Classes = []Class{Text, Row, Gap, Head, Log, Document, Orphan, Index, File}

// Fault is one damaged place.
type Fault struct {
	Class  Class  `json:"class"`
	Place  string `json:"place"`
	Detail string `json:"detail"`
}

// Report is what an audit has found so far. Its numbers may be read while the
// audit runs.
type Report struct {
	Total    atomic.Int64 // versions, records and statuses that there should be; 0: not yet known
	Entities atomic.Int64
	Versions atomic.Int64
	Records  atomic.Int64
	Statuses atomic.Int64
	Faulty   atomic.Int64 // faults
	byClass  map[Class]int64
	most     int64
	tell     func(Fault)
	doing    atomic.Pointer[string]
}

// NewReport returns an empty report. It calls tell for the faults of each class, up to
// the given number.
func NewReport(most int, tell func(Fault)) *Report {
	return &Report{byClass: make(map[Class]int64), most: int64(most), tell: tell}
}

// Do notes what the audit is doing now.
func (r *Report) Do(what string) { r.doing.Store(&what) }

// Doing returns what the audit is doing now.
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

// Key names an entity. All of its rows have the same key, and rows are ordered by
// it.
type Key struct {
	Number int64   // of the entity, or of its kind
	Ref    oda.Ref // empty on an engine that numbers entities
}

// KindOf returns the kind that a row names, 0 for a number that cannot be a kind.
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
	Position     int64 // of the current version, unless the log of changes has rows of its own
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
	Damage   error // why the row cannot be read
}

// RecordRow is a record with its text.
type RecordRow struct {
	Entity Key
	engine.RecordRow
	Position int64
	Text     []byte
	Seal     []byte
}

// StatusRow is a status.
type StatusRow struct {
	Entity Key
	engine.StatusRow
	Position int64
	Digest   []byte
}

// StandingRow is what is kept of the current status of an entity.
type StandingRow struct {
	Entity    Key
	Ref       oda.Ref
	CreatedOn oda.Instant
	Folded    string
	oda.Standing
}

// EntryRow is what listings and searches know about an entity.
type EntryRow struct {
	Entity  Key
	Summary []byte   // nil: there is none
	Terms   []string // nil if the engine stores them elsewhere
	Listed  *Listed  // from the table of listings; nil if there is no row or no table

	// CreatedOn is the instant of creation in the table of searches; nil if that does
	// not have it.
	CreatedOn *oda.Instant
}

// Listed is what listings by user and by creation know about an entity.
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

// FailedRow is a row of the index of calls that failed.
type FailedRow struct {
	Entity   Key
	Function string
	oda.CallEntry
}

// LongRow is a row of the index of calls that lasted long.
type LongRow struct {
	Entity Key
	oda.CallPlace
	Received oda.Instant
}

// ChangeRow is an entry of the log of changes, if the log has rows of its own.
type ChangeRow struct {
	Entity     Key
	oda.Change // its position may be behind Unnumbered
}

// Unnumbered comes before the positions of changes that have none yet. They stand in the
// order in which they will get theirs, behind all others.
const Unnumbered = 1 << 62

// Rows yields all rows of an archive, from one snapshot, ordered by entity and then
// by version or sequence number. Changes are those of versions and records, ordered by
// version and then by sequence number, and Said those of statuses; nil means that versions,
// records and statuses have positions of their own.
type Rows struct {
	Heads     iter.Seq2[HeadRow, error]
	Versions  iter.Seq2[VersionRow, error]
	Records   iter.Seq2[RecordRow, error]
	Statuses  iter.Seq2[StatusRow, error]
	Standings iter.Seq2[StandingRow, error]
	Entries   iter.Seq2[EntryRow, error]
	Days      iter.Seq2[DayRow, error]
	Failed    iter.Seq2[FailedRow, error]
	Long      iter.Seq2[LongRow, error]
	Changes   iter.Seq2[ChangeRow, error]
	Said      iter.Seq2[ChangeRow, error]
	Listed    bool // listings have a table of their own
}

// Run audits the rows. It returns an error only if they cannot be read.
func Run(rows Rows, report *Report) error {
	a := &auditor{report: report, listedApart: rows.Listed, loggedApart: rows.Changes != nil}
	if !a.loggedApart {
		rows.Changes = func(func(ChangeRow, error) bool) {}
		rows.Said = rows.Changes
	}
	a.heads = pull(a, rows.Heads, func(r HeadRow) Key { return r.Entity })
	a.versions = pull(a, rows.Versions, func(r VersionRow) Key { return r.Entity })
	a.records = pull(a, rows.Records, func(r RecordRow) Key { return r.Entity })
	a.statuses = pull(a, rows.Statuses, func(r StatusRow) Key { return r.Entity })
	a.standings = pull(a, rows.Standings, func(r StandingRow) Key { return r.Entity })
	a.entries = pull(a, rows.Entries, func(r EntryRow) Key { return r.Entity })
	a.days = pull(a, rows.Days, func(r DayRow) Key { return r.Entity })
	a.failed = pull(a, rows.Failed, func(r FailedRow) Key { return r.Entity })
	a.long = pull(a, rows.Long, func(r LongRow) Key { return r.Entity })
	a.changes = pull(a, rows.Changes, func(r ChangeRow) Key { return r.Entity })
	a.said = pull(a, rows.Said, func(r ChangeRow) Key { return r.Entity })
	defer func() {
		for _, s := range a.all {
			s.stop()
		}
	}()
	for {
		key, more, err := a.next()
		if !more || err != nil {
			return err
		}
		a.entity(key)
	}
}

// stream reads rows one ahead.
type stream[T any] struct {
	row  T
	more bool
	err  error
	key  func(T) Key
	next func() (T, error, bool)
	end  func()
}

// source is a stream of any rows.
type source interface {
	ahead() (key Key, more bool, err error)
	stop()
}

func pull[T any](a *auditor, rows iter.Seq2[T, error], key func(T) Key) *stream[T] {
	s := &stream[T]{key: key}
	s.next, s.end = iter.Pull2(rows)
	a.all = append(a.all, s)
	s.advance()
	return s
}

func (s *stream[T]) advance() {
	s.row, s.err, s.more = s.next()
	s.more = s.more && s.err == nil
}

// ahead returns the entity of the next row.
func (s *stream[T]) ahead() (Key, bool, error) { return s.key(s.row), s.more, s.err }

func (s *stream[T]) stop() { s.end() }

// of reports whether the next row is that of an entity.
func (s *stream[T]) of(key Key) bool { return s.more && s.key(s.row) == key }

// auditor audits the entities one by one.
type auditor struct {
	report      *Report
	listedApart bool     // listings have a table of their own
	loggedApart bool     // the log of changes has rows of its own
	all         []source // the streams
	heads       *stream[HeadRow]
	versions    *stream[VersionRow]
	records     *stream[RecordRow]
	statuses    *stream[StatusRow]
	standings   *stream[StandingRow]
	entries     *stream[EntryRow]
	days        *stream[DayRow]
	failed      *stream[FailedRow]
	long        *stream[LongRow]
	changes     *stream[ChangeRow]
	said        *stream[ChangeRow]
	document    document
}

// next returns the next entity that has a row in any stream.
func (a *auditor) next() (first Key, more bool, err error) {
	for _, s := range a.all {
		key, there, err := s.ahead()
		if err != nil {
			return first, false, err
		}
		if there && (!more || key.compare(first) < 0) {
			first, more = key, true
		}
	}
	return first, more, nil
}
