package admission

import (
	"context"
	"slices"
	"sync"
	"time"

	"oda"
)

// AnswerBounds bound the memory that answers take until they are sent.
type AnswerBounds struct {
	Most  int64         // bytes of all answers together; one caller may have a quarter of it
	Wait  time.Duration // that an answer waits for room
	Stuck time.Duration // after which a client that takes nothing is cut off if others wait
}

// An answer is moderate if it takes at most this part of the room. Larger ones leave an
// eighth of the room free for moderate ones, so that these hardly ever wait.
const moderate = 64

// mostAnswersWaiting bounds how many answers wait for room.
const mostAnswersWaiting = 1024

// Answers bounds the memory that all answers take together. Small ones are not counted:
// as many of them as there are connections take little. It is safe for concurrent use.
type Answers struct {
	bounds AnswerBounds

	mu       sync.Mutex
	used     int64
	byCaller map[string]int64
	holding  map[*Answer]struct{}
	waiting  []*applicant
	look     *time.Timer // runs while answers hold something
	refused  int64
	cut      int64
}

// Client is who takes an answer.
type Client interface {
	// Moved reports whether the client has taken anything since the last call, or has
	// nothing to take at the moment.
	Moved() bool
	// Cut ends the answer. It is not called any more once the answer holds nothing.
	Cut()
}

// Answer is the memory of one answer. Only one goroutine may use it.
type Answer struct {
	all    *Answers
	caller string
	client Client
	held   int64
	moved  time.Time // when the client was last seen to take something
	isCut  bool
}

// applicant is an answer that waits for room.
type applicant struct {
	*Answer
	bytes    int64
	admitted chan struct{} // closed when it has it
}

// NewAnswers returns bounded room for answers.
func NewAnswers(bounds AnswerBounds) *Answers {
	return &Answers{bounds: bounds, byCaller: make(map[string]int64), holding: make(map[*Answer]struct{})}
}

// For returns an answer to a caller, which holds nothing yet.
func (a *Answers) For(caller string, client Client) *Answer {
	return &Answer{all: a, caller: caller, client: client}
}

// Try takes room for more bytes if there is some at once.
func (h *Answer) Try(bytes int64) bool {
	a, w := h.all, applicant{Answer: h, bytes: bytes}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.waiting) > 0 && !w.isModerate() || !a.fits(&w) {
		return false
	}
	a.grant(&w)
	return true
}

// Take waits until there is room for more bytes, as long as an answer waits, or longer if
// it has begun already.
func (h *Answer) Take(ctx context.Context, bytes int64, begun time.Duration) error {
	if h.Try(bytes) {
		return nil
	}
	a, w := h.all, &applicant{Answer: h, bytes: bytes, admitted: make(chan struct{})}
	a.mu.Lock()
	if len(a.waiting) >= mostAnswersWaiting {
		a.refused++
		a.mu.Unlock()
		return errNoRoom()
	}
	a.waiting = append(a.waiting, w)
	a.admit() // it may be the first for whom there is room
	a.mu.Unlock()

	late := time.NewTimer(max(a.bounds.Wait, begun))
	defer late.Stop()
	select {
	case <-w.admitted:
		return nil
	case <-late.C:
	case <-ctx.Done():
	}
	return a.giveUp(ctx, w)
}

// giveUp stops waiting, unless the answer was admitted meanwhile.
func (a *Answers) giveUp(ctx context.Context, w *applicant) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	i := slices.Index(a.waiting, w)
	if i < 0 {
		return nil
	}
	a.waiting = slices.Delete(a.waiting, i, i+1)
	a.admit() // those that waited for this one
	if err := ctx.Err(); err != nil {
		return err
	}
	a.refused++
	return errNoRoom()
}

// Give gives some of the room back.
func (h *Answer) Give(bytes int64) {
	if bytes == 0 {
		return
	}
	a := h.all
	a.mu.Lock()
	defer a.mu.Unlock()
	h.held -= bytes
	a.used -= bytes
	if a.byCaller[h.caller] -= bytes; a.byCaller[h.caller] == 0 {
		delete(a.byCaller, h.caller)
	}
	if h.held == 0 {
		delete(a.holding, h)
	}
	a.admit()
}

// Held returns how much room the answer has.
func (h *Answer) Held() int64 { return h.held }

func (w *applicant) isModerate() bool { return w.held+w.bytes <= w.all.bounds.Most/moderate }

// fits reports whether there is room in all, and for that caller. What is larger than the
// bounds is let through when nobody else has anything, so that it can be read at all.
func (a *Answers) fits(w *applicant) bool {
	others := a.byCaller[w.caller] - w.held
	return a.fitsAll(w) && (others == 0 || others+w.held+w.bytes <= a.bounds.Most/4)
}

func (a *Answers) fitsAll(w *applicant) bool {
	most := a.bounds.Most
	if !w.isModerate() {
		most -= most / 8
	}
	return a.used == w.held || a.used+w.bytes <= most
}

// grant gives an answer its room. The mutex is held.
func (a *Answers) grant(w *applicant) {
	w.moved = time.Now()
	w.held += w.bytes
	a.used += w.bytes
	a.byCaller[w.caller] += w.bytes
	a.holding[w.Answer] = struct{}{}
	if a.look == nil {
		a.look = time.AfterFunc(a.pause(), a.lookAround)
	}
}

// admit lets those go on for whom there is room, in their order: a large one is not
// overtaken by others that are large. The mutex is held.
func (a *Answers) admit() {
	full := false
	a.waiting = slices.DeleteFunc(a.waiting, func(w *applicant) bool {
		if a.fits(w) && (!full || w.isModerate()) {
			a.grant(w)
			close(w.admitted)
			return true
		}
		full = full || !a.fitsAll(w)
		return false
	})
}

// pause is how long it takes until clients are looked at again.
func (a *Answers) pause() time.Duration { return max(a.bounds.Stuck/10, time.Millisecond) }

// lookAround cuts off clients that have taken nothing for long, if others wait for their
// room. It runs as long as any answer holds something.
func (a *Answers) lookAround() {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	for h := range a.holding {
		switch {
		case h.client.Moved():
			h.moved = now
		case now.Sub(h.moved) >= a.bounds.Stuck && !h.isCut && a.inTheWay(h):
			h.isCut = true
			a.cut++
			h.client.Cut()
		}
	}
	if len(a.holding) == 0 {
		a.look = nil
		return
	}
	a.look.Reset(a.pause())
}

// inTheWay reports whether somebody waits for the room of an answer.
func (a *Answers) inTheWay(h *Answer) bool {
	return slices.ContainsFunc(a.waiting, func(w *applicant) bool {
		return w.Answer != h && (w.caller == h.caller || !a.fitsAll(w))
	})
}

// AnswerStats is how much memory answers take.
type AnswerStats struct {
	Bytes, Most  int64
	Waiting      int
	Refused, Cut int64 // so far
}

// Stats tells how much memory answers take.
func (a *Answers) Stats() AnswerStats {
	a.mu.Lock()
	defer a.mu.Unlock()
	return AnswerStats{a.used, a.bounds.Most, len(a.waiting), a.refused, a.cut}
}

func errNoRoom() error {
	return oda.Errorf(oda.Overloaded, "The archive is sending as many large answers as it has memory for. "+
		"Read those that you have asked for, and try again shortly.")
}
