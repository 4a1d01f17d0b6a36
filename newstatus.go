package oda

import (
	"fmt"
	"strconv"

	"oda/internal/rawjson"
)

// NewStatus is a status to be added to those of an entity.
type NewStatus struct {
	Ref
	Text    string
	Class   *Class // nil: by the words
	Reason  string
	At      *Instant // nil: now
	Version int64    // of the entity that is meant; 0: the current one

	// Guarded says that the current status must be Previous, which is empty if there
	// must be none.
	Guarded  bool
	Previous string

	Key *Key
	By  string
	Now Instant

	// Telescopes are those for which the caller may say it, nil if any.
	Telescopes *Telescopes

	// Own says that the caller may only say it of what the caller has created.
	Own bool
}

// ReadNewStatus returns the status of an entity that a request says. Its form has been
// checked.
func ReadNewStatus(ref Ref, text []byte, nodes []rawjson.Node) NewStatus {
	say := NewStatus{Ref: ref}
	for i := 1; i < nodes[0].Next; i = nodes[i].Next {
		member, value := nodes[i], text[nodes[i].Start:nodes[i].End]
		if member.Kind == rawjson.Null {
			say.Guarded = say.Guarded || member.Name == "previous"
			continue
		}
		switch member.Name {
		case "status":
			say.Text = rawjson.Unquote(value)
		case "class":
			class, _ := ClassNamed(rawjson.Unquote(value))
			say.Class = &class
		case "reason":
			say.Reason = rawjson.Unquote(value)
		case "at":
			at, _ := ParseTime(rawjson.Unquote(value))
			say.At = rounded(at, false)
		case "version":
			say.Version = integer(value)
		case "previous":
			say.Guarded, say.Previous = true, rawjson.Unquote(value)
		}
	}
	return say
}

// Admit returns an error if the caller may not say a status of a document with that
// telescope and creator. The engine asks within the transaction that adds the entry.
func (n *NewStatus) Admit(stored, creator string) error {
	if n.Own && creator != n.By {
		return notOwn(n.Ref, "say a status of", "")
	}
	return n.Telescopes.admitAbout(fmt.Sprintf("the %s %s", n.Kind, n.ID), stored)
}

// Entry is the rule by which a status becomes an entry. It is given the current version
// of the entity, and its standing. Of what is said now, the last counts, so a clock that
// has gone back, or is behind another's, counts from the current entry on.
func (n *NewStatus) Entry(version int64, now Standing) (*Status, error) {
	if n.Version > version {
		return nil, &Error{
			Code: UnknownVersion, Detail: fmt.Sprintf("%s %s has no version %d; the current one is %d. Nothing was stored. "+
				"Name a version that there is, or leave version out.", n.Kind, n.ID, n.Version, version),
			Faults: []Fault{{"/version", fmt.Sprintf("is %d, stored are 1 to %d", n.Version, version)}},
		}
	}
	if n.Guarded && FoldStatus(n.Previous) != FoldStatus(now.Text) {
		return nil, &Error{
			Code: StatusMismatch, Detail: fmt.Sprintf("The current status of %s %s is %s, and not %s. Nothing was stored. "+
				"Read the status, decide again, and send what you have read as previous, or leave previous out.",
				n.Kind, n.ID, quotedOrNone(now.Text), quotedOrNone(n.Previous)),
			Faults: []Fault{{"/previous", fmt.Sprintf("is %s, stored is %s", quotedOrNone(n.Previous), quotedOrNone(now.Text))}},
		}
	}
	on := n.Now
	if now.Sequence > 0 {
		on = max(on, now.At)
	}
	entry := &Status{
		Ref: n.Ref, Sequence: now.Last + 1, Text: n.Text, Class: ClassOf(n.Text), Reason: n.Reason, At: on, Version: version,
		Previous: now.Text, By: n.By, On: on,
	}
	if n.Class != nil {
		entry.Class = *n.Class
	}
	if n.At != nil {
		entry.At = min(*n.At, on)
	}
	if n.Version > 0 {
		entry.Version = n.Version
	}
	entry.Current = now.Yields(entry.At)
	return entry, nil
}

func quotedOrNone(status string) string {
	if status == "" {
		return "none"
	}
	return strconv.Quote(status)
}
