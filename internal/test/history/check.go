package history

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// checkTime bounds the search for an order. A game is decided in milliseconds,
// unless it is illegal or too large.
const checkTime = 30 * time.Second

// ErrNotLinearizable means that no order of the operations explains what the
// clients saw.
var ErrNotLinearizable = errors.New("the history is not linearizable")

// check returns ErrNotLinearizable if the history of a game is not linearizable.
// The error says where below dir the history was saved.
func check(history []operation, entities int, dir string) error {
	operations := make([]porcupine.Operation, 0, len(history))
	for _, op := range decide(history) {
		operations = append(operations, porcupine.Operation{
			ClientId: op.Client, Input: op.Request, Call: op.Call, Output: op.Response, Return: op.Return,
		})
	}
	m := model(entities)
	switch porcupine.CheckOperationsTimeout(m, operations, checkTime) {
	case porcupine.Ok:
		return nil
	case porcupine.Unknown:
		return errors.Join(fmt.Errorf("could not decide in %v whether the %d operations of a game are linearizable; "+
			"make the games smaller: fewer turns or fewer clients", checkTime, len(operations)), keep(dir, history, nil))
	}
	// The search is repeated with an explanation, which is too expensive to
	// request every time.
	_, info := porcupine.CheckOperationsVerbose(m, operations, checkTime)
	kept := keep(dir, history, func(path string) error { return porcupine.VisualizePath(m, info, path) })
	return errors.Join(fmt.Errorf("%w: %s", ErrNotLinearizable, explain(info, operations, m)), kept)
}

// keep saves the history, and a drawing of it, in a new directory below dir. It
// always returns an error, which names that directory.
func keep(dir string, history []operation, draw func(path string) error) error {
	dir, err := os.MkdirTemp(dir, "oda-history-")
	if err != nil {
		return fmt.Errorf("keep the history: %w", err)
	}
	text, err := json.MarshalIndent(history, "", " ")
	if err != nil {
		return fmt.Errorf("keep the history: %w", err)
	}
	path := filepath.Join(dir, "history.json")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return fmt.Errorf("keep the history: %w", err)
	}
	if draw == nil {
		return fmt.Errorf("the history is kept in %s", path)
	}
	picture := filepath.Join(dir, "history.html")
	if err := draw(picture); err != nil {
		return fmt.Errorf("draw the history that is kept in %s: %w", path, err)
	}
	return fmt.Errorf("the history is kept in %s, and drawn in %s", path, picture)
}

// explainLast is how many operations before the impossible one are shown.
const explainLast = 12

// explain says how far the longest order goes, and what cannot follow it.
func explain(info porcupine.LinearizationInfo, operations []porcupine.Operation, m porcupine.Model) string {
	var longest []int
	for _, partial := range info.PartialLinearizations()[0] {
		if len(partial) > len(longest) {
			longest = partial
		}
	}
	after := m.Init()
	placed := make(map[int]bool, len(longest))
	for _, i := range longest {
		_, after = m.Step(after, operations[i].Input, operations[i].Output)
		placed[i] = true
	}
	var left []porcupine.Operation
	for i, op := range operations {
		if !placed[i] {
			left = append(left, op)
		}
	}
	slices.SortFunc(left, func(a, b porcupine.Operation) int { return cmp.Compare(a.Return, b.Return) })
	var b strings.Builder
	fmt.Fprintf(&b, "of %d operations %d can be put in order. The last of them are\n", len(operations), len(longest))
	for _, i := range longest[max(0, len(longest)-explainLast):] {
		fmt.Fprintf(&b, "  %s\n", line(operations[i], m))
	}
	fmt.Fprintf(&b, "then the state is\n  %s\nand none of these can follow\n", m.DescribeState(after))
	for _, op := range left {
		if op.Call > left[0].Return {
			continue // another operation must come first
		}
		fmt.Fprintf(&b, "  %s\n", line(op, m))
	}
	return b.String()
}

func line(op porcupine.Operation, m porcupine.Model) string {
	return fmt.Sprintf("%v to %v: %s", time.Duration(op.Call), time.Duration(op.Return), m.DescribeOperation(op.Input, op.Output))
}
