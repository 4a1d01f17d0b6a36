// Package migrate brings the schema of a database up to date in numbered steps,
// which only go forward. Both engines share it; each provides its transactions.
//
// A step is SQL or Go. SQL is a file NNNN_name.sql that runs in one transaction. A
// step in Go does its work in parts, each in a transaction that also stores how
// far it has come, so that it can be cut off at any moment and continues from
// there. Steps take as long as they need, and report their progress.
//
// Several processes may use a database, and an upgrade replaces one after the other.
// Most steps change what older processes rely on: such a step begins only when no
// older process is connected, and those that are missed stop writing when they
// find it. If older processes can go on while a step is applied and afterwards (a new
// table or index that they need not know), it says so: Step.Beside, or a file
// NNNN_name.beside.sql.
//
// A step never changes once it has been released; until then, the only one may be edited.
// The list of applied steps has the checksums of their texts, and a database whose steps
// differ from the program's is refused.
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
	Beside   bool     // processes that do not know the step may go on
	SQL      string   // of a step in SQL
	Work     Work[Tx] // of a step in Go
}

// Work does the next part of a step in a transaction. At says where the previous
// part ended; it is "" for the first part.
type Work[Tx any] func(ctx context.Context, tx Tx, at string) (Part, error)

// Part is how far a step has come.
type Part struct {
	At          string // where the next part begins; its form is up to the step
	Done, Total int64  // for messages
	End         bool   // the step is complete
}

// Applied is a step that a database has.
type Applied struct {
	Number   int
	Checksum string
	Beside   bool // processes that do not know the step may go on
}

// State is the state of a database: its complete steps, and how far the next one
// has come.
type State struct {
	Applied []Applied
	Begun   int  // number of the step that was begun; 0: none
	Beside  bool // processes that do not know that step may go on
	Part    Part
}

// Excludes returns the number of the first step that stops a process that does not know
// it, 0 if there is none. Known is how many steps the process knows.
func (s *State) Excludes(known int) int {
	for _, a := range s.Applied {
		if a.Number > known && !a.Beside {
			return a.Number
		}
	}
	if s.Begun > known && !s.Beside {
		return s.Begun
	}
	return 0
}

// ErrNewer says that the database has steps that this program does not know.
var ErrNewer = errors.New("the database is newer than this program; install a newer version of oda")

// ErrOlder says that the database lacks steps. It is for programs that only read.
var ErrOlder = errors.New("its schema is older than this program; start \"oda serve\" with it once, which upgrades it, or use the oda that wrote it")

// ErrOther says that the database was made with other steps, as by a program from before
// the first release.
var ErrOther = errors.New("its tables were made by another oda, and this one does not know them; " +
	"export it with that program (oda export) and import it with this one (oda import)")

// Load returns the steps in SQL of the folder schema together with those in Go. They must
// be numbered from 1 without gaps.
func Load[Tx any](files fs.FS, inGo ...Step[Tx]) ([]Step[Tx], error) {
	names, err := fs.Glob(files, "schema/*.sql")
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
		name, beside := strings.CutSuffix(name, ".beside")
		steps = append(steps, Step[Tx]{Number: number, Name: name, Beside: beside, SQL: string(text), Checksum: hex.EncodeToString(sum[:])})
	}
	slices.SortFunc(steps, func(a, b Step[Tx]) int { return a.Number - b.Number })
	for i, s := range steps {
		if s.Number != i+1 {
			return nil, fmt.Errorf("schema step %d (%s) is where step %d should be", s.Number, s.Name, i+1)
		}
	}
	return steps, nil
}

// Pending returns the steps that a database still needs. Its applied steps must be
// the first ones of steps, in order.
func Pending[Tx any](steps []Step[Tx], state State) ([]Step[Tx], error) {
	applied := state.Applied
	for i, a := range applied[:min(len(applied), len(steps))] {
		if a.Number != steps[i].Number {
			return nil, fmt.Errorf("the database lacks schema step %d, but has step %d; restore it from a backup", steps[i].Number, a.Number)
		}
		if a.Checksum != steps[i].Checksum {
			return nil, ErrOther
		}
	}
	if len(applied) > len(steps) || state.Begun > len(steps) {
		return nil, ErrNewer
	}
	return steps[len(applied):], nil
}
