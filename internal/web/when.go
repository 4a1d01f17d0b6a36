package web

import (
	"strings"
	"time"

	"oda"
)

// readWhen reads a time as people write it in the search box: a date with a time, a time
// alone, or one of yesterday or today. A time without a zone is in that of now; one without
// a day is the last before now.
func readWhen(text string, now time.Time) (oda.Instant, bool) {
	text = strings.Join(strings.Fields(strings.ToLower(text)), " ")
	if before, ok := strings.CutSuffix(text, "utc"); ok {
		text, now = strings.TrimSpace(before), now.UTC()
	}
	if text == "now" {
		return oda.InstantOf(now), true
	}
	day, back := now, false
	switch first, rest, _ := strings.Cut(text, " "); first {
	case "yesterday":
		day, text = now.AddDate(0, 0, -1), rest
	case "today":
		text = rest
	default:
		back = true
	}
	if clock, ok := readClock(text, day); ok {
		if back && clock.After(now) {
			clock = clock.AddDate(0, 0, -1)
		}
		return oda.InstantOf(clock), true
	}
	if len(text) <= len(time.DateOnly) {
		return 0, false
	}
	at, err := oda.ParseAsOf(strings.ToUpper(text))
	if err != nil {
		return 0, false
	}
	if end := text[len(time.DateOnly):]; strings.HasSuffix(end, "z") || strings.ContainsAny(end, "+-") || strings.Count(end, " ") > 1 {
		return at, true // it names its zone
	}
	t := at.Time()
	return oda.InstantOf(time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), now.Location())), true
}

// readClock reads a time of a day.
func readClock(text string, day time.Time) (time.Time, bool) {
	for _, layout := range []string{"15:04", "15:04:05"} {
		if t, err := time.Parse(layout, text); err == nil {
			return time.Date(day.Year(), day.Month(), day.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), day.Location()), true
		}
	}
	return day, false
}

// inAddress writes an instant as it stands in an address. Those of years that cannot be
// read, to which a step or a bar may lead, become the nearest that can.
func inAddress(i oda.Instant) string {
	if year := i.Time().Year(); year < 0 {
		return "0000-01-01T00:00:00Z"
	} else if year > 9999 {
		return "9999-12-31T23:59:59.999999Z"
	}
	return strings.Replace(i.String(), ".000000Z", "Z", 1)
}

// inWords writes an instant for people, to the second unless it says more.
func inWords(i oda.Instant) string { return i.Time().Format("2006-01-02 15:04:05.999999") }
