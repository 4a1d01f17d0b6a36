package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"oda"
)

// moment is a time in any format that the archive accepts, or as people say it.
type moment struct{ time.Time }

// Decode takes the time from the command line: also -2h, as other programs write it.
func (m *moment) Decode(ctx *kong.DecodeContext) error {
	text, err := popText(ctx, func(text string) bool {
		_, ok := spoken(text, time.Now().UTC())
		return ok
	})
	if err != nil {
		return err
	}
	if at, ok := spoken(text, time.Now().UTC()); ok {
		m.Time = at
		return nil
	}
	at, err := oda.ParseTime(text)
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
	text = strings.TrimPrefix(text, "-") // as other programs write it
	for suffix, days := range map[string]int{"d": 1, "w": 7} {
		if count, ok := strings.CutSuffix(text, suffix); ok {
			n, err := strconv.ParseUint(count, 10, 16)
			return now.AddDate(0, 0, -days*int(n)), err == nil
		}
	}
	ago, err := time.ParseDuration(text)
	return now.Add(-ago), err == nil && ago >= 0 && text != "0"
}
