package sqlite

import (
	"encoding/binary"

	"oda"
	"oda/internal/engine"
)

// SQLite has no arrays, so slots and runs are packed into blobs.

// encodeRuns packs the runs of a version.
func encodeRuns(runs engine.Runs) []byte {
	out := make([]byte, 0, 4*len(runs))
	for _, run := range runs {
		out = binary.AppendUvarint(out, uint64(run.First))
		out = binary.AppendUvarint(out, uint64(run.Last-run.First))
	}
	return out
}

// decodeRuns unpacks what encodeRuns packed. An empty list of records is not the
// same as no list.
func decodeRuns(packed []byte) (engine.Runs, error) {
	if packed == nil {
		return nil, nil
	}
	runs := make(engine.Runs, 0, len(packed)/2)
	for len(packed) > 0 {
		first, n := binary.Uvarint(packed)
		if n <= 0 {
			return nil, engine.ErrRuns
		}
		length, m := binary.Uvarint(packed[n:])
		if m <= 0 || first == 0 || first > 1<<62 || length > 1<<62-first {
			return nil, engine.ErrRuns
		}
		runs = append(runs, engine.Run{First: int64(first), Last: int64(first + length)})
		packed = packed[n+m:]
	}
	return runs, nil
}

// encodeSlots packs slots.
func encodeSlots(slots []oda.Slot) []byte {
	out := make([]byte, 0, 4*len(slots))
	at := 0
	for _, s := range slots {
		out = append(out, byte(s.Value))
		out = binary.AppendUvarint(out, uint64(s.Offset-at))
		at = s.Offset
	}
	return out
}

// decodeSlots unpacks what encodeSlots packed, for a text of that length.
func decodeSlots(packed []byte, length int) ([]oda.Slot, error) {
	slots := make([]oda.Slot, 0, len(packed)/2)
	at := 0
	for len(packed) > 0 {
		value := oda.SlotValue(packed[0])
		delta, n := binary.Uvarint(packed[1:])
		if value < oda.SlotVersion || value > oda.SlotRecordsMember || n <= 0 || delta > uint64(length-at) {
			return nil, oda.ErrSlots
		}
		at += int(delta)
		slots = append(slots, oda.Slot{Offset: at, Value: value})
		packed = packed[1+n:]
	}
	return slots, nil
}
