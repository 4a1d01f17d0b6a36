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
	"oda/internal/engine"
	"oda/internal/engine/audit"
	"oda/internal/engine/migrate"
)

// verifyConnections is how many connections Verify needs: one for each stream of
// rows, and one for everything else.
const verifyConnections = 7

// Verify reads everything in the archive of a database, as of one moment, and
// reports all damage. Servers may write meanwhile. An error says why the archive
// could not be verified, for the operator.
func Verify(ctx context.Context, dsn string, report *audit.Report) (err error) {
	config, err := parse(dsn)
	if err != nil {
		return err
	}
	config.MaxConns = verifyConnections
	newHosts(config)
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
	if err := upToDate(ctx, pool); err != nil {
		return err
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
		}{{"reading versions and records", v.rows}, {"checking positions", v.positions}, {"checking counts and keys", v.indexes}, {"checking the schema", v.schema}} {
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

// upToDate returns an error unless the database has an archive with the schema
// of this program.
func upToDate(ctx context.Context, pool *pgxpool.Pool) error {
	state, err := database{pool}.State(ctx)
	if e, ok := errors.AsType[*pgconn.PgError](err); ok && e.Code == codeNoColumn {
		return errNoArchive // another program has a table of the same name
	}
	if err != nil {
		return err
	}
	steps, err := schemaSteps(stepRows, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	pending, err := migrate.Pending(steps, state)
	switch {
	case err != nil:
		return err
	case len(state.Applied) == 0:
		return errNoArchive
	case len(pending) > 0:
		return migrate.ErrOlder
	}
	return nil
}

var errNoArchive = errors.New("there is no archive in it; name another database with --db")

// damaged reports whether the server found its own files damaged. The transaction
// has failed then, so nothing more can be checked in it.
func damaged(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (e.Code == "XX001" || e.Code == "XX002")
}

// inSnapshot runs work in a transaction that reads one snapshot: a new one, or one
// that another transaction has exported. Its statements read in the order of an
// index, or merge such reads.
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

// stream yields the rows of a query, each as one returns it. It has a connection of
// its own.
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

// keyOf returns the key of rows that begin with kind and identifier.
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
		Versions: stream(ctx, v, `SELECT kind, identifier, version, number, stored_by, stored_on, sequence_before, sequence_after,
			`+readable("runs")+`, `+readable("slots")+`, text, digest, seal FROM versions ORDER BY kind, identifier, version`, scanVersion),
		Records: stream(ctx, v, `SELECT kind, identifier, sequence, version, recorded_by, recorded_on, coalesce(key, ''), text, digest, seal
			FROM records ORDER BY kind, identifier, sequence`, scanRecord),
		Entries: stream(ctx, v, `SELECT kind, identifier, l.created_by, l.created_on, coalesce(l.telescope, ''), c.summary, tsvector_to_array(c.terms), c.created_on
			FROM creations l FULL JOIN catalogue c USING (kind, identifier) ORDER BY kind, identifier`, scanEntry),
		Days: stream(ctx, v, `SELECT kind, identifier, day, part, first FROM call_days ORDER BY kind, identifier, day, part`, func(rows pgx.Rows) (r audit.DayRow, err error) {
			var kind int16
			var id string
			var day int32
			err = rows.Scan(&kind, &id, &day, &r.Part, &r.First)
			r.Entity, r.Day = keyOf(kind, id), oda.Day(day)
			return r, err
		}),
		Changes: stream(ctx, v, loggedChanges, func(rows pgx.Rows) (r audit.ChangeRow, err error) {
			var kind int16
			err = rows.Scan(&kind, &r.ID, &r.Version, &r.FirstSequence, &r.LastSequence, &r.By, &r.On, &r.Position)
			r.Entity = keyOf(kind, r.ID)
			return r, err
		}),
	}, v.report)
}

// readable selects an array of numbers. It replaces an array that the driver cannot
// read by one that counts as damaged.
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
	row.Place = versionPlace(kind, id)
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
	err = rows.Scan(&kind, &id, &row.Sequence, &row.Version, &row.By, &row.On, &row.Key, &r.Text, (*digest)(&row.Digest), &r.Seal)
	r.Entity, row.Place = keyOf(kind, id), []byte(id)
	return r, err
}

func scanEntry(rows pgx.Rows) (r audit.EntryRow, err error) {
	var kind int16
	var id, telescope string
	var by *string
	var on *oda.Instant
	if err = rows.Scan(&kind, &id, &by, &on, &telescope, &r.Summary, &r.Terms, &r.CreatedOn); err != nil {
		return r, err
	}
	r.Entity = keyOf(kind, id)
	if by != nil && on != nil {
		r.Listed = &audit.Listed{CreatedBy: *by, CreatedOn: *on, Telescope: telescope}
	}
	return r, nil
}

// This says which round has which number, and at which position it ends. Each run
// comes before its numbers, and groups them. What is in no round yet stands behind
// audit.Unnumbered.
const (
	runsOfRounds = `runs AS (SELECT r.after, r.runs[i] AS first, r.runs[i + 1] AS last FROM rounds r
			CROSS JOIN LATERAL generate_series(1, cardinality(r.runs), 2) AS i)`
	placedNumbers = `WITH ` + runsOfRounds + `, written AS (
		SELECT number, sequence_after::numeric - sequence_before + 1 AS width, kind, identifier, version, stored_by, stored_on,
			NULL::text[] AS names, NULL::bigint[] AS places, NULL::bigint AS after, NULL::bigint AS last FROM versions
		UNION ALL
		SELECT number, width, NULL, NULL, NULL, NULL, NULL, names, places, NULL, NULL FROM recordings
		UNION ALL
		SELECT first, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, after, last FROM runs
	), grouped AS (
		SELECT *, count(after) OVER (ORDER BY number, after) AS nth FROM written
	), placed AS (
		SELECT *, CASE WHEN number <= max(last) OVER (PARTITION BY nth) THEN max(after) OVER (PARTITION BY nth) END AS round FROM grouped
	), positioned AS (
		SELECT *, coalesce(round, 1::bigint << 62) + sum(width) OVER (PARTITION BY round ORDER BY number) AS position FROM placed WHERE width IS NOT NULL
	)`
)

// The entries of a recording end where the next one begins.
var loggedChanges = placedNumbers + `
	SELECT kind, identifier, version, first, last, stored_by, stored_on, ` + fitting("coalesce(position, 9223372036854775807)") + ` FROM (
	SELECT kind, identifier, version, 0::bigint AS first, 0::bigint AS last, stored_by, stored_on, position FROM positioned WHERE kind IS NOT NULL
	UNION ALL
	SELECT 3, coalesce(n[2 * i - 1], ''), coalesce(p[4 * i - 3], 0), coalesce(p[4 * i - 2], 0), coalesce(p[4 * i - 1], 0), coalesce(n[2 * i], ''), coalesce(p[4 * i], 0),
		position - sum(p[4 * i - 1]::numeric - p[4 * i - 2] + 1) OVER (PARTITION BY number ORDER BY i DESC) + p[4 * i - 1] - p[4 * i - 2] + 1
	FROM (SELECT number, position, ARRAY(SELECT unnest(names)) AS n, ARRAY(SELECT unnest(places)) AS p FROM positioned WHERE names IS NOT NULL) r
		CROSS JOIN LATERAL generate_series(1, greatest((cardinality(n) + 1) / 2, (cardinality(p) + 3) / 4)) AS i
	) c ORDER BY 1, 2, 3, 4`

// fitting selects a number. Damaged ones may add up to more than fits.
func fitting(number string) string {
	return "greatest(-9223372036854775808, least(9223372036854775807, " + number + "))::bigint"
}

// logFaults lists queries that find faults in the rounds. Each returns two numbers
// for its message.
var logFaults = []struct{ query, fault string }{
	{
		`SELECT after, before FROM (SELECT after, coalesce(lag(last) OVER (ORDER BY after), 0) AS before FROM rounds) r WHERE after <> before ORDER BY after`,
		"a round begins behind position %d, but the one before it ends at %d",
	},
	{
		`SELECT n, coalesce((SELECT max(last) FROM rounds), 0) FROM counts WHERE kind = 0 AND n <> coalesce((SELECT max(last) FROM rounds), 0)`,
		"the counts say that the log ends at position %d, but the last round ends at %d: one is missing, or is not from here",
	},
	{
		`SELECT after, seen FROM (SELECT after, seen, greatest(coalesce(lag(seen) OVER (ORDER BY after), 0), (SELECT max(n) FROM unnest(runs) AS n)) AS highest
			FROM rounds) r WHERE seen <> highest ORDER BY after`,
		"the round behind position %d says that the highest number is %d, which it is not",
	},
	{
		`WITH ` + runsOfRounds + ` SELECT coalesce(after, -1), coalesce(first, -1) FROM (SELECT *, lag(last) OVER (ORDER BY first) AS before FROM runs) r
			WHERE first IS NULL OR last IS NULL OR last < first OR first <= before`,
		"the round behind position %d has number %d, which another one has, or which is none",
	},
	{
		placedNumbers + ` SELECT r.after, ` + fitting("r.last::numeric - r.after - coalesce(p.width, 0)") + ` FROM rounds r
			LEFT JOIN (SELECT round, sum(width) AS width FROM positioned GROUP BY round) p ON p.round = r.after
			WHERE r.last - r.after <> coalesce(p.width, 0) ORDER BY r.after`,
		"in the round behind position %d, nothing stands at %d of the positions",
	},
	{
		`SELECT number, count(*) FROM (SELECT number FROM versions WHERE number <= 0 UNION ALL SELECT number FROM recordings WHERE number <= 0) n GROUP BY number`,
		"has number %d, which is never given, in %d rows",
	},
	{
		`SELECT number, width FROM recordings CROSS JOIN LATERAL (SELECT ARRAY(SELECT unnest(places)) AS p) a
			WHERE width IS DISTINCT FROM (SELECT sum(p[4 * i - 1]::numeric - p[4 * i - 2] + 1) FROM generate_series(1, cardinality(p) / 4) AS i)`,
		"recording %d does not have the %d records that it says",
	},
	{
		placedNumbers + ` SELECT number, count(*) FROM positioned GROUP BY number HAVING count(*) > 1`,
		"number %d was given %d times",
	},
	{
		placedNumbers + ` SELECT number, l.last FROM positioned, ` + lastRound + `
			WHERE round IS NULL AND number <= l.seen
				AND NOT EXISTS (SELECT FROM generate_series(1, cardinality(l.gaps), 2) AS i WHERE number BETWEEN l.gaps[i] AND l.gaps[i + 1])`,
		"number %d is in no round up to position %d, and none will take it",
	},
	{
		`SELECT l.last, coalesce(cardinality(l.gaps), 0) FROM ` + lastRound + ` WHERE coalesce(cardinality(l.gaps), 0) <> 2 * coalesce(cardinality(l.since), 0) OR 0 >= ANY (l.since)
			OR EXISTS (SELECT FROM unnest(l.gaps) WITH ORDINALITY AS g (number, nth) WHERE number IS NULL OR number <= 0 OR number > l.seen
				OR number < l.gaps[nth - 1] OR number = l.gaps[nth - 1] AND nth % 2 = 1)`,
		"the round up to position %d has gaps that cannot be: %d ends",
	},
	{
		`WITH ` + runsOfRounds + ` SELECT l.last, greatest(r.first, l.gaps[i]) FROM ` + lastRound + ` CROSS JOIN generate_series(1, cardinality(l.gaps), 2) AS i
			JOIN runs r ON r.first <= l.gaps[i + 1] AND r.last >= l.gaps[i]`,
		"the round up to position %d has a gap for number %d, which is in a round",
	},
}

// lastRound is the round that the next one follows.
const lastRound = "(SELECT * FROM rounds ORDER BY after DESC LIMIT 1) l"

// positions checks that the rounds follow each other, that each number is in one of
// them or still to come, and that the next numbers will be new.
func (v verifier) positions(ctx context.Context, tx pgx.Tx) error {
	for _, one := range logFaults {
		rows, err := tx.Query(ctx, one.query)
		if err != nil {
			return err
		}
		var first, second int64
		_, err = pgx.ForEachRow(rows, []any{&first, &second}, func() error {
			v.report.Add(audit.Log, "the log", one.fault, first, second)
			return nil
		})
		if err != nil {
			return err
		}
	}
	// Who may only read tables cannot see the sequence.
	var at, taken int64
	err := tx.QueryRow(ctx, "SELECT "+numbersTaken).Scan(&at, &taken)
	if err == nil && at < taken {
		v.report.Add(audit.Log, "the log", "has number %d, but the sequence that gives numbers stands at %d, so nothing can be written; run SELECT setval('numbers', %d) in the database",
			taken, at, taken)
	}
	return err
}

// indexes compares the counts, the keys of creations and the index of days with the
// heads.
func (v verifier) indexes(ctx context.Context, tx pgx.Tx) error {
	rows, err := tx.Query(ctx, `SELECT kind, coalesce(c.n, 0), coalesce(h.n, 0) FROM (SELECT kind, sum(n)::bigint AS n FROM counts WHERE kind > 0 GROUP BY kind) c
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
	err = tx.QueryRow(ctx, "SELECT count(*) FROM counts WHERE kind BETWEEN 1 AND 4 AND shard BETWEEN 0 AND $1 OR kind = 0 AND shard = 0", countShards-1).Scan(&there)
	if err != nil {
		return err
	}
	if should := int64(len(oda.Kinds)*countShards + 1); there != should {
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
	if err != nil {
		return err
	}
	rows, err = tx.Query(ctx, `SELECT kind, identifier FROM heads h WHERE (call_day IS NULL) <> (calls_to IS NULL) OR calls_to % $1 <> 0
		OR call_day IS NOT NULL AND NOT EXISTS (SELECT FROM call_days d
			WHERE d.kind = h.kind AND d.identifier = h.identifier AND d.day = h.call_day AND d.part = h.calls_to / $1)`, engine.PartLength)
	if err != nil {
		return err
	}
	_, err = pgx.ForEachRow(rows, []any{&kind, &id}, func() error {
		v.report.Add(audit.Head, fmt.Sprintf("%s %s", audit.KindOf(int64(kind)), id), "its head says that the index of days has a day that is not there")
		return nil
	})
	if err != nil {
		return err
	}
	rows, err = tx.Query(ctx, "SELECT kind, identifier FROM heads WHERE listed_on > last_modified_on OR last_modified_on >= listed_on + $1", int64(lag))
	if err != nil {
		return err
	}
	_, err = pgx.ForEachRow(rows, []any{&kind, &id}, func() error {
		v.report.Add(audit.Index, fmt.Sprintf("%s %s", audit.KindOf(int64(kind)), id), "listings by modification have it at another time")
		return nil
	})
	return err
}

// madeBySteps names the indexes without which the archive would be slow, or would not
// notice that something is stored twice. A unique index that has
// lost rows stays invalid, and counts as missing.
var madeBySteps = []string{
	"call_days_day", "call_days_pkey", "catalogue_pkey", "catalogue_terms", "counts_pkey", "creation_keys_identifier", "creation_keys_pkey", "creations_created", "creations_pkey",
	"creations_telescope", "creations_user", "heads_listed", "heads_pkey", "migrations_pkey", "recordings_pkey", "records_key", "records_marks",
	"records_pkey", "rounds_pkey", "versions_marks", "versions_number", "versions_pkey",
}

// schema reports indexes and functions that the steps made, and that were dropped or
// replaced.
func (v verifier) schema(ctx context.Context, tx pgx.Tx) error {
	rows, err := tx.Query(ctx, `SELECT CASE WHEN i.indexrelid IS NULL THEN 'the index ' || name || ' is missing' ELSE 'the index ' || name || ' is not unique' END
		FROM unnest($1::text[]) AS name LEFT JOIN (pg_index i JOIN pg_class c ON c.oid = i.indexrelid) ON c.relname = name AND i.indisvalid AND pg_table_is_visible(i.indrelid)
		WHERE i.indexrelid IS NULL OR NOT i.indisunique AND (name LIKE '%\_pkey' OR name IN ('records_key', 'versions_number'))
		UNION ALL
		SELECT 'the function ' || name || ' is missing' FROM unnest(ARRAY['archive_seal_of_version', 'archive_seal_of_record']) AS name WHERE to_regproc(name) IS NULL`, madeBySteps)
	if err != nil {
		return err
	}
	faults, err := pgx.CollectRows(rows, pgx.RowTo[string])
	for _, fault := range faults {
		v.report.Add(audit.File, "the database", "%s", fault)
	}
	return err
}
