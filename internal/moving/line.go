package moving

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"oda"
	"oda/internal/rawjson"
)

// form is the first line of an export.
const form = `{"export":"oda","form":1}`

// A line has its values first, then a check of these, then the text. The check is the
// beginning of their SHA-256; the digest among them is that of the text. So damage is
// found in the line in which it is.
const (
	checkKey    = `,"check":"`
	checkLength = 16
	documentKey = `","document":`
	recordKey   = `","record":`
	cameKey     = `{"came":true,` // a record that came with the version before it
)

// appendEntry appends the lines of an entry.
func appendEntry(dst []byte, e *oda.LogEntry) ([]byte, error) {
	begin := len(dst)
	dst = appendRef(append(dst, '{'), e)
	if !e.Stored() {
		return appendRecord(dst, begin, e.Sequence, e.Key, e.Body), nil
	}
	dst = appendText(dst, "created_by", e.CreatedBy)
	dst = appendInstant(dst, "created_on", e.CreatedOn)
	if e.Kind == oda.ExecutionBlock {
		dst = appendNumber(dst, "sequence_before", e.Before)
		dst = appendNumber(dst, "sequence_after", e.After)
		if e.Runs != nil {
			dst = append(dst, `,"runs":[`...)
			for i, run := range e.Runs {
				if i > 0 {
					dst = append(dst, ',')
				}
				dst = strconv.AppendInt(dst, run.First, 10)
				dst = strconv.AppendInt(append(dst, ','), run.Last, 10)
			}
			dst = append(dst, ']')
		}
	}
	dst = append(dst, `,"slots":[`...)
	for i, slot := range e.Body.Slots {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendInt(dst, int64(slot.Value), 10)
		dst = strconv.AppendInt(append(dst, ','), int64(slot.Offset), 10)
	}
	dst = append(dst, ']')
	if e.CreateKey != nil {
		dst = appendText(dst, "create_key", e.CreateKey.Value)
		dst = appendDigest(dst, "create_sha256", e.CreateKey.Digest)
	}
	dst = appendDigest(dst, "sha256", e.Body.Digest)
	dst = appendCheck(dst, begin)
	dst = append(dst, documentKey...)
	text := appending{dst}
	if hasLines(e.Body.Text) {
		var rendered bytes.Buffer
		if err := e.Body.WriteTo(&rendered, e.Metadata(), nil); err != nil {
			return nil, err
		}
		text.dst = rawjson.AppendQuoted(text.dst, rendered.String())
	} else if err := e.Body.WriteTo(&text, e.Metadata(), nil); err != nil {
		return nil, err
	}
	dst = append(text.dst, '}', '\n')
	for i, body := range e.Came {
		begin := len(dst)
		dst = appendRef(append(dst, cameKey...), e)
		dst = appendRecord(dst, begin, e.Before+1+int64(i), "", body)
	}
	return dst, nil
}

// hasLines reports whether a text is not on one line.
func hasLines(text []byte) bool {
	return bytes.IndexByte(text, '\n') >= 0 || bytes.IndexByte(text, '\r') >= 0
}

// appending is a buffer as an io.Writer.
type appending struct{ dst []byte }

func (a *appending) Write(p []byte) (int, error) {
	a.dst = append(a.dst, p...)
	return len(p), nil
}

func appendRef(dst []byte, e *oda.LogEntry) []byte {
	dst = append(append(dst, `"kind":"`...), e.Kind.Collection()...)
	dst = append(append(dst, `","id":"`...), e.ID...)
	dst = append(dst, '"')
	dst = appendNumber(dst, "version", e.Version)
	return appendInstant(appendText(dst, "by", e.By), "on", e.On)
}

// appendRecord appends the rest of the line of a record.
func appendRecord(dst []byte, begin int, sequence int64, key string, body oda.Body) []byte {
	dst = appendNumber(dst, "sequence", sequence)
	if key != "" {
		dst = appendText(dst, "key", key)
	}
	dst = appendDigest(dst, "sha256", body.Digest)
	dst = appendCheck(dst, begin)
	dst = append(dst, recordKey...)
	if hasLines(body.Text) {
		dst = rawjson.AppendQuoted(dst, string(body.Text))
	} else {
		dst = append(dst, body.Text...)
	}
	return append(dst, '}', '\n')
}

func appendText(dst []byte, key, value string) []byte {
	return rawjson.AppendQuoted(append(append(append(dst, `,"`...), key...), `":`...), value)
}

func appendNumber(dst []byte, key string, value int64) []byte {
	return strconv.AppendInt(append(append(append(dst, `,"`...), key...), `":`...), value, 10)
}

func appendInstant(dst []byte, key string, value oda.Instant) []byte {
	return append(value.AppendTo(append(append(append(dst, `,"`...), key...), `":"`...)), '"')
}

func appendDigest(dst []byte, key string, value oda.Digest) []byte {
	dst = append(append(append(dst, `,"`...), key...), `":"`...)
	return append(hex.AppendEncode(dst, value[:]), '"')
}

func appendCheck(dst []byte, begin int) []byte {
	sum := sha256.Sum256(dst[begin:])
	return hex.AppendEncode(append(dst, checkKey...), sum[:checkLength/2])
}

// line is what the values of a line say.
type line struct {
	Came           bool    `json:"came"`
	Kind           string  `json:"kind"`
	ID             string  `json:"id"`
	Version        int64   `json:"version"`
	By             string  `json:"by"`
	On             string  `json:"on"`
	CreatedBy      string  `json:"created_by"`
	CreatedOn      string  `json:"created_on"`
	SequenceBefore int64   `json:"sequence_before"`
	SequenceAfter  int64   `json:"sequence_after"`
	Runs           []int64 `json:"runs"`
	Slots          []int64 `json:"slots"`
	CreateKey      string  `json:"create_key"`
	CreateSHA256   string  `json:"create_sha256"`
	SHA256         string  `json:"sha256"`
	Sequence       int64   `json:"sequence"`
	Key            string  `json:"key"`
}

var errLine = errors.New("is not a line of an export")

// parseLine reads a line of a version or a record, and whether the record came with a
// version. It finds all damage.
func parseLine(text []byte) (e oda.LogEntry, came bool, err error) {
	values, rest, ok := bytes.Cut(text, []byte(checkKey))
	if !ok || len(rest) < checkLength {
		return e, false, errLine
	}
	sum := sha256.Sum256(values)
	if hex.EncodeToString(sum[:checkLength/2]) != string(rest[:checkLength]) {
		return e, false, errors.New("is damaged: its values do not fit their check")
	}
	var l line
	if err := json.Unmarshal(append(values[:len(values):len(values)], '}'), &l); err != nil {
		return e, false, errLine
	}
	body, ok := bytes.CutSuffix(rest[checkLength:], []byte("}"))
	if !ok {
		return e, false, errLine
	}
	if e, err = l.entry(); err != nil {
		return e, false, err
	}
	if l.Sequence > 0 {
		body, ok = bytes.CutPrefix(body, []byte(recordKey))
	} else {
		body, ok = bytes.CutPrefix(body, []byte(documentKey))
	}
	if !ok || len(body) == 0 {
		return e, false, errLine
	}
	if body[0] == '"' {
		body = []byte(rawjson.Unquote(body))
	}
	digest := e.Body.Digest
	if l.Sequence > 0 {
		e.Body = oda.Body{Text: bytes.Clone(body), Digest: oda.DigestOf(body)}
	} else if e.Body, err = oda.Unrender(body, e.Body.Slots, e.Metadata()); err != nil {
		return e, false, fmt.Errorf("is damaged: %w", err)
	}
	if e.Body.Digest != digest {
		return e, false, errors.New("is damaged: its text does not fit its SHA-256")
	}
	return e, l.Came, nil
}

// entry returns the entry without its text.
func (l *line) entry() (e oda.LogEntry, err error) {
	kind, ok := oda.KindOf(l.Kind)
	if !ok || len(l.Runs)%2 != 0 || len(l.Slots)%2 != 0 || l.Sequence < 0 {
		return e, errLine
	}
	e = oda.LogEntry{
		Ref: oda.Ref{Kind: kind, ID: l.ID}, Version: l.Version, Sequence: l.Sequence, By: l.By, CreatedBy: l.CreatedBy,
		Before: l.SequenceBefore, After: l.SequenceAfter, Key: l.Key,
	}
	if e.On, err = instantOf(l.On); err != nil {
		return e, err
	}
	if l.Sequence == 0 {
		if e.CreatedOn, err = instantOf(l.CreatedOn); err != nil {
			return e, err
		}
	}
	if l.Runs != nil {
		e.Runs = make([]oda.Run, 0, len(l.Runs)/2)
		for i := 0; i < len(l.Runs); i += 2 {
			e.Runs = append(e.Runs, oda.Run{First: l.Runs[i], Last: l.Runs[i+1]})
		}
	}
	e.Body.Slots = make([]oda.Slot, 0, len(l.Slots)/2)
	for i := 0; i < len(l.Slots); i += 2 {
		if l.Slots[i] < 0 || l.Slots[i] > 255 || l.Slots[i+1] < 0 {
			return e, errLine
		}
		e.Body.Slots = append(e.Body.Slots, oda.Slot{Value: oda.SlotValue(l.Slots[i]), Offset: int(l.Slots[i+1])})
	}
	if l.CreateKey != "" {
		e.CreateKey = &oda.Key{Value: l.CreateKey}
		if e.CreateKey.Digest, err = digestOf(l.CreateSHA256); err != nil {
			return e, err
		}
	}
	e.Body.Digest, err = digestOf(l.SHA256)
	return e, err
}

func instantOf(text string) (oda.Instant, error) {
	t, err := oda.ParseTime(text)
	if err != nil {
		return 0, errLine
	}
	return oda.InstantOf(t), nil
}

func digestOf(text string) (digest oda.Digest, err error) {
	if len(text) != 2*len(digest) {
		return digest, errLine
	}
	if _, err = hex.Decode(digest[:], []byte(text)); err != nil {
		return digest, errLine
	}
	return digest, nil
}

// Manifest is what an export says about itself in its last line.
type Manifest struct {
	SBDefinitions   int64 `json:"sbds"` // how many entities of the kind there are
	SBInstances     int64 `json:"sbis"`
	ExecutionBlocks int64 `json:"ebs"`
	Projects        int64 `json:"prjs"`
	Versions        int64 `json:"versions"`
	Records         int64 `json:"records"`

	SHA256 string `json:"sha256"` // of all lines before, with their ends
}

// count counts an entry.
func (m *Manifest) count(e *oda.LogEntry) {
	if !e.Stored() {
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
	}
}

// tally counts a line by how it begins: a version has created_by there, and a record
// its sequence.
func (m *Manifest) tally(line []byte) {
	const headBytes = 4096 // more than there can be before these
	head := line[:min(len(line), headBytes)]
	stored, recorded := bytes.Index(head, []byte(`,"created_by":`)), bytes.Index(head, []byte(`,"sequence":`))
	if stored < 0 || recorded >= 0 && recorded < stored {
		m.Records++
		return
	}
	e := oda.LogEntry{Version: 2}
	if bytes.Contains(head[:stored], []byte(`,"version":1,`)) {
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
	m.Versions += more.Versions
	m.Records += more.Records
}

const manifestKey = `{"manifest":`
