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
const form = `{"export":"oda","form":3}`

// A line has its values first, then a check of these, then the text. The check is the
// beginning of their SHA-256, and the values contain the digest of the text. So damage is
// found in the line where it is. Everything before the text is the head of the line. A
// status has no text: its line ends after the check.
const (
	checkKey    = `,"check":"`
	checkLength = 16
	documentKey = `","document":`
	recordKey   = `","record":`
	noText      = `"`
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
	if e.Said != nil {
		l.addStatus(dst, begin, e)
		return nil
	}
	if e.Recorded() {
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
	dst = appendKnown(appendNumber(dst, "sequence", sequence), "key", key)
	dst = appendDigest(dst, "sha256", body.Digest)
	dst = append(l.check(dst, begin), recordKey...)
	if hasLines(body.Text) {
		dst = rawjson.AppendQuoted(dst, string(body.Text))
	} else {
		dst = append(dst, body.Text...)
	}
	l.text = append(dst, '}', '\n')
}

// addStatus completes the line of a status, which begins at begin.
func (l *lines) addStatus(dst []byte, begin int, e *oda.LogEntry) {
	dst = appendText(appendNumber(dst, "sequence", e.Sequence), "status", e.Said.Text)
	dst = appendKnown(dst, "class", e.Said.Class.String())
	dst = appendKnown(dst, "reason", e.Said.Reason)
	dst = appendInstant(dst, "at", e.Said.At)
	dst = appendKnown(dst, "previous", e.Said.Previous)
	if e.Key != "" {
		dst = appendDigest(appendText(dst, "key", e.Key), "key_sha256", e.KeyDigest)
	}
	l.text = append(l.check(dst, begin), noText+"}\n"...)
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

// appendKnown appends a text, unless there is none.
func appendKnown(dst []byte, key, value string) []byte {
	if value == "" {
		return dst
	}
	return appendText(dst, key, value)
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

// parseLine reads a line of a version, a record or a status, and whether the record came
// with a version. It finds all damage.
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
	if e.Said != nil {
		if string(body) != noText || came {
			err = errLine
		}
		return e, came, err
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
	var said oda.Status
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
		case "key_sha256":
			e.KeyDigest = v.digest(value)
		case "status":
			said.Text, e.Said = v.text(value), &said
		case "class":
			said.Class = v.class(value)
		case "reason":
			said.Reason = v.text(value)
		case "at":
			said.At = v.instant(value)
		case "previous":
			said.Previous = v.text(value)
		}
	}
	if e.Said != nil {
		said.Ref, said.Version, said.Sequence, said.By, said.On = e.Ref, e.Version, e.Sequence, e.By, e.On
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

func (v *values) class(raw []byte) oda.Class {
	class, ok := oda.ClassNamed(v.text(raw))
	v.wrong = v.wrong || !ok
	return class
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
