package main

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// results has everything that a run measured, and all that the report needs.
type results struct {
	Version  string        `json:"version"`
	Against  string        `json:"against,omitempty"`
	Quick    bool          `json:"quick,omitempty"`
	Took     time.Duration `json:"took_ns"`
	Machine  [][2]string   `json:"machine"`
	Sections []*section    `json:"sections"`
}

// section has the measurements of a scenario.
type section struct {
	Name     string    `json:"name"`
	Title    string    `json:"title"`
	Text     string    `json:"text"`
	Measured time.Time `json:"measured"`
	Version  string    `json:"version"`
	Tables   []*table  `json:"tables"`
	Budgets  []budget  `json:"budgets,omitempty"`
}

// values returns the values that a budget is about, or nothing if they were not
// measured.
func (s *section) values(b budget) []float64 {
	for _, t := range s.Tables {
		if values := t.values(b.Arm, b.column); len(values) > 0 {
			return values
		}
	}
	return nil
}

// against returns the budgets for a comparison with an earlier program: nothing
// may lose more than a tenth.
func (s *section) against(suffix string) (all []budget) {
	for _, t := range s.Tables {
		if len(t.Columns) < 2 || len(t.Columns[1].Over) == 0 {
			continue
		}
		for _, one := range t.Series {
			b := atMost(s.Title, one.Arm, t.Columns[1], 1.1)
			if b.Figure == rate {
				b = atLeast(s.Title, one.Arm, t.Columns[1], 0.9)
			}
			if !strings.HasSuffix(one.Arm, suffix) {
				all = append(all, b)
			}
		}
	}
	return all
}

// add adds sections, or replaces earlier ones of the same scenarios. They are in the
// order of the scenarios; those of removed scenarios are dropped.
func (r *results) add(sections ...*section) {
	now := map[string]*section{}
	for _, s := range append(r.Sections, sections...) {
		now[s.Name] = s
	}
	r.Sections = nil
	for _, sc := range scenarios() {
		if s := now[sc.name]; s != nil {
			r.Sections = append(r.Sections, s)
		}
	}
}

// small values contain no objects, and are written on one line.
var (
	small  = regexp.MustCompile(`\{[^{}]*\}|\[[^{}\[\]]*\]`)
	broken = regexp.MustCompile(`\n\s*`)
)

// write saves the results, with four digits.
func (r *results) write(path string) error {
	for _, s := range r.Sections {
		for _, t := range s.Tables {
			for _, one := range t.Series {
				for _, values := range one.Rounds {
					for i, v := range values {
						values[i], _ = strconv.ParseFloat(strconv.FormatFloat(v, 'g', 4, 64), 64) // reads what was just written
					}
				}
			}
		}
	}
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	text = small.ReplaceAllFunc(text, func(value []byte) []byte { return broken.ReplaceAll(value, nil) })
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

// readResults reads the results of an earlier run.
func readResults(path string) (*results, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	r := new(results)
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("%s was not written by this program: %w", path, err)
	}
	return r, nil
}
