// Package migrate reads the numbered, forward-only schema steps of an engine
// and works out which of them a database still needs. The engine applies them,
// each in a transaction of its own together with its entry in the list of
// applied steps, under a lock that keeps other processes out.
//
// A step is a file NNNN_name.sql. Its text is never changed once it has been
// released: the list of applied steps holds a checksum, and a database whose
// steps differ from the binary's is refused rather than guessed at.
package migrate

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// Step is one change of the schema.
type Step struct {
	Number   int
	Name     string
	SQL      string
	Checksum string
}

// Applied is a step that a database has had.
type Applied struct {
	Number   int
	Checksum string
}

// ErrNewer says that the database has steps which this binary does not know.
var ErrNewer = errors.New("the database is newer than this program; install the newer version of oda")

// Load reads the steps in a directory. They must be numbered from 1 without a
// gap.
func Load(files fs.FS) ([]Step, error) {
	names, err := fs.Glob(files, "*.sql")
	if err != nil {
		return nil, fmt.Errorf("read schema steps: %w", err)
	}
	steps := make([]Step, 0, len(names))
	for i, file := range names { // Glob sorts them
		digits, name, _ := strings.Cut(strings.TrimSuffix(path.Base(file), ".sql"), "_")
		number, err := strconv.Atoi(digits)
		if err != nil || number != i+1 || name == "" {
			return nil, fmt.Errorf("schema step %s: its name must be %04d_name.sql", file, i+1)
		}
		text, err := fs.ReadFile(files, file)
		if err != nil {
			return nil, fmt.Errorf("read schema step: %w", err)
		}
		sum := sha256.Sum256(text)
		steps = append(steps, Step{number, name, string(text), hex.EncodeToString(sum[:])})
	}
	return steps, nil
}

// Pending gives the steps that a database still needs. Its applied steps, in
// order, must be the first of ours.
func Pending(steps []Step, applied []Applied) ([]Step, error) {
	if len(applied) > len(steps) {
		return nil, ErrNewer
	}
	for i, a := range applied {
		if a.Number != steps[i].Number {
			return nil, fmt.Errorf("the database lacks schema step %d, but has step %d; restore it from a backup", steps[i].Number, a.Number)
		}
		if a.Checksum != steps[i].Checksum {
			return nil, fmt.Errorf("schema step %d (%s) of the database is not that of this program; it was made by another version of oda", a.Number, steps[i].Name)
		}
	}
	return steps[len(applied):], nil
}
