package suite

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"

	"pgregory.net/rapid"

	"oda"
)

// saidOf is what was said of an entity of the model.
type saidOf struct {
	entries []oda.Status
	bodies  map[string]string // of the requests, by their keys
	answers map[string]oda.Status
}

// alike returns a status as it is compared.
func alike(text string) string {
	return strings.ToLower(strings.NewReplacer("_", " ", "-", " ").Replace(text))
}

// classOf returns the class of a status by the table of the specification.
func classOf(text string) oda.Class {
	for class, words := range wordsOf {
		if slices.Contains(strings.Split(alike(words), ", "), alike(text)) {
			return class
		}
	}
	return oda.NoClass
}

// status returns what the status is.
func (e *entity) status(ref oda.Ref) oda.Status {
	if entries := e.said.entries; len(entries) > 0 {
		latest := entries[0]
		for _, s := range entries {
			if s.At >= latest.At {
				latest = s
			}
		}
		return latest
	}
	var document map[string]any
	if err := json.Unmarshal([]byte(e.sent), &document); err != nil {
		panic(err)
	}
	text, _ := document["status"].(string)
	if len([]rune(text)) > 64 || strings.ContainsFunc(text, unicode.IsControl) {
		text = ""
	}
	return unsaid(ref, e.metadata.Version, text, classOf(text))
}

// say adds a status to those of an entity.
func (m *model) say(n oda.NewStatus, body string) (oda.Status, oda.Code) {
	e := m.entities[n.Ref]
	if e == nil {
		return oda.Status{}, oda.NotFound
	}
	if n.Key != nil {
		if before, known := e.said.bodies[n.Key.Value]; known && before != body {
			return oda.Status{}, oda.KeyReused
		} else if known {
			return e.said.answers[n.Key.Value], ""
		}
	}
	now := e.status(n.Ref)
	switch {
	case n.Version > e.metadata.Version:
		return oda.Status{}, oda.UnknownVersion
	case n.Guarded && alike(n.Previous) != alike(now.Text):
		return oda.Status{}, oda.StatusMismatch
	}
	s := oda.Status{
		Ref: n.Ref, Sequence: int64(len(e.said.entries) + 1), Text: n.Text, Class: classOf(n.Text), Reason: n.Reason,
		On: max(n.Now, now.At), Version: e.metadata.Version, Previous: now.Text, By: n.By,
	}
	s.At = s.On
	if n.At != nil && *n.At < s.On {
		s.At = *n.At
	}
	if n.Version > 0 {
		s.Version = n.Version
	}
	if n.Class != nil {
		s.Class = *n.Class
	}
	if e.said.entries = append(e.said.entries, s); n.Key != nil {
		e.said.bodies[n.Key.Value], e.said.answers[n.Key.Value] = body, s
	}
	m.requests++
	m.log = append(m.log, logged{oda.Change{Ref: n.Ref, Version: s.Version, By: s.By, On: s.On, Said: &oda.Said{
		Sequence: s.Sequence, Text: s.Text, Class: s.Class, At: s.At, Current: e.status(n.Ref) == s,
	}}, m.requests})
	return s, ""
}

// anyStatus draws a status from few.
func anyStatus(t *rapid.T) string {
	return rapid.SampledFrom([]string{"Draft", "in progress", "In_Progress", "Failed", "Läuft", "😀 \" \\", "x"}).Draw(t, "status")
}

// say says a status.
func (m *machine) say(t *rapid.T) {
	say := oda.NewStatus{Ref: m.ref(t), Text: anyStatus(t), By: m.user(t), Now: m.now, Reason: rapid.SampledFrom([]string{"", "", "it \"rained\"\n"}).Draw(t, "reason")}
	if key := m.key(t); key != "" {
		say.Key = &oda.Key{Value: key}
	}
	switch rapid.IntRange(0, 9).Draw(t, "way") {
	case 0:
		say.Class = new(rapid.SampledFrom([]oda.Class{oda.ClassPlanned, oda.ClassDone, oda.ClassStopped}).Draw(t, "class"))
	case 1:
		say.Version = rapid.Int64Range(1, 4).Draw(t, "version")
	case 2, 3:
		say.At = new(m.now + oda.Instant(rapid.SampledFrom([]int{-1_000_000, -1, 0, 1}).Draw(t, "at")))
	case 4:
		say.Guarded, say.Previous = true, anyStatus(t)
	case 5, 6:
		say.Guarded = true
		if e := m.model.entities[say.Ref]; e != nil {
			say.Previous = strings.ToUpper(e.status(say.Ref).Text)
		}
	}
	got, err := m.desk.store.Say(m.desk.ctx, say)
	want, code := m.model.say(say, string(sent(say)))
	if code != "" {
		refused(t, err, code)
		return
	}
	if err != nil {
		t.Fatalf("the store refused what the model says: %v", err)
	}
	same(t, "the entry", *got, want)
}

// search looks for entities of this round by their status.
func (m *machine) search(t *rapid.T) {
	text, class := anyStatus(t), rapid.SampledFrom([]oda.Class{oda.ClassPlanned, oda.ClassRunning, oda.ClassFailed}).Draw(t, "class")
	by := rapid.IntRange(1, 3).Draw(t, "by")
	raw := fmt.Sprintf("created_after=%s&created_before=%s&sort=created&limit=%d", m.start, m.start+3_599_999_999, rapid.IntRange(1, 3).Draw(t, "limit"))
	if by&1 != 0 {
		raw += "&status=" + strings.ToUpper(text)
	}
	if by&2 != 0 {
		raw += "&class=" + class.String()
	}
	kind := m.ref(t).Kind
	places := []oda.Place{}
	for ref, e := range m.model.entities {
		s := e.status(ref)
		if ref.Kind == kind && (by&1 == 0 || alike(s.Text) == alike(text)) && (by&2 == 0 || s.Class == class) {
			places = append(places, oda.Place{At: e.metadata.CreatedOn, ID: ref.ID})
		}
	}
	same(t, raw, m.desk.found(kind, raw), ids(sorted(places)))
}

// compareStatuses compares what was said of an entity with the model.
func (m *machine) compareStatuses(t *rapid.T, ref oda.Ref) {
	e := m.model.entities[ref]
	same(t, fmt.Sprintf("the status of %v", ref), m.desk.status(ref), e.status(ref))
	got, limit := []oda.Status{}, rapid.IntRange(1, 4).Draw(t, "page")
	for before := int64(math.MaxInt64); before > 1; {
		page, err := m.desk.store.StatusesBefore(m.desk.ctx, ref, before, limit)
		if err != nil || len(page) > limit {
			t.Fatalf("the statuses of %v before %d: %d of them, %v", ref, before, len(page), err)
		}
		if got, before = append(got, page...), 0; len(page) > 0 {
			before = page[len(page)-1].Sequence
		}
	}
	slices.Reverse(got)
	same(t, fmt.Sprintf("what was said of %v", ref), got, append([]oda.Status{}, e.said.entries...))
}
