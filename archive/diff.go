package archive

import (
	"context"

	"oda"
)

// MaxDiff is how many bytes the two documents of a comparison may have together.
const MaxDiff = 16 << 20

// Diff holds two versions of an entity to compare.
type Diff struct{ From, To *oda.Entity }

// Diff returns two versions of an entity, each as it last was while it was
// current. If to is 0, it stands for the current version; if from is 0, for the
// version before to.
func (a *Archive) Diff(ctx context.Context, ref oda.Ref, from, to int64) (Diff, error) {
	newer, err := a.VersionInfo(ctx, ref, to)
	if err != nil {
		return Diff{}, err
	}
	to = newer.Metadata.Version
	if from == 0 {
		from = to - 1
	}
	if from == 0 {
		return Diff{}, &oda.Error{
			Code:   oda.InvalidQuery,
			Detail: "There is no version before version 1 to compare it with. Name the versions to compare, in from and to.",
			Faults: []oda.Fault{{Pointer: "query:from", Detail: "There is no version before version 1 to compare it with."}},
		}
	}
	older, err := a.VersionInfo(ctx, ref, from)
	if err != nil {
		return Diff{}, err
	}
	// The texts alone may be too large to hold in memory.
	if newer.Bytes+older.Bytes > MaxDiff {
		return Diff{}, diffTooLarge()
	}
	var d Diff
	if d.To, err = a.engine.Version(ctx, ref, to); err != nil || from == to {
		return Diff{d.To, d.To}, err
	}
	d.From, err = a.engine.Version(ctx, ref, from)
	return d, err
}

func diffTooLarge() *oda.Error {
	return oda.Errorf(oda.DiffTooLarge, "These two versions are together larger than the limit of %d bytes for a comparison. "+
		"Read both, and compare them yourself.", MaxDiff)
}

// Documents renders both documents. It calls room before it takes memory.
func (d Diff) Documents(room func(bytes int64) error) (from, to []byte, err error) {
	w := diffWriter{room: room}
	if from, err = w.render(d.From); err != nil || d.From == d.To {
		return from, from, err
	}
	to, err = w.render(d.To)
	return from, to, err
}

// diffWriter renders the documents of a comparison into memory, up to MaxDiff.
type diffWriter struct {
	room  func(bytes int64) error
	taken int // bytes of the document that is complete
	text  []byte
}

func (w *diffWriter) render(e *oda.Entity) ([]byte, error) {
	w.taken += len(w.text)
	w.text = nil
	_, err := e.WriteTo(w)
	return w.text, err
}

func (w *diffWriter) Write(p []byte) (int, error) {
	need := len(w.text) + len(p)
	if w.taken+need > MaxDiff {
		return 0, diffTooLarge()
	}
	if need > cap(w.text) {
		size := max(need, 2*cap(w.text))
		if err := w.room(int64(size - cap(w.text))); err != nil {
			return 0, err
		}
		w.text = append(make([]byte, 0, size), w.text...)
	}
	w.text = append(w.text, p...)
	return len(p), nil
}
