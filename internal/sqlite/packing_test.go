package sqlite

import (
	"encoding/binary"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"oda"
	"oda/internal/engine"
	"oda/internal/test/must"
)

func TestRunsAndSlotsSurvivePacking(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var runs engine.Runs
		for _, s := range rapid.SliceOf(rapid.Int64Range(1, 1<<40)).Draw(t, "sequences") {
			runs = runs.AddRun(s, s+rapid.Int64Range(0, 300).Draw(t, "more"))
		}
		if again, err := decodeRuns(encodeRuns(runs)); err != nil || !slices.Equal(again, runs) {
			t.Fatalf("kept %v, read %v, %v", runs, again, err)
		}
		at, slots := 0, []oda.Slot{}
		for _, delta := range rapid.SliceOf(rapid.IntRange(0, 1<<20)).Draw(t, "distances") {
			at += delta
			value := rapid.Uint8Range(uint8(oda.SlotVersion), uint8(oda.SlotRecordsMember)).Draw(t, "value")
			slots = append(slots, oda.Slot{Offset: at, Value: oda.SlotValue(value)})
		}
		if again, err := decodeSlots(encodeSlots(slots), at); err != nil || !slices.Equal(again, slots) {
			t.Fatalf("kept %v, read %v, %v", slots, again, err)
		}
	})
}

// An empty list of records is not the same as no list, so it must survive.
func TestAnEmptyListOfRunsSurvivesPacking(t *testing.T) {
	if packed := encodeRuns(engine.Runs{}); packed == nil {
		t.Error("an empty list is packed as no list")
	}
	if runs, err := decodeRuns([]byte{}); err != nil || runs == nil || runs.Count() != 0 {
		t.Errorf("got %v, %v", runs, err)
	}
}

func TestDamagedRunsAreRefused(t *testing.T) {
	packed := func(numbers ...uint64) []byte {
		var out []byte
		for _, n := range numbers {
			out = binary.AppendUvarint(out, n)
		}
		return out
	}
	for name, damaged := range map[string][]byte{
		"half a run":                 packed(1),
		"half a number":              {1, 0x80},
		"half a first number":        {0x80},
		"a sequence of 0":            packed(0, 3),
		"behind all numbers":         packed(1, 1<<63),
		"a first behind all numbers": packed(1<<63, 0),
		"a sum that wraps around":    packed(1<<63, 1<<63),
		"a sum that wraps, nearly":   packed(1<<64-1, 2),
		"a second run":               append(packed(1, 1), 0x80),
	} {
		if runs, err := decodeRuns(damaged); err == nil {
			t.Errorf("%s: got %v", name, runs)
		}
	}
}

func TestDamagedSlotsAreRefused(t *testing.T) {
	good := encodeSlots([]oda.Slot{{Offset: 3, Value: oda.SlotVersion}, {Offset: 300, Value: oda.SlotRecords}})
	must.Get(decodeSlots(good, 300))(t)
	for name, packed := range map[string][]byte{
		"cut short":         good[:len(good)-1],
		"cut in two":        good[:3],
		"an unknown value":  {byte(oda.SlotRecordsMember) + 1, 0},
		"no value":          {0, 0},
		"behind the end":    encodeSlots([]oda.Slot{{Offset: 301, Value: oda.SlotVersion}}),
		"a number too long": {1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01},
		"a huge number":     {1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01},
	} {
		if slots, err := decodeSlots(packed, 300); err == nil {
			t.Errorf("%s: got %v", name, slots)
		}
	}
}
