package recorder

import (
	"errors"
	"sync"
	"time"

	"oda"
	"oda/internal/rawjson"
)

// said is what a recorder has said of its block.
type said struct {
	mu   sync.Mutex
	at   time.Time // when it said the last
	over bool      // it has said how the block ended
}

// statusJSON is a status as it is sent.
type statusJSON struct {
	Status string `json:"status"`
	Reason string `json:"reason,omitempty"`
	At     string `json:"at"`
}

// Say says the status of the block, such as "Executing", and why, if there is a
// reason. Like a record it is written to the spool, and it is sent after everything
// recorded before. It has the time of this call, so it does not undo what anybody says
// before it arrives. A reason is cut after 2,000 characters. Say fails like Record, or
// if the status does not have 1 to 64 characters, or has control characters.
func (r *Recorder) Say(status, reason string) error {
	r.say.mu.Lock()
	defer r.say.mu.Unlock()
	return r.saying(status, reason)
}

// End says the status with which the block ended, such as "Observed", "Failed" or
// "Aborted". Only the first time counts, so a program can defer an End for the case that it
// does not reach its last line. Recording goes on until Close.
func (r *Recorder) End(status, reason string) error {
	r.say.mu.Lock()
	defer r.say.mu.Unlock()
	if r.say.over {
		return nil
	}
	err := r.saying(status, reason)
	r.say.over = err == nil || errors.Is(err, ErrNotSynced)
	return err
}

func (r *Recorder) saying(status, reason string) error {
	if !oda.ValidStatus(status) {
		return oda.Errorf(oda.InvalidRequest, "The status %.100q is not 1 to %d characters, none of them a control character.", status, oda.MaxStatus)
	}
	at := time.Now().Round(0) // by the clock that others see
	if at.Before(r.say.at) {
		at = r.say.at // the clock was set back, and the later status must count
	}
	text, err := rawjson.Marshal(statusJSON{status, bounded(reason), stamp(at)})
	if err != nil {
		return err
	}
	r.say.at = at
	return r.append(statusLine, text)
}

// bounded returns a reason as an archive takes it: the status must not be refused for
// what an error says.
func bounded(reason string) string {
	text := []rune(reason) // what is not UTF-8 becomes U+FFFD
	for i, c := range text {
		if !oda.ValidReason(string(c)) {
			text[i] = ' '
		}
	}
	return string(text[:min(len(text), oda.MaxReason)])
}
