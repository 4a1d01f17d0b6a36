package feed

import (
	"context"
	"errors"
	"net/http"
	"os"
	"syscall"
	"time"

	"oda"
	"oda/archive"
	"oda/internal/content"
	"oda/internal/serving"
)

// How a stream is kept alive, and when it is cut off.
const (
	heartbeat = 15 * time.Second
	// sendTime is how long a follower may take to receive a piece of what is sent. A
	// large record takes longer as a whole.
	sendTime  = 10 * time.Second
	sendPiece = 64 << 10
	// sendBuffer is how many bytes the operating system keeps for a follower that
	// does not read.
	sendBuffer = 256 << 10
	// stopTime is how long a stream may take to end when the archive stops. Thousands
	// end at once, and a busy machine takes a while for those who read.
	stopTime = time.Second
	// reconnect is how long a browser waits before it follows again after a stream
	// has ended, in milliseconds.
	reconnect = 1000
)

// stream is an answer without an end. The time-outs of ordinary requests do not apply
// to it.
type stream struct {
	ctx    context.Context // until the client or the archive ends it
	hub    *Hub
	line   line
	framed bool     // HTTP/1.1; otherwise the protocol itself says where an answer ends
	packed *packing // nil: not compressed
	beats  *time.Ticker
	sent   int64
	inside bool        // a frame was begun and is not complete
	ended  func() bool // the archive ends it, or its caller may no longer read
	close  func()
}

// open sends the headers of the answer. Frames for all clients are compressed if this one
// accepts that; frames for one client alone are not worth the time. The caller must close
// the stream. A request of only the headers has none.
func (h *Hub) open(w http.ResponseWriter, r *http.Request, toAll bool) (*stream, error) {
	pack := toAll && r.ProtoAtLeast(1, 1) && content.Negotiate(r.Header, content.Gzip) != nil
	if pack {
		w.Header().Set("Content-Encoding", content.Gzip.Name)
	}
	if r.Method == http.MethodHead {
		w.WriteHeader(http.StatusOK)
		return nil, nil
	}
	ctx, cancel := context.WithCancel(h.stop)
	s := &stream{ctx: ctx, hub: h, framed: r.ProtoMajor == 1 && r.ProtoMinor > 0}
	var err error
	if r.ProtoMajor >= 2 {
		s.line, err = share(w)
	} else {
		s.line, err = takeOver(w, s.framed, cancel)
	}
	if s.line == nil {
		cancel()
		return nil, err
	}
	back := serving.Aside(r.Context())
	s.beats = time.NewTicker(heartbeat)
	hurry := func() { _ = s.line.SetWriteDeadline(time.Now().Add(stopTime)) }
	undo := context.AfterFunc(h.stop, hurry)
	undoEnd := context.AfterFunc(r.Context(), func() { cancel(); hurry() })
	s.ended = func() bool { return h.stop.Err() != nil || r.Context().Err() != nil }
	s.close = func() {
		undo()
		undoEnd()
		cancel()
		s.beats.Stop()
		s.line.end(s.inside)
		back()
	}
	if pack && err == nil {
		packed := newPacking()
		if err = s.send(packed.begin()); err == nil {
			s.packed = packed
		}
	}
	return s, err
}

// send sends a frame, unless it is nil. A client that does not receive it in time
// is cut off.
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
	for len(b) > 0 {
		if err := s.line.SetWriteDeadline(time.Now().Add(s.hub.patience)); err != nil {
			return err
		}
		// If the archive stops after this, the deadline is brought forward. A stop reaches
		// the context of the stream a moment later.
		if s.ctx.Err() != nil || s.hub.stop.Err() != nil {
			return context.Canceled
		}
		s.inside = true
		n, err := s.line.Write(b[:min(len(b), sendPiece)])
		s.sent += int64(n)
		if err != nil {
			return err
		}
		b = b[n:]
	}
	s.inside = false
	return nil
}

// finish ends the answer properly if the archive ends the stream. In the middle of a frame, what
// ends an answer would count as part of an event.
func (s *stream) finish() {
	if s.inside || !s.framed && s.packed == nil || !s.ended() {
		return
	}
	var end []byte
	if s.packed != nil {
		end = s.packed.end()
	}
	if s.framed {
		end = append(end, endOfFrames...)
	} else {
		end = text(end)
	}
	_ = s.line.SetWriteDeadline(time.Now().Add(stopTime)) // a slow client only sees the connection close
	_, _ = s.line.Write(end)
}

// Sent describes a stream that has ended.
type Sent struct {
	Bytes int64
	Err   error // why it failed; nil if the client or the archive ended it, or the client was too slow
	Cut   bool  // it ended within an event
}

// outcome ends the stream and describes it.
func (s *stream) outcome(err error) Sent {
	left := errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.Is(err, errGone)
	slow := errors.Is(err, os.ErrDeadlineExceeded)
	if left || slow || s.ctx.Err() != nil || s.hub.stop.Err() != nil || errors.Is(err, context.Canceled) {
		err = nil
	}
	s.finish()
	return Sent{s.sent, err, s.inside}
}

// StreamChanges sends changes after a position until the client or the archive ends
// the stream. It returns an error only if the answer has not begun.
func (h *Hub) StreamChanges(w http.ResponseWriter, r *http.Request, q archive.Following) (Sent, error) {
	at, err := h.archive.Start(r.Context(), q)
	if err != nil {
		return Sent{}, err
	}
	f, err := h.follow(at, &q.Filter)
	if err != nil {
		return Sent{}, err
	}
	defer f.leave()
	s, err := h.open(w, r, q.Filter.All())
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
		// The client must know where the stream began, in case it ends before its
		// first event.
		begin = noteFrame("retry: %d\nid: %d\n\n", reconnect, f.at)
	}
	for frame, err := shared(begin), error(nil); ; frame, err = f.next(s.ctx, s.beats.C) {
		if frame == nil && err == nil {
			frame = s.beat(f) // the follower may pass many changes that it does not want
		}
		if err == nil {
			err = s.sendShared(frame)
		}
		if err != nil {
			return err
		}
	}
}

// sendShared sends a frame, unless it is nil, compressed if the client accepts that.
func (s *stream) sendShared(f *frame) error {
	switch {
	case f == nil:
		return nil
	case s.packed == nil:
		return s.send(f.plain)
	}
	one := f.packed()
	if err := s.send(one.frame); err != nil {
		return err
	}
	s.packed.sent(one) // not before: if the stream ends now, its checksum is for what was sent
	return nil
}

// beat returns a heartbeat if one is due, and nil otherwise.
func (s *stream) beat(f *follower) *frame {
	select {
	case <-s.beats.C:
		return f.beat()
	default:
		return nil
	}
}

// StreamRecords sends the records of a block after a sequence number until the
// client or the archive ends the stream. It returns an error only if the answer has
// not begun.
func (h *Hub) StreamRecords(w http.ResponseWriter, r *http.Request, block string, after int64) (Sent, error) {
	t, err := h.newBlockTail(r.Context(), block, after)
	if err != nil {
		return Sent{}, err
	}
	defer t.leave()
	page, err := t.read(r.Context(), 1)
	if err == nil && after > page.Last {
		err = oda.UnknownSequence(block, page.Last, after)
	}
	if err != nil {
		return Sent{}, err
	}
	s, err := h.open(w, r, false)
	if s == nil {
		return Sent{}, err
	}
	defer s.close()
	if err == nil {
		err = s.records(t, page)
	}
	return s.outcome(err), nil
}

// Bounds of a frame of records. Each follower of a block has frames of its own, so
// followers that read slowly must not hold large ones.
const (
	recordsMost  = 500
	recordsBytes = 256 << 10
)

// nextRecords returns how many records to read for the next frame, given how many the
// last one could have and its size: fewer if it was too large, and otherwise more.
func nextRecords(limit, frame int) int {
	if frame > recordsBytes {
		return max(limit/2, 1)
	}
	return min(2*limit, recordsMost)
}

func (s *stream) records(t *blockTail, page oda.RecordPage) error {
	err := s.send(noteFrame("retry: %d\n\n", reconnect))
	for limit := 1; err == nil; {
		frame := recordsFrame(page.Records)
		page.Records = nil // not to be held while the frame is sent
		err = s.send(frame)
		oda.RoomIn(s.ctx).Give(page.Room) // the frame was as large
		if err != nil {
			return err
		}
		limit = nextRecords(limit, len(frame))
		for come := page.More; !come; {
			if come, err = t.await(s.ctx, s.beats.C); err == nil && !come {
				err = s.send(noteFrame(": %d\n\n", t.after))
			}
			if err != nil {
				return err
			}
		}
		page, err = t.read(s.ctx, limit)
	}
	return err
}
