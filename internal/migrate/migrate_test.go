package migrate

import (
	"errors"
	"testing"
	"testing/fstest"
)

func files(names ...string) fstest.MapFS {
	fs := fstest.MapFS{}
	for _, n := range names {
		fs[n] = &fstest.MapFile{Data: []byte("-- " + n)}
	}
	return fs
}

func TestStepsAreReadInOrder(t *testing.T) {
	steps, err := Load(files("0002_b.sql", "0001_a.sql", "notes.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if len(steps) != 2 || steps[0].Name != "a" || steps[1].Number != 2 || steps[0].Checksum == steps[1].Checksum {
		t.Errorf("got %+v", steps)
	}
}

func TestStepsWithAGapOrABadNameAreRefused(t *testing.T) {
	for _, fs := range []fstest.MapFS{files("0002_b.sql"), files("0001_a.sql", "0003_c.sql"), files("one_a.sql"), files("0001.sql")} {
		if steps, err := Load(fs); err == nil {
			t.Errorf("%v was read as %+v", fs, steps)
		}
	}
}

func TestADatabaseGetsWhatItLacks(t *testing.T) {
	steps, err := Load(files("0001_a.sql", "0002_b.sql"))
	if err != nil {
		t.Fatal(err)
	}
	for applied, want := range map[int]int{0: 2, 1: 1, 2: 0} {
		var have []Applied
		for _, s := range steps[:applied] {
			have = append(have, Applied{s.Number, s.Checksum})
		}
		pending, err := Pending(steps, have)
		if err != nil || len(pending) != want {
			t.Errorf("with %d applied: got %d pending, %v; want %d", applied, len(pending), err, want)
		}
	}
}

func TestAForeignDatabaseIsRefused(t *testing.T) {
	steps, err := Load(files("0001_a.sql"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Pending(steps, []Applied{{1, steps[0].Checksum}, {2, "x"}}); !errors.Is(err, ErrNewer) {
		t.Errorf("a newer database: got %v", err)
	}
	if _, err := Pending(steps, []Applied{{1, "other"}}); err == nil {
		t.Error("a step with another checksum was accepted")
	}
	if _, err := Pending(steps, []Applied{{2, steps[0].Checksum}}); err == nil {
		t.Error("a step out of order was accepted")
	}
}
