package sqlite

import (
	"errors"
	"hash/maphash"
	"sync"

	"oda"
	"oda/internal/engine"
)

// marks remembers facts of versions and records that were read to find a past state.
// They never change, so the next search in the same history reads few of them again.
// The size is fixed: new facts replace others.
type marks struct {
	mu    sync.Mutex
	slots []mark // nil until there is something to remember
	ends  []ending
}

// ending is where a history ended when it was read. What was before never changes.
type ending struct {
	ref               oda.Ref
	entity, version   int64
	created, modified oda.Instant
}

const endingSlots = 1 << 10

var endingSeed = maphash.MakeSeed()

func endingSlot(ref oda.Ref) uint64 { return maphash.String(endingSeed, ref.ID) % endingSlots }

// end remembers where a history ended.
func (m *marks) end(e ending) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ends == nil {
		m.ends = make([]ending, endingSlots)
	}
	m.ends[endingSlot(e.ref)] = e
}

var errNotRemembered = errors.New("this is not remembered")

// version finds the version that was current at an instant, and was superseded
// since, in what is remembered. It returns 0 if that does not suffice.
func (m *marks) version(ref oda.Ref, at oda.Instant) int64 {
	var e ending
	m.mu.Lock()
	if m.ends != nil {
		e = m.ends[endingSlot(ref)]
	}
	m.mu.Unlock()
	if e.ref != ref || at < e.created || at >= e.modified {
		return 0
	}
	low, _, err := e.around(at, through(m, e.entity, storedOn, func(int64) (oda.Instant, error) { return 0, errNotRemembered }))
	if err != nil {
		return 0
	}
	return low.Number
}

// around finds the version that was current at an instant before the end, and where
// it ended. Without new versions it always asks for the same instants.
func (e *ending) around(at oda.Instant, read func(version int64) (oda.Instant, error)) (low, high engine.Mark, err error) {
	return engine.Around(at, engine.Mark{Number: 1, On: e.created}, engine.Mark{Number: e.version + 1, On: e.modified}, read)
}

// fact is something about a version or a record.
type fact int8

const (
	storedOn       fact = iota // a version
	sequenceBefore             // the last sequence number before a version was stored
	sequenceAfter              // and after
	recordedOn                 // a record
)

type mark struct {
	entity, number int64 // of the version, or the sequence number of the record
	fact           fact
	value          int64
}

const markSlots = 1 << 15

func (m *mark) slot() uint64 {
	return (uint64(m.entity*4+int64(m.fact))*0x9e3779b97f4a7c15 + uint64(m.number)) % markSlots
}

// through returns a function that returns remembered facts, and reads the others.
func through[T ~int64](m *marks, entity int64, what fact, read func(number int64) (T, error)) func(number int64) (T, error) {
	return func(number int64) (T, error) {
		wanted := mark{entity: entity, number: number, fact: what}
		slot := wanted.slot()
		m.mu.Lock()
		if m.slots != nil {
			wanted.value = m.slots[slot].value
		}
		found := m.slots != nil && m.slots[slot] == wanted
		m.mu.Unlock()
		if found {
			return T(wanted.value), nil
		}
		value, err := read(number)
		if err != nil {
			return 0, err
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.slots == nil {
			m.slots = make([]mark, markSlots)
		}
		wanted.value = int64(value)
		m.slots[slot] = wanted
		return value, nil
	}
}
