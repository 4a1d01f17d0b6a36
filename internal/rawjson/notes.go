package rawjson

import (
	"math"
	"unsafe"
)

// Interest says why the caller wants to note the values of a key; 0 means that it
// does not. The caller chooses the numbers, below maxInterests, except for Blind.
type Interest uint8

const maxInterests = 32

// Blind says that nothing inside the value is to be noted, whatever its keys are.
const Blind Interest = math.MaxUint8

// Watch returns the interest in a key, at any depth. It is called for every key,
// so it must be fast.
type Watch func(key []byte) Interest

// Note is a string or number that was noted: the value of a key, or an element of
// a list that is the value.
type Note struct {
	Start, End int32 // of the value in the text
	In         int32 // index of the container that holds it
	Index      int32 // in a list; -1 in an object
	Of         Interest
	Kind       Kind
}

// Container is an object or list that holds notes, directly or further down. A container
// comes before those in it.
type Container struct {
	Start int32 // in the text
	In    int32 // index of the container that holds it; -1 for the outermost
	Index int32 // in a list; -1 in an object
	Of    Interest
}

// Notes holds what a scan noted, in the order of the text.
type Notes struct {
	Notes      []Note
	Containers []Container
}

// maxNotes is how many values of one interest are noted in one document. Members
// of the document itself are counted separately, so that values further down never
// crowd them out.
const maxNotes = 20_000

// counts has the number of notes of the current document, by interest: first those
// further down, then those of its own members.
type counts [2][maxInterests]int32

// Watch makes the scanner note values from now on; nil stops it. It notes nothing
// in a text of more than 2 GiB.
func (s *Scanner) Watch(watch Watch) {
	if len(s.data) <= math.MaxInt32 {
		s.watch = watch
	}
}

// Size returns how many bytes of memory the notes take.
func (n Notes) Size() int64 {
	return int64(cap(n.Notes))*int64(unsafe.Sizeof(Note{})) + int64(cap(n.Containers))*int64(unsafe.Sizeof(Container{}))
}

// Notes returns what the scanner has noted.
func (s *Scanner) Notes() Notes { return s.notes }

// look sets what a new frame inherits from the frame around it.
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

// note notes the value that was just consumed, if the caller is interested in it.
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
		// Roughly as many as there will be, so that memory is allocated once.
		s.notes.Notes = make([]Note, 0, min(8+len(s.data)/128, 512))
		s.notes.Containers = make([]Container, 0, min(8+len(s.data)/128, 512))
	}
	s.notes.Notes = append(s.notes.Notes, Note{
		Start: int32(start), End: int32(s.pos), In: s.container(len(s.frames) - 1), Index: index, Of: f.of, Kind: kind,
	})
}

// container returns the index of the container of a frame. It adds one if there is none.
func (s *Scanner) container(i int) int32 {
	f := &s.frames[i]
	if f.container > 0 {
		return f.container - 1
	}
	p := Container{Start: f.start, In: -1, Index: -1}
	if i > 0 {
		p.In = s.container(i - 1)
		around := &s.frames[i-1]
		p.Of = around.of
		if around.array {
			p.Index = int32(around.n - 1)
		}
	}
	s.notes.Containers = append(s.notes.Containers, p)
	f.container = int32(len(s.notes.Containers))
	return f.container - 1
}
