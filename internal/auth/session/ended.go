package session

import (
	"maps"
	"slices"
	"time"
)

// most bounds what is remembered about sessions: those that are open, and those that
// people have ended. Tests set other bounds.
const most = 1 << 14

// ended remembers the sessions that people have ended, as long as they would have lasted.
// If there are too many, those who have ended most lose all their sessions. So nobody can
// sign others out by signing in and out.
type ended struct {
	most      int
	one       map[string]signedOut // by the session's ID
	all       map[string]time.Time // by holder: all sessions that began before have ended
	everybody time.Time            // sessions that began before have ended, whoever has them
}

// signedOut is a session that somebody has ended.
type signedOut struct {
	holder string
	until  time.Time // when it would have ended by itself
}

func newEnded(most int) ended {
	return ended{most: most, one: make(map[string]signedOut), all: make(map[string]time.Time)}
}

// has reports whether a session has been ended.
func (e *ended) has(t *ticket) bool {
	if _, out := e.one[t.ID]; out {
		return true
	}
	return t.Begun.Before(e.everybody) || t.Begun.Before(e.all[t.holder()])
}

// add ends a session. It reports whether others have ended with it.
func (e *ended) add(t *ticket, now time.Time) (more bool) {
	e.one[t.ID] = signedOut{t.holder(), t.Ends}
	if more = len(e.one)+len(e.all) > e.most; more {
		e.forget(now)
	}
	return more
}

// forget makes room. It leaves room for many, because it looks at all of them.
func (e *ended) forget(now time.Time) {
	maps.DeleteFunc(e.one, func(_ string, s signedOut) bool { return !now.Before(s.until) })
	maps.DeleteFunc(e.all, func(_ string, before time.Time) bool { return now.Sub(before) > Length })
	count := make(map[string]int)
	for _, s := range e.one {
		count[s.holder]++
	}
	left := len(e.one) + len(e.all)
	for _, who := range slices.SortedFunc(maps.Keys(count), func(a, b string) int { return count[b] - count[a] }) {
		if left <= e.most/2 {
			break
		}
		if _, known := e.all[who]; !known {
			left++
		}
		left -= count[who]
		e.all[who] = now
	}
	maps.DeleteFunc(e.one, func(_ string, s signedOut) bool { return e.all[s.holder].Equal(now) })
	if left > e.most/2 { // thousands of people
		*e = newEnded(e.most)
		e.everybody = now
	}
}
