package migrate

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
)

// memory is a database whose state is a variable.
type memory struct {
	state  State
	in     error // what Alone says of a step that has the number from, or a later one
	from   int
	ran    []string
	onStep func(number int)
}

func (m *memory) State(context.Context) (State, error)        { return m.state, nil }
func (m *memory) StateOf(context.Context, int) (State, error) { return m.state, nil }
func (m *memory) Script(_ context.Context, _ int, s string) error {
	if strings.Contains(s, "fails") {
		return errors.New("it fails")
	}
	m.ran = append(m.ran, s)
	return nil
}

func (m *memory) Transact(_ context.Context, work func(int) error) error {
	before := m.state
	before.Applied = slices.Clone(before.Applied)
	err := work(0)
	if err != nil {
		m.state = before
	}
	return err
}

func (m *memory) Alone(_ context.Context, _ int, s Step[int]) error {
	if s.Number >= m.from {
		return m.in
	}
	return nil
}

func (m *memory) Enter(_ context.Context, _ int, s Step[int]) error {
	m.state.Applied = append(m.state.Applied, Applied{Number: s.Number, Checksum: s.Checksum, Beside: s.Beside})
	m.state.Begun = 0
	if m.onStep != nil {
		m.onStep(s.Number)
	}
	return nil
}

func (m *memory) Keep(_ context.Context, _ int, s Step[int], part Part) error {
	m.state.Begun, m.state.Part = s.Number, part
	return nil
}

// scripts returns steps in SQL; what begins with "+" goes on beside older processes.
func scripts(all ...string) (steps []Step[int]) {
	for i, s := range all {
		steps = append(steps, Step[int]{Number: i + 1, Name: strings.TrimPrefix(s, "+"), SQL: s, Beside: strings.HasPrefix(s, "+")})
	}
	return steps
}

// An upgrade that older processes stand in the way of is refused before its first step,
// even if only a later step excludes them.
func TestAllStepsAreLookedAtBeforeTheFirst(t *testing.T) {
	t.Parallel()
	steps := scripts("a", "+b", "+c", "d", "+e")
	db := &memory{state: State{Applied: []Applied{{Number: 1}}}, in: errors.New("an older process is connected"), from: 4}
	err := Run(t.Context(), db, steps, slog.New(slog.DiscardHandler))
	if err == nil || !strings.Contains(err.Error(), "an older process is connected") || !strings.Contains(err.Error(), "step 4 (d)") ||
		!strings.HasSuffix(err.Error(), "nothing was changed") {
		t.Errorf("the error is %v", err)
	}
	if len(db.ran) > 0 {
		t.Errorf("it ran %v", db.ran)
	}
	db.in = nil
	if err := Run(t.Context(), db, steps, slog.New(slog.DiscardHandler)); err != nil || len(db.ran) != 4 {
		t.Errorf("without older processes it ran %v: %v", db.ran, err)
	}
}

// An upgrade that ends halfway says how far it came.
func TestAnErrorSaysWhatWasChanged(t *testing.T) {
	t.Parallel()
	arrives := func(after int) *memory {
		db := &memory{state: State{Applied: []Applied{{Number: 1}}}, from: 4}
		db.onStep = func(number int) {
			if number == after {
				db.in = errors.New("an older process is connected")
			}
		}
		return db
	}
	begun := scripts("a", "b", "c")
	begun[1].SQL, begun[1].Work = "", func(_ context.Context, _ int, at string) (Part, error) {
		if at == "" {
			return Part{At: "half"}, nil
		}
		return Part{}, errors.New("it fails")
	}
	for name, c := range map[string]struct {
		db    *memory
		steps []Step[int]
		want  string
	}{
		"an older process comes after one step":  {arrives(2), scripts("a", "+b", "+c", "d"), "; schema step 2 was applied before"},
		"an older process comes after two steps": {arrives(3), scripts("a", "+b", "+c", "d"), "; schema steps 2 to 3 were applied before"},
		"a step fails":                           {arrives(0), scripts("a", "b", "fails"), "; schema step 2 was applied before"},
		"the first step fails":                   {arrives(0), scripts("a", "fails"), "schema step 2 (fails): it fails"},
		"a part fails":                           {arrives(0), begun, "; a part of schema step 2 was applied before"},
	} {
		err := Run(t.Context(), c.db, c.steps, slog.New(slog.DiscardHandler))
		if err == nil || !strings.HasSuffix(err.Error(), c.want) {
			t.Errorf("%s: the error is %v, want one that ends with %q", name, err, c.want)
		}
	}
}

// A process that was there when a step began does not end the step.
func TestAStepThatWasBegunGoesOn(t *testing.T) {
	t.Parallel()
	steps := scripts("a", "b")
	steps[1].SQL, steps[1].Work = "", func(_ context.Context, _ int, at string) (Part, error) { return Part{End: at != ""}, nil }
	db := &memory{state: State{Applied: []Applied{{Number: 1}}, Begun: 2, Part: Part{At: "half"}}, in: errors.New("an older process is connected")}
	if err := Run(t.Context(), db, steps, slog.New(slog.DiscardHandler)); err != nil {
		t.Error(err)
	}
}
