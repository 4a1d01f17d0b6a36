package feed

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"sync"

	"github.com/klauspost/compress/flate"
)

// A client that accepts gzip gets all changes as one gzip stream. A frame is
// compressed once for all such clients, so it must not refer to what came before:
// it consists of whole blocks that begin without a history and end at a byte.
const (
	packedHead = "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff" // of a stream, RFC 1952
	packedEnd  = "\x03\x00"                                 // the last block, which is empty
)

// frame is a frame that is sent to many.
type frame struct {
	plain  []byte
	packed func() packed // compressed at the first call
}

// packed is a compressed frame.
type packed struct {
	frame []byte
	sum   checksum // of the text
}

// shared returns a frame to be sent to many, nil for nil.
func shared(plain []byte) *frame {
	if plain == nil {
		return nil
	}
	return &frame{plain, sync.OnceValue(func() packed { return pack(plain) })}
}

var packers = sync.Pool{New: func() any {
	w, err := flate.NewWriter(nil, flate.BestSpeed)
	if err != nil {
		panic(err) // the level is a constant
	}
	return w
}}

// pack compresses a frame.
func pack(frame []byte) packed {
	to := bytes.NewBuffer(beginFrame(512 + len(frame)/8))
	w := packers.Get().(*flate.Writer)
	defer packers.Put(w)
	w.Reset(to)
	_, _ = w.Write(text(frame)) // a buffer accepts everything
	_ = w.Flush()
	return packed{endFrame(to.Bytes()), sumOf(text(frame))}
}

// packing is a gzip stream. It knows what must be said at its end.
type packing struct{ sum checksum }

func newPacking() *packing { return &packing{sumOf(nil)} }

// begin returns the frame that begins the stream.
func (p *packing) begin() []byte {
	return endFrame(append(beginFrame(len(packedHead)), packedHead...))
}

// sent adds a frame that was sent.
func (p *packing) sent(one packed) { p.sum = p.sum.then(one.sum) }

// end returns the frame that ends the stream.
func (p *packing) end() []byte {
	end := append(beginFrame(len(packedEnd)+8), packedEnd...)
	end = binary.LittleEndian.AppendUint32(end, p.sum.crc)
	return endFrame(binary.LittleEndian.AppendUint32(end, p.sum.length))
}

// checksum is what a gzip stream says about its text at the end: the CRC-32, and the
// length modulo 2³². It is computed from the checksums of the parts of the text, which are
// the same for all followers.
type checksum struct {
	crc, length uint32
	shift       uint32 // x to the power of the number of bits; polynomials are bit-reversed
}

func sumOf(text []byte) checksum {
	shift, power := uint32(1)<<31, uint32(1)<<23 // 1, and x⁸ for a byte
	for n := len(text); n > 0; n >>= 1 {
		if n&1 != 0 {
			shift = times(shift, power)
		}
		power = times(power, power)
	}
	return checksum{crc32.ChecksumIEEE(text), uint32(len(text)), shift}
}

// then returns the checksum of a text that is followed by another.
func (c checksum) then(next checksum) checksum {
	return checksum{times(next.shift, c.crc) ^ next.crc, c.length + next.length, times(next.shift, c.shift)}
}

// times multiplies two polynomials modulo the polynomial of the CRC-32.
func times(a, b uint32) (product uint32) {
	for ; a != 0; a <<= 1 {
		if a>>31 != 0 {
			product ^= b
		}
		b = b>>1 ^ crc32.IEEE&-(b&1)
	}
	return product
}
