package moving

import (
	"errors"
	"fmt"

	"oda"
	"oda/summary"
)

// said is a status of a source.
type said struct {
	Origin
	oda.Status        // without a sequence number, if the source has none
	text       []byte // as it was found
}

// aside returns the status as one that is not imported.
func (s *said) aside(reason string) SetAside {
	return SetAside{Origin: s.Origin, Ref: s.Ref, Version: s.Version, Sequence: s.Sequence, Status: s.Text, Reason: reason, Document: s.text}
}

// changed returns the status as one that is imported, but not as it was.
func (s *said) changed(note string) SetAside {
	aside := s.aside("imported, but " + note)
	aside.Changed, aside.Document = true, nil
	return aside
}

// say adds the next statuses of a history, whose last version is in the entries: those that
// were said before an instant, or all.
func (r *preserved) say(h *history, version int64, before *oda.Instant) {
	for ; len(h.said) > 0; h.said = h.said[1:] {
		s := &h.said[0]
		if before != nil && (s.Version > version || s.On >= *before) {
			return
		}
		if s.Version > version {
			r.aside = append(r.aside, s.aside(notThere(s.Version)))
			continue
		}
		entry, notes := s.Status, []string(nil)
		if s.Sequence == 0 {
			entry, notes = r.next(s)
		}
		e := oda.EntryOf(&entry, nil)
		err := summary.Prepare(&e)
		if err == nil && !oda.ValidUser(e.By) {
			err = errors.New("its user must be " + oda.UserRule)
		}
		if err != nil {
			r.aside = append(r.aside, s.aside(err.Error()))
			continue
		}
		for _, note := range notes {
			r.aside = append(r.aside, s.changed(note))
		}
		entry.Current = r.standing.Yields(entry.At)
		r.standing = r.standing.After(&entry)
		r.entries = append(r.entries, placed{LogEntry: e, origin: s.Origin, text: s.text})
	}
}

// next returns a status as the next entry after those before it. The last one must be
// the current one, as it was in its source.
func (r *preserved) next(s *said) (entry oda.Status, notes []string) {
	entry = s.Status
	entry.Sequence, entry.Previous = r.standing.Last+1, r.standing.Text
	if entry.By == "" {
		entry.By = oda.DefaultUser
		notes = append(notes, fmt.Sprintf("as said by %q, since it does not say by whom", entry.By))
	}
	if !r.standing.Yields(entry.At) {
		entry.At = r.standing.At
		entry.On = max(entry.On, entry.At)
		notes = append(notes, fmt.Sprintf("with the time %s, since no status may be earlier than the one before; it says %s", entry.At, s.At))
	}
	return entry, notes
}

// notThere says why a status is set aside.
func notThere(version int64) string {
	return fmt.Sprintf("version %d, which it is about, was not imported", version)
}
