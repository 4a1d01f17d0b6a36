package engine

import (
	"math"

	"oda"
)

// Mark is a number and the instant that belongs to it: of a version, or of a
// record.
type Mark struct {
	Number int64
	On     oda.Instant
}

// Around finds the two neighbours between which an instant lies, where instants
// grow with the numbers: the last that is not after it, and the first that is.
// Low and high are such marks, perhaps far apart. Read gives the instant of a
// number between them.
//
// What happens at a steady rate is found in a few steps: each looks where the
// number should be, a little beyond on the side that is still far. Every fifth
// step halves what is left, so that no rate makes it slow.
func Around(at oda.Instant, low, high Mark, read func(number int64) (oda.Instant, error)) (Mark, Mark, error) {
	beyond := int64(0) // 1: above, -1: below
	for step := 1; high.Number-low.Number > 1; step++ {
		span := high.Number - low.Number
		share := float64(at-low.On) / float64(high.On-low.On)
		next := low.Number + int64(share*float64(span)) + beyond*(1+int64(math.Sqrt(float64(span))/3))
		if step%5 == 0 {
			next = low.Number + span/2
		}
		next = min(max(next, low.Number+1), high.Number-1)
		on, err := read(next)
		if err != nil {
			return low, high, err
		}
		if on <= at {
			low, beyond = Mark{next, on}, 1
		} else {
			high, beyond = Mark{next, on}, -1
		}
	}
	return low, high, nil
}

// maxRuns bounds how much of the runs of versions is read for one page: a page
// of versions with very many runs is shorter.
const maxRuns = 16 << 20

// VersionPage gathers what is told of versions.
type VersionPage struct {
	Versions []oda.VersionInfo
	runs     int
	full     bool
}

// Add takes the next version: its metadata, the size of its text, and which
// records it holds. It says whether the page has room for more.
func (p *VersionPage) Add(m oda.Metadata, bytes int64, runs Runs) bool {
	p.Versions = append(p.Versions, oda.VersionInfo{Metadata: m, Bytes: bytes, Listed: runs != nil, Records: runs.Count()})
	p.runs += 16 * len(runs)
	p.full = p.runs >= maxRuns
	return !p.full
}

// Check reports whether versions are missing behind the last one of a page for which
// so many were asked.
func (p *VersionPage) Check(ref oda.Ref, asked int) error {
	if n := len(p.Versions); !p.full && n < asked && n > 0 && p.Versions[n-1].Metadata.Version > 1 {
		return oda.LostVersion(ref, p.Versions[n-1].Metadata.Version-1)
	}
	return nil
}
