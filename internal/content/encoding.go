// Package content is the part of HTTP that pages and API share: the encoding and
// the media type of answers, and the entity tags of states.
package content

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// Encoding is a way to compress an answer; nil is no compression.
type Encoding struct {
	Name   string
	Stream func(io.Writer) io.WriteCloser // compresses until it is closed
	Block  func([]byte) []byte
}

// The encodings.
var (
	Zstd = &Encoding{"zstd", zstdStream, zstdBlock}
	Gzip = &Encoding{"gzip", gzipStream, gzipBlock}
)

// Encodings are all encodings, in our order of preference.
var Encodings = []*Encoding{Zstd, Gzip}

// Negotiate returns the offered encoding that the client prefers, or nil. Among
// equals, the earlier one wins.
func Negotiate(h http.Header, offered ...*Encoding) *Encoding {
	accept := h["Accept-Encoding"]
	if len(accept) == 0 {
		return nil
	}
	weights := make(map[string]float64)
	for _, value := range accept {
		for item := range strings.SplitSeq(value, ",") {
			name, params, _ := strings.Cut(item, ";")
			name = strings.ToLower(strings.TrimSpace(name))
			if name == "x-gzip" { // an old name
				name = Gzip.Name
			}
			weights[name] = weight(params)
		}
	}
	var best *Encoding
	most := 0.0
	for _, e := range offered {
		w, ok := weights[e.Name]
		if !ok {
			w = weights["*"]
		}
		if w > most {
			best, most = e, w
		}
	}
	if identity, ok := weights["identity"]; ok && identity > most {
		return nil
	}
	return best
}

// weight parses the q value of an Accept-Encoding item.
func weight(params string) float64 {
	for param := range strings.SplitSeq(params, ";") {
		name, value, ok := strings.Cut(param, "=")
		if !ok || !strings.EqualFold(strings.TrimSpace(name), "q") {
			continue
		}
		q, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
		if err != nil || q < 0 || q > 1 {
			return 0
		}
		return q
	}
	return 1
}

// pooled returns its writer to the pool when it is closed.
type pooled[W interface {
	io.WriteCloser
	Reset(io.Writer)
}] struct {
	writer W
	pool   *sync.Pool
}

func (p pooled[W]) Write(b []byte) (int, error) { return p.writer.Write(b) }

func (p pooled[W]) Close() error {
	err := p.writer.Close()
	p.writer.Reset(nil)
	p.pool.Put(p.writer)
	return err
}

var gzips = sync.Pool{New: func() any {
	w, err := gzip.NewWriterLevel(nil, gzip.BestSpeed)
	if err != nil {
		panic(err) // the level is a constant
	}
	return w
}}

func gzipStream(to io.Writer) io.WriteCloser {
	w := gzips.Get().(*gzip.Writer)
	w.Reset(to)
	return pooled[*gzip.Writer]{w, &gzips}
}

func gzipBlock(text []byte) []byte {
	var b bytes.Buffer
	w := gzipStream(&b)
	_, _ = w.Write(text) // a buffer accepts everything
	_ = w.Close()
	return b.Bytes()
}

func newZstd() *zstd.Encoder {
	w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest),
		zstd.WithWindowSize(256<<10), zstd.WithLowerEncoderMem(true))
	if err != nil {
		panic(err) // the options are constants
	}
	return w
}

var zstds = sync.Pool{New: func() any { return newZstd() }}

func zstdStream(to io.Writer) io.WriteCloser {
	w := zstds.Get().(*zstd.Encoder)
	w.Reset(to)
	return pooled[*zstd.Encoder]{w, &zstds}
}

func zstdBlock(text []byte) []byte {
	w := zstds.Get().(*zstd.Encoder)
	defer zstds.Put(w)
	return w.EncodeAll(text, nil)
}
