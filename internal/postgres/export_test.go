package postgres

import (
	"context"
	"log/slog"
	"maps"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"oda"
	"oda/internal/migrate"
)

// OpenWith is Open with a last change of the configuration.
func OpenWith(ctx context.Context, dsn string, log *slog.Logger, change func(*pgxpool.Config)) (*Store, error) {
	config, err := parse(dsn)
	if err != nil {
		return nil, err
	}
	change(config)
	return open(ctx, config, log)
}

// RecordTogether sends records as if they had been gathered.
func (s *Store) RecordTogether(ctx context.Context, adds []oda.Addition) ([]oda.Recorded, []error) {
	batch := make([]*waiting, len(adds))
	for i, add := range adds {
		batch[i] = &waiting{adds: []oda.Addition{add}, size: len(add.Record), sent: time.Now(), done: make(chan error, 1)}
	}
	g := gatherer{busy: make(map[string]bool)}
	g.end(outcome{batch: batch, left: s.sendBatch(ctx, batch)})
	for _, block := range g.apart {
		s.sendBlock(ctx, block)
	}
	recorded, errs := make([]oda.Recorded, len(adds)), make([]error, len(adds))
	for i, w := range batch {
		recorded[i], errs[i] = w.recorded[0], <-w.done
	}
	return recorded, errs
}

// SessionSettings are the settings that a connection asks for.
func SessionSettings() map[string]string { return maps.Clone(sessionSettings) }

// UpdatesWaiting is the number of updates that wait for others to end.
func (s *Store) UpdatesWaiting() int {
	s.updates.mu.Lock()
	defer s.updates.mu.Unlock()
	return len(s.updates.waiting)
}

// HeadsAtOnce is how many heads a part of the second schema step takes.
const HeadsAtOnce = headsAtOnce

// PrepareUntil takes the schema steps up to that number, as an older program did.
func PrepareUntil(ctx context.Context, dsn string, last int) error {
	config, err := parse(dsn)
	if err != nil {
		return err
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return err
	}
	defer pool.Close()
	steps, err := schemaSteps()
	if err != nil {
		return err
	}
	return migrate.Run(ctx, database{pool}, steps[:last], slog.New(slog.DiscardHandler))
}
