package sqlite

import (
	"errors"
	"hash/maphash"
	"sync"

	"oda"
	"oda/internal/engine"
)

// marks remembers instants of versions and records that were read to find a past
// state. They never change, so the next search in the same history reads few of
// them again. The size is fixed: new instants replace others.
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
	low, _, err := e.around(at, m.through(e.entity, 1, func(int64) (oda.Instant, error) { return 0, errNotRemembered }))
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

type mark struct {
	entity, number int64 // a version, or a sequence number with a negative sign
	on             oda.Instant
}

const markSlots = 1 << 15

func markSlot(entity, number int64) uint64 {
	return (uint64(entity)*0x9e3779b97f4a7c15 + uint64(number)) % markSlots
}

// through returns a function that returns remembered instants, and reads the
// others.
func (m *marks) through(entity, sign int64, read func(int64) (oda.Instant, error)) func(int64) (oda.Instant, error) {
	return func(number int64) (oda.Instant, error) {
		wanted := mark{entity: entity, number: sign * number}
		slot := markSlot(wanted.entity, wanted.number)
		m.mu.Lock()
		if m.slots != nil {
			wanted.on = m.slots[slot].on
		}
		found := m.slots != nil && m.slots[slot] == wanted
		m.mu.Unlock()
		if found {
			return wanted.on, nil
		}
		on, err := read(number)
		if err != nil {
			return 0, err
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.slots == nil {
			m.slots = make([]mark, markSlots)
		}
		wanted.on = on
		m.slots[slot] = wanted
		return on, nil
	}
}
