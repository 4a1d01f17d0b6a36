package oda

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"oda/internal/rawjson"
	"oda/internal/words"
)

// Remark is what the archive knows of a note besides what it knows of every document.
// What the note does not have, or has in another form, is left out.
type Remark struct {
	Text      string // its first MaxRemark characters
	Level     Level
	From, To  *Instant // nil: the note does not say
	Lost      Elapsed  // observing time; 0: none
	LostTo    Loss
	Tags      []string
	Withdrawn bool
}

// Bounds of what the archive knows of a note.
const (
	MaxNoteText = 64 << 10 // bytes
	MaxRemark   = 2000     // characters of its text
	MaxTags     = 20
	MaxAbout    = 100

	maxNoteName = 120 // characters
	maxLost     = Elapsed(100 * 366 * 24 * time.Hour / time.Microsecond)
)

// Level says how much a note matters.
type Level string

// The levels. A note that names none is of level info.
const (
	Info    Level = "info"
	Warning Level = "warning"
	Trouble Level = "problem"
)

// LevelNames returns the levels, from the one that matters least.
func LevelNames() []string { return []string{string(Info), string(Warning), string(Trouble)} }

// Loss says to what observing time was lost.
type Loss string

// What time can be lost to. A note that does not say it means something else.
const (
	LostToWeather Loss = "weather"
	LostToFault   Loss = "fault"
	LostToOther   Loss = "other"
)

// LossNames returns what time can be lost to.
func LossNames() []string {
	return []string{string(LostToWeather), string(LostToFault), string(LostToOther)}
}

// Subject is what a note is about: an entity, or one of the calls of a block.
type Subject struct {
	Reference
	Sequence int64 // of the call, 0: none
}

// ReadNote reads the document of a note: what the archive knows of it, what it is about,
// and its whole text.
func ReadNote(document []byte) (r Remark, about []Subject, text string) {
	r.Level, r.LostTo = Info, LostToOther
	for key, value := range rawjson.Members(document) {
		switch string(key) {
		case "text":
			text = string(textIn(value))
			r.Text = words.CutRunes(text, MaxRemark)
		case "level":
			if level := string(textIn(value)); slices.Contains(LevelNames(), level) {
				r.Level = Level(level)
			}
		case "from":
			r.From = boundIn(value, true)
		case "to":
			r.To = boundIn(value, false)
		case "time_lost_s":
			var lost Elapsed
			if json.Unmarshal(value, &lost) == nil {
				r.Lost = min(max(lost, 0), maxLost)
			}
		case "time_lost_type":
			if loss := string(textIn(value)); slices.Contains(LossNames(), loss) {
				r.LostTo = Loss(loss)
			}
		case "tags":
			for tag := range rawjson.Elements(value) {
				if tag := string(textIn(tag)); tag != "" && len(r.Tags) < MaxTags {
					r.Tags = append(r.Tags, words.Cut(tag, MaxName))
				}
			}
		case "withdrawn":
			r.Withdrawn = string(value) == "true"
		case "about":
			about = aboutIn(value)
		}
	}
	return r, about, text
}

// boundIn returns the time that a JSON value is, nil if it is none.
func boundIn(value []byte, up bool) *Instant {
	t, ok := parseTime(textIn(value))
	if !ok {
		return nil
	}
	return rounded(t, up)
}

// aboutIn reads the list of what a note is about.
func aboutIn(list []byte) (about []Subject) {
	n := 0
	for one := range rawjson.Elements(list) {
		r := Subject{Reference: Reference{Field: fmt.Sprintf("about/%d", n)}}
		known := false
		for key, value := range rawjson.Members(one) {
			switch string(key) {
			case "kind":
				r.Kind, known = KindOf(string(textIn(value)))
			case "id":
				r.ID = string(textIn(value))
			case "version":
				r.Version = max(integer(value), 0)
			case "sequence":
				r.Sequence = max(integer(value), 0)
			}
		}
		if known && r.ID != "" && len(r.ID) <= MaxName && n < MaxAbout {
			about = append(about, r)
		}
		n++
	}
	return about
}

// NoteName returns the name of a note: the first line of its text that is not empty.
func NoteName(text string) string {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			return words.CutRunes(line, maxNoteName)
		}
	}
	return ""
}

// Interval returns when the note is about: an instant, or from one to another.
func (r *Remark) Interval(created Instant) (from, to Instant) {
	from = created
	if r.From != nil {
		from = *r.From
	}
	to = from
	if r.To != nil {
		to = max(from, *r.To)
	}
	return from, to
}

// Meets reports whether the note is about a part of a range. The range is half-open; a
// bound that is nil is none.
func (r *Remark) Meets(created Instant, after, before *Instant) bool {
	from, to := r.Interval(created)
	return (before == nil || from < *before) && (after == nil || to > *after || from >= *after)
}

// Unresolved reports whether the entity is a note about a problem that nobody has
// resolved or withdrawn.
func (f *Found) Unresolved() bool {
	r := f.Summary.Remark
	return r != nil && r.Level == Trouble && !r.Withdrawn && f.Standing.Class != ClassDone
}

// CheckNote returns an error if the document is a note that is too long or ends before it
// begins. One that does not say when it begins does so when it was created.
func (d *Document) CheckNote(created Instant) error {
	if d.Kind != Note {
		return nil
	}
	if i := d.child(d.root, "text"); i >= 0 && len(textIn(d.value(i))) > MaxNoteText {
		return &Error{
			Code: InvalidRequest, Faults: []Fault{{d.Pointer + "/text", fmt.Sprintf("is longer than %d bytes", MaxNoteText)}},
			Detail: "The text of the note is too long. Nothing was stored. Shorten it, or store the rest elsewhere and name its address in urls.",
		}
	}
	times := func(name string) (t time.Time, given bool) {
		if i := d.child(d.root, name); i >= 0 {
			t, given = parseTime(textIn(d.value(i)))
		}
		return t, given
	}
	to, given := times("to")
	if !given {
		return nil
	}
	from, given := times("from")
	if !given {
		if from = created.Time(); d.Metadata.Has&FieldCreatedOn != 0 {
			from = d.Metadata.CreatedOn
		}
	}
	if !to.Before(from) {
		return nil
	}
	return &Error{
		Code: InvalidNote, Faults: []Fault{{d.Pointer + "/to", "is before " + spell(from)}},
		Detail: fmt.Sprintf("The note would end at %s, before it begins at %s. Nothing was stored. Correct from or to, or leave to out.", spell(to), spell(from)),
	}
}
