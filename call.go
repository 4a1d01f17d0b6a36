package oda

import (
	"bytes"
	"math"

	"oda/internal/rawjson"
)

// call is what a record says about the call that it is of.
type call struct {
	request        []byte  // a JSON string, as in the record
	sent, received Instant // unsaid: the record does not say
	failed         bool
}

// unsaid is no instant.
const unsaid Instant = math.MinInt64

// readCall reads a record that was checked when it was stored. A call has failed
// if its status is there and not OK, or if it has an error.
func readCall(record []byte) call {
	c := call{sent: unsaid, received: unsaid}
	members := rawjson.MembersOf(record)
	for {
		key, value, ok := members.Next()
		if !ok {
			return c
		}
		switch string(key) {
		case "request":
			c.request = value
		case "request_sent_at":
			c.sent = instantIn(value)
		case "response_received_at":
			c.received = instantIn(value)
		case "status":
			c.failed = c.failed || string(value) != "null" && !isOK(value)
		case "error":
			c.failed = c.failed || string(value) != "null"
		}
	}
}

// isOK compares a status, without regard to case.
func isOK(value []byte) bool { return bytes.EqualFold(textIn(value), []byte("OK")) }

// instantIn reads a time, which may be null.
func instantIn(value []byte) Instant {
	t, ok := parseTime(textIn(value))
	if !ok {
		return unsaid
	}
	return InstantOf(t)
}

// textIn decodes a string, mostly without a copy. What is no string is empty.
func textIn(value []byte) []byte {
	if len(value) < 2 || value[0] != '"' {
		return nil
	}
	if bytes.IndexByte(value, '\\') >= 0 {
		return []byte(rawjson.Unquote(value))
	}
	return value[1 : len(value)-1]
}

// at is the time of the call: when the request was sent, else when the response
// came, else when it was recorded.
func (c *call) at(recordedOn Instant) Instant {
	switch {
	case c.sent != unsaid:
		return c.sent
	case c.received != unsaid:
		return c.received
	}
	return recordedOn
}

// took is how long the call took, if the record says it and the response did
// not come before the request was sent.
func (c *call) took() (Elapsed, bool) {
	if c.sent == unsaid || c.received < c.sent {
		return 0, false
	}
	return Elapsed(c.received - c.sent), true
}

// Day is a day of UTC, counted from the first of January 1970.
type Day int32

const microsecondsOfDay = 24 * 60 * 60 * 1_000_000

// DayOfRecording stands for the day on which a record comes, where the record
// does not say when its call was made.
const DayOfRecording Day = math.MinInt32

// DayOf is the day on which an instant lies.
func DayOf(i Instant) Day {
	day := i / microsecondsOfDay
	if i%microsecondsOfDay < 0 {
		day--
	}
	return Day(day)
}

// Begin is the first instant of a day.
func (d Day) Begin() Instant { return Instant(d) * microsecondsOfDay }

// Or is the day itself, or that of the recording where the day stands for it.
func (d Day) Or(recordedOn Instant) Day {
	if d == DayOfRecording {
		return DayOf(recordedOn)
	}
	return d
}

// CallDay is the day of the call that a record is of.
func CallDay(record []byte) Day {
	c := readCall(record)
	if at := c.at(unsaid); at != unsaid {
		return DayOf(at)
	}
	return DayOfRecording
}

// CallDays gives the days of the calls of records that come in a list.
func CallDays(records [][]byte) []Day {
	days := make([]Day, len(records))
	for i, text := range records {
		days[i] = CallDay(text)
	}
	return days
}

// Days gives the days of the calls whose records are to be added.
func (a Append) Days() []Day {
	days := make([]Day, len(a.Records))
	for i, r := range a.Records {
		days[i] = CallDay(r.Text)
	}
	return days
}
