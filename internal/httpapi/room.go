package httpapi

import (
	"cmp"
	"context"
	"net/http"
	"sync/atomic"
	"time"

	"oda"
	"oda/internal/admission"
	"oda/internal/auth"
	"oda/internal/serving"
)

// Bounds of answers, where Bounds does not say otherwise.
const (
	answersMost = 256 << 20
	answerWait  = 5 * time.Second
	stuckTime   = 10 * time.Second
)

func (b *Bounds) answers() admission.AnswerBounds {
	return admission.AnswerBounds{Most: cmp.Or(b.Answers, answersMost), Wait: cmp.Or(b.AnswerWait, answerWait), Stuck: cmp.Or(b.StuckTime, stuckTime)}
}

// smallAnswer is the size up to which an answer is not counted, because each connection
// has only one of them at a time, or few (serving.AddSmall).
const smallAnswer = oda.LargeText

// streamRoom is roughly the memory of an answer that is sent while it is read, besides
// large texts: a part of the records of a block, or of a list. Compressing takes as much
// again.
const streamRoom = 1 << 20

// pageRoom is the memory of a page of records, besides large texts.
func pageRoom(limit int64) int64 { return min(limit*oda.LargeText, 4<<20) }

// room is the memory that a call takes for its answer, and how its client takes that.
type room struct {
	*admission.Answer
	c       *call
	sent    atomic.Int64 // bytes
	writing atomic.Bool
	isCut   atomic.Bool

	// What the last look has seen.
	seen  int64
	taken uint64
}

// workContext is the context of a call's request, with the call as its room. It takes no
// memory of its own.
type workContext call

func (w *workContext) Deadline() (time.Time, bool) { return w.r.Context().Deadline() }
func (w *workContext) Done() <-chan struct{}       { return w.r.Context().Done() }
func (w *workContext) Err() error                  { return w.r.Context().Err() }

func (w *workContext) Value(key any) any {
	if _, ok := key.(oda.RoomKey); ok {
		return (*call)(w)
	}
	return w.r.Context().Value(key)
}

// work returns the context for work that counts its memory.
func (c *call) work() context.Context { return (*workContext)(c) }

// Take implements oda.Room. While it waits, the archive works on other requests. An
// answer that has begun waits longer, because it would have to be cut off.
func (c *call) Take(ctx context.Context, bytes int64) error {
	if c.room == nil {
		c.room = &room{c: c}
		c.room.Answer = c.api.answers.For(c.callerName(), c.room)
	}
	if c.room.Try(bytes) {
		return nil
	}
	admitted, begun := c.pass.Held(), time.Duration(0)
	c.pass.Leave()
	if c.status != 0 {
		begun = c.api.cfg.WriteTimeout
	}
	if err := c.room.Take(ctx, bytes, begun); err != nil {
		return err
	}
	if admitted {
		return c.enter()
	}
	return nil
}

// Give implements oda.Room.
func (c *call) Give(bytes int64) {
	if c.room != nil {
		c.room.Give(bytes)
	}
}

// Keep implements oda.Room.
func (c *call) Keep(_ context.Context, bytes int64) error {
	more := bytes - c.held()
	if more > 0 {
		return c.hold(int(more))
	}
	c.Give(-more)
	return nil
}

// held is how much room the call has.
func (c *call) held() int64 {
	if c.room == nil {
		return 0
	}
	return c.room.Held()
}

// hold takes room for an answer that is about to be sent. The answer to a write must not
// fail any more; its memory was counted with the body.
func (c *call) hold(bytes int) error {
	switch {
	case c.r.Method != http.MethodGet:
		return nil
	case bytes <= smallAnswer && c.r.ProtoMajor == 1:
		return nil
	case bytes <= smallAnswer && serving.AddSmall(c.r.Context(), int64(bytes)):
		c.small += int64(bytes)
		return nil
	}
	return c.Take(c.r.Context(), int64(bytes))
}

// leaveRoom gives everything back at the end of the call.
func (c *call) leaveRoom() {
	c.Give(c.held())
	if c.small > 0 {
		serving.AddSmall(c.r.Context(), -c.small)
	}
}

// callerName is whom the limits are for: a caller, or an address if nobody knows who is
// calling.
func (c *call) callerName() string {
	if c.caller != nil && c.caller.Name != "" {
		return "user " + c.caller.Name
	}
	from, _ := auth.Address(c.r, c.api.cfg.Proxies)
	return admission.Address(from)
}

// pieceSize is how much of a counted answer is written at once, to see whether its client
// takes it.
const pieceSize = 64 << 10

// write sends a part of the answer.
func (m *room) write(p []byte) (n int, err error) {
	m.writing.Store(true)
	defer m.writing.Store(false)
	for err == nil && n < len(p) {
		var sent int
		sent, err = m.c.ResponseWriter.Write(p[n:min(len(p), n+pieceSize)])
		n += sent
		m.sent.Add(int64(sent))
	}
	if err != nil && m.isCut.Load() {
		err = oda.Errorf(oda.Overloaded, "The client took nothing of its answer while others waited for the memory, and was cut off.").Because(err)
	}
	return n, err
}

// Moved implements admission.Client. A piece may take long to be written on a slow
// connection, but then the network has delivered some of it.
func (m *room) Moved() bool {
	sent := m.sent.Load()
	moved := !m.writing.Load() || sent != m.seen
	m.seen = sent
	if raw := serving.Raw(m.c.r.Context()); raw != nil {
		taken, waiting := received(raw)
		moved = moved || waiting && taken != m.taken
		m.taken = taken
	}
	return moved
}

// Cut implements admission.Client: what is being written fails.
func (m *room) Cut() {
	m.isCut.Store(true)
	// If it cannot be set, the answer ends with its time.
	_ = http.NewResponseController(m.c.ResponseWriter).SetWriteDeadline(time.Now().Add(-time.Second))
}
