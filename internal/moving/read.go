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

// maxLine returns how long the line of such a document may be: every byte may be escaped,
// and the list of its records is no longer than the records.
func maxLine(maxDocument int64) int64 { return 3*min(maxDocument, 1<<60) + 1<<20 }

// Damage says where an export is damaged.
type Damage struct {
	Line   int64
	Reason string

	tooLong bool // so nobody knows what the rest of the line is
}

func (d *Damage) Error() string {
	if d.tooLong {
		return fmt.Sprintf("line %d of the export %s; if it is not damaged there, give a larger --max-body", d.Line, d.Reason)
	}
	return fmt.Sprintf("the export is damaged at line %d: %s; make it again, or use another copy", d.Line, d.Reason)
}

// reader reads the lines of an export.
type reader struct {
	content io.ReadCloser
	lines   *bufio.Reader
	maxLine int64  // bytes
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
		more := errors.Is(err, bufio.ErrBufferFull)
		switch {
		case err != nil && !more:
			return nil, r.failed(err)
		case int64(len(r.long)+len(text)) > r.maxLine:
			return nil, r.tooLong()
		case more || len(r.long) > 0:
			r.long = append(r.long, text...)
			text = r.long
		}
		if !more {
			r.read++
			return text[:len(text)-1], nil
		}
	}
}

// pass adds the next line to the sums and counts, and returns it if it is the manifest. It
// keeps next to nothing of a long line, since nobody knows yet whether this is an export.
func (r *reader) pass() (manifest []byte, err error) {
	text, err := r.lines.ReadSlice('\n')
	switch {
	case errors.Is(err, bufio.ErrBufferFull):
		return nil, r.passLong(text)
	case err != nil:
		return nil, r.failed(err)
	}
	r.read++
	text = text[:len(text)-1]
	if bytes.HasPrefix(text, []byte(manifestKey)) {
		return text, nil
	}
	if !r.add(text) {
		return nil, r.damaged(0, "it "+errLine.Error())
	}
	r.count.tally(text)
	return nil, nil
}

// passLong passes a line that is longer than the buffer, which has its beginning.
func (r *reader) passLong(text []byte) (err error) {
	r.count.tally(text)
	var head []byte // that is not in the sum yet
	size, hasHead, more := int64(0), false, true
	for {
		if size += int64(len(text)); size > r.maxLine {
			return r.tooLong()
		}
		r.crc.Write(text)
		if !hasHead {
			head = append(head, text...)
			var all []byte
			if all, hasHead = headOf(head); !hasHead {
				all = head[:max(0, len(head)-len(checkKey)-checkLength)] // it may begin there
			}
			r.sum.Write(all)
			head = append(head[:0], head[len(all):]...)
		}
		if !more {
			break
		}
		text, err = r.lines.ReadSlice('\n')
		if more = errors.Is(err, bufio.ErrBufferFull); err != nil && !more {
			return r.failed(err)
		}
	}
	r.read++
	if !hasHead {
		return r.damaged(0, "it "+errLine.Error())
	}
	r.sum.Write([]byte{'\n'})
	return nil
}

func (r *reader) failed(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return r.damaged(1, "it ends there, before its manifest")
	}
	return r.damaged(1, fmt.Sprintf("it cannot be read (%v)", err))
}

func (r *reader) tooLong() error {
	return &Damage{Line: r.read + 1, Reason: fmt.Sprintf("has more than %d bytes", r.maxLine), tooLong: true}
}

// damaged returns the error for a line. After is how many lines it comes after the last one
// read.
func (r *reader) damaged(after int64, reason string) error {
	return &Damage{Line: r.read + after, Reason: reason}
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

// newReader begins to read an export with lines of at most so many bytes. The reader must
// be closed.
func newReader(in io.Reader, maxLine int64) (*reader, error) {
	content, _, err := decompressed(in)
	if err != nil {
		return nil, err
	}
	r := &reader{content: content, lines: bufio.NewReaderSize(content, 1<<20), maxLine: maxLine, sum: sha256.New(), crc: crc32.New(castagnoli)}
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
func check(ctx context.Context, in io.Reader, maxLine int64) (*Manifest, error) {
	r, err := newReader(in, maxLine)
	if err != nil {
		return nil, err
	}
	defer r.content.Close()
	for ctx.Err() == nil {
		manifest, err := r.pass()
		if err != nil {
			return nil, err
		}
		if manifest != nil {
			return r.manifest(manifest)
		}
	}
	return nil, ctx.Err()
}

// scan reads an export that is checked already, and hands its lines over in batches, in
// order.
func scan(ctx context.Context, in io.Reader, maxLine int64, hand func(*batch) error) error {
	r, err := newReader(in, maxLine)
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
		size += len(text)
		if len(r.long) > 0 { // it has room of its own already
			now.lines, r.long = append(now.lines, text), nil
			continue
		}
		if cap(room)-len(room) < len(text) {
			room = make([]byte, 0, max(partBytes/4, len(text)))
		}
		at := len(room)
		room = append(room, text...)
		now.lines = append(now.lines, room[at:len(room):len(room)])
	}
	return ctx.Err()
}

// add adds a line to the sums, and reports whether it has a check.
func (r *reader) add(text []byte) bool {
	end := []byte{'\n'}
	head, ok := headOf(text)
	r.sum.Write(head)
	r.sum.Write(end)
	r.crc.Write(text)
	r.crc.Write(end)
	return ok
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
		return nil, r.damaged(0, "its manifest counts other versions, records, statuses or entities than there are")
	}
	if _, err := r.lines.ReadByte(); !errors.Is(err, io.EOF) {
		return nil, r.damaged(1, "something follows its manifest")
	}
	return m, nil
}

// placed is an entry with the line where it begins.
type placed struct {
	oda.LogEntry
	line   int64
	origin Origin // if it was not a line of an export
	text   []byte // the document as it was found there
	fault  error  // why it cannot be loaded
}

// parse reads the entries of a batch.
func (b *batch) parse() ([]placed, error) {
	entries := make([]placed, 0, len(b.lines))
	for i, text := range b.lines {
		at := b.first + int64(i)
		e, came, err := parseLine(text)
		if err != nil {
			return nil, &Damage{Line: at, Reason: "it " + err.Error()}
		}
		if !came {
			entries = append(entries, placed{LogEntry: e, line: at})
			continue
		}
		n := len(entries)
		if n == 0 || !entries[n-1].takes(&e) {
			return nil, &Damage{Line: at, Reason: "it says that it came with a version, but no such version precedes it"}
		}
		entries[n-1].Came = append(entries[n-1].Came, e.Body)
	}
	for i := range entries {
		if e := &entries[i]; e.Stored() && e.Before+int64(len(e.Came)) != e.After {
			return nil, &Damage{Line: e.line, Reason: "records that came with it are missing"}
		}
	}
	return entries, nil
}

// takes reports whether a record came with the version.
func (p *placed) takes(r *oda.LogEntry) bool {
	return p.Stored() && p.Ref == r.Ref && p.Version == r.Version && p.By == r.By && p.On == r.On &&
		r.Key == "" && r.Sequence == p.Before+int64(len(p.Came))+1 && r.Sequence <= p.After
}
