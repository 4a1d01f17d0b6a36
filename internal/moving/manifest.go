package moving

import (
	"bytes"

	"oda"
)

// Manifest is what an export says about itself in its last line.
type Manifest struct {
	SBDefinitions   int64 `json:"sbds"` // how many entities of the kind there are
	SBInstances     int64 `json:"sbis"`
	ExecutionBlocks int64 `json:"ebs"`
	Projects        int64 `json:"prjs"`
	Notes           int64 `json:"notes"`
	Versions        int64 `json:"versions"`
	Records         int64 `json:"records"`
	Statuses        int64 `json:"statuses"`

	SHA256 string `json:"sha256"` // of the heads of all lines before, each with a line feed
	CRC32C string `json:"crc32c"` // of all lines before
}

// count counts an entry.
func (m *Manifest) count(e *oda.LogEntry) {
	switch {
	case e.Said != nil:
		m.Statuses++
		return
	case e.Recorded():
		m.Records++
		return
	}
	m.Versions++
	m.Records += int64(len(e.Came))
	if e.Version > 1 {
		return
	}
	switch e.Kind {
	case oda.SBDefinition:
		m.SBDefinitions++
	case oda.SBInstance:
		m.SBInstances++
	case oda.ExecutionBlock:
		m.ExecutionBlocks++
	case oda.Project:
		m.Projects++
	case oda.Note:
		m.Notes++
	}
}

// tally counts a line by how it begins: a version has created_by there, and a record or
// a status its sequence.
func (m *Manifest) tally(line []byte) {
	const headBytes = 4096 // more than there can be before these
	head := line[:min(len(line), headBytes)]
	version, _, isVersion := bytes.Cut(head, []byte(`,"created_by":`))
	if _, rest, ok := bytes.Cut(version, []byte(`,"sequence":`)); ok || !isVersion {
		if bytes.HasPrefix(bytes.TrimLeft(rest, "0123456789"), []byte(`,"status":`)) {
			m.Statuses++
		} else {
			m.Records++
		}
		return
	}
	e := oda.LogEntry{Version: 2}
	if bytes.Contains(version, []byte(`,"version":1,`)) {
		e.Version = 1
	}
	name, _, _ := bytes.Cut(bytes.TrimPrefix(head, []byte(`{"kind":"`)), []byte(`"`))
	e.Kind, _ = oda.KindOf(string(name)) // if it has none, it is not counted
	m.count(&e)
}

// add adds other counts.
func (m *Manifest) add(more *Manifest) {
	m.SBDefinitions += more.SBDefinitions
	m.SBInstances += more.SBInstances
	m.ExecutionBlocks += more.ExecutionBlocks
	m.Projects += more.Projects
	m.Notes += more.Notes
	m.Versions += more.Versions
	m.Records += more.Records
	m.Statuses += more.Statuses
}

const manifestKey = `{"manifest":`
