package moving

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"regexp"

	"oda"
)

// maxLine bounds a line: the largest document, all of it escaped.
const maxLine = 1 << 30

// Damage says where an export is damaged.
type Damage struct {
	Line   int64
	Reason string
}

func (d *Damage) Error() string {
	return fmt.Sprintf("the export is damaged at line %d: %s; make it again, or use another copy", d.Line, d.Reason)
}

// reader reads the lines of an export.
type reader struct {
	content io.ReadCloser
	lines   *bufio.Reader
	read    int64  // lines
	long    []byte // a line that is longer than the buffer

	// Of the lines, if they are checked.
	count    Manifest
	sum, crc hash.Hash
}

// next returns the next line without its end. It is valid until the next call.
func (r *reader) next() ([]byte, error) {
	r.long = r.long[:0]
	for {
		text, err := r.lines.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) && len(r.long) < maxLine {
			r.long = append(r.long, text...)
			continue
		}
		if err != nil {
			return nil, r.failed(err)
		}
		r.read++
		if len(r.long) > 0 {
			r.long = append(r.long, text...)
			text = r.long
		}
		return text[:len(text)-1], nil
	}
}

func (r *reader) failed(err error) error {
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return r.damaged(1, "it ends there, before its manifest")
	case errors.Is(err, bufio.ErrBufferFull):
		return r.damaged(1, "the line is too long")
	}
	return r.damaged(1, fmt.Sprintf("it cannot be read (%v)", err))
}

// damaged returns the error for a line. After is how far it is behind the last one read.
func (r *reader) damaged(after int64, reason string) error {
	return &Damage{r.read + after, reason}
}

// anyForm matches the first line of exports of all forms.
var anyForm = regexp.MustCompile(`^\{"export":"oda","form":([0-9]+)[,}]`)

// formOf returns the form of an export with that first line, "" if it has none.
func formOf(first []byte) string {
	if match := anyForm.FindSubmatch(first); match != nil {
		return string(match[1])
	}
	return ""
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// batch is a part of an export as it was read: the lines of whole entries.
type batch struct {
	first int64 // the number of its first line
	lines [][]byte
}

// newReader begins to read an export. The reader must be closed.
func newReader(in io.Reader) (*reader, error) {
	content, _, err := decompressed(in)
	if err != nil {
		return nil, err
	}
	r := &reader{content: content, lines: bufio.NewReaderSize(content, 1<<20), sum: sha256.New(), crc: crc32.New(castagnoli)}
	first, err := r.next()
	switch {
	case err != nil:
	case string(first) == form:
	case formOf(first) != "" && formOf(first) != formOf([]byte(form)):
		err = fmt.Errorf("this export has form %s, and this version of oda reads only form %s; install the version that made the export, or export again with this one",
			formOf(first), formOf([]byte(form)))
	default:
		err = r.damaged(0, "it "+errLine.Error())
	}
	if err != nil {
		r.content.Close()
		return nil, err
	}
	r.add(first)
	return r, nil
}

// check reads an export to its end, and returns its manifest, which fits the lines.
func check(ctx context.Context, in io.Reader) (*Manifest, error) {
	r, err := newReader(in)
	if err != nil {
		return nil, err
	}
	defer r.content.Close()
	for ctx.Err() == nil {
		text, err := r.next()
		if err != nil {
			return nil, err
		}
		if bytes.HasPrefix(text, []byte(manifestKey)) {
			return r.manifest(text)
		}
		r.add(text)
		r.count.tally(text)
	}
	return nil, ctx.Err()
}

// scan reads an export that is checked already, and hands its lines over in batches, in
// order.
func scan(ctx context.Context, in io.Reader, hand func(*batch) error) error {
	r, err := newReader(in)
	if err != nil {
		return err
	}
	defer r.content.Close()
	now, size := &batch{first: 2}, 0
	var room []byte
	for ctx.Err() == nil {
		text, err := r.next()
		if err != nil {
			return err
		}
		if bytes.HasPrefix(text, []byte(manifestKey)) {
			return hand(now)
		}
		// Records that came with a version are in the batch of the version.
		if size >= partBytes && !bytes.HasPrefix(text, []byte(cameKey)) {
			if err := hand(now); err != nil {
				return err
			}
			now, size, room = &batch{first: r.read}, 0, nil
		}
		if cap(room)-len(room) < len(text) {
			room = make([]byte, 0, max(partBytes/4, len(text)))
		}
		at := len(room)
		room = append(room, text...)
		now.lines = append(now.lines, room[at:len(room):len(room)])
		size += len(text)
	}
	return ctx.Err()
}

// add adds a line to the sums.
func (r *reader) add(text []byte) {
	end := []byte{'\n'}
	r.sum.Write(headOf(text))
	r.sum.Write(end)
	r.crc.Write(text)
	r.crc.Write(end)
}

// manifest reads the manifest, and compares it with what was read.
func (r *reader) manifest(text []byte) (*Manifest, error) {
	var last struct{ Manifest Manifest }
	if err := json.Unmarshal(text, &last); err != nil {
		return nil, r.damaged(0, "its manifest is not valid")
	}
	m := &last.Manifest
	r.count.SHA256, r.count.CRC32C = hex.EncodeToString(r.sum.Sum(nil)), hex.EncodeToString(r.crc.Sum(nil))
	if m.SHA256 != r.count.SHA256 || m.CRC32C != r.count.CRC32C {
		return nil, r.damaged(0, "the lines do not fit the checksums in its manifest")
	}
	if r.count != *m {
		return nil, r.damaged(0, "its manifest counts other versions, records or entities than there are")
	}
	if _, err := r.lines.ReadByte(); !errors.Is(err, io.EOF) {
		return nil, r.damaged(1, "something follows its manifest")
	}
	return m, nil
}

// placed is an entry with the line where it begins.
type placed struct {
	oda.LogEntry
	line  int64
	place Place  // if it was not a line of an export
	text  []byte // the document as it was found there
	fault error  // why it cannot be loaded
}

// parse reads the entries of a batch.
func (b *batch) parse() ([]placed, error) {
	entries := make([]placed, 0, len(b.lines))
	for i, text := range b.lines {
		at := b.first + int64(i)
		e, came, err := parseLine(text)
		if err != nil {
			return nil, &Damage{at, "it " + err.Error()}
		}
		if !came {
			entries = append(entries, placed{LogEntry: e, line: at})
			continue
		}
		n := len(entries)
		if n == 0 || !entries[n-1].takes(&e) {
			return nil, &Damage{at, "it says that it came with a version, but no such version precedes it"}
		}
		entries[n-1].Came = append(entries[n-1].Came, e.Body)
	}
	for i := range entries {
		if e := &entries[i]; e.Stored() && e.Before+int64(len(e.Came)) != e.After {
			return nil, &Damage{e.line, "records that came with it are missing"}
		}
	}
	return entries, nil
}

// takes reports whether a record came with the version.
func (p *placed) takes(r *oda.LogEntry) bool {
	return p.Stored() && p.Ref == r.Ref && p.Version == r.Version && p.By == r.By && p.On == r.On &&
		r.Key == "" && r.Sequence == p.Before+int64(len(p.Came))+1 && r.Sequence <= p.After
}
