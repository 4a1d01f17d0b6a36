package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"oda"
)

// Calls that are running are rows of an unlogged table, which is empty after a crash or a
// failover; their recorders say them again. Recording never looks at it: a call has ended
// if its block has a record with its key, and reading leaves such rows out. Whenever a
// call is said for the first time, a portion of the table is rid of rows that are over.
//
// The clock is the database's. A row counts only where it was written: one that was copied
// into another database, as pg_restore does, is not of the transaction that it names.
const (
	runningNow = `now AS MATERIALIZED (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS at)`

	// Conditions on a row k of running. The second is for an update of the row. The third is
	// a value, so that PostgreSQL can only look for it in the index of keys.
	isKnown      = `k.xmin = k.said_in AND k.lease_until + 86400000000 > now.at`
	isKnownStill = `k.xmin = k.said_in AND k.lease_until + 86400000000 > excluded.renewed_on`
	isRecorded   = `(SELECT true FROM records WHERE identifier = k.identifier AND key = k.key LIMIT 1) IS NOT NULL`

	// unhurried lets the commit of a statement not wait for the disk.
	unhurried = `(SELECT set_config('synchronous_commit', 'off', true)) <> ''`

	// runningBlock is the block $1, and whether a caller may say something of it who is bound
	// to the telescopes $3. This is the rule of Begun.Admit.
	runningBlock = `block AS (SELECT h.telescope, $3::text[] IS NULL OR h.telescope IS NULL OR h.telescope = ANY ($3) AS admitted
		FROM heads h WHERE ` + isBlock + ` AND h.identifier = $1)`
)

// beginCall is a whole transaction. Callers who come at the same time may take a place
// too many.
//
//	$1 block   $2 key   $3 telescopes, or null   $4 user   $5 request   $6 arguments, or null   $7 sent at, or null
//	$8 lease   $9 the most of one user   $10 the most   $11, $12 block and key up to which the table was looked at
const beginCall = `WITH ` + runningNow + `, ` + runningBlock + `, recorded AS (
		SELECT FROM (VALUES ($1::text, $2::text)) AS k (identifier, key) WHERE ` + isRecorded + `
	), known AS (
		SELECT FROM running k CROSS JOIN now WHERE k.kind = 3 AND k.identifier = $1 AND k.key = $2 AND ` + isKnown + `
	), portion AS MATERIALIZED (
		SELECT k.identifier, k.key, ` + isKnown + ` AND NOT ` + isRecorded + ` AS runs
		FROM (SELECT *, xmin FROM running WHERE (kind, identifier, key) > (3, $11, $12) ORDER BY kind, identifier, key LIMIT 50) k CROSS JOIN now
		WHERE NOT EXISTS (SELECT FROM known)
	), removed AS (
		DELETE FROM running WHERE ctid = ANY (ARRAY(SELECT r.ctid FROM portion p
			CROSS JOIN LATERAL (SELECT ctid FROM running WHERE kind = 3 AND identifier = p.identifier AND key = p.key FOR UPDATE SKIP LOCKED) r
			WHERE NOT p.runs AND (p.identifier, p.key) <> ($1, $2)))
	), stored AS (
		SELECT count(*) AS n, count(*) FILTER (WHERE said_by = $4) AS own FROM running
	), calls AS MATERIALIZED (
		SELECT count(*) AS n, count(*) FILTER (WHERE k.said_by = $4) AS own FROM running k CROSS JOIN now WHERE ` + isKnown + ` AND NOT ` + isRecorded + `
	), said AS (
		INSERT INTO running AS k (kind, identifier, key, request, arguments, sent_at, since, renewed_on, lease_until, said_by, said_in)
		SELECT 3, $1, $2, $5, $6, coalesce($7, now.at), now.at, now.at, now.at + $8, $4, pg_current_xact_id()::xid
		FROM now CROSS JOIN block WHERE admitted AND NOT EXISTS (SELECT FROM recorded) AND ` + unhurried + ` AND CASE
			WHEN EXISTS (SELECT FROM known) THEN true
			WHEN (SELECT own < $9 AND n < $10 FROM stored) THEN true
			ELSE (SELECT own < $9 AND n < $10 FROM calls) END
		ON CONFLICT (kind, identifier, key) DO UPDATE SET request = excluded.request, arguments = excluded.arguments,
			sent_at = CASE WHEN ` + isKnownStill + ` THEN coalesce($7, k.sent_at) ELSE excluded.sent_at END,
			since = CASE WHEN ` + isKnownStill + ` THEN k.since ELSE excluded.since END,
			renewed_on = excluded.renewed_on, lease_until = excluded.lease_until, said_by = excluded.said_by, said_in = excluded.said_in
		RETURNING true
	), answer AS MATERIALIZED (
		SELECT coalesce(telescope, '') AS telescope, NOT admitted OR EXISTS (SELECT FROM said) OR EXISTS (SELECT FROM recorded) AS done FROM block
	)
	SELECT telescope, done, CASE WHEN done THEN 0 ELSE (SELECT n FROM calls) END, CASE WHEN done THEN 0 ELSE (SELECT own FROM calls) END,
		NOT EXISTS (SELECT FROM known), coalesce(last.identifier, ''), coalesce(last.key, '')
	FROM answer LEFT JOIN (SELECT * FROM portion ORDER BY identifier, key OFFSET 49) last ON true`

// withdrawCall is a whole transaction.
//
//	$1 block   $2 key   $3 telescopes, or null
const withdrawCall = `WITH ` + runningBlock + `, removed AS (
		DELETE FROM running WHERE kind = 3 AND identifier = $1 AND key = $2 AND (SELECT admitted FROM block) AND ` + unhurried + `
	)
	SELECT coalesce(telescope, '') FROM block`

const (
	selectRunning = `WITH ` + runningNow + ` SELECT ` + runningColumns + ` FROM now CROSS JOIN running k
		CROSS JOIN LATERAL (SELECT telescope FROM heads WHERE kind = k.kind AND identifier = k.identifier OFFSET 0) h
		WHERE ` + isKnown + ` AND NOT ` + isRecorded + ` ORDER BY k.kind, k.identifier, k.key`

	// selectRunningIn has a row without a key if nothing is running in the block.
	selectRunningIn = `WITH ` + runningNow + ` SELECT ` + runningColumns + ` FROM now CROSS JOIN heads h
		LEFT JOIN LATERAL (SELECT *, xmin FROM running WHERE kind = 3 AND identifier = $1) k ON ` + isKnown + ` AND NOT ` + isRecorded + `
		WHERE ` + isBlock + ` AND h.identifier = $1 ORDER BY k.key`

	runningColumns = `now.at, coalesce(h.telescope, ''), coalesce(k.identifier, ''), coalesce(k.key, ''), k.request, k.arguments,
		coalesce(k.sent_at, 0), coalesce(k.since, 0), coalesce(k.renewed_on, 0), coalesce(k.lease_until, 0), coalesce(k.said_by, '')`
)

// runningPlace is a place among the calls that are running.
type runningPlace struct{ block, key string }

// Begin implements oda.Runner. It may be repeated, so nobody needs to know whether one
// that failed was stored.
func (s *Store) Begin(ctx context.Context, b oda.Begun) error {
	from := runningPlace{}
	if at := s.lookedAt.Load(); at != nil {
		from = *at
	}
	var telescope string
	var done, looked bool
	var all, own int
	var to runningPlace
	err := s.running(ctx, &b, beginCall, []any{
		b.By, []byte(b.Request), []byte(b.Arguments), (*int64)(b.SentAt), b.Lease.Microseconds(), oda.MaxRunningOfCaller, oda.MaxRunning, from.block, from.key,
	}, &telescope, &done, &all, &own, &looked, &to.block, &to.key)
	if err != nil {
		return err
	}
	if looked {
		s.lookedAt.Store(&to)
	}
	if err := b.Admit(telescope); err != nil || done {
		return err
	}
	return oda.CheckRunning(all, own)
}

// Withdraw implements oda.Runner.
func (s *Store) Withdraw(ctx context.Context, b oda.Begun) error {
	var telescope string
	if err := s.running(ctx, &b, withdrawCall, nil, &telescope); err != nil {
		return err
	}
	return b.Admit(telescope)
}

// running runs a statement about a call, whose block is its first parameter, and scans the
// row that it has if the block is stored.
func (s *Store) running(ctx context.Context, b *oda.Begun, sql string, args []any, row ...any) error {
	var telescopes []string
	if b.Telescopes != nil {
		telescopes = b.Telescopes.Names()
	}
	args = append([]any{b.Block, b.Key, telescopes}, args...)
	err := s.again(ctx, func(ctx context.Context) error {
		return s.writeUnnumbered(ctx, answerTime, func(ctx context.Context, conn *pgxpool.Conn) error {
			return conn.QueryRow(ctx, sql, args...).Scan(row...)
		})
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return oda.Missing(oda.Ref{Kind: oda.ExecutionBlock, ID: b.Block})
	}
	return s.storageError(ctx, err)
}

// Running implements oda.Runner.
func (s *Store) Running(ctx context.Context, block string) (calls []oda.RunningCall, err error) {
	sql, args := selectRunning, []any(nil)
	if block != "" {
		sql, args = selectRunningIn, []any{block}
	}
	there := block == ""
	err = s.reading(ctx, func(ctx context.Context, conn *pgxpool.Conn) error {
		calls = nil
		rows, err := conn.Query(ctx, sql, args...)
		if err != nil {
			return err
		}
		var now oda.Instant
		var telescope string
		var c oda.RunningCall
		var request, arguments []byte
		row := []any{&now, &telescope, &c.Block, &c.Key, &request, &arguments, &c.SentAt, &c.Since, &c.RenewedOn, &c.LeaseUntil, &c.By}
		_, err = pgx.ForEachRow(rows, row, func() error {
			if there = true; c.Key != "" {
				c.Request, c.Arguments = string(request), arguments
				c.SeenAt(now, telescope)
				calls = append(calls, c)
			}
			return nil
		})
		return err
	})
	switch {
	case err != nil:
		return nil, s.storageError(ctx, err)
	case !there:
		return nil, oda.Missing(oda.Ref{Kind: oda.ExecutionBlock, ID: block})
	}
	return calls, nil
}
