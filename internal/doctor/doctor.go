// Package doctor finds what may be wrong with an archive, besides the damage that
// package audit finds, and says what to do about it. Both engines use it.
package doctor

import (
	"fmt"
	"time"

	"oda"
)

// Check is something that is looked at.
type Check string

// The checks.
const (
	Damage      Check = "damage"      // what package audit finds
	Schema      Check = "schema"      // its age
	References  Check = "references"  // to entities that are not there
	Clock       Check = "clock"       // that went back
	Space       Check = "space"       // on the disk
	Permissions Check = "permissions" // of files and folders
	Leftovers   Check = "leftovers"   // of what was interrupted
	Database    Check = "database"    // settings of PostgreSQL
	Settings    Check = "settings"    // of the server
	Spool       Check = "spool"       // that waits
	Server      Check = "server"      // that runs
)

// Finding is something that was found.
type Finding struct {
	Check  Check  `json:"check"`
	Wrong  bool   `json:"wrong"` // else it is a warning, and may be all right
	Place  string `json:"place"`
	Detail string `json:"detail"`
	Do     string `json:"do"` // what to do about it
}

// Report is what was found so far.
type Report struct {
	Wrong, Warnings int
	most            int
	byCheck         map[Check]int
	tell            func(Finding)
}

// NewReport returns an empty report. It calls tell for the findings of each check, up
// to the given number.
func NewReport(most int, tell func(Finding)) *Report {
	return &Report{most: most, byCheck: make(map[Check]int), tell: tell}
}

// Add adds a finding.
func (r *Report) Add(f Finding) {
	if f.Wrong {
		r.Wrong++
	} else {
		r.Warnings++
	}
	if r.byCheck[f.Check]++; r.byCheck[f.Check] <= r.most {
		r.tell(f)
	}
}

// Found returns how many findings a check has.
func (r *Report) Found(c Check) int { return r.byCheck[c] }

// minRoom is how much room a disk should have. The alert OdaDiskAlmostFull has the same
// bound.
const minRoom = 2 << 30

// Room reports a disk that is almost full.
func (r *Report) Room(place string, free int64) {
	if free < minRoom {
		r.Add(Finding{
			Space, true, place, fmt.Sprintf("its disk has %d MiB left", free>>20),
			"make room; when it is full, nothing more is stored",
		})
	}
}

// clockSlack is how far instants may be out of order, since writes wait in queues,
// and several processes have clocks of their own.
const clockSlack = 2 * time.Minute

// Times looks for a clock that went back.
type Times struct {
	report  *Report
	highest oda.Instant
}

// NewTimes returns a Times that has seen nothing.
func NewTimes(report *Report) *Times { return &Times{report: report} }

// Note notes when a change was stored. Changes come in the order of the log.
func (t *Times) Note(position int64, at oda.Instant) {
	if t.highest.Time().Sub(at.Time()) > clockSlack {
		t.report.Add(Finding{
			Clock, false, fmt.Sprintf("position %d of the log", position),
			fmt.Sprintf("the clock of the archive went back from %s to %s", t.highest, at),
			"check that the clock of the machine is synchronized with NTP; versions around these times may be found under a wrong time; " +
				"if these changes were imported with --preserve, nothing is wrong",
		})
		t.highest = at // it is compared with the new time from here on
	}
	t.highest = max(t.highest, at)
}

// End compares the latest change with the time now.
func (t *Times) End(now time.Time) {
	if t.highest.Time().Sub(now) > clockSlack {
		t.report.Add(Finding{
			Clock, false, "the end of the log",
			fmt.Sprintf("something was stored at %s, which is in the future", t.highest),
			"check the clocks of this machine and of the archive; until that time, each change of these entities gets a time one microsecond after the last",
		})
	}
}

// OldSchema is the finding for a schema that must be upgraded first.
func OldSchema(place string, err error) Finding {
	return Finding{Schema, true, place, err.Error(), "nothing else was checked; run \"oda doctor\" again after that"}
}
