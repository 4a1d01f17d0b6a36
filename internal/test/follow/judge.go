package follow

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"oda"
	"oda/internal/test/load"
)

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
func judge(log []step, all load.Truth) *verdict {
	v := &verdict{}
	v.once(log, all)
	v.positions(log)
	v.entities(log)
	v.overtaking(log, all)
	return v
}

// once checks that each unit is there once, as it was answered.
func (v *verdict) once(log []step, all load.Truth) {
	times := make(map[load.Unit]int, len(log))
	for _, s := range log {
		times[s.Unit]++
		f, stored := all[s.Unit]
		switch {
		case !stored:
			v.fault(&v.unknown, "position %d: %v is not stored", s.position, s.Unit)
		case times[s.Unit] == 2:
			v.fault(&v.twice, "position %d: %v was seen before", s.position, s.Unit)
		case s.by != f.Write.User, s.on != 0 && f.On != 0 && s.on != f.On, f.Block != 0 && s.block != f.Block:
			v.fault(&v.wrong, "position %d: %v is by %s on %v in version %d, not by %s on %v in version %d",
				s.position, s.Unit, s.by, s.on, s.block, f.Write.User, f.On, f.Block)
		}
	}
	for u, f := range all {
		if times[u] == 0 {
			v.fault(&v.missed, "%v, which %s wrote, was not seen", u, f.Write.Mark)
		}
	}
}

// positions checks that positions grow.
func (v *verdict) positions(log []step) {
	var last oda.Position
	for _, s := range log {
		if s.position <= last {
			v.fault(&v.backward, "position %d with %v comes after position %d", s.position, s.Unit, last)
		}
		last = s.position
	}
}

// entities checks the order of the changes of each entity. A record or a status is
// between the version that it belongs to and the next. A status is current if none before
// it is of a later time.
func (v *verdict) entities(log []step) {
	type state struct {
		version, sequence, status int64
		at                        oda.Instant
	}
	states := make(map[oda.Ref]state)
	for _, s := range log {
		now := states[s.Ref]
		switch {
		case s.Status != 0:
			if s.Status != now.status+1 || s.block != now.version {
				v.fault(&v.disordered, "position %d: %v of version %d comes after status %d and version %d", s.position, s.Unit, s.block, now.status, now.version)
			}
			if s.current != (now.status == 0 || s.at >= now.at) {
				v.fault(&v.wrong, "position %d: %v of %v is current: %t, after one of %v", s.position, s.Unit, s.at, s.current, now.at)
			}
			if now.status = s.Status; s.current {
				now.at = s.at
			}
		case s.Sequence == 0:
			if s.Version <= now.version {
				v.fault(&v.disordered, "position %d: %v comes after version %d", s.position, s.Unit, now.version)
			}
			now.version = max(now.version, s.Version)
		default:
			if s.Sequence <= now.sequence {
				v.fault(&v.disordered, "position %d: %v comes after record %d", s.position, s.Unit, now.sequence)
			}
			if s.block != now.version {
				v.fault(&v.disordered, "position %d: %v, recorded into version %d, comes after version %d", s.position, s.Unit, s.block, now.version)
			}
			now.sequence = max(now.sequence, s.Sequence)
		}
		states[s.Ref] = now
	}
}

// overtaking checks that no unit stands before one that was acknowledged before
// it was sent.
func (v *verdict) overtaking(log []step, all load.Truth) {
	units := make([]load.Unit, len(log))
	for i, s := range log {
		units[i] = s.Unit
	}
	for early, late := range all.Overtaken(units) {
		v.fault(&v.overtaken, "position %d: %v was sent after %v was acknowledged, and comes before it", log[early].position, log[early].Unit, log[late].Unit)
	}
}

// compare checks that a log has the same units at the same positions as another
// reading of the same part of the feed.
func (v *verdict) compare(log, other []step) {
	for i := range max(len(log), len(other)) {
		switch {
		case i >= len(log):
			v.fault(&v.moved, "%v at position %d is missing", other[i].Unit, other[i].position)
			return
		case i >= len(other):
			v.fault(&v.moved, "%v at position %d is not in another reading", log[i].Unit, log[i].position)
			return
		case log[i].Unit != other[i].Unit || log[i].position != other[i].position:
			v.fault(&v.moved, "%v at position %d is in the place of %v at position %d", log[i].Unit, log[i].position, other[i].Unit, other[i].position)
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
func (v *verdict) promptly(ends []end, log []step, all load.Truth) {
	earliest := make([]int, len(log)+1) // answered of those from here on; len(log) for none
	earliest[len(log)] = len(log)
	answered := func(i int) time.Duration {
		if i == len(log) {
			return load.Never
		}
		f, stored := all[log[i].Unit]
		if !stored {
			return load.Never
		}
		return f.Write.Answered
	}
	for i := len(log) - 1; i >= 0; i-- {
		if earliest[i] = earliest[i+1]; answered(i) < answered(earliest[i]) {
			earliest[i] = i
		}
	}
	for _, e := range ends {
		after, _ := slices.BinarySearchFunc(log, e.at+1, func(s step, at oda.Position) int { return cmp.Compare(s.position, at) })
		if i := earliest[after]; i < len(log) && answered(i) < e.asked-promptness {
			v.fault(&v.late, "position %d: %v was acknowledged %v before somebody asked, and was not there", log[i].position, log[i].Unit, e.asked-answered(i))
		}
	}
}
