package rawjson

import (
	"math"
	"unsafe"
)

// Interest is what somebody who watches a scan wants with the values under a
// key; 0 is nothing. The numbers are theirs, below maxInterests but for Blind.
type Interest uint8

const maxInterests = 32

// Blind says that nothing inside the value is of interest, whatever its keys
// are.
const Blind Interest = math.MaxUint8

// Watch tells the interest in a key, at whatever depth it stands. It is called
// for every key, so it must be quick.
type Watch func(key []byte) Interest

// Note is a string or number under a key of interest: the value itself, or an
// element of a list that is the value.
type Note struct {
	Start, End int32 // of the value in the text
	In         int32 // the place that holds it
	Index      int32 // in a list; -1 in an object
	Of         Interest
	Kind       Kind
}

// Place is an object or list that has notes in it or below. A place comes
// before those in it.
type Place struct {
	Start int32 // in the text
	In    int32 // the place that holds it; -1 for the outermost
	Index int32 // in a list; -1 in an object
	Of    Interest
}

// Notes are what a scan saw of what it was to watch for, in the order of the
// text.
type Notes struct {
	Notes  []Note
	Places []Place
}

// maxNotes is how many values of one interest are noted in one document. Members
// of the document itself count apart, so that nothing that stands deeper, however
// much it is, hides what a document says of itself.
const maxNotes = 20_000

// counts are the notes of the document under way, by interest: those within it,
// and its own members.
type counts [2][maxInterests]int32

// Watch makes the scan note what it sees of interest from now on; nil ends that.
// Of a text beyond 2 GiB nothing is noted.
func (s *Scanner) Watch(watch Watch) {
	if len(s.data) <= math.MaxInt32 {
		s.watch = watch
	}
}

// Size is about how many bytes the notes take.
func (n Notes) Size() int64 {
	return int64(cap(n.Notes))*int64(unsafe.Sizeof(Note{})) + int64(cap(n.Places))*int64(unsafe.Sizeof(Place{}))
}

// Notes returns what was noted.
func (s *Scanner) Notes() Notes { return s.notes }

// look takes over from the frame around it what a new frame must know.
func (s *Scanner) look(f *frame) {
	if len(s.frames) == 0 {
		return
	}
	around := &s.frames[len(s.frames)-1]
	f.blind = around.blind || around.of == Blind
	if f.array {
		f.of = around.of
	}
}

// note notes the value that was just consumed, if it is of interest.
func (s *Scanner) note(kind Kind, start int) {
	if len(s.frames) == 0 {
		return
	}
	f := &s.frames[len(s.frames)-1]
	if f.of == 0 || f.blind || f.of == Blind {
		return
	}
	index := int32(-1)
	if f.array {
		index = int32(f.n - 1)
	}
	if s.counts == nil {
		s.counts = new(counts)
	}
	count := &s.counts[0][f.of]
	if len(s.frames)-1 == s.floor && !f.array {
		count = &s.counts[1][f.of]
	}
	if *count == maxNotes {
		return
	}
	*count++
	if s.notes.Notes == nil {
		// About as many as there will be, so that memory is taken once.
		s.notes.Notes = make([]Note, 0, min(8+len(s.data)/64, 1024))
		s.notes.Places = make([]Place, 0, min(8+len(s.data)/64, 1024))
	}
	s.notes.Notes = append(s.notes.Notes, Note{
		Start: int32(start), End: int32(s.pos), In: s.place(len(s.frames) - 1), Index: index, Of: f.of, Kind: kind,
	})
}

// place returns the place of a frame, and makes it if it has none yet.
func (s *Scanner) place(i int) int32 {
	f := &s.frames[i]
	if f.place > 0 {
		return f.place - 1
	}
	p := Place{Start: f.start, In: -1, Index: -1}
	if i > 0 {
		p.In = s.place(i - 1)
		around := &s.frames[i-1]
		p.Of = around.of
		if around.array {
			p.Index = int32(around.n - 1)
		}
	}
	s.notes.Places = append(s.notes.Places, p)
	f.place = int32(len(s.notes.Places))
	return f.place - 1
}
