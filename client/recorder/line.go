package recorder

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"

	"oda"
)

// The sorts of lines.
const (
	recordLine = "record"
	statusLine = "status"
)

// appendLine appends line number n of a session: its checksum, its key, its sort
// and what is to be sent, which is JSON without line breaks.
func appendLine(to []byte, session string, n int64, sort string, body []byte) []byte {
	begin := len(to)
	to = append(to, "00000000 "...)
	to = append(to, session...)
	to = strconv.AppendInt(append(to, '-'), n, 10)
	to = append(append(to, ' '), sort...)
	to = append(append(to, ' '), body...)
	checksum(to[begin:begin], to[begin+9:])
	return append(to, '\n')
}

// checksum appends the checksum of a text.
func checksum(to, text []byte) []byte {
	sum := crc32.ChecksumIEEE(text)
	return hex.AppendEncode(to, []byte{byte(sum >> 24), byte(sum >> 16), byte(sum >> 8), byte(sum)})
}

// parseLine parses a line, given without its line break. If the line is
// damaged, it returns the reason. A line of a sort that this program does not
// know may be anything.
func parseLine(line []byte, session string) (sort string, r oda.NewRecord, reason string) {
	if len(line) < 9 || line[8] != ' ' {
		return "", r, "not a line of a spool"
	}
	var sum [8]byte
	if !bytes.Equal(line[:8], checksum(sum[:0], line[9:])) {
		return "", r, "the checksum does not match"
	}
	key, rest, _ := bytes.Cut(line[9:], []byte(" "))
	number, ok := strings.CutPrefix(string(key), session+"-")
	if n, err := strconv.ParseInt(number, 10, 64); !ok || err != nil || n < 1 {
		return "", r, "the key is not one of this session"
	}
	word, body, _ := bytes.Cut(rest, []byte(" "))
	sort = string(word)
	switch {
	case sort == "" || strings.Trim(sort, "abcdefghijklmnopqrstuvwxyz") != "":
		return "", r, "it does not say what it is"
	case isKnown(sort) && !json.Valid(body):
		return "", r, "the " + sort + " is not JSON"
	}
	return sort, oda.NewRecord{Key: string(key), Text: body}, ""
}

// isKnown reports whether this program knows how to send a sort of lines.
func isKnown(sort string) bool { return sort == recordLine || sort == statusLine }

// putAside saves a line that cannot be shipped in a file of the session, after
// a comment that says why. The line is on disk when putAside returns.
func putAside(in *folder, name, why string, line []byte) error {
	f, err := in.extend(name)
	if err == nil {
		defer f.Close()
		_, err = fmt.Fprintf(f, "# %s\n%s\n", strings.Join(strings.Fields(why), " "), line)
	}
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		return fmt.Errorf("put a line aside: %w", err)
	}
	return nil
}
