package httpapi

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync"

	"oda"
	"oda/internal/content"
	"oda/internal/rawjson"
	"oda/internal/serving"
)

// held is how many bytes of a response are held back before any is sent. A
// response within that size is sent with its length, and if making it fails, the
// client gets a problem. Engines read that much of the answer to a write before they
// commit, so that a stored write is never answered as a failure.
const held = oda.AnswerAhead

// metadataRoom is roughly how many bytes the server's values add to a document.
const metadataRoom = 256

// response writes the body of an answer. It must be closed.
type response struct {
	c       *call
	tag     string // of the entity; empty if there is none
	hold    int    // bytes to hold back
	buf     []byte
	encoder io.WriteCloser // nil: not encoded
	started bool
}

// respond begins an answer that clients and caches may keep.
func (c *call) respond(contentType, tag string, hold int) *response {
	c.head("Content-Type", contentType)
	c.keeping()
	c.out = response{c: c, tag: tag, hold: hold}
	return &c.out
}

// keeping sets the headers for caches. They must ask before they use an answer
// again, so that none serves an old state, unless the answer never changes.
func (c *call) keeping() {
	if c.accept {
		c.head("Vary", "Accept, Accept-Encoding")
	} else {
		c.head("Vary", "Accept-Encoding")
	}
	if c.lasting {
		c.head("Cache-Control", "private, max-age=31536000, immutable")
	} else {
		c.head("Cache-Control", "private, no-cache")
	}
}

// Write holds the text back until there is too much, then sends it.
func (w *response) Write(p []byte) (int, error) {
	if !w.started {
		if len(w.buf)+len(p) <= w.hold {
			w.buf = append(w.buf, p...)
			return len(p), nil
		}
		if err := w.start(); err != nil {
			return 0, err
		}
	}
	if w.encoder != nil {
		return w.encoder.Write(p)
	}
	return w.c.Write(p)
}

// start sends the headers and what was held back. The rest is streamed.
func (w *response) start() error {
	e := w.c.encoding(compressFrom)
	room := streamRoom
	if e != nil {
		room += streamRoom
	}
	if err := w.c.hold(room); err != nil {
		return err
	}
	w.started = true
	w.headers(e)
	w.c.WriteHeader(http.StatusOK)
	var err error
	if e != nil {
		w.encoder = e.Stream(w.c)
		_, err = w.encoder.Write(w.buf)
	} else {
		_, err = w.c.Write(w.buf)
	}
	w.buf = nil
	return err
}

func (w *response) headers(e *content.Encoding) {
	if e != nil {
		w.c.head("Content-Encoding", e.Name)
	}
	if w.tag != "" {
		w.c.head("Etag", content.Tag(w.tag, e))
	}
}

// compressFrom is the size from which compression is worth its time.
const compressFrom = 1024

// encoding returns the encoding of an answer that has at least this size.
func (c *call) encoding(size int) *content.Encoding {
	if size < compressFrom {
		return nil
	}
	return content.Negotiate(c.r.Header, content.Encodings...)
}

// close ends the response.
func (w *response) close() error {
	if w.encoder != nil {
		return w.encoder.Close()
	}
	if w.started {
		return nil
	}
	return w.whole(w.buf)
}

// whole sends a complete response.
func (w *response) whole(text []byte) error {
	if err := w.c.hold(len(text)); err != nil {
		return err
	}
	w.started = true
	e := w.c.encoding(len(text))
	w.headers(e)
	if e != nil {
		text = e.Block(text)
	}
	w.c.head("Content-Length", strconv.Itoa(len(text)))
	if w.c.r.Method != http.MethodHead {
		serving.Whole(w.c.r.Context(), len(text))
	}
	w.c.WriteHeader(http.StatusOK)
	_, err := w.c.Write(text)
	return err
}

// json answers with a value as JSON.
func (c *call) json(value any) error {
	text, err := rawjson.Marshal(value)
	if err != nil {
		return err
	}
	return c.sendError(c.respond("application/json", "", held).whole(text))
}

// entity answers with a document.
func (c *call) entity(e *oda.Entity) error {
	c.id = e.ID
	w := c.respond("application/json", e.Metadata.Tag(), held)
	if text := e.Rendered(); text != nil {
		return c.sendError(w.whole(text))
	}
	room := rooms.Get().(*[]byte)
	w.buf = slices.Grow((*room)[:0], min(held, len(e.Body.Text)+metadataRoom))
	_, err := e.WriteTo(w)
	if err == nil {
		err = w.close()
	}
	if *room = w.buf; cap(w.buf) <= mostRoom && c.r.ProtoMajor == 1 {
		rooms.Put(room)
	}
	return c.sendError(err)
}

// rooms has buffers in which answers are put together. HTTP/2 may still read one after the
// client has given the answer up, so its buffers are not used again.
var rooms = sync.Pool{New: func() any { return new([]byte) }}

// mostRoom bounds the buffers that are used again.
const mostRoom = 32 << 10

// stored answers with a document that the call has stored. Its metadata names the
// user, for the log.
func (c *call) stored(e *oda.Entity) error {
	c.user = e.Metadata.LastModifiedBy
	c.wrote(e.Metadata.Version, 0)
	return c.entity(e)
}

// sendError returns the error of sending an answer, but ends the call if the
// client went away after the response had begun.
func (c *call) sendError(err error) error {
	if err != nil && c.status != 0 && c.r.Context().Err() != nil {
		c.failure = err
		c.gone()
	}
	return err
}

// text answers with a line for people and probes.
func (c *call) text(line string) error {
	c.head("Content-Type", "text/plain; charset=utf-8")
	c.head("Cache-Control", "no-store")
	_, err := c.Write([]byte(line))
	return err
}

// static answers with a document that is part of the program.
func static(contentType string, text []byte) handler {
	sum := sha256.Sum256(text)
	tag := hex.EncodeToString(sum[:8])
	return func(c *call) error {
		if content.Has(c.r.Header, tag) {
			return c.unchanged(content.Tag(tag, c.encoding(len(text))))
		}
		return c.respond(contentType, tag, 0).whole(text)
	}
}

// notModified answers that the client already has the current state. It has the tag of
// the whole answer, which depends on the encoding and so on the size.
func (c *call) notModified(e *oda.Entity) error {
	encoding := c.encoding(compressFrom)
	if encoding != nil {
		size, err := e.AtLeast(compressFrom)
		if err != nil {
			return err
		}
		encoding = c.encoding(size)
	}
	return c.unchanged(content.Tag(e.Metadata.Tag(), encoding))
}

func (c *call) unchanged(tag string) error {
	c.head("Etag", tag)
	c.keeping()
	c.WriteHeader(http.StatusNotModified)
	return nil
}
