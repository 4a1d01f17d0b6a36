package migrate

import (
	"errors"
	"testing"
	"testing/fstest"
)

func files(names ...string) fstest.MapFS {
	fs := fstest.MapFS{}
	for _, n := range names {
		fs["schema/"+n] = &fstest.MapFile{Data: []byte("-- " + n)}
	}
	return fs
}

func TestStepsAreReadInOrder(t *testing.T) {
	steps, err := Load[int](files("0002_b.sql", "0001_a.sql", "notes.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if len(steps) != 2 || steps[0].Name != "a" || steps[1].Number != 2 || steps[0].Checksum == steps[1].Checksum {
		t.Errorf("got %+v", steps)
	}
}

func TestStepsInSQLAndInGoAreOneSeries(t *testing.T) {
	steps, err := Load(files("0003_c.sql", "0001_a.sql"), Step[int]{Number: 2, Name: "b"})
	if err != nil {
		t.Fatal(err)
	}
	if len(steps) != 3 || steps[1].Name != "b" || steps[2].Name != "c" {
		t.Errorf("got %+v", steps)
	}
	if steps, err := Load(files("0001_a.sql"), Step[int]{Number: 1, Name: "b"}); err == nil {
		t.Errorf("two steps with one number were loaded as %+v", steps)
	}
}

func TestStepsWithAGapOrABadNameAreRefused(t *testing.T) {
	for _, fs := range []fstest.MapFS{files("0002_b.sql"), files("0001_a.sql", "0003_c.sql"), files("one_a.sql"), files("0001.sql")} {
		if steps, err := Load[int](fs); err == nil {
			t.Errorf("%v was loaded as %+v", fs, steps)
		}
	}
}

func TestADatabaseGetsTheStepsThatItLacks(t *testing.T) {
	steps, err := Load[int](files("0001_a.sql", "0002_b.sql"))
	if err != nil {
		t.Fatal(err)
	}
	for applied, want := range map[int]int{0: 2, 1: 1, 2: 0} {
		var have []Applied
		for _, s := range steps[:applied] {
			have = append(have, Applied{Number: s.Number, Checksum: s.Checksum})
		}
		pending, err := Pending(steps, State{Applied: have})
		if err != nil || len(pending) != want {
			t.Errorf("with %d applied: got %d pending, %v; want %d", applied, len(pending), err, want)
		}
	}
}

func TestAForeignDatabaseIsRefused(t *testing.T) {
	steps, err := Load[int](files("0001_a.sql"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Pending(steps, State{Applied: []Applied{{Number: 1, Checksum: steps[0].Checksum}, {Number: 2, Checksum: "x"}}}); !errors.Is(err, ErrNewer) {
		t.Errorf("a newer database: got %v", err)
	}
	if _, err := Pending(steps, State{Applied: []Applied{{Number: 1, Checksum: steps[0].Checksum}}, Begun: 2}); !errors.Is(err, ErrNewer) {
		t.Errorf("a database with a part of a newer step: got %v", err)
	}
	for name, applied := range map[string][]Applied{
		"another text":          {{Number: 1, Checksum: "other"}},
		"other steps, and more": {{Number: 1, Checksum: "other"}, {Number: 2, Checksum: "x"}},
	} {
		if _, err := Pending(steps, State{Applied: applied}); !errors.Is(err, ErrOther) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if _, err := Pending(steps, State{Applied: []Applied{{Number: 2, Checksum: steps[0].Checksum}}}); err == nil {
		t.Error("a step out of order was accepted")
	}
}

func TestAStepSaysWhetherOlderProcessesMayGoOn(t *testing.T) {
	steps, err := Load(files("0001_a.sql", "0002_b.beside.sql"), Step[int]{Number: 3, Name: "c", Beside: true})
	if err != nil {
		t.Fatal(err)
	}
	var state State
	for i, want := range []bool{false, true, true} {
		if s := steps[i]; s.Beside != want || s.Name != string(rune('a'+i)) {
			t.Errorf("got %+v", s)
		}
		state.Applied = append(state.Applied, Applied{Number: steps[i].Number, Beside: steps[i].Beside})
	}
	for known, want := range map[int]int{0: 1, 1: 0, 2: 0, 3: 0} {
		if got := state.Excludes(known); got != want {
			t.Errorf("a process that knows %d steps cannot go on beside %d, want %d", known, got, want)
		}
	}
	state.Begun = 4
	if got := state.Excludes(3); got != 4 {
		t.Errorf("a process cannot go on beside %d, want the step that was begun", got)
	}
	if got := state.Excludes(4); got != 0 {
		t.Errorf("a process that knows the step that was begun cannot go on beside %d", got)
	}
	state.Beside = true
	if got := state.Excludes(3); got != 0 {
		t.Errorf("a process cannot go on beside %d, which says that it can", got)
	}
}
