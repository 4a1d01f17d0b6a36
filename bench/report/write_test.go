package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"oda/bench/measure"
)

var update = flag.Bool("update", false, "write the golden files anew")

// The golden files are the pages and plots as they were last looked at. After
// a change: go test ./report -update, and look at them again.
func TestReportIsAsItWasLastLookedAt(t *testing.T) {
	const golden = "testdata/golden"
	if *update {
		if err := Write(golden, sample()); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	if err := Write(dir, sample()); err != nil {
		t.Fatal(err)
	}
	got, want := files(t, dir), files(t, golden)
	for name, text := range got {
		if !bytes.Equal(text, want[name]) {
			t.Errorf("%s differs from %s", name, filepath.Join(golden, name))
		}
	}
	for name := range want {
		if got[name] == nil {
			t.Errorf("%s was not written", name)
		}
	}
}

func files(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	found := map[string][]byte{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		found[path], err = os.ReadFile(filepath.Join(dir, path))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestPageCanBeMadeAgainFromResults(t *testing.T) {
	first, second := t.TempDir(), t.TempDir()
	if err := Write(first, sample()); err != nil {
		t.Fatal(err)
	}
	read, err := Read(filepath.Join(first, "benchmarks", "results.json"))
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(read, sample()) {
		t.Errorf("read back %+v, want %+v", read, sample())
	}
	if err := Write(second, read); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(files(t, first), files(t, second)) {
		t.Error("the report made again differs")
	}
}

func TestWhatIsNotANumberIsNullInResults(t *testing.T) {
	r := &Result{
		Budgets: []Budget{{Work: "w", Limit: 1, Value: measure.Spread{Median: nan, Low: inf, High: 2}}},
		Sections: []Section{{ID: "s", Plots: []Plot{
			{ID: "a", Bars: []Bar{{Name: "b", Y: inf, Low: nan, High: 3}}},
			{ID: "b", Lines: []Line{{Name: "l", Points: []Point{{X: 1, Y: nan, Low: -inf, High: 4}}}}},
		}}},
	}
	text, err := encode(r)
	if err != nil {
		t.Fatal(err)
	}
	if nulls := strings.Count(string(text), ": null"); nulls < 6 {
		t.Errorf("%d nulls, want 6 and those of empty lists:\n%s", nulls, text)
	}
	var read Result
	if err := json.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	value := read.Budgets[0].Value
	if !math.IsNaN(value.Median) || !math.IsNaN(value.Low) || value.High != 2 {
		t.Errorf("budget read as %v", value)
	}
	if bar := read.Sections[0].Plots[0].Bars[0]; !math.IsNaN(bar.Y) || bar.High != 3 {
		t.Errorf("bar read as %v", bar)
	}
	if point := read.Sections[0].Plots[1].Lines[0].Points[0]; !math.IsNaN(point.Y) || point.High != 4 {
		t.Errorf("point read as %v", point)
	}
}

func TestReadSaysWhatIsWrong(t *testing.T) {
	dir := t.TempDir()
	if _, err := Read(filepath.Join(dir, "none.json")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	path := filepath.Join(dir, "bad.json")
	if err := os.WriteFile(path, []byte(`{"version": 3}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("a bad file: %v", err)
	}
}

func TestOnlyPlotsOfTheEarlierRunAreRemoved(t *testing.T) {
	dir := t.TempDir()
	if err := Write(dir, sample()); err != nil {
		t.Fatal(err)
	}
	foreign := filepath.Join(dir, "benchmarks", "profile.svg")
	if err := os.WriteFile(foreign, []byte("<svg/>"), 0o600); err != nil {
		t.Fatal(err)
	}
	smaller := sample()
	smaller.Sections = smaller.Sections[1:]
	if err := Write(dir, smaller); err != nil {
		t.Fatal(err)
	}
	left := files(t, dir)
	for name, want := range map[string]bool{"get-rate.svg": false, "growth-block.svg": true, "profile.svg": true} {
		if got := left["benchmarks/"+name] != nil; got != want {
			t.Errorf("%s is there: %t, want %t", name, got, want)
		}
	}
}

func TestWriteRefusesWhatWouldBeLost(t *testing.T) {
	plot := func(id string) Section { return Section{ID: "s-" + id, Plots: []Plot{{ID: id}}} }
	tests := map[string][]Section{
		"two sections with one ID":      {{ID: "a"}, {ID: "a"}},
		"a section with a fixed anchor": {{ID: "words"}},
		"a section without an ID":       {{}},
		"two plots with one ID":         {plot("a"), {ID: "b", Plots: []Plot{{ID: "a"}}}},
		"a plot named as the budgets'":  {plot("budgets")},
		"a plot outside its folder":     {{ID: "a", Plots: []Plot{{ID: "../a"}}}},
		"a row that is too short":       {{ID: "a", Tables: []Table{{Columns: []string{"x", "y"}, Rows: [][]string{{"1"}}}}}},
	}
	for name, sections := range tests {
		dir := t.TempDir()
		if err := Write(dir, &Result{Sections: sections}); err == nil {
			t.Errorf("%s: was written", name)
		}
		if found := files(t, dir); len(found) > 0 {
			t.Errorf("%s: left %d files", name, len(found))
		}
	}
}
