package follow

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"oda"
)

// truth is every unit that is stored.
type truth map[unit]fact

// verdict counts what is wrong with a log. All must be 0.
type verdict struct {
	missed     int // stored, but not in the log
	twice      int
	unknown    int // in the log, but not stored
	backward   int // at a position that is not after the one before
	disordered int // before an earlier change of the same entity
	overtaken  int // after one that was sent when it had been acknowledged
	wrong      int // with another user, instant or version than was answered
	moved      int // not where another reading has it
	late       int // not there a second after the answer

	faults []string // descriptions of the first few
}

const mostFaults = 10

func (v *verdict) fault(count *int, format string, args ...any) {
	*count++
	if len(v.faults) < mostFaults {
		v.faults = append(v.faults, fmt.Sprintf(format, args...))
	}
}

// err returns the verdict as an error, or nil if the log is right.
func (v *verdict) err(name string) error {
	if len(v.faults) == 0 {
		return nil
	}
	return fmt.Errorf("%s: %w", name, v)
}

// Error describes a log that is not right.
func (v *verdict) Error() string {
	return fmt.Sprintf("%d missed, %d twice, %d unknown, %d backward, %d disordered, %d overtaken, %d wrong, %d moved, %d late:\n  %s",
		v.missed, v.twice, v.unknown, v.backward, v.disordered, v.overtaken, v.wrong, v.moved, v.late, strings.Join(v.faults, "\n  "))
}

// judge judges a log that should have all of the truth.
func judge(log []step, all truth) *verdict {
	v := &verdict{}
	v.once(log, all)
	v.positions(log)
	v.entities(log)
	v.overtaking(log, all)
	return v
}

// once checks that each unit is there once, as it was answered.
func (v *verdict) once(log []step, all truth) {
	times := make(map[unit]int, len(log))
	for _, s := range log {
		times[s.unit]++
		f, stored := all[s.unit]
		switch {
		case !stored:
			v.fault(&v.unknown, "position %d: %v is not stored", s.position, s.unit)
		case times[s.unit] == 2:
			v.fault(&v.twice, "position %d: %v was seen before", s.position, s.unit)
		case s.by != f.write.user, s.on != 0 && f.on != 0 && s.on != f.on, f.block != 0 && s.block != f.block:
			v.fault(&v.wrong, "position %d: %v is by %s on %v in version %d, not by %s on %v in version %d",
				s.position, s.unit, s.by, s.on, s.block, f.write.user, f.on, f.block)
		}
	}
	for u, f := range all {
		if times[u] == 0 {
			v.fault(&v.missed, "%v, which %s wrote, was not seen", u, f.write.mark)
		}
	}
}

// positions checks that positions grow.
func (v *verdict) positions(log []step) {
	var last oda.Position
	for _, s := range log {
		if s.position <= last {
			v.fault(&v.backward, "position %d with %v comes after position %d", s.position, s.unit, last)
		}
		last = s.position
	}
}

// entities checks the order of the changes of each entity. A record is between
// the version that it was recorded into and the next.
func (v *verdict) entities(log []step) {
	type state struct{ version, sequence int64 }
	states := make(map[oda.Ref]state)
	for _, s := range log {
		now := states[s.Ref]
		if s.sequence == 0 {
			if s.version <= now.version {
				v.fault(&v.disordered, "position %d: %v comes after version %d", s.position, s.unit, now.version)
			}
			now.version = max(now.version, s.version)
		} else {
			if s.sequence <= now.sequence {
				v.fault(&v.disordered, "position %d: %v comes after record %d", s.position, s.unit, now.sequence)
			}
			if s.block != now.version {
				v.fault(&v.disordered, "position %d: %v, recorded into version %d, comes after version %d", s.position, s.unit, s.block, now.version)
			}
			now.sequence = max(now.sequence, s.sequence)
		}
		states[s.Ref] = now
	}
}

// overtaking checks that no unit stands before one that was acknowledged before
// it was sent.
func (v *verdict) overtaking(log []step, all truth) {
	var first *write // the earliest answer of those after this one
	var later unit
	for i := len(log) - 1; i >= 0; i-- {
		f, stored := all[log[i].unit]
		if !stored {
			continue
		}
		if first != nil && first.answered < f.write.sent {
			v.fault(&v.overtaken, "position %d: %v was sent %v after %v was acknowledged, and comes before it",
				log[i].position, log[i].unit, f.write.sent-first.answered, later)
		}
		if first == nil || f.write.answered < first.answered {
			first, later = f.write, log[i].unit
		}
	}
}

// compare checks that a log has the same units at the same positions as another
// reading of the same part of the feed.
func (v *verdict) compare(log, other []step) {
	for i := range max(len(log), len(other)) {
		switch {
		case i >= len(log):
			v.fault(&v.moved, "%v at position %d is missing", other[i].unit, other[i].position)
			return
		case i >= len(other):
			v.fault(&v.moved, "%v at position %d is not in another reading", log[i].unit, log[i].position)
			return
		case log[i].unit != other[i].unit || log[i].position != other[i].position:
			v.fault(&v.moved, "%v at position %d is in the place of %v at position %d", log[i].unit, log[i].position, other[i].unit, other[i].position)
			return
		}
	}
}

// promptness is how soon after its answer a change is in the feed.
const promptness = time.Second

// end is a moment at which a follower was told that there is nothing after a
// position.
type end struct {
	asked time.Duration // since the beginning of the proof
	at    oda.Position
}

// promptly checks that nothing was missing at the ends that a follower was told
// of, and had been acknowledged long before. Log is the whole feed.
func (v *verdict) promptly(ends []end, log []step, all truth) {
	earliest := make([]int, len(log)+1) // answered of those from here on; len(log) for none
	earliest[len(log)] = len(log)
	answered := func(i int) time.Duration {
		if i == len(log) {
			return never
		}
		f, stored := all[log[i].unit]
		if !stored {
			return never
		}
		return f.write.answered
	}
	for i := len(log) - 1; i >= 0; i-- {
		if earliest[i] = earliest[i+1]; answered(i) < answered(earliest[i]) {
			earliest[i] = i
		}
	}
	for _, e := range ends {
		after, _ := slices.BinarySearchFunc(log, e.at+1, func(s step, at oda.Position) int { return cmp.Compare(s.position, at) })
		if i := earliest[after]; i < len(log) && answered(i) < e.asked-promptness {
			v.fault(&v.late, "position %d: %v was acknowledged %v before somebody asked, and was not there", log[i].position, log[i].unit, e.asked-answered(i))
		}
	}
}
