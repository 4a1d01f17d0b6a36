package night

import (
	"strings"
	"time"
	_ "time/tzdata" // so that zones are known wherever the program runs
	"unicode/utf8"

	"oda"
)

// Query asks for the calls of a night: those from From until just before
// To, made by one telescope or by any.
type Query struct {
	Zone      string // in which the night lasts from noon to noon
	From, To  oda.Instant
	Telescope string // empty: any
}

// days returns the days that the night touches.
func (q Query) days() oda.Days { return oda.Days{First: oda.DayOf(q.From), Last: oda.DayOf(q.To - 1)} }

// Parse parses the parameters of a report. A night lasts from noon of the date to noon of
// the next day in the zone, which is that of the telescope unless it is given.
func (z *Zones) Parse(params map[string][]string) (Query, error) {
	p := oda.Params{Values: params}
	var q Query
	if telescope, ok := p.One("telescope"); ok {
		if !utf8.ValidString(telescope) {
			p.Fault("telescope", "is not valid UTF-8")
		}
		q.Telescope = telescope
	}
	name, given := p.One("zone")
	if !given {
		name = z.Of(q.Telescope)
	}
	q.Zone = name
	zone, known := zoneNamed(name)
	if !known {
		p.Fault("zone", "is not the name of a time zone; write it as Africa/Johannesburg, or UTC")
	}
	switch text, ok := p.One("date"); {
	case !ok:
		p.Fault("date", "is missing; give the date on which the night began, as 2026-01-31")
	case p.Faults == nil:
		if q.From, q.To, ok = nightOf(text, zone); !ok {
			p.Fault("date", "is not a date between 0001-01-01 and 9999-12-30; write it as 2026-01-31")
		}
	}
	if err := p.Err("This night cannot be reported"); err != nil {
		return Query{}, err
	}
	return q, nil
}

// zoneNamed returns the time zone with an IANA name. It refuses the names that
// only Go knows, and those of a system's directories of zones with other rules.
func zoneNamed(name string) (*time.Location, bool) {
	if name == "" || name == "Local" || name == "localtime" || name == "posixrules" || strings.HasPrefix(name, "posix/") || strings.HasPrefix(name, "right/") {
		return nil, false
	}
	zone, err := time.LoadLocation(name)
	return zone, err == nil
}

// nightOf returns the night that began on a date. It has 23 or 25 hours if the
// clocks change during it.
func nightOf(date string, zone *time.Location) (from, to oda.Instant, ok bool) {
	day, err := oda.ParseTime(date)
	if err != nil || len(date) != len("2006-01-02") {
		return 0, 0, false
	}
	y, m, d := day.Date()
	begin, end := time.Date(y, m, d, 12, 0, 0, 0, zone).UTC(), time.Date(y, m, d+1, 12, 0, 0, 0, zone).UTC()
	return oda.InstantOf(begin), oda.InstantOf(end), begin.Year() >= 1 && end.Year() <= 9999
}

// Last returns the date of the night that began yesterday, which lasts until noon.
// Yesterday and noon are those in the zone of now.
func Last(now time.Time) string { return now.AddDate(0, 0, -1).Format(time.DateOnly) }

// Tonight returns the date of the night that has begun today, empty before noon.
func Tonight(now time.Time) string {
	if now.Hour() < 12 {
		return ""
	}
	return now.Format(time.DateOnly)
}

// Of returns the date of the night that a time lies in, in the zone of that time.
func Of(at time.Time) string {
	if at.Hour() < 12 {
		return Last(at)
	}
	return at.Format(time.DateOnly)
}
