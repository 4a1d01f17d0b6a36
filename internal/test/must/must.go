// Package must has what the preparations of a test need: they succeed, or the test
// ends there.
package must

import (
	"errors"
	"testing"
)

// Do ends the test if there is an error.
func Do(tb testing.TB, errs ...error) {
	tb.Helper()
	if err := errors.Join(errs...); err != nil {
		tb.Fatal(err)
	}
}

// Get returns a value, and ends the test if there is an error instead:
//
//	text := must.Get(os.ReadFile(path))(t)
func Get[T any](value T, err error) func(testing.TB) T {
	return func(tb testing.TB) T {
		tb.Helper()
		Do(tb, err)
		return value
	}
}
