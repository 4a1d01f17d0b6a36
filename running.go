package oda

import (
	"bytes"
	"encoding/json"
	"time"

	"oda/internal/rawjson"
)

// Begun is a call that has begun, as its recorder says.
type Begun struct {
	Block     string
	Key       string
	Request   string
	Arguments json.RawMessage // nil: none are said
	SentAt    *Instant        // nil: now
	Lease     time.Duration
	By        string

	// Telescopes are those for which the caller may say it, nil if any.
	Telescopes *Telescopes
}

// Bounds of what is running.
const (
	DefaultLease = time.Minute
	MinLease     = 5 * time.Second
	MaxLease     = time.Hour

	// SilentFor is how long a call is remembered whose lease has ended.
	SilentFor = 24 * time.Hour

	MaxRunning         = 10_000
	MaxRunningOfCaller = 1000
)

// ReadBegun returns the call that a request says has begun. Its form has been checked.
func ReadBegun(text []byte, nodes []rawjson.Node) Begun {
	b := Begun{Lease: DefaultLease}
	for i := 1; i < nodes[0].Next; i = nodes[i].Next {
		member, value := nodes[i], text[nodes[i].Start:nodes[i].End]
		if member.Kind == rawjson.Null {
			continue
		}
		switch member.Name {
		case "request":
			b.Request = rawjson.Unquote(value)
		case "request_args":
			b.Arguments = value
		case "request_sent_at":
			at, _ := ParseTime(rawjson.Unquote(value))
			b.SentAt = rounded(at, false)
		case "lease_seconds":
			b.Lease = time.Duration(integer(value)) * time.Second
		}
	}
	return b
}

// Admit returns an error if the caller may not say it of a block of that telescope.
func (b *Begun) Admit(stored string) error {
	return b.Telescopes.admitAbout("the block "+b.Block, stored)
}

// CheckRunning returns an error if there is no room for one more call, given how many are
// running, and how many of them are the caller's.
func CheckRunning(all, own int) error {
	switch {
	case own >= MaxRunningOfCaller:
		return Errorf(TooManyRunning, "%d calls of this caller are running, and no more are kept. "+
			"Record them, or take back those that have ended.", own)
	case all >= MaxRunning:
		return Errorf(TooManyRunning, "%d calls are running, and no more are kept. Try again once some have ended.", all)
	}
	return nil
}

// RunningCall is a call that has begun and not ended.
type RunningCall struct {
	Block      string          `json:"eb_id"`
	Key        string          `json:"key"`
	Request    string          `json:"request"`
	Arguments  json.RawMessage `json:"request_args"`
	SentAt     Moment          `json:"sent_at"`
	Since      Moment          `json:"since"` // when it was said first
	RenewedOn  Moment          `json:"renewed_on"`
	LeaseUntil Moment          `json:"lease_until"`
	Silent     bool            `json:"silent"` // its lease has ended
	Device     *string         `json:"device"`
	Telescope  *string         `json:"telescope"`
	By         string          `json:"by"`
}

// Renewed returns the call after it was said again.
func (r RunningCall) Renewed(b *Begun, now Instant) RunningCall {
	r.Block, r.Key, r.Request, r.Arguments, r.By = b.Block, b.Key, b.Request, b.Arguments, b.By
	if r.Since == 0 {
		r.SentAt, r.Since = Moment(now), Moment(now)
	}
	if b.SentAt != nil {
		r.SentAt = Moment(*b.SentAt)
	}
	r.RenewedOn, r.LeaseUntil = Moment(now), Moment(now+Instant(b.Lease.Microseconds()))
	return r
}

// SeenAt sets what follows from the rest of the call at an instant. The telescope is that
// of its block, empty if it has none.
func (r *RunningCall) SeenAt(now Instant, telescope string) {
	c := Call{arguments: r.Arguments}
	r.Silent, r.Device, r.Telescope = now >= Instant(r.LeaseUntil), rawjson.OrNull(c.Device()), rawjson.OrNull(telescope)
}

// At returns the telescope of the call, empty if it has none.
func (r *RunningCall) At() string {
	if r.Telescope == nil {
		return ""
	}
	return *r.Telescope
}

// Same reports whether a call is as another, except for its lease.
func (r *RunningCall) Same(as *RunningCall) bool {
	return r.Block == as.Block && r.Key == as.Key && r.Request == as.Request && bytes.Equal(r.Arguments, as.Arguments) && r.SentAt == as.SentAt &&
		r.Since == as.Since && r.Silent == as.Silent && r.By == as.By && r.At() == as.At()
}

// IsGone reports whether nobody remembers the call any more.
func (r *RunningCall) IsGone(now Instant) bool {
	return now >= Instant(r.LeaseUntil)+Instant(SilentFor.Microseconds())
}

// RunningCalls are calls that are running, as an answer has them.
type RunningCalls struct {
	Running []RunningCall `json:"running"`
}

// JSON returns the answer, on one line.
func (r RunningCalls) JSON() ([]byte, error) { return rawjson.Marshal(r) }

// RunningAt returns the calls at a telescope, or all if it is empty.
func RunningAt(calls []RunningCall, telescope string) []RunningCall {
	at := make([]RunningCall, 0, len(calls))
	for _, one := range calls {
		if telescope == "" || one.At() == telescope {
			at = append(at, one)
		}
	}
	return at
}
