package moving

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"

	"oda"
	"oda/internal/rawjson"
)

// form is the first line of an export.
const form = `{"export":"oda","form":2}`

// A line has its values first, then a check of these, then the text. The check is the
// beginning of their SHA-256, and the values contain the digest of the text. So damage is
// found in the line where it is. Everything before the text is the head of the line.
const (
	checkKey    = `,"check":"`
	checkLength = 16
	documentKey = `","document":`
	recordKey   = `","record":`
	cameKey     = `{"came":true,` // a record that came with the version before it
)

// lines are lines of an export.
type lines struct {
	text  []byte
	heads []byte // of these lines, each with a line feed
}

// add adds the lines of an entry.
func (l *lines) add(e *oda.LogEntry) error {
	begin := len(l.text)
	dst := appendRef(append(l.text, '{'), e)
	if !e.Stored() {
		l.addRecord(dst, begin, e.Sequence, e.Key, e.Body)
		return nil
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
	dst = append(l.check(dst, begin), documentKey...)
	if hasLines(e.Body.Text) {
		document, err := e.AppendDocument(nil)
		if err != nil {
			return err
		}
		dst = rawjson.AppendQuoted(dst, string(document))
	} else {
		var err error
		if dst, err = e.AppendDocument(dst); err != nil {
			return err
		}
	}
	l.text = append(dst, '}', '\n')
	for i, body := range e.Came {
		begin := len(l.text)
		l.addRecord(appendRef(append(l.text, cameKey...), e), begin, e.Before+1+int64(i), "", body)
	}
	return nil
}

// addRecord completes the line of a record, which begins at begin.
func (l *lines) addRecord(dst []byte, begin int, sequence int64, key string, body oda.Body) {
	dst = appendNumber(dst, "sequence", sequence)
	if key != "" {
		dst = appendText(dst, "key", key)
	}
	dst = appendDigest(dst, "sha256", body.Digest)
	dst = append(l.check(dst, begin), recordKey...)
	if hasLines(body.Text) {
		dst = rawjson.AppendQuoted(dst, string(body.Text))
	} else {
		dst = append(dst, body.Text...)
	}
	l.text = append(dst, '}', '\n')
}

// check ends the head of the line from begin on with its check.
func (l *lines) check(dst []byte, begin int) []byte {
	sum := sha256.Sum256(dst[begin:])
	dst = hex.AppendEncode(append(dst, checkKey...), sum[:checkLength/2])
	l.heads = append(append(l.heads, dst[begin:]...), '\n')
	return dst
}

// headOf returns the head of a line, and whether it ends with a check. If not, it is all of
// the line.
func headOf(line []byte) (head []byte, ok bool) {
	values, rest, ok := bytes.Cut(line, []byte(checkKey))
	if !ok || len(rest) < checkLength {
		return line, false
	}
	return line[:len(values)+len(checkKey)+checkLength], true
}

// hasLines reports whether a text is not on one line.
func hasLines(text []byte) bool {
	return bytes.IndexByte(text, '\n') >= 0 || bytes.IndexByte(text, '\r') >= 0
}

func appendRef(dst []byte, e *oda.LogEntry) []byte {
	dst = append(append(dst, `"kind":"`...), e.Kind.Collection()...)
	dst = append(append(dst, `","id":"`...), e.ID...)
	dst = append(dst, '"')
	dst = appendNumber(dst, "version", e.Version)
	return appendInstant(appendText(dst, "by", e.By), "on", e.On)
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
	body, ok := bytes.CutSuffix(rest[checkLength:], []byte("}"))
	if !ok {
		return e, false, errLine
	}
	if e, came, err = parseValues(values); err != nil {
		return e, false, err
	}
	if e.Sequence > 0 {
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
	if e.Sequence > 0 {
		e.Body = oda.Body{Text: bytes.Clone(body), Digest: oda.DigestOf(body)}
	} else if e.Body, err = oda.Unrender(body, e.Body.Slots, e.Metadata()); err != nil {
		return e, false, fmt.Errorf("is damaged: %w", err)
	}
	if e.Body.Digest != digest {
		return e, false, errors.New("is damaged: its text does not fit its SHA-256")
	}
	return e, came, nil
}

// parseValues returns the entry without its text, and whether it is a record that came
// with a version. The values must fit their check, so they are as they were written.
func parseValues(text []byte) (e oda.LogEntry, came bool, err error) {
	var v values
	var createKey oda.Key
	for key, value := range rawjson.Members(text) {
		switch string(key) {
		case "came":
			came = true
		case "kind":
			e.Kind, _ = oda.KindOf(v.text(value))
		case "id":
			e.ID = v.text(value)
		case "version":
			e.Version = v.number(value)
		case "by":
			e.By = v.text(value)
		case "on":
			e.On = v.instant(value)
		case "created_by":
			e.CreatedBy = v.text(value)
		case "created_on":
			e.CreatedOn = v.instant(value)
		case "sequence_before":
			e.Before = v.number(value)
		case "sequence_after":
			e.After = v.number(value)
		case "runs":
			e.Runs = []oda.Run{}
			v.pairs(value, func(first, last int64) { e.Runs = append(e.Runs, oda.Run{First: first, Last: last}) })
		case "slots":
			v.pairs(value, func(slot, offset int64) {
				v.wrong = v.wrong || slot < 0 || slot > 255 || offset < 0
				e.Body.Slots = append(e.Body.Slots, oda.Slot{Value: oda.SlotValue(slot), Offset: int(offset)})
			})
		case "create_key":
			createKey.Value = v.text(value)
			e.CreateKey = &createKey
		case "create_sha256":
			createKey.Digest = v.digest(value)
		case "sha256":
			e.Body.Digest = v.digest(value)
		case "sequence":
			e.Sequence = v.number(value)
		case "key":
			e.Key = v.text(value)
		}
	}
	if v.wrong || e.Kind == 0 || e.Sequence < 0 {
		return e, false, errLine
	}
	return e, came, nil
}

// values reads values of a line. It notes whether one of them is not what it should be.
type values struct{ wrong bool }

func (v *values) text(raw []byte) string {
	if len(raw) < 2 || raw[0] != '"' {
		v.wrong = true
		return ""
	}
	return rawjson.Unquote(raw)
}

func (v *values) number(raw []byte) int64 {
	n, err := strconv.ParseInt(string(raw), 10, 64)
	v.wrong = v.wrong || err != nil
	return n
}

// pairs calls add for each two numbers of a list.
func (v *values) pairs(raw []byte, add func(a, b int64)) {
	list, ok := bytes.CutPrefix(bytes.TrimSuffix(raw, []byte("]")), []byte("["))
	v.wrong = v.wrong || !ok
	for len(list) > 0 {
		var a, b []byte
		a, list, _ = bytes.Cut(list, []byte(","))
		b, list, _ = bytes.Cut(list, []byte(","))
		add(v.number(a), v.number(b))
	}
}

func (v *values) instant(raw []byte) oda.Instant {
	t, err := oda.ParseTime(v.text(raw))
	v.wrong = v.wrong || err != nil
	return oda.InstantOf(t)
}

func (v *values) digest(raw []byte) (digest oda.Digest) {
	text := v.text(raw)
	if len(text) != 2*len(digest) {
		v.wrong = true
		return digest
	}
	_, err := hex.Decode(digest[:], []byte(text))
	v.wrong = v.wrong || err != nil
	return digest
}

// Manifest is what an export says about itself in its last line.
type Manifest struct {
	SBDefinitions   int64 `json:"sbds"` // how many entities of the kind there are
	SBInstances     int64 `json:"sbis"`
	ExecutionBlocks int64 `json:"ebs"`
	Projects        int64 `json:"prjs"`
	Versions        int64 `json:"versions"`
	Records         int64 `json:"records"`

	SHA256 string `json:"sha256"` // of the heads of all lines before, each with a line feed
	CRC32C string `json:"crc32c"` // of all lines before
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
