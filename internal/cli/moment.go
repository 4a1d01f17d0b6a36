package cli

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"oda"
)

// moment is a time in any format that the archive accepts, or as people say it.
type moment struct{ time.Time }

// UnmarshalText parses a time.
func (m *moment) UnmarshalText(text []byte) error {
	if at, ok := spoken(string(text), time.Now().UTC()); ok {
		m.Time = at
		return nil
	}
	at, err := oda.ParseTime(string(text))
	if err != nil {
		return fmt.Errorf("%q %w, or as yesterday, last-night, or 2h, which is two hours ago", text, err)
	}
	m.Time = at
	return nil
}

// spoken returns the time that a word means. As with dates, a day begins at
// midnight in UTC; a night begins at noon.
func spoken(text string, now time.Time) (time.Time, bool) {
	const day = 24 * time.Hour
	midnight := now.Truncate(day)
	switch text {
	case "now":
		return now, true
	case "today":
		return midnight, true
	case "yesterday":
		return midnight.Add(-day), true
	case "last-night":
		return midnight.Add(-day / 2), true
	}
	if text == "" {
		return time.Time{}, false
	}
	units := map[byte]time.Duration{'s': time.Second, 'm': time.Minute, 'h': time.Hour, 'd': day, 'w': 7 * day}
	unit, known := units[text[len(text)-1]]
	n, err := strconv.ParseUint(text[:len(text)-1], 10, 32)
	if !known || err != nil || int64(n) > math.MaxInt64/int64(unit) {
		return time.Time{}, false
	}
	return now.Add(-time.Duration(n) * unit), true
}
