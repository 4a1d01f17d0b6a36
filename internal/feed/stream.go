package feed

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"oda"
	"oda/internal/serving"
)

// How a stream is kept alive, and when it is cut off.
const (
	heartbeat = 15 * time.Second
	// sendTime is how long a follower may take to receive what is sent to it at
	// once.
	sendTime = 10 * time.Second
	// sendBuffer bounds what the operating system keeps for a follower that does
	// not read.
	sendBuffer = 256 << 10
	// stopTime is how long a stream may take to end when the archive stops.
	stopTime = 200 * time.Millisecond
	// reconnect is when a browser follows again after a stream has ended, in
	// milliseconds.
	reconnect = 1000
)

// stream is an answer that goes on. It has the connection for itself, so the
// time-outs and the bounds of ordinary requests do not count.
type stream struct {
	ctx    context.Context // until the client or the archive ends it
	hub    *Hub
	conn   net.Conn
	framed bool // HTTP/1.1; before, an answer ends with its connection
	beats  *time.Ticker
	sent   int64
	close  func()
}

// open takes over the connection and sends the headers of the answer. The stream
// must be closed.
func (h *Hub) open(w http.ResponseWriter, r *http.Request) (*stream, error) {
	header := w.Header().Clone()
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil, err
	}
	serving.Aside(r.Context())
	if c, ok := conn.(interface{ SetWriteBuffer(bytes int) error }); ok {
		_ = c.SetWriteBuffer(sendBuffer) // else it is as large as the system likes
	}
	ctx, cancel := context.WithCancel(h.stop)
	s := &stream{ctx: ctx, hub: h, conn: conn, framed: r.ProtoAtLeast(1, 1), beats: time.NewTicker(heartbeat)}
	undo := context.AfterFunc(h.stop, func() { _ = conn.SetWriteDeadline(time.Now().Add(stopTime)) })
	s.close = func() {
		undo()
		cancel()
		s.beats.Stop()
		_ = conn.Close() // nothing that was sent depends on it
	}
	go s.listen(cancel)
	if s.framed {
		header.Set("Transfer-Encoding", "chunked")
	}
	header.Set("Connection", "close")
	header.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	return s, s.head(header)
}

// head sends the headers.
func (s *stream) head(header http.Header) error {
	var b headerBuffer
	fmt.Fprintf(&b, "HTTP/1.1 %d OK\r\n", http.StatusOK)
	_ = header.Write(&b) // a buffer takes everything
	b = append(b, "\r\n"...)
	return s.write(b)
}

type headerBuffer []byte

func (b *headerBuffer) Write(p []byte) (int, error) {
	*b = append(*b, p...)
	return len(p), nil
}

// listen notices that the client is gone. It has nothing more to say.
func (s *stream) listen(gone func()) {
	defer gone()
	if s.conn.SetReadDeadline(time.Time{}) != nil {
		return
	}
	for room := make([]byte, 64); ; {
		if _, err := s.conn.Read(room); err != nil {
			return
		}
	}
}

// send sends a frame, unless it is nil. A client that does not take it in time is
// cut off.
func (s *stream) send(frame []byte) error {
	switch {
	case frame == nil:
		return nil
	case !s.framed:
		frame = text(frame)
	}
	return s.write(frame)
}

func (s *stream) write(b []byte) error {
	if s.ctx.Err() != nil {
		return s.ctx.Err()
	}
	if err := s.conn.SetWriteDeadline(time.Now().Add(sendTime)); err != nil {
		return err
	}
	n, err := s.conn.Write(b)
	s.sent += int64(n)
	return err
}

// finish ends the answer where it ends well.
func (s *stream) finish() {
	if s.framed && s.hub.stop.Err() != nil {
		_ = s.conn.SetWriteDeadline(time.Now().Add(stopTime)) // a client that misses the end sees the connection end
		_, _ = s.conn.Write([]byte(endOfFrames))
	}
}

// Sent is what became of a stream.
type Sent struct {
	Bytes int64
	Err   error // why it was cut off; nil where client or archive ended it
}

// outcome tells what became of the stream.
func (s *stream) outcome(err error) Sent {
	if s.ctx.Err() != nil || errors.Is(err, context.Canceled) {
		err = nil
	}
	s.finish()
	return Sent{s.sent, err}
}

// StreamChanges sends changes behind a position until somebody ends it. An error
// is for an answer that did not begin.
func (h *Hub) StreamChanges(w http.ResponseWriter, r *http.Request, q oda.Following) (Sent, error) {
	at, err := h.archive.Start(r.Context(), q)
	if err != nil {
		return Sent{}, err
	}
	f, err := h.follow(at, &q.Filter)
	if err != nil {
		return Sent{}, err
	}
	defer f.leave()
	s, err := h.open(w, r)
	if s == nil {
		return Sent{}, err
	}
	defer s.close()
	if err == nil {
		err = s.changes(f, q.Now)
	}
	return s.outcome(err), nil
}

func (s *stream) changes(f *follower, now bool) error {
	begin := noteFrame("retry: %d\n\n", reconnect)
	if now {
		// Nobody else knows where the stream began, should it end before its first
		// event.
		begin = noteFrame("retry: %d\nid: %d\n\n", reconnect, f.at)
	}
	for frame, err := begin, error(nil); ; frame, err = f.next(s.ctx, s.beats.C) {
		if err == nil {
			err = s.send(frame)
		}
		if err != nil {
			return err
		}
	}
}

// StreamRecords sends the records of a block behind a sequence until somebody ends
// it. An error is for an answer that did not begin.
func (h *Hub) StreamRecords(w http.ResponseWriter, r *http.Request, block string, after int64) (Sent, error) {
	t, err := h.newBlockTail(r.Context(), block, after)
	if err != nil {
		return Sent{}, err
	}
	defer t.leave()
	page, err := t.read(r.Context(), recordsAtOnce)
	if err != nil {
		return Sent{}, err
	}
	s, err := h.open(w, r)
	if s == nil {
		return Sent{}, err
	}
	defer s.close()
	if err == nil {
		err = s.records(t, page)
	}
	return s.outcome(err), nil
}

// recordsAtOnce bounds the records of one frame.
const recordsAtOnce = 500

func (s *stream) records(t *blockTail, page oda.RecordPage) error {
	err := s.send(noteFrame("retry: %d\n\n", reconnect))
	for err == nil {
		if err = s.send(recordsFrame(page.Records)); err != nil {
			return err
		}
		for come := page.More; !come; {
			if come, err = t.await(s.ctx, s.beats.C); err == nil && !come {
				err = s.send(noteFrame(": %d\n\n", t.after))
			}
			if err != nil {
				return err
			}
		}
		page, err = t.read(s.ctx, recordsAtOnce)
	}
	return err
}
