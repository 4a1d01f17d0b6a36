package postgres

import (
	"strconv"

	"oda"
)

func encodeSlots(slots []oda.Slot) []int32 {
	packed := make([]int32, 0, 2*len(slots))
	for _, s := range slots {
		packed = append(packed, int32(s.Value), int32(s.Offset))
	}
	return packed
}

// arrayText returns numbers as the text of an array, or nil for none.
func arrayText[N int32 | int64](numbers []N) *string {
	if numbers == nil {
		return nil
	}
	b := append(make([]byte, 0, 64), '{')
	for i, n := range numbers {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(n), 10)
	}
	text := string(append(b, '}'))
	return &text
}

// decodeSlots unpacks stored slots, for a text of that length.
func decodeSlots(packed []int32, length int) ([]oda.Slot, error) {
	if len(packed)%2 != 0 {
		return nil, oda.ErrSlots
	}
	slots := make([]oda.Slot, 0, len(packed)/2)
	at := int32(0)
	for i := 0; i < len(packed); i += 2 {
		value, offset := packed[i], packed[i+1]
		if value < int32(oda.SlotVersion) || value > int32(oda.SlotRecordsMember) || offset < at || int(offset) > length {
			return nil, oda.ErrSlots
		}
		slots = append(slots, oda.Slot{Value: oda.SlotValue(value), Offset: int(offset)})
		at = offset
	}
	return slots, nil
}

// versionPlace returns the place of a version's row, for its seal. That of a record is
// the identifier of its block.
func versionPlace(kind int16, id string) []byte {
	return []byte(strconv.Itoa(int(kind)) + "\n" + id)
}
