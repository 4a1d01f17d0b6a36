package recorder

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"oda"
)

const (
	batchRecords = 1000
	// batchBytes keeps the body of a batch below 1 MiB.
	batchBytes = 1<<20 - 16<<10
	keptBuffer = 4 << 20 // a larger buffer is not kept for the next batch
)

// item is one line of a segment.
type item struct {
	at, end position
	line    []byte
	sort    string
	record  oda.NewRecord // or whatever else is to be sent
	damage  string        // why the line cannot be read; empty if it can
}

// stretch is a run of lines of one segment, for one batch. Its lines are valid
// until the next stretch is read.
type stretch struct {
	items []item
	to    position // where the next one begins
	full  bool     // there may be more to read at once
}

// first returns the beginning of the stretch that goes in one request: up to
// record number most, or a line that is no record, which goes alone.
func (s stretch) first(most int) stretch {
	for i, it := range s.items {
		if it.damage != "" {
			continue
		}
		alone := it.sort != recordLine
		if alone && i > 0 {
			return stretch{items: s.items[:i], to: it.at, full: true}
		}
		if most--; (alone || most == 0) && i+1 < len(s.items) {
			return stretch{items: s.items[:i+1], to: it.end, full: true}
		}
	}
	return s
}

// head returns the first line, if there is one.
func (s stretch) head() item {
	if len(s.items) == 0 {
		return item{sort: recordLine}
	}
	return s.items[0]
}

// reader reads the lines of a session in order.
type reader struct {
	in      *folder
	session string
	buffer  []byte
}

// next reads a stretch that begins at a position and ends before the limit. The
// lines before the limit are complete, or nobody is left to complete them. If
// the stretch is empty, the limit is reached.
func (r *reader) next(from, limit position) (stretch, error) {
	for {
		end, err := r.end(from.segment, limit)
		if err != nil {
			return stretch{}, err
		}
		if from.offset < end {
			return r.read(from, end)
		}
		if from.segment >= limit.segment {
			return stretch{to: from}, nil
		}
		if from, err = r.following(from.segment, limit.segment); err != nil {
			return stretch{}, err
		}
	}
}

// end returns where a segment ends, or 0 if the segment has been shipped and
// removed.
func (r *reader) end(segment int, limit position) (int64, error) {
	if segment == limit.segment {
		return limit.offset, nil
	}
	size, err := r.in.size(segmentName(segment))
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read the spool: %w", err)
	}
	return size, nil
}

// following returns the beginning of the next segment that exists.
func (r *reader) following(segment, last int) (position, error) {
	found, err := segments(r.in)
	if err != nil {
		return position{}, fmt.Errorf("read the spool: %w", err)
	}
	i, there := slices.BinarySearch(found, segment+1)
	if there || i < len(found) && found[i] < last {
		return position{segment: found[i]}, nil
	}
	return position{segment: last}, nil
}

// read reads at least one line of a segment.
func (r *reader) read(from position, end int64) (stretch, error) {
	file, err := r.in.open(segmentName(from.segment), os.O_RDONLY)
	if err != nil {
		return stretch{}, fmt.Errorf("read the spool: %w", err)
	}
	defer file.Close()
	if cap(r.buffer) > keptBuffer {
		r.buffer = nil
	}
	size := min(int64(batchBytes), end-from.offset)
	for {
		r.buffer = slices.Grow(r.buffer[:0], int(size))[:size]
		n, err := file.ReadAt(r.buffer, from.offset)
		if err != nil && !errors.Is(err, io.EOF) {
			return stretch{}, fmt.Errorf("read the spool: %w", err)
		}
		text := r.buffer[:n]
		// A file may have become shorter in the meantime.
		last := n < int(size) || from.offset+size == end
		if last || n == maxLine || bytes.IndexByte(text, '\n') >= 0 {
			return r.split(from, text, last), nil
		}
		size = min(2*size, maxLine, end-from.offset)
	}
}

// split splits a text into the lines of a stretch.
func (r *reader) split(from position, text []byte, last bool) stretch {
	b := stretch{to: from}
	taken := 0
	for len(text) > 0 && len(b.items) < batchRecords {
		line, rest, whole := bytes.Cut(text, []byte("\n"))
		length := len(text) - len(rest)
		if !whole && !last && len(b.items) > 0 || taken > 0 && taken+length > batchBytes {
			break
		}
		it := item{at: b.to, end: position{from.segment, b.to.offset + int64(length)}, line: line}
		switch {
		case whole:
			it.sort, it.record, it.damage = parseLine(line, r.session)
		case last:
			it.damage = "the line is cut off"
		default:
			it.damage = "the line is too long"
		}
		b.items = append(b.items, it)
		b.to = it.end
		text, taken = rest, taken+length
	}
	b.full = len(text) > 0 || !last
	return b
}
