package backup

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// ErrNone says that something is not a backup at all.
var ErrNone = errors.New("it is not a backup made by \"oda backup\"")

// Reader reads a backup and checks every block.
type Reader struct {
	Header Header

	summer summer
	from   io.Reader
	at     int64 // where the next block begins
	blocks int64
	block  []byte
	end    *End
}

// NewReader reads the beginning of a backup. The error is ErrNone if it is something
// else.
func NewReader(from io.Reader) (*Reader, error) {
	r := &Reader{from: from, at: int64(len(magic))}
	first := make([]byte, len(magic))
	if n, err := io.ReadFull(from, first); err != nil && !isCut(err) {
		return nil, err
	} else if string(first) != magic {
		if n > 0 && bytes.HasPrefix([]byte(magic), first[:n]) {
			return nil, &Damage{int64(n), "it ends there, within its first line"}
		}
		if bytes.HasPrefix([]byte("SQLite format 3\x00"), first) {
			return nil, fmt.Errorf("%w, but a SQLite database; if that is an archive, copy it to its place", ErrNone)
		}
		if bytes.HasPrefix(first, []byte("\x28\xb5\x2f\xfd")) { // zstd
			return nil, fmt.Errorf("%w; if it is an export, bring it into an archive with \"oda import\"", ErrNone)
		}
		if bytes.HasPrefix(first, []byte(Begins)) {
			return nil, fmt.Errorf("%w of this version; restore it with the one that made it", ErrNone)
		}
		return nil, ErrNone
	}
	kind, _, content, err := r.read()
	if err != nil {
		return nil, err
	}
	if kind != header || json.Unmarshal(content, &r.Header) != nil {
		return nil, &Damage{int64(len(magic)), "it does not begin with a description of itself"}
	}
	// The checksum needs the identity, which is inside.
	if r.summer, err = newSummer(r.Header.Identity); err != nil {
		return nil, err
	}
	if err := r.check(int64(len(magic))); err != nil {
		return nil, err
	}
	if size := r.Header.PageSize; size < 512 || size > 65536 || size&(size-1) != 0 {
		return nil, &Damage{int64(len(magic)), fmt.Sprintf("a page cannot have %d bytes", size)}
	}
	return r, nil
}

// isCut reports whether reading failed because there is no more.
func isCut(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) }

// Next returns the next pages and the number of the first. At the end of the backup
// it returns io.EOF, after it has made sure that nothing follows. What it returned
// before is valid until then.
func (r *Reader) Next() (first uint32, content []byte, err error) {
	if r.end != nil {
		return 0, nil, io.EOF
	}
	at := r.at
	kind, first, content, err := r.read()
	if err == nil {
		err = r.check(at)
	}
	if err != nil {
		return 0, nil, err
	}
	switch kind {
	case pages:
		if first == 0 || len(content) == 0 || len(content)%r.Header.PageSize != 0 {
			return 0, nil, &Damage{at, "it has no whole pages there"}
		}
		return first, content, nil
	case end:
		e := &End{}
		if json.Unmarshal(content, e) != nil || e.Blocks != r.blocks-2 {
			return 0, nil, &Damage{at, "what it says at its end is not valid"}
		}
		if n, err := r.from.Read(make([]byte, 1)); n > 0 {
			return 0, nil, &Damage{r.at, "something follows after its end"}
		} else if err != nil && !errors.Is(err, io.EOF) {
			return 0, nil, err
		}
		r.end = e
		return 0, nil, io.EOF
	}
	return 0, nil, &Damage{at, "it has a block of an unknown kind there"}
}

// End returns what the backup says at its end, once Next has returned io.EOF.
func (r *Reader) End() End { return *r.end }

// At returns how many bytes were read.
func (r *Reader) At() int64 { return r.at }

// read reads a block, which check then checks.
func (r *Reader) read() (kind byte, first uint32, content []byte, err error) {
	at := r.at
	r.block = slices.Grow(r.block[:0], headSize)[:headSize]
	if err := r.fill(at, r.block); err != nil {
		return 0, 0, nil, err
	}
	length := int(binary.BigEndian.Uint32(r.block[5:]))
	if length > MaxBlock {
		return 0, 0, nil, &Damage{at, "the length of the block there is not valid"}
	}
	r.block = slices.Grow(r.block, length+sumSize)[:headSize+length+sumSize]
	if err := r.fill(at+headSize, r.block[headSize:]); err != nil {
		return 0, 0, nil, err
	}
	r.at += int64(len(r.block))
	return r.block[0], binary.BigEndian.Uint32(r.block[1:]), r.block[headSize : headSize+length], nil
}

// fill reads as much as fits.
func (r *Reader) fill(at int64, into []byte) error {
	n, err := io.ReadFull(r.from, into)
	if isCut(err) {
		return &Damage{at + int64(n), "it ends there, and is not complete"}
	}
	return err
}

// check compares the block at hand, which begins at a byte, with its checksum.
func (r *Reader) check(at int64) error {
	inside := len(r.block) - sumSize
	s := r.summer.sum(nil, r.blocks, r.block[:inside])
	r.blocks++
	if !bytes.Equal(s, r.block[inside:]) {
		return &Damage{at, fmt.Sprintf("the block of %d bytes there does not match its checksum", len(r.block))}
	}
	return nil
}

// Copy copies a backup and checks every block before it writes it. It calls
// begun when it knows what it copies.
func Copy(to io.Writer, from io.Reader, begun func(Header)) (Header, End, error) {
	r, err := NewReader(from)
	if err != nil {
		return Header{}, End{}, err
	}
	begun(r.Header)
	if _, err := io.WriteString(to, magic); err != nil {
		return Header{}, End{}, err
	}
	for err == nil {
		if _, err := to.Write(r.block); err != nil {
			return Header{}, End{}, err
		}
		_, _, err = r.Next()
	}
	if !errors.Is(err, io.EOF) {
		return Header{}, End{}, err
	}
	_, err = to.Write(r.block)
	return r.Header, r.End(), err
}
