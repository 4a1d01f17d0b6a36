package sqlite

import (
	"encoding/binary"
	"io"
	"os"
	"strings"
)

// belongings are the files that belong to an archive, by what follows its name.
var belongings = []string{"-wal", "-shm", "-journal", ".lock", ".new", ".restoring", ".probe"}

// DatabaseOf returns the name of the database that a file is or belongs to, and "" if there
// is none. The file need not exist.
func DatabaseOf(path string) string {
	if isDatabase(path) {
		return path
	}
	for _, suffix := range belongings {
		if database, ok := strings.CutSuffix(path, suffix); ok && isDatabase(database) {
			return database
		}
	}
	return ""
}

// isDatabase reports whether a file begins as a database of SQLite does, or as its log.
func isDatabase(path string) bool {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return false
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	const begins, logBegins = "SQLite format 3\x00", 0x377f0682
	first := make([]byte, len(begins))
	_, err = io.ReadFull(f, first)
	return err == nil && (string(first) == begins || binary.BigEndian.Uint32(first)&^1 == logBegins)
}
