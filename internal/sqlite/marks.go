package sqlite

import (
	"sync"

	"oda"
)

// marks remembers instants of versions and records that were read to find a past
// state. They never change, so the next search in the same history reads few of
// them again. The size is fixed: new instants replace others.
type marks struct {
	mu    sync.Mutex
	slots []mark // nil until there is something to remember
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
