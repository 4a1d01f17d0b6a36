package moving

import (
	"bytes"
	"encoding/json"

	"github.com/klauspost/compress/zstd"
)

// endingBytes is more than a manifest takes.
const endingBytes = 4 << 10

// frameMagic is how a frame of zstd begins. A manifest is one of its own.
var frameMagic = []byte{0x28, 0xb5, 0x2f, 0xfd}

// Ending looks at an export that is received, to tell whether all of it came. A line
// that is cut is an error of the connection, but something in between may end an
// answer in order although it has only a part of it.
type Ending struct{ last []byte }

// Write implements io.Writer.
func (e *Ending) Write(p []byte) (int, error) {
	e.last = append(e.last, p[max(len(p)-endingBytes, 0):]...)
	e.last = append(e.last[:0], e.last[max(len(e.last)-endingBytes, 0):]...)
	return len(p), nil
}

// Manifest returns the manifest with which the export ends, nil if there is none.
func (e *Ending) Manifest() *Manifest {
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil
	}
	defer decoder.Close()
	for end := len(e.last); ; {
		at := bytes.LastIndex(e.last[:end], frameMagic)
		if at < 0 {
			return nil
		}
		var line struct{ Manifest *Manifest }
		if text, err := decoder.DecodeAll(e.last[at:], nil); err == nil && json.Unmarshal(text, &line) == nil && line.Manifest != nil {
			return line.Manifest
		}
		end = at
	}
}
