package postgres

import (
	"context"
	"errors"

	"oda"
)

var errLater = errors.New("statuses on PostgreSQL come with the next commit")

// Say implements oda.Engine.
func (s *Store) Say(context.Context, oda.NewStatus) (*oda.Status, error) { return nil, errLater }

// Status implements oda.Engine.
func (s *Store) Status(context.Context, oda.Ref) (*oda.Status, error) { return nil, errLater }

// StatusesBefore implements oda.Engine.
func (s *Store) StatusesBefore(context.Context, oda.Ref, int64, int) ([]oda.Status, error) {
	return nil, errLater
}
