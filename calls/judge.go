package calls

import (
	"slices"
	"strings"
	"time"

	"oda"
	"oda/internal/words"
)

// question is a Query that is being answered.
type question struct {
	Query
	*Finder
	words      []string          // folded
	telescopes map[string]string // of the blocks that were looked up

	late time.Time
	cut  *oda.CallPlace // how far it got when the time was up; nil: to the end
}

// matches reports whether a call is asked for, except for its telescope.
func (q *question) matches(e *oda.CallEntry) bool {
	return (q.From == nil || e.At >= *q.From) && (q.To == nil || e.At < *q.To) && q.inProgress(e) &&
		(q.Outcome == "" || e.Outcome == q.Outcome) &&
		(q.Block == "" || e.Block == q.Block) &&
		(q.Request == "" || isCalled(e.Request, q.Request)) &&
		(q.Device == "" || is(e.Device, q.Device)) &&
		(q.Error == "" || e.Error != nil && is(e.Error.Type, q.Error)) &&
		(q.LongerThan == nil || e.Took != nil && *e.Took > *q.LongerThan) &&
		q.matchesWords(e)
}

// inProgress reports whether a call was in progress at the instant that is asked for.
func (q *question) inProgress(e *oda.CallEntry) bool {
	return q.At == nil || e.IsLong() && oda.Instant(*e.SentAt) <= *q.At && oda.Instant(*e.ReceivedAt) > *q.At &&
		oda.Instant(*e.SentAt) >= *q.At-oda.Instant(oda.LongestCall)
}

// isCalled reports whether a request has a name, or ends with it at a dot.
func isCalled(request, name string) bool {
	before, ok := strings.CutSuffix(request, name)
	return ok && (before == "" || strings.HasSuffix(before, "."))
}

func is(text *string, wanted string) bool { return text != nil && *text == wanted }

// matchesWords reports whether every word occurs. The last one may be just the beginning
// of a word.
func (q *question) matchesWords(e *oda.CallEntry) bool {
	if len(q.words) == 0 {
		return true
	}
	own := words.Of(e.Request)
	texts := []*string{e.Device}
	if e.Error != nil {
		texts = append(texts, e.Error.Type, e.Error.Detail)
	}
	for _, text := range texts {
		if text != nil {
			own = append(own, words.Of(*text)...)
		}
	}
	last := len(q.words) - 1
	for _, word := range q.words[:last] {
		if !slices.Contains(own, word) {
			return false
		}
	}
	return slices.ContainsFunc(own, func(word string) bool { return strings.HasPrefix(word, q.words[last]) })
}
