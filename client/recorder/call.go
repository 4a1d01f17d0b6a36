package recorder

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"oda"
	"oda/internal/rawjson"
)

// Call is a function that was called on the telescope, with its response. Only
// Request is required. For other members use RecordJSON.
type Call struct {
	// Request is the name of the function, such as "functions.scan".
	Request string
	// RequestArgs are the arguments: anything that becomes a JSON object or
	// string. A list is stored as {"args": list}, and any other value as
	// {"args": [value]}.
	RequestArgs any
	// Status is the outcome; scripts write "OK" and "ERROR".
	Status string
	// Response is the result: anything that becomes a JSON object. Any other
	// value is stored as {"result": value}.
	Response any
	// Error says what went wrong: an error, or anything that becomes a JSON
	// object. An error, or any other value, is stored as {"detail": value}.
	Error any
	// RequestSentAt and ResponseReceivedAt are omitted if zero.
	RequestSentAt, ResponseReceivedAt time.Time
}

// callJSON is a call as it is sent.
type callJSON struct {
	Request     string          `json:"request"`
	RequestArgs json.RawMessage `json:"request_args,omitempty"`
	Status      string          `json:"status,omitempty"`
	Response    json.RawMessage `json:"response,omitempty"`
	Error       json.RawMessage `json:"error,omitempty"`
	Sent        string          `json:"request_sent_at,omitempty"`
	Received    string          `json:"response_received_at,omitempty"`
}

// encode returns the record of the call as JSON on one line.
func (c Call) encode() ([]byte, error) {
	out := callJSON{Request: c.Request, Status: c.Status, Sent: stamp(c.RequestSentAt), Received: stamp(c.ResponseReceivedAt)}
	failure := c.Error
	if err, ok := failure.(error); ok {
		failure = err.Error()
	}
	var errs [3]error
	out.RequestArgs, errs[0] = arguments(c.RequestArgs)
	out.Response, errs[1] = member("response", c.Response, func(_ byte, value json.RawMessage) any {
		return map[string]any{"result": value}
	})
	out.Error, errs[2] = member("error", failure, func(_ byte, value json.RawMessage) any {
		return map[string]any{"detail": value}
	})
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	return rawjson.Marshal(out)
}

// arguments returns the arguments of a call as a record has them.
func arguments(args any) (json.RawMessage, error) {
	return member("request_args", args, func(kind byte, value json.RawMessage) any {
		switch kind {
		case '"':
			return value
		case '[':
			return map[string]any{"args": value}
		}
		return map[string]any{"args": []any{value}}
	})
}

// member returns a value as JSON, or nil if there is none. A value that is not
// an object is wrapped in one, as the archive requires.
func member(name string, value any, wrap func(kind byte, value json.RawMessage) any) (json.RawMessage, error) {
	if value == nil {
		return nil, nil
	}
	text, err := rawjson.Marshal(value)
	if err == nil && text[0] != '{' {
		if string(text) == "null" {
			return nil, nil
		}
		text, err = rawjson.Marshal(wrap(text[0], text))
	}
	if err != nil {
		return nil, fmt.Errorf("the %s cannot be written as JSON: %w", name, err)
	}
	return text, nil
}

// stamp formats a time as the archive does, or returns "" for the zero time.
func stamp(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return oda.InstantOf(at).String()
}

// oneLine removes the white space between the parts of a JSON text.
func oneLine(text []byte) ([]byte, error) {
	var out bytes.Buffer
	out.Grow(len(text))
	if !utf8.Valid(text) || json.Compact(&out, text) != nil {
		return nil, fmt.Errorf("the record is not JSON: %w", oda.CheckJSON(text))
	}
	return out.Bytes(), nil
}
