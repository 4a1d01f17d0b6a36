package postgres

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"oda"
	"oda/internal/doctor"
	"oda/internal/engine/migrate"
)

// Examine looks at the archive in a database, and at the settings of the database.
// Servers may write meanwhile. It changes nothing. An error says why it could not be
// examined, for the operator.
func Examine(ctx context.Context, dsn string, report *doctor.Report) (err error) {
	config, err := parse(dsn)
	if err != nil {
		return err
	}
	config.MaxConns = 2 // one reads entities while the other looks up what they refer to
	newHosts(config)
	config.ConnConfig.RuntimeParams["application_name"] = "oda doctor"
	place := fmt.Sprintf("the database %s on %s", config.ConnConfig.Database, config.ConnConfig.Host)
	defer func() {
		if err != nil && ctx.Err() == nil {
			err = fmt.Errorf("cannot examine %s: %w", place, hideDSN(err))
		}
	}()
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return err
	}
	defer pool.Close()
	if err := examineSettings(ctx, pool, place, report); err != nil {
		return err
	}
	switch err := upToDate(ctx, pool); {
	case errors.Is(err, migrate.ErrNewer), errors.Is(err, migrate.ErrOlder), errors.Is(err, migrate.ErrOther):
		report.Add(doctor.OldSchema(place, err))
		return nil
	case err != nil:
		return err
	}
	if err := examineTimes(ctx, pool, report); err != nil {
		return err
	}
	return doctor.FindDangling(examined{ctx, pool}, report)
}

// question is one about the settings of the database. It returns rows with a place
// for each that is not as it should be.
type question struct {
	query string
	wrong bool
	do    string
}

var questions = []question{
	{
		`SELECT name || ' is off', 'a crash of the machine can destroy the archive' FROM pg_settings WHERE name IN ('fsync', 'full_page_writes') AND setting = 'off'`, true,
		"switch it on in postgresql.conf and restart PostgreSQL; take a backup first",
	},
	{
		`SELECT 'synchronous_commit is off', 'what was acknowledged can be lost in a crash' WHERE current_setting('synchronous_commit') = 'off'`, true,
		"set it to on, for the role, the database and in postgresql.conf (docs/postgres.md)",
	},
	{
		`SELECT name || ' is off', 'tables grow without bound and searches become slow' FROM pg_settings WHERE name IN ('autovacuum', 'track_counts') AND setting = 'off'`, true,
		"switch it on in postgresql.conf and reload PostgreSQL",
	},
	{
		`SELECT 'its encoding is ' || current_setting('server_encoding'), 'it does not take all characters of JSON' WHERE current_setting('server_encoding') <> 'UTF8'`, true,
		"move the archive to a database with the encoding UTF8 (docs/postgres.md)",
	},
	{
		`SELECT 'PostgreSQL ' || current_setting('server_version'), 'oda needs 14 or newer' WHERE current_setting('server_version_num')::int < 140000`, true,
		"upgrade PostgreSQL",
	},
	{
		`SELECT 'transaction numbers', 'the oldest is ' || age(datfrozenxid) || ' transactions old, and PostgreSQL stops writing at two thousand million'
			FROM pg_database WHERE datname = current_database() AND age(datfrozenxid) > 1000000000`, true,
		"find out what keeps autovacuum from freezing rows: a long transaction, a prepared one, or a replication slot",
	},
	{
		`SELECT 'the replication slot ' || slot_name, 'nobody reads it, and the write-ahead log is kept for it until the disk is full' FROM pg_replication_slots WHERE NOT active`, false,
		"start what reads it, or remove it with pg_drop_replication_slot",
	},
	{
		`SELECT 'the prepared transaction ' || gid, 'it is open since ' || prepared FROM pg_prepared_xacts WHERE database = current_database() AND prepared < now() - interval '1 hour'`, false,
		"commit it or roll it back: it keeps old rows and may hold up the log of changes",
	},
	{
		`SELECT 'the session ' || pid, 'it has a transaction open since ' || xact_start FROM pg_stat_activity
			WHERE datname = current_database() AND pid <> pg_backend_pid() AND state LIKE 'idle in transaction%' AND xact_start < now() - interval '1 hour'`, false,
		"end it with pg_terminate_backend: it keeps old rows and may hold up the log of changes",
	},
}

// examineSettings asks the database about its settings.
func examineSettings(ctx context.Context, pool *pgxpool.Pool, place string, report *doctor.Report) error {
	add := func(wrong bool, place, detail, do string) {
		report.Add(doctor.Finding{Check: doctor.Database, Wrong: wrong, Place: place, Detail: detail, Do: do})
	}
	for _, a := range questions {
		rows, err := pool.Query(ctx, a.query)
		if err != nil {
			return err
		}
		var what, detail string
		_, err = pgx.ForEachRow(rows, []any{&what, &detail}, func() error {
			add(a.wrong, place, what+": "+detail, a.do)
			return nil
		})
		if err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(sessionSettings)) {
		var is string
		if err := pool.QueryRow(ctx, "SELECT current_setting($1)", name).Scan(&is); err != nil {
			return err
		}
		if want := pool.Config().ConnConfig.RuntimeParams[name]; is != want {
			add(false, place, fmt.Sprintf("%s is %s in a session of oda, which asked for %s", name, is, want), "pgbouncer drops it: set it for the role (docs/postgres.md#behind-pgbouncer)")
		}
	}
	return nil
}

// loggedTimes selects the latest time in each row of the log. OFFSET has each row unpacked
// once, and not for each of its times.
const loggedTimes = `SELECT number, max(p[5 * i]) FROM (SELECT number, ARRAY(SELECT unnest(places)) AS p FROM changes OFFSET 0) c
	CROSS JOIN LATERAL generate_series(1, cardinality(p) / 5) AS i GROUP BY number ORDER BY number`

// examineTimes looks for a clock that went back. Numbers are given in the order of the
// writes.
func examineTimes(ctx context.Context, pool *pgxpool.Pool, report *doctor.Report) error {
	return inSnapshot(ctx, pool, "", func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, loggedTimes)
		if err != nil {
			return err
		}
		times := doctor.NewTimes(report)
		var number int64
		var at oda.Instant
		_, err = pgx.ForEachRow(rows, []any{&number, &at}, func() error {
			times.Note(number, at)
			return nil
		})
		times.End(time.Now())
		return err
	})
}

// examined is an archive whose references are checked. Entities are never removed, so
// it needs no snapshot.
type examined struct {
	ctx  context.Context
	pool *pgxpool.Pool
}

// Entries implements doctor.Archive.
func (e examined) Entries(kind oda.Kind) iter.Seq2[doctor.Entry, error] {
	query := "SELECT kind, identifier, summary FROM catalogue"
	if kind != 0 {
		query += fmt.Sprintf(" WHERE kind = %d", kind)
	}
	return stream(e.ctx, verifier{pool: e.pool}, query+" ORDER BY kind, identifier", func(rows pgx.Rows) (entry doctor.Entry, err error) {
		var kind int16
		err = rows.Scan(&kind, &entry.ID, &entry.Summary)
		entry.Ref = keyOf(kind, entry.ID).Ref
		return entry, err
	})
}

// Versions implements doctor.Archive.
func (e examined) Versions(refs []oda.Ref) (map[oda.Ref]int64, error) {
	var kinds []int16
	var ids []string
	for _, ref := range refs {
		if isText(ref.ID) { // nothing has another identifier
			kinds, ids = append(kinds, int16(ref.Kind)), append(ids, ref.ID)
		}
	}
	rows, err := e.pool.Query(e.ctx, `SELECT h.kind, h.identifier, h.version FROM unnest($1::smallint[], $2::text[]) AS r (kind, identifier)
		JOIN heads h ON h.kind = r.kind AND h.identifier = r.identifier COLLATE "C"`, kinds, ids)
	if err != nil {
		return nil, err
	}
	found := make(map[oda.Ref]int64, len(refs))
	var kind int16
	var id string
	var version int64
	_, err = pgx.ForEachRow(rows, []any{&kind, &id, &version}, func() error {
		found[keyOf(kind, id).Ref] = version
		return nil
	})
	return found, err
}
