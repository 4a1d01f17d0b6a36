package moving

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/zstd"
)

// maxWindow bounds the memory that a compressed file asks for: as much as zstd itself
// takes by default.
const maxWindow = 128 << 20

// maxExpansion is how many times its size a compressed file of documents may become, beyond
// the size of one document. What people have compresses to a tenth or a hundredth.
const maxExpansion = 1000

// Begins is how an export begins: with a frame of zstd.
const Begins = "\x28\xb5\x2f\xfd"

// decompressed returns the content of a file that may be compressed with zstd or gzip,
// and whether it is. It goes by how the file begins, since names often lie.
func decompressed(in io.Reader) (content io.ReadCloser, is bool, err error) {
	r := bufio.NewReader(in)
	begins, _ := r.Peek(4) // less, if it is shorter
	switch {
	case string(begins) == Begins:
		decoder, err := zstd.NewReader(r, zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return nil, true, err
		}
		return decoder.IOReadCloser(), true, nil
	case bytes.HasPrefix(begins, []byte{0x1f, 0x8b}):
		content, err := gzip.NewReader(r)
		return content, true, err
	}
	return io.NopCloser(r), false, nil
}

// expanding reads the content of a compressed file, and fails once that is suspiciously
// large.
type expanding struct {
	io.Reader
	left int64 // bytes
}

func (e *expanding) Read(p []byte) (int, error) {
	n, err := e.Reader.Read(p)
	if e.left -= int64(n); e.left < 0 {
		return 0, fmt.Errorf("it is more than %d times as large as the file; if that is meant so, decompress the file, and import the result", maxExpansion)
	}
	return n, err
}

// IsExport reports whether a file begins as an export does, or at least has the name of
// one. It must be an ordinary file, since it is read again.
func IsExport(path string) (bool, error) {
	info, err := os.Stat(path)
	if err != nil || info.IsDir() {
		return false, err
	}
	if !info.Mode().IsRegular() {
		return false, fmt.Errorf("%s is not an ordinary file, and cannot be read twice; write it into one first", path)
	}
	if filepath.Ext(uncompressed(path)) == ".oda" {
		return true, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	content, _, err := decompressed(f)
	if err != nil {
		return false, nil // whatever it is
	}
	defer content.Close()
	return beginsAsExport(bufio.NewReader(content)), nil
}

const exportKey = `{"export":"oda"`

// beginsAsExport reports whether an export follows.
func beginsAsExport(r *bufio.Reader) bool {
	begins, _ := r.Peek(len(exportKey)) // less, if it is shorter
	return string(begins) == exportKey
}
