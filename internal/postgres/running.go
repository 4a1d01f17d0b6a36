package postgres

import (
	"context"
	"errors"

	"oda"
)

// Begin implements oda.Runner.
func (s *Store) Begin(context.Context, oda.Begun) error { return errors.ErrUnsupported }

// Withdraw implements oda.Runner.
func (s *Store) Withdraw(context.Context, oda.Begun) error { return errors.ErrUnsupported }

// Running implements oda.Runner.
func (s *Store) Running(context.Context, string) ([]oda.RunningCall, error) {
	return nil, errors.ErrUnsupported
}
