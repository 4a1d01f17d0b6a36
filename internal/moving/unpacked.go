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
	lines  map[uint64]int64 // of the versions, by a hash of their names; nil until one is asked for
}

var placeSeed = maphash.MakeSeed()

func placeOf(ref oda.Ref, version int64) uint64 {
	return maphash.Comparable(placeSeed, struct {
		oda.Ref
		version int64
	}{ref, version})
}

// origin returns the line of a version in the export. For the first one it reads the export
// once more: few are ever asked for.
func (u *unpacked) origin(ref oda.Ref, version int64) Origin {
	if u.lines == nil {
		u.lines = make(map[uint64]int64)
		// If it cannot be read any more, the name of the file must do.
		_ = through(u.ctx, u.export.sources[0], maxLine(u.export.maxDocument), func(_ *batch, entries []placed) error {
			for i := range entries {
				if e := &entries[i]; e.Stored() {
					u.lines[placeOf(e.Ref, e.Version)] = e.line
				}
			}
			return nil
		}, func(*placed) error { return nil })
	}
	return Origin{u.export.sources[0], u.lines[placeOf(ref, version)]}
}
