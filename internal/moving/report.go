package moving

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"oda"
)

// Origin is where a document was found.
type Origin struct {
	File string // a path or an address
	Line int64  // 0: the file is one document
}

func (o Origin) String() string {
	if o.Line == 0 {
		return o.File
	}
	return fmt.Sprintf("%s:%d", o.File, o.Line)
}

// SetAside is a document, a record or a status that was not imported, or not as it was.
type SetAside struct {
	Origin
	oda.Ref
	Version  int64
	Sequence int64
	Status   string // that was said
	Reason   string
	Changed  bool   // it was imported, but not as it was
	Document []byte // all of it, if it is not elsewhere; nil if it is
}

// ReportBegin is how each line of a report begins.
const ReportBegin = `{"file":`

// MarshalJSON returns it as an object on one line.
func (s SetAside) MarshalJSON() ([]byte, error) {
	fields := struct {
		File     string          `json:"file"`
		Line     int64           `json:"line,omitempty"`
		Kind     string          `json:"kind,omitempty"`
		ID       string          `json:"id,omitempty"`
		Version  int64           `json:"version,omitempty"`
		Sequence int64           `json:"sequence,omitempty"`
		Status   string          `json:"status,omitempty"`
		Reason   string          `json:"reason"`
		Document json.RawMessage `json:"document,omitempty"`
		Text     string          `json:"text,omitempty"`   // if it is not JSON
		Bytes    []byte          `json:"base64,omitempty"` // if it is not even UTF-8
	}{File: s.File, Line: s.Line, ID: s.ID, Version: s.Version, Sequence: s.Sequence, Status: s.Status, Reason: s.Reason}
	if s.Kind != 0 {
		fields.Kind = s.Kind.Collection()
	}
	switch {
	case !utf8.Valid(s.Document): // which json.Valid accepts
		fields.Bytes = s.Document
	case json.Valid(s.Document):
		fields.Document = s.Document
	default:
		fields.Text = string(s.Document)
	}
	return json.Marshal(fields)
}

// Report counts what an import has done, and keeps what it has set aside.
type Report struct {
	Total    atomic.Int64 // documents, records and statuses; 0 if nobody knows
	Read     atomic.Int64
	Imported atomic.Int64
	Present  atomic.Int64 // in the archive already
	Aside    atomic.Int64
	Changed  atomic.Int64 // imported now or earlier, but not as they were

	// Note is told what a person should know although nothing was set aside; nil: nobody.
	Note func(text string)

	// Path is the file that the report will be, empty if it is kept nowhere. An earlier report
	// there is not imported.
	Path string

	unpacked *unpacked // the export that is read; nil: another source

	mu     sync.Mutex
	out    io.Writer // a line for each; nil: none
	tell   func(SetAside)
	failed error
}

// NewReport returns a report that writes what was set aside as lines of JSON, and
// tells it to a person.
func NewReport(out io.Writer, tell func(SetAside)) *Report { return &Report{out: out, tell: tell} }

// replaces reports whether the report will replace a file.
func (r *Report) replaces(f *os.File) bool {
	if r.Path == "" {
		return false
	}
	own, err := os.Stat(r.Path)
	if err != nil {
		return false
	}
	info, err := f.Stat()
	return err == nil && os.SameFile(own, info)
}

// setAside adds what was not imported, or not as it was.
func (r *Report) setAside(all ...SetAside) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range all {
		if s.Changed {
			r.Changed.Add(1)
		} else {
			r.Aside.Add(1)
		}
		if r.unpacked != nil {
			s.Origin = r.unpacked.origin(&s)
		}
		if r.tell(s); r.out == nil || r.failed != nil {
			continue
		}
		text, err := json.Marshal(s)
		if err == nil {
			_, err = r.out.Write(append(text, '\n'))
		}
		if err != nil {
			r.failed = fmt.Errorf("the report cannot be written: %w", err)
		}
	}
	return r.failed
}
