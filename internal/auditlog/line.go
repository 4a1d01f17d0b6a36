package auditlog

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"
	"unicode/utf8"
)

// Entry is what the log says about a request: a write, or one that was not allowed.
type Entry struct {
	Time      time.Time `json:"time"`
	User      string    `json:"user,omitempty"`   // the acting user, as in the metadata
	Caller    string    `json:"caller,omitempty"` // the name of the token or account that was used
	Means     string    `json:"means,omitempty"`  // how the caller is known
	From      string    `json:"from,omitempty"`   // address
	Via       string    `json:"via,omitempty"`    // address of the proxy that tells so
	Operation string    `json:"operation,omitempty"`
	Kind      string    `json:"kind,omitempty"`
	Entity    string    `json:"entity,omitempty"`
	Version   int64     `json:"version,omitempty"`
	Records   int       `json:"records,omitempty"` // how many were recorded
	Status    int       `json:"status"`
	Problem   string    `json:"problem,omitempty"`
	RequestID string    `json:"request_id,omitempty"`
}

// sum is a line that sums up refused requests. It tells the first of them.
type sum struct {
	Entry
	Since time.Time `json:"since"`
	Count int       `json:"count"`
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

// clipped returns the entry with texts of bounded length, which keep nothing longer
// in memory.
func (e Entry) clipped() Entry {
	for _, text := range []*string{&e.User, &e.Caller, &e.From, &e.Via, &e.Operation, &e.Entity, &e.RequestID} {
		*text = clip(*text)
	}
	return e
}

// line returns a line without its number.
func line(value any) []byte {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err) // texts and numbers
	}
	return text
}

func clip(text string) string {
	if len(text) <= longest {
		return text
	}
	end := longest
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return strings.Clone(text[:end])
}

// numberFormat is how a line begins: with its number. The rest of it follows.
const numberFormat = `{"number":%d,`

// appendNumbered appends a line with its number.
func appendNumbered(to []byte, number int64, line []byte) []byte {
	to = fmt.Appendf(to, numberFormat, number)
	return append(append(to, line[1:]...), '\n')
}

// tail is how much of the end of a file has the number of its last line.
const tail = 64 << 10

// lastNumber returns the number of the last line of a file, 0 if it has none.
func lastNumber(file *os.File) (number int64) {
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return 0
	}
	from := max(info.Size()-tail, 0)
	text := make([]byte, info.Size()-from)
	n, _ := file.ReadAt(text, from) // what cannot be read has no number
	for line := range bytes.Lines(text[:n]) {
		var one int64
		if _, err := fmt.Sscanf(string(line), numberFormat, &one); err == nil {
			number = max(number, one)
		}
	}
	return number
}
