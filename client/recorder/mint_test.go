package recorder

import (
	"regexp"
	"sync"
	"testing"
	"time"

	"oda"
)

func TestMintedIdentifiersAreOfTheFormAndNeverRepeat(t *testing.T) {
	t.Parallel()
	form := regexp.MustCompile(`^eb-[0-9a-hjkmnp-tv-z]{9,13}$`)
	noon := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	for name, clock := range map[string]func(i int) time.Time{
		"a clock that goes":       func(i int) time.Time { return noon.Add(time.Duration(i) * time.Millisecond) },
		"a clock that stands":     func(int) time.Time { return noon },
		"a clock that goes back":  func(i int) time.Time { return noon.Add(-time.Duration(i) * time.Hour) },
		"a clock that is far off": func(int) time.Time { return time.Unix(0, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := 0
			m := newMinter(func() time.Time { i++; return clock(i) })
			seen := make(map[string]bool)
			var mu sync.Mutex
			var all sync.WaitGroup
			for range 4 {
				all.Go(func() {
					for range 1000 {
						id := m.next(oda.ExecutionBlock)
						mu.Lock()
						if seen[id] {
							t.Errorf("%s came twice", id)
						}
						seen[id] = true
						mu.Unlock()
						if !oda.ValidID(id) || name != "a clock that is far off" && !form.MatchString(id) {
							t.Errorf("%s is of another form", id)
						}
					}
				})
			}
			all.Wait()
		})
	}
}

// The parts of an identifier are where others look for them.
func TestAMintedIdentifierHoldsTimeAndGenerator(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 1, 12, 0, 0, 123_000_000, time.UTC)
	m := newMinter(func() time.Time { return at })
	m.generator = 5
	number := uint64(0)
	for _, c := range m.next(oda.ExecutionBlock)[len("eb-"):] {
		for value, digit := range mintDigits {
			if digit == c {
				number = number<<5 | uint64(value)
			}
		}
	}
	if got := int64(number>>21) + time.Date(2026, 1, 7, 0, 0, 0, 0, time.UTC).UnixMilli(); got != at.UnixMilli() {
		t.Errorf("the time is %d, want %d", got, at.UnixMilli())
	}
	if got := number >> 11 & 1023; got != 5 {
		t.Errorf("the generator is %d, want 5", got)
	}
}
