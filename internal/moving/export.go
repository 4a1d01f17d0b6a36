package moving

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"runtime"
	"slices"
	"sync"

	"github.com/klauspost/compress/zstd"

	"oda"
)

// Lines are compressed in parts, several at a time. Where a part ends depends on the
// entries alone, so the same entries give the same file.
const (
	partBytes = 1 << 20 // of texts; the last may exceed it
	lineBytes = 512     // roughly, of a line without its text
)

// Export writes the log up to a position, with everything of the wanted entities, and
// returns its manifest. Progress is called with how many positions were written since
// the last call.
func Export(ctx context.Context, from Source, until oda.Position, wanted func(oda.Ref) bool, to io.Writer, progress func(int64)) (*Manifest, error) {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(partBytes), zstd.WithEncoderConcurrency(runtime.GOMAXPROCS(0)))
	if err != nil {
		return nil, fmt.Errorf("export: %w", err)
	}
	defer encoder.Close()
	var m Manifest
	sum, crc := sha256.New(), crc32.New(castagnoli)
	err = pipeline(ctx, runtime.GOMAXPROCS(0), func(ctx context.Context, hand func(*part) error) error {
		// The first line is compressed alone, so that it can be read from any beginning
		// of the file.
		first := []byte(form + "\n")
		if err := hand(&part{buffer: buffer{lines: lines{first, first}}}); err != nil {
			return err
		}
		now := &part{}
		err := from.Entries(ctx, until, wanted, func(e *oda.LogEntry) error {
			now.entries = append(now.entries, *e)
			now.positions += e.Positions()
			if now.size += e.Size() + lineBytes*int(e.Positions()); now.size < partBytes {
				return nil
			}
			full := now
			now = &part{}
			return hand(full)
		})
		if err != nil {
			return err
		}
		return hand(now)
	}, func(p *part) (*part, error) { return p, p.encode(encoder) }, func(p *part) error {
		m.add(&p.counts)
		sum.Write(p.lines.heads)
		crc.Write(p.lines.text)
		_, err := to.Write(p.compressed)
		buffers.Put(&p.buffer)
		if err != nil {
			return err
		}
		progress(p.positions)
		return nil
	})
	if err != nil {
		return nil, err
	}
	m.SHA256, m.CRC32C = hex.EncodeToString(sum.Sum(nil)), hex.EncodeToString(crc.Sum(nil))
	text, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("export: %w", err)
	}
	_, err = to.Write(encoder.EncodeAll(fmt.Appendf(nil, "%s%s}\n", manifestKey, text), nil))
	return &m, err
}

// part is a part of an export.
type part struct {
	entries   []oda.LogEntry
	size      int
	positions int64
	counts    Manifest
	buffer
}

// buffer is memory of a part that others use after it.
type buffer struct {
	lines      lines
	compressed []byte
}

var buffers = sync.Pool{New: func() any { return new(buffer) }}

// encode checks the entries of the part, makes their lines, and compresses them.
func (p *part) encode(encoder *zstd.Encoder) error {
	if p.lines.text == nil {
		used := buffers.Get().(*buffer)
		p.lines = lines{slices.Grow(used.lines.text[:0], p.size+p.size/8), used.lines.heads[:0]}
		p.compressed = used.compressed[:0]
	}
	for i := range p.entries {
		e := &p.entries[i]
		p.counts.count(e)
		if err := e.Check(); err != nil {
			return err
		}
		if err := p.lines.add(e); err != nil {
			return oda.Damaged(e.Ref, e.Version, 0).Because(err)
		}
	}
	p.entries = nil
	if len(p.lines.text) > 0 {
		p.compressed = encoder.EncodeAll(p.lines.text, p.compressed)
	}
	return nil
}
