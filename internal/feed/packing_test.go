package feed

import (
	"bytes"
	"compress/gzip"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"oda/internal/test/must"
)

// Followers begin at different frames, and each gets a gzip stream of its own.
func TestFramesThatAllShareMakeAGzipStream(t *testing.T) {
	var frames []*frame
	for range 40 {
		frames = append(frames, shared(noteFrame("data: %s\n\n", strings.Repeat("position ", 1+rand.N(30_000)))))
	}
	for first := range frames {
		var sent bytes.Buffer
		p := newPacking()
		sent.Write(text(p.begin()))
		unpacked := must.Get(gzip.NewReader(&sent))(t)
		for _, f := range frames[first:] {
			sent.Write(text(f.packed().frame))
			p.sent(f.packed())
			// An event arrives without what is sent after it.
			got := make([]byte, len(text(f.plain)))
			if _, err := io.ReadFull(unpacked, got); err != nil || !bytes.Equal(got, text(f.plain)) {
				t.Fatalf("a frame arrives as %.30q, %v", got, err)
			}
		}
		sent.Write(text(p.end()))
		if rest, err := io.ReadAll(unpacked); err != nil || len(rest) > 0 {
			t.Fatalf("the stream ends with %q, %v", rest, err)
		}
	}
}
