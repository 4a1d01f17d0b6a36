package postgres

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"oda"
	"oda/internal/engine"
	"oda/internal/engine/migrate"
)

// OpenWith is Open with a last change of the configuration.
func OpenWith(ctx context.Context, dsn string, log *slog.Logger, change func(*pgxpool.Config)) (*Store, error) {
	config, err := parse(dsn)
	if err != nil {
		return nil, err
	}
	change(config)
	steps, err := schemaSteps()
	if err != nil {
		return nil, err
	}
	return open(ctx, config, len(steps), log, func(pool *pgxpool.Pool) error { return prepare(ctx, pool, steps, log) })
}

// Step is a schema step.
type Step = step

// StoresAtOnce is how many stores run at once.
const StoresAtOnce = storesAtOnce

// OpenNewer is Open by a program that has more schema steps. It calls tell with their
// progress.
func OpenNewer(ctx context.Context, dsn string, log *slog.Logger, tell func(migrate.Status), more ...Step) (*Store, error) {
	config, steps, err := configAndSteps(dsn)
	if err != nil {
		return nil, err
	}
	for _, step := range more {
		step.Number = len(steps) + 1
		steps = append(steps, step)
	}
	return open(ctx, config, len(steps), log, func(pool *pgxpool.Pool) error { return prepare(ctx, pool, steps, log, tell) })
}

// AppendTogether sends records as if they had been gathered.
func (s *Store) AppendTogether(ctx context.Context, adds []oda.Append) ([]oda.Receipt, []error) {
	return s.AppendSince(ctx, time.Now(), adds)
}

// UpdateTogether stores the next versions of entities in one statement. It returns nil
// for those that it refuses.
func (s *Store) UpdateTogether(ctx context.Context, puts []oda.Put) ([]*oda.Entity, error) {
	stores, entities := make([]*store, len(puts)), make([]*oda.Entity, len(puts))
	for i := range puts {
		based, err := s.share(ctx, &puts[i], new(engine.AtLeast))
		if err != nil {
			return nil, err
		}
		stores[i] = statement(&puts[i], based, notCounted, false)
	}
	if err := s.updateTogether(ctx, stores, putPatience); err != nil {
		return nil, err
	}
	for i, st := range stores {
		if st.answer == nil {
			entities[i] = answers([]*store{st})[0]
		}
	}
	return entities, nil
}

// SayTogether says statuses in one transaction. It returns why it refuses each, nil if it
// does not.
func (s *Store) SayTogether(ctx context.Context, says []oda.NewStatus) []error {
	all, errs := make([]*saying, len(says)), make([]error, len(says))
	for i := range says {
		all[i] = &saying{NewStatus: says[i]}
	}
	err := s.sayTogether(ctx, all, putPatience)
	for i, one := range all {
		errs[i] = errors.Join(err, one.answer)
	}
	return errs
}

// LeaveWhenAnswered writes for a caller who goes away when the answer has just been read.
func (s *Store) LeaveWhenAnswered(ctx context.Context) error {
	return s.write(ctx, func(ctx context.Context, conn *pgxpool.Conn) error {
		_, err := conn.Exec(ctx, "SELECT 1")
		(&leaving{link: linkOf(conn.Conn().PgConn())}).HandleCancel(ctx)
		return err
	})
}

// BatchTime is how long the records of a request are tried.
const BatchTime = batchTime

// AppendSince is AppendTogether for records that have been tried since then.
func (s *Store) AppendSince(ctx context.Context, since time.Time, adds []oda.Append) ([]oda.Receipt, []error) {
	batch := make([]*waiting, len(adds))
	for i, add := range adds {
		batch[i] = newWaiting(add)
		batch[i].sent = since
	}
	g := gatherer{busy: make(map[string]bool)}
	g.end(outcome{batch: batch, left: s.sendBatch(ctx, batch)})
	for _, block := range g.leftover {
		s.sendBlock(ctx, block)
	}
	receipts, errs := make([]oda.Receipt, len(adds)), make([]error, len(adds))
	for i, w := range batch {
		receipts[i], errs[i] = w.receipts[0], <-w.done
	}
	return receipts, errs
}

// SessionSettings has the settings of new connections.
func SessionSettings() map[string]string { return maps.Clone(sessionSettings) }

// UpdatesWaiting returns the number of updates that wait for others.
func (s *Store) UpdatesWaiting() int { return s.updates.count() }

// CreationsWaiting returns the number of creations that wait for others.
func (s *Store) CreationsWaiting() int { return s.creations.count() }

func (t *together[T]) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.waiting)
}

// Prepare makes the schema of a database.
func Prepare(ctx context.Context, dsn string) error {
	config, steps, err := configAndSteps(dsn)
	if err != nil {
		return err
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return err
	}
	defer pool.Close()
	return prepare(ctx, pool, steps, slog.New(slog.DiscardHandler))
}

// TryWrite makes the small write that shows whether writing works.
func (s *Store) TryWrite(ctx context.Context) error { return s.tryWrite(ctx) }

// Connections returns how many connections the pool has.
func (s *Store) Connections() int { return int(s.pool.Stat().TotalConns()) }

// Questions returns what Examine asks a database about its settings.
func Questions() (queries []string) {
	for _, q := range questions {
		queries = append(queries, q.query)
	}
	return queries
}

// Unpacking has the statements that unpack all rows of the log.
func Unpacking() []string { return []string{loggedChanges, loggedStatuses, loggedTimes} }

// MadeBySchema names the indexes that Verify asks for.
var MadeBySchema = madeBySchema
