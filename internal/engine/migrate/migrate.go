// Package migrate brings the schema of a database up to date by numbered,
// forward-only steps. Both engines share it: they say what a transaction is, and
// the loop is the same.
//
// A step is SQL or Go. SQL is a file NNNN_name.sql that is run in one
// transaction. A step in Go does its work in parts, each in a transaction of its
// own that also keeps how far it came: cut off at any moment, it goes on from
// there. Steps take as long as they need, and tell how far they are.
//
// A step is never changed once it has been released: the list of applied steps
// holds a checksum, and a database whose steps differ from the binary's is
// refused rather than guessed at.
package migrate

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Step is one change of the schema. Tx is a transaction of the engine.
type Step[Tx any] struct {
	Number   int
	Name     string
	Checksum string
	SQL      string   // either this
	Work     Work[Tx] // or that
}

// Work does the next part of a step within a transaction. It begins where the
// part before ended: at is "" for the first one.
type Work[Tx any] func(ctx context.Context, tx Tx, at string) (Part, error)

// Part is how far a step has come.
type Part struct {
	At          string // where the next part begins, in the step's own words
	Done, Total int64  // for people
	End         bool   // nothing is left to do
}

// Applied is a step that a database has had.
type Applied struct {
	Number   int
	Checksum string
}

// State is what a database has had: whole steps, and a part of the next one.
type State struct {
	Applied []Applied
	Begun   int // number of the step that was begun; 0: none
	Part    Part
}

// ErrNewer says that the database has steps which this binary does not know.
var ErrNewer = errors.New("the database is newer than this program; install a newer version of oda")

// ErrOlder says that the database lacks steps, for those who only read it.
var ErrOlder = errors.New("its schema is older than this program; start \"oda serve\" with it once, which upgrades it, or use the oda that wrote it")

// Load reads the steps in SQL of a directory and joins those in Go to them.
// Together they must be numbered from 1 without a gap.
func Load[Tx any](files fs.FS, inGo ...Step[Tx]) ([]Step[Tx], error) {
	names, err := fs.Glob(files, "*.sql")
	if err != nil {
		return nil, fmt.Errorf("read schema steps: %w", err)
	}
	steps := slices.Clone(inGo)
	for _, file := range names {
		digits, name, _ := strings.Cut(strings.TrimSuffix(path.Base(file), ".sql"), "_")
		number, err := strconv.Atoi(digits)
		if err != nil || len(digits) != 4 || name == "" {
			return nil, fmt.Errorf("schema step %s: its name must be NNNN_name.sql", file)
		}
		text, err := fs.ReadFile(files, file)
		if err != nil {
			return nil, fmt.Errorf("read schema step: %w", err)
		}
		sum := sha256.Sum256(text)
		steps = append(steps, Step[Tx]{Number: number, Name: name, SQL: string(text), Checksum: hex.EncodeToString(sum[:])})
	}
	slices.SortFunc(steps, func(a, b Step[Tx]) int { return a.Number - b.Number })
	for i, s := range steps {
		if s.Number != i+1 {
			return nil, fmt.Errorf("schema step %d (%s) is where step %d should be", s.Number, s.Name, i+1)
		}
	}
	return steps, nil
}

// Pending returns the steps that a database still needs. Its applied steps, in
// order, must be the first of ours.
func Pending[Tx any](steps []Step[Tx], state State) ([]Step[Tx], error) {
	applied := state.Applied
	if len(applied) > len(steps) || state.Begun > len(steps) {
		return nil, ErrNewer
	}
	for i, a := range applied {
		if a.Number != steps[i].Number {
			return nil, fmt.Errorf("the database lacks schema step %d, but has step %d; restore it from a backup", steps[i].Number, a.Number)
		}
		if a.Checksum != steps[i].Checksum {
			return nil, fmt.Errorf("schema step %d (%s) in the database differs from that of this program; another version of oda made it", a.Number, steps[i].Name)
		}
	}
	return steps[len(applied):], nil
}
