package backup

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"sync"
)

// Writer writes a backup. While one block is being sent, the next one is read and its
// checksum computed. It must be closed.
type Writer struct {
	out    chan []byte // blocks to send; closed at the end
	sent   chan []byte // blocks that can be used again
	ended  chan struct{}
	failed error // of sending; valid once ended is closed
	once   sync.Once

	summer   summer
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
	summer, err := newSummer(h.Identity)
	if err != nil {
		return nil, err
	}
	if _, err := io.WriteString(to, magic); err != nil {
		return nil, err
	}
	w := &Writer{summer: summer, pageSize: h.PageSize, block: newBlock(), out: make(chan []byte), sent: make(chan []byte, 2), ended: make(chan struct{})}
	w.sent <- newBlock()
	go w.run(to)
	w.block = append(w.block, text...)
	if err := w.flush(header); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return w, nil
}

func newBlock() []byte { return make([]byte, headSize, headSize+MaxBlock+sumSize) }

// run sends blocks until there are no more, or one cannot be sent.
func (w *Writer) run(to io.Writer) {
	defer close(w.ended)
	for block := range w.out {
		if _, err := to.Write(block); err != nil {
			w.failed = err
			return
		}
		w.sent <- block[:headSize]
	}
}

// Close waits until everything was sent, and returns the error of sending.
func (w *Writer) Close() error {
	w.once.Do(func() { close(w.out) })
	<-w.ended
	return w.failed
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

// End ends the backup, and waits until all of it was sent.
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
	if err := w.flush(end); err != nil {
		return err
	}
	return w.Close()
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
	w.block = w.summer.sum(w.block, w.blocks, w.block)
	w.blocks++
	select {
	case w.out <- w.block:
	case <-w.ended:
		return w.failed
	}
	select {
	case w.block = <-w.sent:
		return nil
	case <-w.ended:
		return w.failed
	}
}
