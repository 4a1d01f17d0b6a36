package httpapi

import (
	"strconv"
	"strings"
	"sync"
	"time"

	"oda"
	"oda/internal/admission"
)

// Bounds of what is remembered about recorders.
const (
	lagTime     = 2 * time.Minute // a recorder that is at work, or tries to be, says more before that
	lagBlocks   = 4096
	lagRecords  = 1_000_000_000_000
	lagSeconds  = 1_000_000_000
	lagHeader   = "Recorder-Lag"
	lagHeaderIs = 64 // characters at most
)

// lag is what a recorder says about the records that wait for the archive.
type lag struct {
	records int64
	seconds float64 // age of the oldest
}

// parseLag reads "records=12, seconds=3.5". It reports false for anything else: a
// recorder must never fail because of what it says about itself.
func parseLag(text string) (lag, bool) {
	if len(text) > lagHeaderIs {
		return lag{}, false
	}
	first, second, _ := strings.Cut(text, ",")
	count, ok := strings.CutPrefix(strings.TrimSpace(first), "records=")
	age, okay := strings.CutPrefix(strings.TrimSpace(second), "seconds=")
	if !ok || !okay || strings.ContainsFunc(age, func(c rune) bool { return c != '.' && (c < '0' || c > '9') }) {
		return lag{}, false
	}
	records, err := strconv.ParseInt(count, 10, 64)
	if err != nil || records < 0 || records > lagRecords {
		return lag{}, false
	}
	seconds, err := strconv.ParseFloat(age, 64)
	if err != nil || seconds > lagSeconds {
		return lag{}, false
	}
	return lag{records, seconds}, true
}

// recorders remembers what recorders have said lately, for each block the last.
type recorders struct {
	mu     sync.Mutex
	blocks map[string]report
}

type report struct {
	lag
	at time.Time
}

// noteLag notes what a recorder says about its lag, even if its records are refused
// then.
func (c *call) noteLag() {
	text := c.r.Header.Get(lagHeader)
	if text == "" || !oda.ValidID(c.id) {
		return
	}
	if l, ok := parseLag(text); ok {
		c.api.recorders.note(c.id, l, c.started)
	}
}

func (r *recorders) note(block string, l lag, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.blocks == nil {
		r.blocks = make(map[string]report)
	}
	if _, known := r.blocks[block]; !known && len(r.blocks) >= lagBlocks {
		if r.forget(now); len(r.blocks) >= lagBlocks {
			return
		}
	}
	r.blocks[block] = report{l, now}
}

// forget forgets what is no longer news. The mutex is held.
func (r *recorders) forget(now time.Time) {
	for block, last := range r.blocks {
		if now.Sub(last.at) > lagTime {
			delete(r.blocks, block)
		}
	}
}

func (r *recorders) stats(now time.Time) admission.Recorders {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forget(now)
	s := admission.Recorders{Blocks: len(r.blocks)}
	for _, last := range r.blocks {
		s.Records += last.records
		s.Seconds = max(s.Seconds, last.seconds)
	}
	return s
}
