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

// appendLine appends the line of record number n of a session: its checksum,
// its key and the record itself, which is JSON without line breaks.
func appendLine(to []byte, session string, n int64, record []byte) []byte {
	begin := len(to)
	to = append(to, "00000000 "...)
	to = append(to, session...)
	to = strconv.AppendInt(append(to, '-'), n, 10)
	to = append(append(to, ' '), record...)
	checksum(to[begin:begin], to[begin+9:])
	return append(to, '\n')
}

// checksum appends the checksum of a text.
func checksum(to, text []byte) []byte {
	sum := crc32.ChecksumIEEE(text)
	return hex.AppendEncode(to, []byte{byte(sum >> 24), byte(sum >> 16), byte(sum >> 8), byte(sum)})
}

// parseLine parses a line, given without its line break. If the line is
// damaged, it returns the reason.
func parseLine(line []byte, session string) (r oda.NewRecord, reason string) {
	if len(line) < 9 || line[8] != ' ' {
		return r, "not a line of a spool"
	}
	var sum [8]byte
	if !bytes.Equal(line[:8], checksum(sum[:0], line[9:])) {
		return r, "the checksum does not match"
	}
	key, record, _ := bytes.Cut(line[9:], []byte(" "))
	number, ok := strings.CutPrefix(string(key), session+"-")
	if n, err := strconv.ParseInt(number, 10, 64); !ok || err != nil || n < 1 {
		return r, "the key is not one of this session"
	}
	if !json.Valid(record) {
		return r, "the record is not JSON"
	}
	return oda.NewRecord{Key: string(key), Text: record}, ""
}

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
