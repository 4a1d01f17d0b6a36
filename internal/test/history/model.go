package history

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	"github.com/anishathalye/porcupine"

	"oda"
)

// entity is the state of one entity in the model. It is immutable.
//
// An instant is 0 while it is unknown, after a write whose answer was lost. The
// first answer that shows the state reveals it.
type entity struct {
	metadata oda.Metadata
	floor    oda.Instant // the last modification must be later
	value    string
	list     []numbered
	listed   bool
	last     int64 // sequence number
}

// numbered is a record with its sequence number.
type numbered struct {
	sequence int64
	record   string
}

// state is the state of all entities of a game; nil is an entity that does not
// exist.
type state []*entity

// model returns the specification of the entities of one game.
func model(entities int) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return make(state, entities) },
		Step: func(before, input, output any) (bool, any) {
			after := slices.Clone(before.(state))
			ok := after.step(input.(request), output.(response))
			return ok, after
		},
		Equal: func(a, b any) bool { return slices.EqualFunc(a.(state), b.(state), (*entity).equal) },
		Hash:  func(s any) uint64 { return s.(state).hash() },
		DescribeOperation: func(input, output any) string {
			return fmt.Sprintf("%v: %v", input, output)
		},
		DescribeState: func(s any) string { return s.(state).String() },
	}
}

// step changes the state as the request does, and reports whether the archive
// may give this response in that state.
func (s state) step(in request, out response) bool {
	switch in.Action {
	case read:
		return s.read(in, out)
	case store:
		return s.store(in, out)
	case record:
		return s.record(in, out)
	default:
		// The answer is the first one again, and nothing changes.
		return out.Outcome == done && *out.Recorded == *in.First
	}
}

func (s state) read(in request, out response) bool {
	stored := s[in.Entity]
	if out.Outcome == missing || stored == nil {
		return out.Outcome == missing && stored == nil
	}
	var ok bool
	s[in.Entity], ok = stored.shown(out.Documents[0])
	return ok
}

func (s state) store(in request, out response) bool {
	holds, matches := true, true
	for _, p := range in.Puts {
		holds = holds && p.holds(s[p.Entity])
		matches = matches && len(p.faults(s[p.Entity])) == 0
	}
	switch out.Outcome {
	case condition:
		return !holds
	case mismatch:
		return holds && !matches && s.refused(in, out)
	}
	if !holds || !matches {
		return false
	}
	for i, p := range in.Puts {
		next := p.next(s[p.Entity], in)
		if out.Outcome == done {
			var ok bool
			if next, ok = next.shown(out.Documents[i]); !ok {
				return false
			}
		}
		s[p.Entity] = next
	}
	return true
}

// refused reports whether a refusal names exactly the fields that differ, with
// the stored values.
func (s state) refused(in request, out response) bool {
	for i, p := range in.Puts {
		want, got := p.faults(s[p.Entity]), out.Faults[i]
		if len(want) != len(got) {
			return false
		}
		if len(want) == 0 {
			continue
		}
		seen := s[p.Entity].metadata
		for field, value := range want {
			switch {
			case got[field] == "":
				return false
			case field == createdOn && seen.CreatedOn == 0:
				seen.CreatedOn = instant(got[field])
			case field == lastModifiedOn && seen.LastModifiedOn == 0:
				seen.LastModifiedOn = instant(got[field])
			case got[field] != value:
				return false
			}
		}
		var ok bool
		if s[p.Entity], ok = s[p.Entity].at(seen); !ok {
			return false
		}
	}
	return true
}

func (s state) record(in request, out response) bool {
	stored := s[in.Entity]
	if out.Outcome == missing || stored == nil {
		return out.Outcome == missing && stored == nil
	}
	next := stored.moved(in.User)
	next.last++
	next.list, next.listed = append(slices.Clip(next.list), numbered{next.last, in.Marker}), true
	s[in.Entity] = next
	if out.Outcome != done {
		return true
	}
	var ok bool
	s[in.Entity], ok = next.at(out.Recorded.Metadata)
	return ok && out.Recorded.Sequence == next.last
}

// holds reports whether the HTTP preconditions hold.
func (p put) holds(stored *entity) bool {
	return !(p.CreateOnly && stored != nil) &&
		(p.Match == "" || stored != nil && stored.metadata.Tag() == p.Match)
}

// faults returns the fields of the claim that differ from the stored ones, with
// the stored values. Nobody can claim an unknown instant.
func (p put) faults(stored *entity) told {
	if stored == nil {
		return nil
	}
	claim, sent := oda.Metadata{}, p.Claim != nil
	if sent {
		claim = *p.Claim
	}
	m := stored.metadata
	faults := told{}
	differs := func(field string, equal bool, value string) {
		if !sent || !equal {
			faults[field] = value
		}
	}
	differs(version, claim.Version == m.Version, strconv.FormatInt(m.Version, 10))
	differs(createdBy, claim.CreatedBy == m.CreatedBy, strconv.Quote(m.CreatedBy))
	differs(createdOn, claim.CreatedOn == m.CreatedOn, m.CreatedOn.String())
	if !p.Keep {
		differs(lastModifiedBy, claim.LastModifiedBy == m.LastModifiedBy, strconv.Quote(m.LastModifiedBy))
		differs(lastModifiedOn, claim.LastModifiedOn == m.LastModifiedOn, m.LastModifiedOn.String())
	}
	return faults
}

// next returns the entity after the put.
func (p put) next(stored *entity, in request) *entity {
	var next *entity
	if stored == nil {
		next = &entity{metadata: oda.Metadata{CreatedBy: in.User, LastModifiedBy: in.User}}
	} else {
		next = stored.moved(in.User)
	}
	next.metadata.Version++
	next.value = in.Marker
	if p.Keep {
		return next
	}
	before := next.list
	next.list, next.listed = nil, p.Listed
	for _, text := range p.Records {
		// Markers are unique, so a record with the same marker is the same
		// record.
		i := slices.IndexFunc(before, func(r numbered) bool { return r.record == text })
		if i >= 0 {
			next.list = append(next.list, before[i])
			continue
		}
		next.last++
		next.list = append(next.list, numbered{next.last, text})
	}
	return next
}

// moved returns the entity after a change by a user, at an instant not yet
// known.
func (e *entity) moved(user string) *entity {
	next := *e
	next.floor = max(e.floor, e.metadata.LastModifiedOn)
	next.metadata.LastModifiedBy, next.metadata.LastModifiedOn = user, 0
	return &next
}

// at returns the entity if its metadata is as an answer shows it.
func (e *entity) at(shown oda.Metadata) (*entity, bool) {
	if e.metadata == shown {
		return e, true
	}
	next := *e
	if next.metadata.CreatedOn == 0 {
		next.metadata.CreatedOn = shown.CreatedOn
	}
	if next.metadata.LastModifiedOn == 0 {
		next.metadata.LastModifiedOn = shown.LastModifiedOn
	}
	m := next.metadata
	ok := m == shown && m.LastModifiedOn > next.floor && m.CreatedOn > 0 && m.CreatedOn <= m.LastModifiedOn
	return &next, ok
}

// shown returns the entity if it is as an answer shows it.
func (e *entity) shown(d document) (*entity, bool) {
	sameRecord := func(r numbered, text string) bool { return r.record == text }
	if e.value != d.Value || e.listed != d.Listed || !slices.EqualFunc(e.list, d.Records, sameRecord) {
		return e, false
	}
	return e.at(d.Metadata)
}

func (e *entity) equal(other *entity) bool {
	if e == other || e == nil || other == nil {
		return e == other
	}
	return e.metadata == other.metadata && e.floor == other.floor && e.value == other.value &&
		e.listed == other.listed && e.last == other.last && slices.Equal(e.list, other.list)
}

func (s state) hash() uint64 {
	h := fnv.New64a()
	for _, e := range s {
		if e != nil {
			fmt.Fprintf(h, "%s %d %d", e.value, e.last, e.metadata.LastModifiedOn)
		}
		h.Write([]byte{0})
	}
	return h.Sum64()
}

func (s state) String() string {
	words := make([]string, len(s))
	for i, e := range s {
		words[i] = fmt.Sprintf("%d: new", i)
		if e == nil {
			continue
		}
		d := document{Metadata: e.metadata, Value: e.value, Listed: e.listed}
		for _, r := range e.list {
			d.Records = append(d.Records, fmt.Sprintf("%d=%s", r.sequence, r.record))
		}
		words[i] = fmt.Sprintf("%d: %v", i, d)
	}
	return strings.Join(words, "; ")
}

// instant parses a time as the archive writes it, or returns 0.
func instant(text string) oda.Instant {
	t, err := oda.ParseTime(text)
	if err != nil {
		return 0
	}
	return oda.InstantOf(t)
}
