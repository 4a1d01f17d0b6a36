package moving

import (
	"context"
	"hash/maphash"

	"oda"
)

// unpacked is an export whose documents are read from an archive that was made of it.
type unpacked struct {
	ctx    context.Context // of the import
	export *group
	lines  map[uint64]int64 // of versions and statuses, by a hash of their names; nil until one is asked for
}

var placeSeed = maphash.MakeSeed()

// placeOf returns the hash for a version, or for the status with that sequence number.
func placeOf(ref oda.Ref, version, status int64) uint64 {
	if status > 0 {
		version = 0
	}
	return maphash.Comparable(placeSeed, struct {
		oda.Ref
		version, status int64
	}{ref, version, status})
}

// origin returns the line of a version or a status in the export. For the first one it
// reads the export once more: few are ever asked for.
func (u *unpacked) origin(s *SetAside) Origin {
	if u.lines == nil {
		u.lines = make(map[uint64]int64)
		// If it cannot be read any more, the name of the file must do.
		_ = through(u.ctx, u.export.sources[0], maxLine(u.export.maxDocument), func(_ *batch, entries []placed) error {
			for i := range entries {
				if e := &entries[i]; !e.Recorded() {
					u.lines[placeOf(e.Ref, e.Version, e.Sequence)] = e.line
				}
			}
			return nil
		}, func(*placed) error { return nil })
	}
	return Origin{u.export.sources[0], u.lines[placeOf(s.Ref, s.Version, s.Sequence)]}
}
