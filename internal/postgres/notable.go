package postgres

import (
	"context"
	"errors"
	"iter"

	"oda"
)

// FailedCalls implements oda.NotableCalls.
func (s *Store) FailedCalls(context.Context, oda.CallRange) iter.Seq2[oda.CallEntry, error] {
	return func(yield func(oda.CallEntry, error) bool) { yield(oda.CallEntry{}, errors.ErrUnsupported) }
}

// LongCalls implements oda.NotableCalls.
func (s *Store) LongCalls(context.Context, oda.CallRange, oda.Instant) iter.Seq2[oda.CallPlace, error] {
	return func(yield func(oda.CallPlace, error) bool) { yield(oda.CallPlace{}, errors.ErrUnsupported) }
}
