package engine

import "oda"

// LastNotAfter gives the last of the numbers from low to high whose instant is
// not after the given one, or low if there is none. Instants grow with the
// numbers. Read gives the instant of a number; that of low is not asked for.
//
// The statement with which PostgreSQL finds a state (selectAsOf) does the same.
func LastNotAfter(at oda.Instant, low, high int64, read func(number int64) (oda.Instant, error)) (int64, error) {
	for low < high {
		middle := low + (high-low+1)/2
		instant, err := read(middle)
		if err != nil {
			return 0, err
		}
		if instant <= at {
			low = middle
		} else {
			high = middle - 1
		}
	}
	return low, nil
}

// maxRuns bounds how much of the runs of versions is read for one page: a page
// of versions with very many runs is shorter.
const maxRuns = 16 << 20

// VersionPage gathers what is told of versions.
type VersionPage struct {
	Versions []oda.VersionInfo
	runs     int
}

// Add takes the next version: its metadata, the size of its text, and which
// records it holds. It says whether the page has room for more.
func (p *VersionPage) Add(m oda.Metadata, bytes int64, runs Runs) bool {
	p.Versions = append(p.Versions, oda.VersionInfo{Metadata: m, Bytes: bytes, Listed: runs != nil, Records: runs.Count()})
	p.runs += 16 * len(runs)
	return p.runs < maxRuns
}
