package oda

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"oda/internal/rawjson"
)

// CallEntry is a record seen as a call. A nil pointer stands for what its record does
// not say.
type CallEntry struct {
	Block      string     `json:"eb_id"`
	Sequence   int64      `json:"sequence"`
	Request    string     `json:"request"`
	SentAt     *Moment    `json:"sent_at"`
	ReceivedAt *Moment    `json:"received_at"`
	Took       *Elapsed   `json:"seconds"`
	Outcome    Outcome    `json:"outcome"`
	Error      *CallError `json:"error"`
	Device     *string    `json:"device"`
	Telescope  *string    `json:"telescope"`
	By         string     `json:"by"` // who recorded it

	At Instant `json:"-"` // the time of the call
}

// Outcome is what came of a call.
type Outcome string

// The outcomes of calls.
const (
	CallOK     Outcome = "ok"
	CallFailed Outcome = "failed"
)

// CallError is the error of a call.
type CallError struct {
	Type   *string `json:"type"` // of the exception, without its module
	Detail *string `json:"detail"`
}

// Bounds of the texts of a CallEntry, in characters. What exceeds them is cut.
const (
	maxRequest    = 1000
	maxCallName   = 160 // of a function, a device or a type of error
	maxCallDetail = 500
)

// Entry returns the record as a call of a block. The telescope is that of the block, which
// the record does not know.
func (r *Record) Entry(block string) CallEntry {
	c := CallOf(r.Text)
	return c.entry().Recorded(block, r.Sequence, r.By, r.RecordedOn)
}

// entry returns the call as far as its record says.
func (c *Call) entry() CallEntry {
	e := CallEntry{Request: cutText(string(c.Request()), maxRequest), Outcome: CallOK, At: c.At(unsaid)}
	e.SetTimes((*Moment)(c.Sent()), (*Moment)(c.Received()))
	if c.Failed {
		e.Outcome = CallFailed
	}
	e.Error, e.Device = c.Error(), rawjson.OrNull(c.Device())
	return e
}

// SetTimes sets when the call was sent and received, and so how long it took.
func (e *CallEntry) SetTimes(sent, received *Moment) {
	e.SentAt, e.ReceivedAt = sent, received
	if sent != nil && received != nil && *received >= *sent {
		took := Elapsed(*received - *sent)
		e.Took = &took
	}
}

// Function returns the last part of a dotted name.
func Function(request string) string {
	return cutText(request[strings.LastIndexByte(request, '.')+1:], maxCallName)
}

// Error returns the error of the call, nil if its record has none.
func (c *Call) Error() *CallError {
	if c.problem == nil {
		return nil
	}
	var stack, detail string
	for key, value := range rawjson.Members(c.problem) {
		switch string(key) {
		case "stacktrace":
			stack = callText(value)
		case "detail":
			detail = callText(value)
		}
	}
	return &CallError{rawjson.OrNull(errorType(stack, detail)), rawjson.OrNull(cutText(detail, maxCallDetail))}
}

// errorType returns the class of the exception that the last line of a stack trace names,
// or else the detail of an error; empty if neither does. An exception without a message
// stands alone in its line.
func errorType(stack, detail string) string {
	stack = strings.TrimRightFunc(stack, unicode.IsSpace)
	name, _, _ := strings.Cut(stack[strings.LastIndexByte(stack, '\n')+1:], ":")
	if class := exceptionIn(name); class != "" {
		return class
	}
	name, _, found := strings.Cut(detail, ":")
	if !found {
		return ""
	}
	return exceptionIn(name)
}

// exceptionIn returns the last part of a dotted name, empty if the text is none or if that
// part does not begin with a capital letter.
func exceptionIn(name string) string {
	class := ""
	for part := range strings.SplitSeq(strings.TrimSpace(name), ".") {
		for i, r := range part {
			if r != '_' && !unicode.IsLetter(r) && (i == 0 || !unicode.IsDigit(r)) {
				return ""
			}
		}
		if class = part; part == "" {
			return ""
		}
	}
	if first, _ := utf8.DecodeRuneInString(class); !unicode.IsUpper(first) {
		return ""
	}
	return cutText(class, maxCallName)
}

// deviceArguments are the names of arguments that say which device a call is
// for, the most specific first.
var deviceArguments = []string{
	"device", "device_name", "receptor", "receptor_id", "dish", "dish_id", "station", "station_id", "subarray", "subarray_id",
}

// Device returns which device the call is for, as its arguments say, empty if they do not.
func (c *Call) Device() string {
	device, rank := "", len(deviceArguments)
	look := func(object []byte) (kwargs []byte) {
		for key, value := range rawjson.Members(object) {
			if string(key) == "kwargs" {
				kwargs = value
			}
			at := slices.Index(deviceArguments[:rank], string(key))
			if at < 0 || len(value) == 0 || value[0] == '{' || value[0] == '[' || string(value) == "null" {
				continue
			}
			device, rank = cutText(callText(value), maxCallName), at
			if device != "" && device[0] >= '0' && device[0] <= '9' {
				what, _, _ := strings.Cut(string(key), "_")
				device = what + " " + device
			}
		}
		return kwargs
	}
	if kwargs := look(c.arguments); len(kwargs) > 0 {
		look(kwargs)
	}
	return device
}

// callText returns the text of a JSON value: of a string what it says.
func callText(value []byte) string {
	switch {
	case len(value) > 0 && value[0] == '"':
		return rawjson.Unquote(value)
	case string(value) == "null":
		return ""
	}
	return string(value)
}

// cutText shortens a text to a number of characters. Indexes cannot hold NUL.
func cutText(text string, most int) string {
	if len(text) > most {
		n := 0
		for i := range text {
			if n++; n > most {
				text = text[:i]
				break
			}
		}
	}
	return strings.ReplaceAll(text, "\x00", "\uFFFD")
}
