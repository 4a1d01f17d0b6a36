package moving

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"math"
	"os"
	"sort"

	"oda"
)

// spool keeps documents in a temporary file until all are there, to hand them over by
// entity: files have them in any order. Its memory is a few words for each.
type spool struct {
	file  *os.File
	out   *bufio.Writer
	end   int64
	index spoolIndex
}

// spooled is a document in the spool. Entities are told apart by a hash, and by their
// names when they are read. There may be millions.
type spooled struct {
	entity  uint64
	offset  int64
	length  uint32
	version int32 // for the order, and bounded
}

// spoolIndex is a list in parts, so that it is never copied to grow. It implements
// sort.Interface.
type spoolIndex struct {
	parts [][]spooled
	n     int
	order func(a, b *spooled) int
}

const spoolPart = 1 << 14

func (x *spoolIndex) add(one spooled) {
	if x.n%spoolPart == 0 {
		x.parts = append(x.parts, make([]spooled, spoolPart))
	}
	x.n++
	*x.at(x.n - 1) = one
}

func (x *spoolIndex) at(i int) *spooled  { return &x.parts[i/spoolPart][i%spoolPart] }
func (x *spoolIndex) Len() int           { return x.n }
func (x *spoolIndex) Less(i, j int) bool { return x.order(x.at(i), x.at(j)) < 0 }
func (x *spoolIndex) Swap(i, j int)      { *x.at(i), *x.at(j) = *x.at(j), *x.at(i) }

func newSpool() (*spool, error) {
	f, err := os.CreateTemp("", "oda-import-*")
	if err != nil {
		return nil, err
	}
	// The file has no name any more, so it is gone with the process.
	if err := os.Remove(f.Name()); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &spool{file: f, out: bufio.NewWriterSize(f, 1<<20)}, nil
}

func (s *spool) close() { _ = s.file.Close() }

// spoolHeader goes before each document in the spool.
type spoolHeader struct {
	Origin
	oda.Ref
	Version int64
}

func (s *spool) add(f *found) error {
	header, err := json.Marshal(spoolHeader{f.Origin, f.Ref, f.version})
	if err != nil {
		return err
	}
	n := len(header) + 1 + len(f.text)
	version := int32(max(math.MinInt32, min(f.version, math.MaxInt32)))
	s.index.add(spooled{hashOf(f.Ref), s.end, uint32(n), version})
	s.end += int64(n)
	_, err = s.out.Write(append(append(header, '\n'), f.text...))
	return err
}

// histories calls emit for each entity, or for each part of one if it has many versions.
func (s *spool) histories(ctx context.Context, inParts bool, emit func(*history) error) error {
	if err := s.out.Flush(); err != nil {
		return err
	}
	// Entities come in the order of their first documents, by which they are told apart
	// from here on.
	s.index.order = func(a, b *spooled) int {
		return cmp.Or(cmp.Compare(a.entity, b.entity), cmp.Compare(a.offset, b.offset))
	}
	sort.Sort(&s.index)
	entity, first := uint64(0), int64(-1)
	for i := range s.index.n {
		one := s.index.at(i)
		if first < 0 || one.entity != entity {
			entity, first = one.entity, one.offset
		}
		one.entity = uint64(first)
	}
	s.index.order = func(a, b *spooled) int {
		return cmp.Or(cmp.Compare(a.entity, b.entity), cmp.Compare(a.version, b.version), cmp.Compare(a.offset, b.offset))
	}
	sort.Sort(&s.index)
	next, err := s.sorted()
	if err != nil {
		return err
	}
	one, err := next()
	for err == nil {
		byRef := make(map[oda.Ref]*gathered)
		for entity := one.entity; err == nil && one.entity == entity; one, err = next() {
			f, err := s.read(one)
			if err != nil {
				return err
			}
			g := byRef[f.Ref]
			if g == nil {
				g = &gathered{history: &history{Ref: f.Ref}}
				byRef[f.Ref] = g
			}
			if inParts && g.endsBefore(f) {
				if err := emit(g.part()); err != nil {
					return err
				}
			}
			g.versions = append(g.versions, *f)
			g.size += len(f.text) + lineBytes
		}
		for _, g := range byRef {
			if err := emit(g.history); err != nil {
				return err
			}
		}
	}
	if !errors.Is(err, io.EOF) {
		return err
	}
	return ctx.Err()
}

// gathered is what was read of a history.
type gathered struct {
	*history
	size int
}

// endsBefore reports whether a part is large enough. Documents of the same version stay
// together.
func (g *gathered) endsBefore(f *found) bool {
	n := len(g.versions)
	return n > 0 && g.size >= partBytes && (f.version == 0 || f.version != g.versions[n-1].version)
}

// part returns what was gathered as a part of the history, and begins the next one.
func (g *gathered) part() *history {
	if g.parts == nil {
		g.parts = new(progress)
	}
	full := *g.history
	g.versions, g.size = nil, 0
	return &full
}

// sorted moves the index, which is sorted, to the end of the file, so that it takes no
// memory while documents are imported. It returns a function that returns one after
// the other, and io.EOF in the end.
func (s *spool) sorted() (next func() (spooled, error), err error) {
	const size = 20
	for i := range s.index.n {
		one := s.index.at(i)
		row := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(make([]byte, 0, size), one.entity), uint64(one.offset))
		if _, err := s.out.Write(binary.BigEndian.AppendUint32(row, one.length)); err != nil {
			return nil, err
		}
	}
	rows := bufio.NewReaderSize(io.NewSectionReader(s.file, s.end, int64(s.index.n)*size), 1<<16)
	s.index = spoolIndex{}
	return func() (spooled, error) {
		var row [size]byte
		_, err := io.ReadFull(rows, row[:])
		return spooled{entity: binary.BigEndian.Uint64(row[:]), offset: int64(binary.BigEndian.Uint64(row[8:])), length: binary.BigEndian.Uint32(row[16:])}, err
	}, s.out.Flush()
}

func (s *spool) read(one spooled) (*found, error) {
	text := make([]byte, one.length)
	if _, err := s.file.ReadAt(text, one.offset); err != nil {
		return nil, err
	}
	head, document, _ := bytes.Cut(text, []byte("\n"))
	var header spoolHeader
	if err := json.Unmarshal(head, &header); err != nil {
		return nil, err
	}
	return &found{Origin: header.Origin, Ref: header.Ref, version: header.Version, text: document}, nil
}
