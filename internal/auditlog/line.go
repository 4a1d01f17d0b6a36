package auditlog

import (
	"encoding/json"
	"time"
	"unicode/utf8"
)

// Entry is a line of the log: a write, or a request that was not allowed.
type Entry struct {
	Time      time.Time `json:"time"`
	User      string    `json:"user,omitempty"`   // the acting user, as in the metadata
	Caller    string    `json:"caller,omitempty"` // the name of the token or account that was used
	Means     string    `json:"means,omitempty"`  // how the caller is known
	From      string    `json:"from"`             // address
	Via       string    `json:"via,omitempty"`    // address of the proxy that tells so
	Operation string    `json:"operation"`
	Kind      string    `json:"kind,omitempty"`
	Entity    string    `json:"entity,omitempty"`
	Version   int64     `json:"version,omitempty"`
	Records   int       `json:"records,omitempty"` // how many were recorded
	Status    int       `json:"status"`
	Problem   string    `json:"problem,omitempty"`
	RequestID string    `json:"request_id"`
}

// knocks is a line that sums up failed attempts to get in.
type knocks struct {
	Time   time.Time `json:"time"`
	Since  time.Time `json:"since"`
	From   string    `json:"from"`
	Status int       `json:"status"`
	Count  int       `json:"count"`
}

// gap is a line that says how many lines are missing before it.
type gap struct {
	Time time.Time `json:"time"`
	Lost int       `json:"lost"`
}

// longest bounds each text of a line, in bytes.
const longest = 512

// room is how much space is set aside for a line. Few take more than a third.
const room = 1 << 10

// appendLine appends an entry as a line.
func (e Entry) appendLine(to []byte) []byte {
	for _, text := range []*string{&e.User, &e.Caller, &e.From, &e.Via, &e.Operation, &e.Entity, &e.RequestID} {
		*text = clip(*text)
	}
	return appendLine(to, e)
}

func appendLine(to []byte, value any) []byte {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err) // texts and numbers
	}
	return append(append(to, text...), '\n')
}

func clip(text string) string {
	if len(text) <= longest {
		return text
	}
	end := longest
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end]
}
