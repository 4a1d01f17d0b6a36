package postgres

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"

	"oda"
)

// Usage implements oda.Engine. A database does not say how much room its disk has.
func (s *Store) Usage(ctx context.Context) (oda.Usage, error) {
	var u oda.Usage
	err := s.with(ctx, func(ctx context.Context, conn *pgxpool.Conn) error {
		return conn.QueryRow(ctx, "SELECT pg_database_size(current_database())").Scan(&u.Bytes)
	})
	return u, err
}
