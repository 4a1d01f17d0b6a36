package engine

import (
	"cmp"
	"math"

	"oda"
)

// Mark is the number of a version or a record, and its instant.
type Mark struct {
	Number int64
	On     oda.Instant
}

// Around returns the two neighbouring marks around an instant: the last one that
// is not after it, and the first one that is. Instants grow with the numbers. Low
// and high are two marks around the instant, perhaps far apart. Read returns the
// instant of a number between them.
//
// If numbers come at a steady rate, a few steps are enough: each estimates the
// number, and goes a little beyond it towards the far end. Every fifth step halves
// what is left, so that no rate makes it slow.
func Around(at oda.Instant, low, high Mark, read func(number int64) (oda.Instant, error)) (Mark, Mark, error) {
	beyond := int64(0) // 1: go above the estimate, -1: below
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

// maxRuns is how many bytes of runs are read for one page of versions. A page is
// shorter if its versions have very many runs.
const maxRuns = 16 << 20

// VersionPage collects a page of versions.
type VersionPage struct {
	Versions []oda.VersionInfo
	runs     int
	full     bool
}

// Add adds the next version: its metadata, the size of its text, and the records
// that it holds. It reports whether the page has room for more.
func (p *VersionPage) Add(m oda.Metadata, bytes int64, runs Runs) bool {
	p.Versions = append(p.Versions, oda.VersionInfo{Metadata: m, Bytes: bytes, Listed: runs != nil, Records: runs.Count()})
	p.runs += 16 * len(runs)
	p.full = p.runs >= maxRuns
	return !p.full
}

// All returns the versions. Asked is how many before the given one were asked for. If
// there are fewer because some are missing, that is an error. Get reads the entity, to
// tell one that is not stored from one whose versions are all missing.
func (p *VersionPage) All(ref oda.Ref, before int64, asked int, get func() (*oda.Entity, error)) ([]oda.VersionInfo, error) {
	n := len(p.Versions)
	if n == 0 {
		e, err := get()
		if err == nil && before > 1 {
			err = oda.LostVersion(ref, min(before-1, e.Metadata.Version))
		}
		return nil, cmp.Or(err, error(oda.Missing(ref)))
	}
	if oldest := p.Versions[n-1].Metadata.Version; !p.full && n < asked && oldest > 1 {
		return nil, oda.LostVersion(ref, oldest-1)
	}
	return p.Versions, nil
}
