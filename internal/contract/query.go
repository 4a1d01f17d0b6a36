package contract

import (
	"slices"
	"strconv"
	"strings"

	"oda"
)

// Takes reports whether the operation has a parameter of that name.
func (op *Operation) Takes(in, name string) bool {
	return slices.ContainsFunc(op.parameters, func(p parameter) bool { return p.in == in && p.name == name })
}

// CheckQuery refuses a query with parameters that the operation does not have:
// a misspelt filter must not be ignored.
func (op *Operation) CheckQuery(query map[string][]string) error {
	var known []string
	for _, p := range op.parameters {
		if p.in == "query" {
			known = append(known, p.name)
		}
	}
	var unknown []string
	for name := range query {
		if !slices.Contains(known, name) {
			unknown = append(unknown, name)
		}
	}
	if unknown == nil {
		return nil
	}
	slices.Sort(unknown)
	var problem *oda.Error
	for _, name := range unknown[:min(len(unknown), maxFaults)] {
		name = clip(name)
		advice := "This operation takes no query parameters. Leave it out."
		if len(known) > 0 {
			advice = "Did you mean " + nearest(name, known) + "? This operation has: " + strings.Join(known, ", ") + "."
		}
		if problem == nil {
			problem = oda.Errorf(oda.InvalidRequest, "The query parameter %s is unknown. %s", strconv.Quote(name), advice)
		}
		problem.Faults = append(problem.Faults, oda.Fault{Pointer: "query:" + name, Detail: advice})
	}
	return problem
}

// clip bounds what a problem repeats of a parameter's name.
func clip(name string) string {
	const most = 64
	if len(name) <= most {
		return strings.ToValidUTF8(name, "�")
	}
	return strings.ToValidUTF8(name[:most], "�") + "…"
}

// nearest returns the name that takes the fewest changes to reach, ignoring
// case.
func nearest(name string, names []string) string {
	name = strings.ToLower(name)
	return slices.MinFunc(names, func(a, b string) int { return distance(name, a) - distance(name, b) })
}

// distance counts the bytes to insert, remove or replace on the way from one
// text to the other.
func distance(from, to string) int {
	row := make([]int, len(to)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(from) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(to) {
			replaced := diagonal
			if from[i] != to[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, diagonal+1)
		}
	}
	return row[len(to)]
}
