package postgres

import (
	"context"
	"errors"
	"fmt"
	"iter"

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
const verifyConnections = 12

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
		}{{"reading versions, records and statuses", v.rows}, {"checking positions", v.positions}, {"checking counts and keys", v.indexes}, {"checking the schema", v.schema}} {
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
	steps, err := schemaSteps()
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
	if err := tx.QueryRow(ctx, "SELECT (SELECT coalesce(sum(version + last_sequence), 0) FROM heads)::bigint + (SELECT coalesce(sum(last), 0) FROM standings)::bigint").Scan(&total); err != nil {
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
		Versions: stream(ctx, v, `SELECT kind, identifier, version, stored_by, stored_on, sequence_before, sequence_after,
			`+readable("runs")+`, `+readable("slots")+`, text, digest, seal FROM versions ORDER BY kind, identifier, version`, scanVersion),
		Records: stream(ctx, v, `SELECT kind, identifier, sequence, version, recorded_by, recorded_on, coalesce(key, ''), text, digest, seal
			FROM records ORDER BY kind, identifier, sequence`, scanRecord),
		Statuses: stream(ctx, v, "SELECT "+statusColumns+" FROM statuses e ORDER BY kind, identifier, sequence", func(rows pgx.Rows) (audit.StatusRow, error) {
			var r statusRow
			err := rows.Scan(r.columns()...)
			row := *r.row()
			row.Kind = audit.KindOf(int64(r.kind))
			return audit.StatusRow{Entity: keyOf(r.kind, r.ID), StatusRow: row, Digest: r.digest[:]}, err
		}),
		Standings: stream(ctx, v, "SELECT kind, identifier, created_on, folded, "+standingColumns+" FROM standings s ORDER BY kind, identifier",
			func(rows pgx.Rows) (r audit.StandingRow, err error) {
				var kind int16
				err = rows.Scan(append([]any{&kind, &r.Ref.ID, &r.CreatedOn, &r.Folded}, standingIn(&r.Standing)...)...)
				r.Entity = keyOf(kind, r.Ref.ID)
				r.Ref = r.Entity.Ref
				return r, err
			}),
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
		Failed: stream(ctx, v, "SELECT kind, function, "+failedColumns+" FROM failed_calls ORDER BY kind, identifier, sequence", func(rows pgx.Rows) (r audit.FailedRow, err error) {
			var kind int16
			r.CallEntry, err = scanFailed(rows, &kind, &r.Function)
			r.Entity = keyOf(kind, r.Block)
			return r, err
		}),
		Long: stream(ctx, v, "SELECT kind, identifier, at, sequence, received FROM long_calls ORDER BY kind, identifier, sequence", func(rows pgx.Rows) (r audit.LongRow, err error) {
			var kind int16
			err = rows.Scan(&kind, &r.Block, &r.At, &r.Sequence, &r.Received)
			r.Entity = keyOf(kind, r.Block)
			return r, err
		}),
		Changes: stream(ctx, v, loggedChanges, func(rows pgx.Rows) (r audit.ChangeRow, err error) {
			var kind int16
			err = rows.Scan(&kind, &r.ID, &r.Version, &r.FirstSequence, &r.LastSequence, &r.By, &r.On, &r.Position)
			r.Entity = keyOf(kind, r.ID)
			return r, err
		}),
		Said: stream(ctx, v, loggedStatuses, func(rows pgx.Rows) (r audit.ChangeRow, err error) {
			var kind int16
			r.Said = new(oda.Said)
			err = rows.Scan(&kind, &r.ID, &r.Version, &r.Said.Sequence, &r.By, &r.On, &r.Position)
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
	err = rows.Scan(&kind, &id, &row.Version, &row.By, &row.On, &row.Before, &row.After, &runs, &slots, &r.Text, (*digest)(&row.Digest), &r.Seal)
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
		SELECT number, width, names, places, NULL::bigint AS after, NULL::bigint AS last FROM changes
		UNION ALL
		SELECT first, NULL, NULL, NULL, after, last FROM runs
	), grouped AS (
		SELECT *, count(after) OVER (ORDER BY number, after) AS nth FROM written
	), placed AS (
		SELECT *, CASE WHEN number <= max(last) OVER (PARTITION BY nth) THEN max(after) OVER (PARTITION BY nth) END AS round FROM grouped
	), positioned AS (
		SELECT *, coalesce(round, 1::bigint << 62) + sum(width) OVER (PARTITION BY round ORDER BY number) AS position FROM placed WHERE width IS NOT NULL
	)`
)

// The changes of a row end where the next one begins. OFFSET has each row unpacked once, and
// not for each number and name in it.
var (
	loggedChanges = placedNumbers + `
	SELECT CASE WHEN kind BETWEEN 1 AND 5 THEN kind WHEN kind = 0 THEN 3 ELSE 0 END::smallint, id, version,
		CASE WHEN kind = 0 THEN first ELSE 0 END, CASE WHEN kind = 0 THEN last ELSE 0 END, by, at, position
	FROM ` + eachChange + ` WHERE kind NOT BETWEEN 17 AND 21 ORDER BY 1, 2, 3, 4`

	loggedStatuses = placedNumbers + `
	SELECT (kind - 16)::smallint, id, version, last, by, at, position FROM ` + eachChange + ` WHERE kind BETWEEN 17 AND 21 ORDER BY 1, 2, 4`

	eachChange = `(SELECT kind, id, version, first, last, by, at,
		` + fitting("coalesce(position - sum(width) OVER (PARTITION BY number ORDER BY i DESC) + width, 9223372036854775807)") + ` AS position
	FROM (
		SELECT number, position, i, kind, id, version, first, last, by, at, last::numeric - first + CASE WHEN kind = 0 OR kind BETWEEN 17 AND 21 THEN 1 ELSE 2 END AS width FROM (
			SELECT number, position, i, coalesce(n[2 * i - 1], '') AS id, coalesce(n[2 * i], '') AS by,
				coalesce(p[5 * i - 4], -1) AS kind, coalesce(p[5 * i - 3], 0) AS version, coalesce(p[5 * i - 2], 0) AS first,
				coalesce(p[5 * i - 1], 0) AS last, coalesce(p[5 * i], 0) AS at
			FROM (SELECT number, position, ARRAY(SELECT unnest(names)) AS n, ARRAY(SELECT unnest(places)) AS p FROM positioned OFFSET 0) r
				CROSS JOIN LATERAL generate_series(1, greatest((cardinality(n) + 1) / 2, (cardinality(p) + 4) / 5)) AS i
		) c
	) c) c`
)

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
		`SELECT ended, last FROM (SELECT coalesce(max(position), -1) AS ended, count(*) AS n FROM log_end) e, (SELECT coalesce(max(last), 0) AS last FROM rounds) r
			WHERE ended <> last OR n <> 1`,
		"should end at position %d, but the last round ends at %d: one is missing, or is not from here",
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
		`SELECT number, width FROM changes WHERE number <= 0`,
		"has number %d, which is never given, for %d positions",
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
	if err := v.seals(ctx, tx); err != nil {
		return err
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

// seals checks that the rows of the log are as they were written.
func (v verifier) seals(ctx context.Context, tx pgx.Tx) error {
	for _, table := range []struct{ query, place string }{
		{"SELECT number, concat_ws(E'\\n', 'change', number, width, array_to_string(names, E'\\n', ''), array_to_string(places, E'\\n', '')), seal FROM changes", "number %d"},
		{"SELECT after, concat_ws(E'\\n', 'round', after, last, seen, array_to_string(runs, E'\\n', '')), seal FROM rounds", "the round behind position %d"},
	} {
		rows, err := tx.Query(ctx, table.query)
		if err != nil {
			return err
		}
		var nth int64
		var columns string
		var seal []byte
		_, err = pgx.ForEachRow(rows, []any{&nth, &columns, &seal}, func() error {
			if !engine.SealOf([]byte(columns)).Fits(seal) {
				v.report.Add(audit.Row, "the log", table.place+" was edited, or has changed places with another", nth)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// indexes compares the counts, the keys of creations and the index of days with the
// heads.
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
	err = tx.QueryRow(ctx, "SELECT count(*) FROM counts WHERE kind BETWEEN 1 AND 5 AND shard BETWEEN 0 AND $1", countShards-1).Scan(&there)
	if err != nil {
		return err
	}
	if should := int64(len(oda.Kinds) * countShards); there != should {
		v.report.Add(audit.Index, "the counts", "have %d of the %d rows that they need", there, should)
	}
	rows, err = tx.Query(ctx, `SELECT k.kind, k.identifier, k.key, k.digest, k.seal, h.identifier IS NOT NULL
		FROM creation_keys k LEFT JOIN heads h USING (kind, identifier)`)
	if err != nil {
		return err
	}
	var id, key string
	var keyDigest, seal []byte
	var known bool
	_, err = pgx.ForEachRow(rows, []any{&kind, &id, &key, &keyDigest, &seal, &known}, func() error {
		ref := oda.Ref{Kind: audit.KindOf(int64(kind)), ID: id}
		if v.report.Key(ref, key, keyDigest, seal); !known {
			v.report.Add(audit.Index, fmt.Sprintf("%s %s", ref.Kind, ref.ID), "a key created it, but it is not there")
		}
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

// madeBySchema names the indexes without which the archive would be slow, or would not
// notice that something is stored twice. A unique index that has
// lost rows stays invalid, and counts as missing.
var madeBySchema = []string{
	"call_days_day", "call_days_pkey", "catalogue_pkey", "catalogue_terms", "changes_pkey", "counts_pkey", "creation_keys_identifier", "creation_keys_pkey", "creations_created", "creations_pkey",
	"creations_telescope", "creations_user", "failed_calls_at", "failed_calls_device", "failed_calls_error", "failed_calls_function", "failed_calls_pkey",
	"heads_listed", "heads_pkey", "long_calls_at", "long_calls_pkey", "migrations_pkey", "records_key", "records_marks",
	"records_pkey", "rounds_pkey", "running_pkey", "standings_class", "standings_pkey", "standings_status", "statuses_key", "statuses_pkey", "versions_marks", "versions_pkey",
}

// schema reports indexes and functions of the schema that were dropped or
// replaced.
func (v verifier) schema(ctx context.Context, tx pgx.Tx) error {
	rows, err := tx.Query(ctx, `SELECT CASE WHEN i.indexrelid IS NULL THEN 'the index ' || name || ' is missing' ELSE 'the index ' || name || ' is not unique' END
		FROM unnest($1::text[]) AS name LEFT JOIN (pg_index i JOIN pg_class c ON c.oid = i.indexrelid) ON c.relname = name AND i.indisvalid AND pg_table_is_visible(i.indrelid)
		WHERE i.indexrelid IS NULL OR NOT i.indisunique AND (name LIKE '%\_pkey' OR name IN ('records_key', 'statuses_key'))
		UNION ALL
		SELECT 'the function ' || name || ' is missing' FROM unnest(ARRAY['archive_seal_of_version', 'archive_seal_of_record', 'archive_seal_of_change', 'archive_seal_of_round']) AS name WHERE to_regproc(name) IS NULL`, madeBySchema)
	if err != nil {
		return err
	}
	faults, err := pgx.CollectRows(rows, pgx.RowTo[string])
	for _, fault := range faults {
		v.report.Add(audit.File, "the database", "%s", fault)
	}
	return err
}
