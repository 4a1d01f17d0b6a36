package backup

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"io"
)

// Writer writes a backup.
type Writer struct {
	to       io.Writer
	identity string
	pageSize int
	blocks   int64 // so far
	block    []byte
	first    uint32 // page in block
}

// NewWriter begins a backup.
func NewWriter(to io.Writer, h Header) (*Writer, error) {
	h.Identity = rand.Text()
	text, err := json.Marshal(h)
	if err != nil {
		return nil, err
	}
	if _, err := io.WriteString(to, magic); err != nil {
		return nil, err
	}
	w := &Writer{to: to, identity: h.Identity, pageSize: h.PageSize, block: make([]byte, headSize, headSize+MaxBlock+sumSize)}
	w.block = append(w.block, text...)
	return w, w.flush(header)
}

// Room returns where the pages from first on go, as many as fit into one block. The
// caller fills them from the beginning, and says with Fill how many bytes it has
// filled.
func (w *Writer) Room(first uint32) ([]byte, error) {
	if err := w.send(); err != nil {
		return nil, err
	}
	w.first = first
	return w.block[headSize : headSize+MaxBlock/w.pageSize*w.pageSize], nil
}

// Fill says how many bytes of Room are filled.
func (w *Writer) Fill(n int) { w.block = w.block[:headSize+n] }

// Page adds a page.
func (w *Writer) Page(number uint32, content []byte) error {
	held := (len(w.block) - headSize) / w.pageSize
	if held > 0 && (number != w.first+uint32(held) || (held+1)*w.pageSize > MaxBlock) {
		if err := w.send(); err != nil {
			return err
		}
		held = 0
	}
	if held == 0 {
		w.first = number
	}
	w.block = append(w.block, content...)
	return nil
}

// End ends the backup.
func (w *Writer) End(e End) error {
	if err := w.send(); err != nil {
		return err
	}
	e.Blocks = w.blocks - 1
	text, err := json.Marshal(e)
	if err != nil {
		return err
	}
	w.first = 0
	w.block = append(w.block, text...)
	return w.flush(end)
}

// send writes the pages at hand, if there are any.
func (w *Writer) send() error {
	if len(w.block) == headSize {
		return nil
	}
	return w.flush(pages)
}

// flush writes the block at hand.
func (w *Writer) flush(kind byte) error {
	w.block[0] = kind
	binary.BigEndian.PutUint32(w.block[1:], w.first)
	binary.BigEndian.PutUint32(w.block[5:], uint32(len(w.block)-headSize))
	s := sum(w.identity, w.blocks, w.block)
	w.block = append(w.block, s[:]...)
	_, err := w.to.Write(w.block)
	w.block = w.block[:headSize]
	w.blocks++
	return err
}
