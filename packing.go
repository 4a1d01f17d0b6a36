package oda

import (
	"encoding/binary"
	"errors"
	"math"
	"strings"
)

// packedForm is the first byte of a packed summary.
const packedForm = 1

// Pack encodes the summary as engines store it. A search may read thousands, so
// the form is one that can be decoded quickly.
func (s *Summary) Pack() []byte {
	b := append(make([]byte, 0, 512), packedForm)
	b = packText(b, s.Telescope)
	b = packText(b, s.Name)
	b = packText(b, s.Status)
	b = packText(b, strings.Join(s.Words, " "))
	b = binary.AppendUvarint(b, uint64(len(s.Targets)))
	for _, t := range s.Targets {
		b = packText(b, t.Name)
		b = binary.BigEndian.AppendUint64(b, math.Float64bits(t.RA))
		b = binary.BigEndian.AppendUint64(b, math.Float64bits(t.Dec))
	}
	b = binary.AppendUvarint(b, uint64(len(s.References)))
	for _, r := range s.References {
		b = append(b, byte(r.Kind))
		b = binary.AppendUvarint(b, uint64(r.Version))
		b = packText(b, r.ID)
		b = packText(b, r.Field)
	}
	b = binary.AppendUvarint(b, uint64(len(s.Blocks)))
	for _, block := range s.Blocks {
		b = packText(b, block)
	}
	if s.Remark != nil {
		b = s.Remark.pack(b)
	}
	return b
}

// pack appends the remark, which ends the summary of a note.
func (r *Remark) pack(b []byte) []byte {
	b = packText(b, r.Text)
	b = packText(b, string(r.Level))
	b = packInstant(b, r.From)
	b = packInstant(b, r.To)
	b = binary.AppendUvarint(b, uint64(r.Lost))
	b = packText(b, string(r.LostTo))
	b = binary.AppendUvarint(b, uint64(len(r.Tags)))
	for _, tag := range r.Tags {
		b = packText(b, tag)
	}
	if r.Withdrawn {
		return append(b, 1)
	}
	return append(b, 0)
}

// packInstant appends whether there is an instant, and which.
func packInstant(b []byte, at *Instant) []byte {
	if at == nil {
		return append(b, 0)
	}
	return binary.BigEndian.AppendUint64(append(b, 1), uint64(*at))
}

func packText(b []byte, text string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

// errPacking says that a packed summary cannot be decoded.
var errPacking = errors.New("a stored summary cannot be read; the archive was changed by something other than oda")

// UnpackSummary decodes what Pack wrote. The texts of the summary share memory
// with each other.
func UnpackSummary(packed []byte) (Summary, error) {
	u := unpacking{rest: string(packed)}
	if u.byte() != packedForm {
		u.failed = true
	}
	var s Summary
	s.Telescope, s.Name, s.Status = u.text(), u.text(), u.text()
	if words := u.text(); words != "" {
		s.Words = strings.Split(words, " ")
	}
	if n := u.count(); n > 0 {
		s.Targets = make([]Target, n)
		for i := range s.Targets {
			s.Targets[i] = Target{Name: u.text(), RA: u.float(), Dec: u.float()}
		}
	}
	if n := u.count(); n > 0 {
		s.References = make([]Reference, n)
		for i := range s.References {
			s.References[i] = Reference{Kind: Kind(u.byte()), Version: int64(u.number()), ID: u.text(), Field: u.text()}
		}
	}
	if n := u.count(); n > 0 {
		s.Blocks = make([]string, n)
		for i := range s.Blocks {
			s.Blocks[i] = u.text()
		}
	}
	if u.rest != "" && !u.failed {
		s.Remark = u.remark()
	}
	if u.failed || u.rest != "" {
		return Summary{}, errPacking
	}
	return s, nil
}

func (u *unpacking) remark() *Remark {
	r := &Remark{Text: u.text(), Level: Level(u.text()), From: u.instant(), To: u.instant(), Lost: Elapsed(u.number()), LostTo: Loss(u.text())}
	if n := u.count(); n > 0 {
		r.Tags = make([]string, n)
		for i := range r.Tags {
			r.Tags[i] = u.text()
		}
	}
	r.Withdrawn = u.byte() == 1
	return r
}

func (u *unpacking) instant() *Instant {
	if u.byte() == 0 {
		return nil
	}
	at := Instant(u.fixed())
	return &at
}

// unpacking decodes a packed summary from front to back.
type unpacking struct {
	rest   string
	failed bool
}

// take returns the next n bytes. If fewer are left, it returns none and fails.
func (u *unpacking) take(n uint64) string {
	if u.failed || n > uint64(len(u.rest)) {
		u.failed, u.rest = true, ""
		return ""
	}
	text := u.rest[:n]
	u.rest = u.rest[n:]
	return text
}

func (u *unpacking) byte() byte {
	if text := u.take(1); text != "" {
		return text[0]
	}
	return 0
}

func (u *unpacking) number() uint64 {
	var n uint64
	for shift := 0; shift < 64; shift += 7 {
		b := u.byte()
		if n |= uint64(b&0x7f) << shift; b < 0x80 {
			return n
		}
	}
	u.failed = true
	return 0
}

// count reads the length of a list. Every item takes at least one byte, so a
// length beyond the rest is wrong, and no memory is taken for it.
func (u *unpacking) count() uint64 {
	n := u.number()
	if n > uint64(len(u.rest)) {
		u.failed = true
		return 0
	}
	return n
}

func (u *unpacking) text() string { return u.take(u.number()) }

func (u *unpacking) float() float64 { return math.Float64frombits(u.fixed()) }

// fixed reads a number of eight bytes.
func (u *unpacking) fixed() (n uint64) {
	text := u.take(8)
	for i := range len(text) {
		n = n<<8 | uint64(text[i])
	}
	return n
}
