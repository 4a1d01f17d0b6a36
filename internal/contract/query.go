package contract

import (
	"slices"
	"strconv"
	"strings"

	"oda"
	"oda/internal/spelling"
)

// TakesHeader reports whether the operation has a parameter in that header.
func (op *Operation) TakesHeader(name string) bool {
	return slices.ContainsFunc(op.parameters, func(p parameter) bool { return p.in == "header" && p.name == name })
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
		name = oda.Clip(name)
		advice := "This operation takes no query parameters. Leave it out."
		if len(known) > 0 {
			advice = "This operation has: " + strings.Join(known, ", ") + "."
		}
		if meant := meant(strings.ToLower(name), known); meant != "" {
			advice = "Did you mean " + meant + "? " + advice
		}
		if problem == nil {
			problem = oda.Errorf(oda.InvalidRequest, "The query parameter %s is unknown. %s", strconv.Quote(name), advice)
		}
		problem.Faults = append(problem.Faults, oda.Fault{Pointer: "query:" + name, Detail: advice})
	}
	return problem
}

// meant returns the parameter that somebody probably meant, or "": one that has a word
// of the name, such as last_modified_after for modified_on, or else one that is near.
func meant(name string, known []string) string {
	words := strings.FieldsFunc(name, func(r rune) bool { return r == '_' || r == '-' })
	akin := slices.DeleteFunc(slices.Clone(known), func(one string) bool {
		return !slices.ContainsFunc(strings.Split(one, "_"), func(word string) bool { return slices.Contains(words, word) })
	})
	if len(akin) == 0 {
		return spelling.Near(name, known)
	}
	return spelling.Nearest(name, akin)
}
