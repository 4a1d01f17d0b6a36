package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"unicode/utf8"

	"oda"
	"oda/internal/rawjson"
)

// maxRecord bounds the bytes of one record.
const maxRecord = 64 << 20

var errRecordSize = fmt.Errorf("it is larger than %d bytes", maxRecord)

// values passes on JSON values byte for byte: the elements of an array, or a
// stream of values.
func values(in io.Reader, do func(text []byte) error) error {
	r := &reading{in: bufio.NewReader(in), line: 1, column: 1}
	first, err := r.first()
	if err == io.EOF {
		return nil
	}
	if err != nil {
		return plainly(err)
	}
	r.array = first == '['
	decoder := json.NewDecoder(io.MultiReader(bytes.NewReader(slices.Clone(r.text)), r))
	if r.array {
		_, _ = decoder.Token() // the bracket
		r.pass(decoder.InputOffset())
	}
	for n := 1; !r.array || decoder.More(); n++ {
		r.left = maxRecord
		text, err := r.value(decoder)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("record %d: %w", n, err)
		}
		if err := do(text); err != nil {
			return err
		}
	}
	if _, err := decoder.Token(); err != nil {
		return r.broken(err)
	}
	if decoder.More() {
		return errors.New("there is data after the array of records")
	}
	return nil
}

// reading is a text that a decoder reads. It keeps what the decoder has not passed
// yet, and knows its place in the text.
type reading struct {
	in           io.Reader
	array        bool   // the values are its elements
	left         int    // bytes that may be read for one record
	text         []byte // read, but not yet passed
	at           int64  // offset of text, as the decoder counts
	line, column int    // of the beginning of text, from 1
}

// Read reads for the decoder.
func (r *reading) Read(p []byte) (int, error) {
	if r.left <= 0 {
		return 0, errRecordSize
	}
	n, err := r.in.Read(p)
	r.left -= n
	r.text = append(r.text, p[:n]...)
	return n, err
}

// jsonBlanks is JSON's white space.
const jsonBlanks = " \t\r\n"

// first passes the white space at the beginning and returns what follows. The decoder
// counts from there.
func (r *reading) first() (byte, error) {
	var part [512]byte
	for {
		r.left = maxRecord
		_, err := r.Read(part[:])
		blank := len(r.text) - len(bytes.TrimLeft(r.text, jsonBlanks))
		r.pass(r.at + int64(blank))
		if len(r.text) > 0 {
			r.at = 0
			return r.text[0], nil
		}
		if err != nil {
			return 0, err
		}
	}
}

// pass goes on to an offset.
func (r *reading) pass(offset int64) {
	passed := r.text[:offset-r.at]
	r.text, r.at = r.text[len(passed):], offset
	if end := bytes.LastIndexByte(passed, '\n'); end >= 0 {
		r.line += bytes.Count(passed, []byte("\n"))
		r.column, passed = 1, passed[end+1:]
	}
	r.column += utf8.RuneCount(passed)
}

// value returns the next value, or io.EOF after the last one of a stream. An error names its line and column in the whole text:
// the archive, which gets a part of it, could not.
func (r *reading) value(decoder *json.Decoder) ([]byte, error) {
	var text json.RawMessage
	if err := decoder.Decode(&text); err == io.EOF && !r.array {
		return nil, io.EOF
	} else if err != nil {
		return nil, r.broken(err)
	}
	end := decoder.InputOffset()
	r.pass(end - int64(len(text)))
	if wrong, ok := errors.AsType[*rawjson.SyntaxError](rawjson.Check(text, oda.MaxDepth)); ok {
		if wrong.Line == 1 {
			wrong.Column += r.column - 1
		}
		wrong.Line += r.line - 1
		return nil, fmt.Errorf("it is not valid JSON: %w", wrong)
	}
	r.pass(end)
	return text, nil
}

// broken returns an error of the decoder with its place.
func (r *reading) broken(err error) error {
	_, syntax := errors.AsType[*json.SyntaxError](err)
	switch {
	case errors.Is(err, errRecordSize):
		return err
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		r.pass(r.at + int64(len(r.text)))
		err = errors.New("the text ends in the middle")
	case syntax: // decoded alone, a value tells the offset from its own beginning
		rest := bytes.TrimLeft(r.text, jsonBlanks)
		if r.array {
			rest = bytes.TrimLeft(bytes.TrimPrefix(rest, []byte(",")), jsonBlanks)
		}
		r.pass(r.at + int64(len(r.text)-len(rest)))
		var value json.RawMessage
		if alone, ok := errors.AsType[*json.SyntaxError](json.NewDecoder(bytes.NewReader(rest)).Decode(&value)); ok {
			r.pass(r.at + alone.Offset - 1)
		}
	default:
		return plainly(err)
	}
	return fmt.Errorf("it is not valid JSON: %w (line %d, column %d)", err, r.line, r.column)
}
