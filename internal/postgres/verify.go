package postgres

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"oda"
	"oda/internal/engine/audit"
	"oda/internal/engine/migrate"
)

// verifyConnections is how many connections verifying takes: one for each stream
// of rows, and one for all else.
const verifyConnections = 6

// Verify reads everything in the archive of a database and reports what does not
// fit, as of one moment. Servers may go on writing. The error says why it could not
// be verified, for the operator.
func Verify(ctx context.Context, dsn string, report *audit.Report) (err error) {
	config, err := parse(dsn)
	if err != nil {
		return err
	}
	config.MaxConns = verifyConnections
	config.BeforeConnect = (&hosts{}).prepare
	config.ConnConfig.RuntimeParams["application_name"] = "oda verify"
	defer func() {
		if err != nil && ctx.Err() == nil {
			where := fmt.Sprintf("%s on %s", config.ConnConfig.Database, config.ConnConfig.Host)
			err = fmt.Errorf("cannot verify the archive in the PostgreSQL database %s: %w", where, hideDSN(err))
		}
	}()
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return err
	}
	defer pool.Close()
	state, err := database{pool}.State(ctx)
	if err != nil {
		return err
	}
	steps, err := schemaSteps(stepRows, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	switch pending, err := migrate.Pending(steps, state); {
	case err != nil:
		return err
	case len(state.Applied) == 0:
		return errors.New("there is no archive in it")
	case len(pending) > 0:
		return migrate.ErrOlder
	}
	return inSnapshot(ctx, pool, "", func(tx pgx.Tx) error {
		var snapshot string
		if err := tx.QueryRow(ctx, "SELECT pg_export_snapshot()").Scan(&snapshot); err != nil {
			return err
		}
		v := verifier{pool, snapshot, report}
		for _, phase := range []struct {
			doing string
			check func(context.Context, pgx.Tx) error
		}{{"reading versions and records", v.rows}, {"checking positions", v.positions}, {"checking counts and keys", v.indexes}} {
			report.Do(phase.doing)
			if err := phase.check(ctx, tx); damaged(err) {
				report.Add(audit.File, "the database", "PostgreSQL cannot go on %s: %v", phase.doing, err)
			} else if err != nil {
				return err
			}
		}
		return nil
	})
}

// damaged says that the server found what it keeps damaged. Its transaction is
// over, so nothing more can be checked in it.
func damaged(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (e.Code == "XX001" || e.Code == "XX002")
}

// inSnapshot runs work in a transaction that reads one snapshot: a new one, or one
// that another transaction has exported. Every statement reads in the order of an
// index or merges such orders.
func inSnapshot(ctx context.Context, pool *pgxpool.Pool, snapshot string, work func(pgx.Tx) error) error {
	options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	return pgx.BeginTxFunc(ctx, pool, options, func(tx pgx.Tx) error {
		if snapshot != "" {
			if _, err := tx.Exec(ctx, "SET TRANSACTION SNAPSHOT '"+snapshot+"'"); err != nil {
				return err
			}
		}
		if _, err := tx.Exec(ctx, unboundedTime); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, "SET LOCAL enable_mergejoin = on"); err != nil {
			return err
		}
		return work(tx)
	})
}

// verifier checks the archive as a snapshot shows it.
type verifier struct {
	pool     *pgxpool.Pool
	snapshot string
	report   *audit.Report
}

// stream gives the rows of a query, on a connection of its own, each as one makes
// it.
func stream[T any](ctx context.Context, v verifier, query string, one func(pgx.Rows) (T, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		err := inSnapshot(ctx, v.pool, v.snapshot, func(tx pgx.Tx) error {
			rows, err := tx.Query(ctx, query)
			if err != nil {
				return err
			}
			defer rows.Close()
			for rows.Next() {
				row, err := one(rows)
				if err != nil {
					return err
				}
				if !yield(row, nil) {
					return errStopped
				}
			}
			return rows.Err()
		})
		if err != nil && !errors.Is(err, errStopped) {
			var none T
			yield(none, err)
		}
	}
}

var errStopped = errors.New("stopped")

// keyOf is the key of rows that begin with kind and identifier.
func keyOf(kind int16, id string) audit.Key {
	return audit.Key{Number: int64(kind), Ref: oda.Ref{Kind: audit.KindOf(int64(kind)), ID: id}}
}

// rows audits all rows.
func (v verifier) rows(ctx context.Context, tx pgx.Tx) error {
	var total int64
	if err := tx.QueryRow(ctx, "SELECT coalesce(sum(version + last_sequence), 0)::bigint FROM heads").Scan(&total); err != nil {
		return err
	}
	v.report.Total.Store(total)
	return audit.Run(audit.Rows{
		Listed: true,
		Heads: stream(ctx, v, `SELECT kind, identifier, version, created_by, created_on, last_modified_by, last_modified_on, last_sequence,
			coalesce(telescope, ''), summary_hash FROM heads ORDER BY kind, identifier`, func(rows pgx.Rows) (r audit.HeadRow, err error) {
			var kind int16
			m := &r.Metadata
			err = rows.Scan(&kind, &r.Ref.ID, &m.Version, &m.CreatedBy, &m.CreatedOn, &m.LastModifiedBy, &m.LastModifiedOn, &r.LastSequence, &r.Telescope, &r.SummaryHash)
			r.Entity = keyOf(kind, r.Ref.ID)
			r.Ref = r.Entity.Ref
			return r, err
		}),
		Versions: stream(ctx, v, `SELECT kind, identifier, version, position, stored_by, stored_on, sequence_before, sequence_after,
			`+readable("runs")+`, `+readable("slots")+`, text, digest, seal FROM versions ORDER BY kind, identifier, version`, scanVersion),
		Records: stream(ctx, v, `SELECT kind, identifier, sequence, position, version, recorded_by, recorded_on, coalesce(key, ''), text, digest, seal
			FROM records ORDER BY kind, identifier, sequence`, scanRecord),
		Entries: stream(ctx, v, `SELECT kind, identifier, l.created_by, l.created_on, coalesce(l.telescope, ''), c.summary, tsvector_to_array(c.terms)
			FROM creations l FULL JOIN catalogue c USING (kind, identifier) ORDER BY kind, identifier`, scanEntry),
		Days: stream(ctx, v, `SELECT kind, identifier, day, part, first FROM call_days ORDER BY kind, identifier, day, part`, func(rows pgx.Rows) (r audit.DayRow, err error) {
			var kind int16
			var id string
			var day int32
			err = rows.Scan(&kind, &id, &day, &r.Part, &r.First)
			r.Entity, r.Day = keyOf(kind, id), oda.Day(day)
			return r, err
		}),
	}, v.report)
}

// readable gives an array of numbers, and one that is damaged in a way that is
// noticed instead of one that the driver cannot read.
func readable(array string) string {
	return "CASE WHEN array_ndims(" + array + ") > 1 THEN '{0}' WHEN array_position(" + array + ", NULL) IS NOT NULL THEN '{0}' ELSE " + array + " END"
}

func scanVersion(rows pgx.Rows) (r audit.VersionRow, err error) {
	var kind int16
	var id string
	var runs []int64
	var slots []int32
	row := &r.VersionRow
	err = rows.Scan(&kind, &id, &row.Version, &r.Position, &row.By, &row.On, &row.Before, &row.After, &runs, &slots, &r.Text, (*digest)(&row.Digest), &r.Seal)
	if err != nil {
		return r, err
	}
	r.Entity = keyOf(kind, id)
	row.Place = fmt.Appendf(nil, "%d\n%s", kind, id)
	var runsErr, slotsErr error
	row.Runs, runsErr = decodeRuns(runs)
	row.Slots, slotsErr = decodeSlots(slots, len(r.Text))
	r.Damage = errors.Join(runsErr, slotsErr)
	return r, nil
}

func scanRecord(rows pgx.Rows) (r audit.RecordRow, err error) {
	var kind int16
	var id string
	row := &r.RecordRow
	err = rows.Scan(&kind, &id, &row.Sequence, &r.Position, &row.Version, &row.By, &row.On, &row.Key, &r.Text, (*digest)(&row.Digest), &r.Seal)
	r.Entity, row.Place = keyOf(kind, id), []byte(id)
	return r, err
}

func scanEntry(rows pgx.Rows) (r audit.EntryRow, err error) {
	var kind int16
	var id, telescope string
	var by *string
	var on *oda.Instant
	if err = rows.Scan(&kind, &id, &by, &on, &telescope, &r.Summary, &r.Terms); err != nil {
		return r, err
	}
	r.Entity = keyOf(kind, id)
	if by != nil && on != nil {
		r.Listed = &audit.Listed{CreatedBy: *by, CreatedOn: *on, Telescope: telescope}
	}
	return r, nil
}

// positions makes sure that each position is there once, and that the next ones
// will be new. There may be gaps: of writes that were undone.
func (v verifier) positions(ctx context.Context, tx pgx.Tx) error {
	rows, err := tx.Query(ctx, `SELECT position, count(*) FROM (SELECT position FROM versions UNION ALL SELECT position FROM records) p
		GROUP BY position HAVING count(*) > 1 OR position < 1 ORDER BY position`)
	if err != nil {
		return err
	}
	var position, times int64
	_, err = pgx.ForEachRow(rows, []any{&position, &times}, func() error {
		if position < 1 {
			v.report.Add(audit.Log, "the log", "has position %d, but positions count from 1", position)
		} else {
			v.report.Add(audit.Log, "the log", "has position %d %d times", position, times)
		}
		return nil
	})
	if err != nil {
		return err
	}
	// Who may only read tables cannot see the sequence.
	var last, next int64
	err = tx.QueryRow(ctx, `SELECT greatest((SELECT coalesce(max(position), 0) FROM versions), (SELECT coalesce(max(position), 0) FROM records)),
		CASE WHEN has_sequence_privilege('positions', 'SELECT') THEN coalesce(pg_sequence_last_value('positions'), 0) ELSE 9223372036854775807 END`).Scan(&last, &next)
	if err == nil && last > next {
		v.report.Add(audit.Log, "the log", "has position %d, but the sequence that gives positions stands at %d, and will give some twice", last, next)
	}
	return err
}

// indexes compares counts and keys of creation with the heads.
func (v verifier) indexes(ctx context.Context, tx pgx.Tx) error {
	rows, err := tx.Query(ctx, `SELECT kind, coalesce(c.n, 0), coalesce(h.n, 0) FROM (SELECT kind, sum(n)::bigint AS n FROM counts GROUP BY kind) c
		FULL JOIN (SELECT kind, count(*) AS n FROM heads GROUP BY kind) h USING (kind) WHERE c.n IS DISTINCT FROM h.n AND coalesce(c.n, 0) + coalesce(h.n, 0) > 0`)
	if err != nil {
		return err
	}
	var kind int16
	var counted, there int64
	_, err = pgx.ForEachRow(rows, []any{&kind, &counted, &there}, func() error {
		v.report.Add(audit.Index, "the counts", "say that there are %d %ss, but there are %d", counted, audit.KindOf(int64(kind)), there)
		return nil
	})
	if err != nil {
		return err
	}
	err = tx.QueryRow(ctx, "SELECT count(*) FROM counts WHERE kind BETWEEN 1 AND 4 AND shard BETWEEN 0 AND $1", countShards-1).Scan(&there)
	if err != nil {
		return err
	}
	if should := int64(len(oda.Kinds) * countShards); there != should {
		v.report.Add(audit.Index, "the counts", "have %d of the %d rows that they need", there, should)
	}
	rows, err = tx.Query(ctx, `SELECT k.kind, k.identifier FROM creation_keys k LEFT JOIN heads h USING (kind, identifier)
		WHERE h.identifier IS NULL OR length(k.digest) <> 32`)
	if err != nil {
		return err
	}
	var id string
	_, err = pgx.ForEachRow(rows, []any{&kind, &id}, func() error {
		v.report.Add(audit.Index, fmt.Sprintf("%s %s", audit.KindOf(int64(kind)), id), "the key with which it was created is damaged, or it is not there")
		return nil
	})
	return err
}
