package web

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"time"
	"unicode"

	"oda"
	"oda/calls"
)

// callsFound is what calls have to do with the text of the search box.
type callsFound struct {
	Of    string // which calls, and what they have to do with it
	Rows  []foundCall
	Count string // of all of them
	All   string // their address
	Any   string // the address of those that did not fail, too; empty if these are they
}

// Bounds of looking for calls with what people write into the box, which must not be slow.
const (
	foundCalls      = 5
	foundCallsTime  = 250 * time.Millisecond // for each of what they may have written
	foundFailedDays = 365
	foundAnyDays    = 7
)

// callsFound finds calls by the text of the search box: those that failed with an error, of a
// device or of a function with this name, or with its words, or else any of the last days.
func (s *Site) callsFound(ctx context.Context, f frame, text string) (*callsFound, error) {
	const day = 24 * time.Hour / time.Microsecond
	tomorrow := (oda.InstantOf(time.Now())/oda.Instant(day) + 1) * oda.Instant(day)
	since := func(days int) url.Values {
		return url.Values{"from": {inAddress(tomorrow - oda.Instant(days)*oda.Instant(day))}, "to": {inAddress(tomorrow)}}
	}
	ways := []struct{ param, of string }{{"error", "with the error"}, {"device", "for the device"}, {"request", "of the function"}, {"q", "with"}}
	for _, by := range ways {
		params := with(since(foundFailedDays), by.param, text)
		params.Set("outcome", string(oda.CallFailed))
		params.Del("to")
		if found, err := s.callsAbout(ctx, f, params); found != nil || err != nil {
			if found != nil {
				found.Of = "Failed calls " + by.of
				if by.param != "error" {
					found.Any = callsHref(with(since(foundAnyDays), by.param, text))
				}
			}
			return found, err
		}
	}
	found, err := s.callsAbout(ctx, f, with(since(foundAnyDays), "q", text))
	if found != nil {
		found.Of = "Calls of the last days with"
	}
	return found, err
}

// callsAbout returns the first calls that parameters ask for and how many there are, nil if there
// are none.
func (s *Site) callsAbout(ctx context.Context, f frame, params url.Values) (*callsFound, error) {
	q, err := calls.Parse(params)
	if err != nil {
		return nil, nil // no word in it, or too long
	}
	q.Limit, q.Within = foundCalls, foundCallsTime
	page, err := s.cfg.Calls.Page(ctx, q)
	if e, ok := errors.AsType[*oda.Error](err); ok && (e.Code == oda.Overloaded || e.Code == oda.DamagedText) {
		return nil, nil // what else was found is still worth a page
	}
	if err != nil || len(page.Calls) == 0 {
		return nil, err
	}
	found := &callsFound{All: callsHref(params)}
	if found.Rows, err = s.callRows(ctx, f, page.Calls); err != nil {
		return nil, err
	}
	number, more := int64(len(page.Calls)), page.Next != nil
	if tally, err := s.cfg.Calls.Tally(ctx, q, calls.ByTelescope); err == nil && more {
		number, more = 0, !tally.Complete
		for _, c := range tally.Tally {
			number += c.Calls
		}
	}
	if found.Count = plural(number, "call"); more {
		found.Count = "at least " + found.Count
	}
	return found, nil
}

// lettersApart puts blanks between letters and digits: "NGC 253" for "NGC253".
func lettersApart(text string) string {
	var apart strings.Builder
	var last rune
	for _, r := range text {
		if unicode.IsLetter(last) && unicode.IsDigit(r) || unicode.IsDigit(last) && unicode.IsLetter(r) {
			apart.WriteByte(' ')
		}
		apart.WriteRune(r)
		last = r
	}
	return apart.String()
}
