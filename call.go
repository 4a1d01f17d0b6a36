package oda

import (
	"bytes"
	"math"

	"oda/internal/rawjson"
)

// Call is what a record says about its call. It shares memory with the record.
type Call struct {
	Failed bool

	request        []byte  // a JSON string, as in the record
	arguments      []byte  // as in the record, nil if it has none
	problem        []byte  // the member error of the record, nil if it has none
	sent, received Instant // unsaid if the record does not say
}

// unsaid stands for a time that a record does not give.
const unsaid Instant = math.MinInt64

// CallOf reads the call of a record. The record's form was checked when it was
// stored. A call has failed if it has a status other than OK, or an error.
func CallOf(record []byte) Call {
	c := Call{sent: unsaid, received: unsaid}
	for key, value := range rawjson.Members(record) {
		switch string(key) {
		case "request":
			c.request = value
		case "request_sent_at":
			c.sent = instantIn(value)
		case "response_received_at":
			c.received = instantIn(value)
		case "status":
			c.Failed = c.Failed || string(value) != "null" && !isOK(value)
		case "request_args":
			c.arguments = value
		case "error":
			if string(value) != "null" {
				c.Failed, c.problem = true, value
			}
		}
	}
	return c
}

// Request returns the name of what was called.
func (c *Call) Request() []byte { return textIn(c.request) }

// Sent returns when the request was sent, nil if the record does not say.
func (c *Call) Sent() *Instant {
	if c.sent == unsaid {
		return nil
	}
	return &c.sent
}

// Received returns when the response was received, nil if the record does not say.
func (c *Call) Received() *Instant {
	if c.received == unsaid {
		return nil
	}
	return &c.received
}

// At returns the time of the call: when the request was sent, else when the
// response was received, else when the call was recorded.
func (c *Call) At(recordedOn Instant) Instant {
	switch {
	case c.sent != unsaid:
		return c.sent
	case c.received != unsaid:
		return c.received
	}
	return recordedOn
}

// Took returns how long the call took, and whether that is known. It is not if the
// record does not say, or if the response was received before the request was sent.
func (c *Call) Took() (Elapsed, bool) {
	if c.sent == unsaid || c.received < c.sent {
		return 0, false
	}
	return Elapsed(c.received - c.sent), true
}

// isOK reports whether a status is OK, in upper or lower case.
func isOK(value []byte) bool { return bytes.EqualFold(textIn(value), []byte("OK")) }

// instantIn parses a time in JSON. It returns unsaid for null.
func instantIn(value []byte) Instant {
	t, ok := parseTime(textIn(value))
	if !ok {
		return unsaid
	}
	return InstantOf(t).inYears()
}

// Day is a day in UTC, counted from 1 January 1970.
type Day int32

const microsecondsOfDay = 24 * 60 * 60 * 1_000_000

// DayOfRecording stands for the day on which a record is added. It is the day of
// a call whose record does not say when it was made.
const DayOfRecording Day = math.MinInt32

// Days is a range of consecutive days, both ends included.
type Days struct{ First, Last Day }

// DayOf returns the day of an instant.
func DayOf(i Instant) Day {
	day := i / microsecondsOfDay
	if i%microsecondsOfDay < 0 {
		day--
	}
	return Day(day)
}

// Begin returns the first instant of the day.
func (d Day) Begin() Instant { return Instant(d) * microsecondsOfDay }

// Or returns the day itself, or the day of recordedOn if d is DayOfRecording.
func (d Day) Or(recordedOn Instant) Day {
	if d == DayOfRecording {
		return DayOf(recordedOn)
	}
	return d
}
