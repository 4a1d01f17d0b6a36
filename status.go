package oda

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"oda/internal/rawjson"
)

// Status is an entry of the statuses of an entity: what somebody said came of it.
// An entry is never changed or removed.
type Status struct {
	Ref
	Sequence int64  // counts from 1 for each entity; 0: what the document says
	Text     string // as it was said; empty if nobody has said anything
	Class    Class
	Reason   string // empty: none
	At       Instant
	Version  int64  // of the entity that is meant
	Previous string // the current status just before; empty: there was none
	By       string
	On       Instant
	Current  bool // it was the current status when it was stored
}

// Class is what a status means, however it is worded.
type Class uint8

// The classes.
const (
	NoClass Class = iota
	ClassPlanned
	ClassRunning
	ClassDone
	ClassFailed
	ClassStopped
)

var classNames = [...]string{
	NoClass: "", ClassPlanned: "planned", ClassRunning: "running", ClassDone: "done", ClassFailed: "failed", ClassStopped: "stopped",
}

// ClassNames returns the names of the classes on the wire.
func ClassNames() []string { return append([]string(nil), classNames[ClassPlanned:]...) }

// ClassNamed returns the class with a name.
func ClassNamed(name string) (Class, bool) {
	for c := ClassPlanned; c <= ClassStopped; c++ {
		if classNames[c] == name {
			return c, true
		}
	}
	return NoClass, false
}

// String returns the name of the class on the wire, empty for NoClass.
func (c Class) String() string {
	if int(c) >= len(classNames) { // of a damaged archive
		return ""
	}
	return classNames[c]
}

// Ended reports whether something with that class goes on no more.
func (c Class) Ended() bool { return c == ClassDone || c == ClassFailed || c == ClassStopped }

// MarshalJSON writes the name of the class, null for NoClass.
func (c Class) MarshalJSON() ([]byte, error) { return appendTextOrNull(nil, c.String()), nil }

// UnmarshalJSON reads what MarshalJSON wrote.
func (c *Class) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		*c = NoClass
		return nil
	}
	class, ok := ClassNamed(string(textIn(text)))
	if !ok {
		return fmt.Errorf("%.100s is not a class", text)
	}
	*c = class
	return nil
}

// classesOfWords has the class of each status that observatories use, in the form in
// which statuses are compared.
var classesOfWords = map[string]Class{
	"draft": ClassPlanned, "submitted": ClassPlanned, "ready": ClassPlanned, "created": ClassPlanned,
	"in progress": ClassRunning, "executing": ClassRunning, "running": ClassRunning,
	"observed": ClassDone, "fully observed": ClassDone, "complete": ClassDone, "completed": ClassDone,
	"done": ClassDone, "resolved": ClassDone, "closed": ClassDone,
	"failed": ClassFailed, "observing failed": ClassFailed, "failed processing": ClassFailed,
	"cancelled": ClassStopped, "aborted": ClassStopped, "suspended": ClassStopped, "out of time": ClassStopped,
}

// ClassOf returns the class of a status by its words.
func ClassOf(status string) Class { return classesOfWords[FoldStatus(status)] }

// FoldStatus returns a status in the form in which statuses are compared: without
// regard to case, and with blanks, underscores and hyphens being the same.
func FoldStatus(status string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r == '-' {
			return ' '
		}
		return unicode.ToLower(unicode.ToUpper(r)) // some letters have several lower cases
	}, status)
}

// Bounds of a status, in characters.
const (
	MaxStatus = 64
	MaxReason = 2000
)

// ValidStatus reports whether a text can be a status.
func ValidStatus(text string) bool {
	return text != "" && utf8.ValidString(text) && utf8.RuneCountInString(text) <= MaxStatus && !strings.ContainsFunc(text, unicode.IsControl)
}

// ValidReason reports whether a text can be the reason of a status. It may have several
// lines.
func ValidReason(text string) bool {
	return utf8.ValidString(text) && utf8.RuneCountInString(text) <= MaxReason &&
		!strings.ContainsFunc(text, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\r' && r != '\t' })
}

// AppendJSON appends the entry as an object on one line.
func (s *Status) AppendJSON(dst []byte) []byte {
	dst = append(append(dst, `{"kind":"`...), s.Kind.Collection()...)
	dst = rawjson.AppendQuoted(append(dst, `","id":`...), s.ID)
	dst = strconv.AppendInt(append(dst, `,"sequence":`...), s.Sequence, 10)
	dst = appendTextOrNull(append(dst, `,"status":`...), s.Text)
	dst = appendTextOrNull(append(dst, `,"class":`...), s.Class.String())
	dst = appendTextOrNull(append(dst, `,"reason":`...), s.Reason)
	dst = appendInstantOrNull(append(dst, `,"at":`...), s.At, s.Sequence > 0)
	dst = strconv.AppendInt(append(dst, `,"version":`...), s.Version, 10)
	dst = appendTextOrNull(append(dst, `,"previous":`...), s.Previous)
	dst = appendTextOrNull(append(dst, `,"by":`...), s.By)
	return append(appendInstantOrNull(append(dst, `,"on":`...), s.On, s.Sequence > 0), '}')
}

// Standing is what the status of an entity is now.
type Standing struct {
	Text     string // empty: there is none
	Class    Class
	Sequence int64   // of the current entry; 0: the document says it, or there is none
	At       Instant // of the current entry
	Last     int64   // the last sequence number; 0: there are no entries
}

// StandingOf returns the standing of an entity without entries whose document has that
// status.
func StandingOf(status string) Standing { return Standing{Text: status, Class: ClassOf(status)} }

// MarshalJSON writes the standing as it is in a summary.
func (s Standing) MarshalJSON() ([]byte, error) { return s.AppendJSON(nil), nil }

// UnmarshalJSON reads what MarshalJSON wrote. Sequence and Last are not told.
func (s *Standing) UnmarshalJSON(text []byte) error {
	var in struct {
		Status string `json:"status"`
		Class  Class  `json:"class"`
		At     Moment `json:"at"`
	}
	err := json.Unmarshal(text, &in)
	*s = Standing{Text: in.Status, Class: in.Class, At: Instant(in.At)}
	return err
}

// AppendJSON appends the standing as part of a summary, null if there is none.
func (s *Standing) AppendJSON(dst []byte) []byte {
	if s.Text == "" {
		return append(dst, "null"...)
	}
	dst = rawjson.AppendQuoted(append(dst, `{"status":`...), s.Text)
	dst = appendTextOrNull(append(dst, `,"class":`...), s.Class.String())
	return append(appendInstantOrNull(append(dst, `,"at":`...), s.At, s.Sequence > 0 || s.At != 0), '}')
}

// Status returns the standing of an entity without entries as an entry. Version is the
// current one.
func (s *Standing) Status(ref Ref, version int64) *Status {
	return &Status{Ref: ref, Text: s.Text, Class: s.Class, Version: version}
}

// After returns the standing after a new entry. Of entries for the same time, the last
// one counts.
func (s Standing) After(entry *Status) Standing {
	if s.Last = entry.Sequence; entry.Current {
		s.Text, s.Class, s.Sequence, s.At = entry.Text, entry.Class, entry.Sequence, entry.At
	}
	return s
}

// Yields reports whether an entry for that time becomes the current one.
func (s *Standing) Yields(at Instant) bool { return s.Sequence == 0 || at >= s.At }

// MaxStatuses is the largest page of the statuses of an entity.
const MaxStatuses = 1000

var errSequence = errors.New("its sequence is not a number from 1")

// check returns an error if the entry is not one that an archive can have stored.
func (s *Status) check() error {
	switch {
	case s.Sequence < 1:
		return errSequence
	case !ValidStatus(s.Text):
		return fmt.Errorf("its status is not 1 to %d characters without control characters", MaxStatus)
	case !ValidReason(s.Reason):
		return fmt.Errorf("its reason is not up to %d characters of text", MaxReason)
	case s.Previous != "" && !ValidStatus(s.Previous):
		return fmt.Errorf("its previous status is not 1 to %d characters without control characters", MaxStatus)
	case s.Class > ClassStopped:
		return errors.New("its class is unknown")
	case !s.At.storable():
		return errYears
	}
	return nil
}

// same reports whether two entries say the same.
func (s *Status) same(other *Status) bool {
	a, b := *s, *other
	a.Current, b.Current = false, false // follows from the entries before it
	return a == b
}
