package engine

import "oda"

// ErrorColumns returns the error of a call as the index of failed calls has it: its type,
// empty if that is not known and nil if there is no error, and its detail.
func ErrorColumns(e *oda.CallEntry) (kind, detail *string) {
	if e.Error == nil {
		return nil, nil
	}
	if kind = e.Error.Type; kind == nil {
		kind = new(string)
	}
	return kind, e.Error.Detail
}

// ErrorOf returns the error that columns of the index of failed calls stand for.
func ErrorOf(kind, detail *string) *oda.CallError {
	if kind == nil {
		return nil
	}
	if *kind == "" {
		kind = nil
	}
	return &oda.CallError{Type: kind, Detail: detail}
}
