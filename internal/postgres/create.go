package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"oda"
	"oda/internal/engine"
)

// Create implements oda.Engine. Without a key it is one statement, which several
// creations may share. With a key, it claims the key in the same transaction.
func (s *Store) Create(ctx context.Context, put oda.Put, key *oda.Key) (*oda.Entity, error) {
	if err := oda.CheckNewRecords(len(put.Records)); err != nil {
		return nil, err
	}
	deadline := time.Now().Add(heldPatience)
	stores := []*store{statement(&put, sharing{records: engine.List(put.Records)}, anyShard(), true)}
	var err error
	if key == nil {
		err = s.storeOne(ctx, stores[0], deadline)
	} else {
		try := func(patience time.Duration) error {
			return tryWrites(ctx, s, stores, func(ctx context.Context, conn *pgxpool.Conn) error {
				return transact(ctx, conn, func(tx pgx.Tx) error { return createWithKey(ctx, tx, stores[0], *key, patience) })
			})
		}
		err = s.retryWhileHeld(ctx, deadline, try(putPatience), try)
	}
	switch {
	case errors.Is(err, errKeyUsed):
		return s.Created(ctx, put.Kind, *key)
	case errors.Is(err, errRefused):
		return nil, oda.ErrTaken
	case err != nil:
		return nil, s.writeError(ctx, err)
	}
	return answers(stores)[0], nil
}

// errKeyUsed says that the key has already created an entity.
var errKeyUsed = errors.New("the key is used")

func createWithKey(ctx context.Context, tx pgx.Tx, st *store, key oda.Key, patience time.Duration) error {
	var batch pgx.Batch
	batch.Queue(setPatience, milliseconds(patience))
	seal := engine.SealOfKey(st.put.Ref, key)
	batch.Queue("INSERT INTO creation_keys (kind, key, identifier, digest, seal) VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING",
		int16(st.put.Kind), key.Value, st.put.ID, key.Digest[:], seal[:])
	batch.Queue(st.sql, st.args...)
	results := tx.SendBatch(ctx, &batch)
	_, err := results.Exec()
	var claimed pgconn.CommandTag
	if err == nil {
		claimed, err = results.Exec()
	}
	if err != nil {
		_ = results.Close() // returns the same error
		return err
	}
	st.entity, err = st.scan(results.QueryRow())
	if closeErr := results.Close(); closeErr != nil {
		return closeErr
	}
	if claimed.RowsAffected() == 0 {
		return errKeyUsed // rolls back the entity that was just created
	}
	return err
}

// selectCreated locks the row of the key. The lock makes it a write whose commit
// waits for the synchronous standby. So the standby has the entity when a retry is
// answered, even if the first request did not wait for it. Nobody else ever locks
// that row.
const selectCreated = `SELECT 1::bigint, h.created_by, h.created_on, coalesce(v.stored_by, ''), coalesce(v.stored_on, 0), coalesce(v.sequence_after, 0),
	coalesce(v.sequence_after, -1), v.runs, v.slots, ` + unlessLarge + `, v.digest, false, c.identifier, c.digest
	FROM creation_keys c JOIN heads h USING (kind, identifier) LEFT JOIN versions v ON v.kind = h.kind AND v.identifier = h.identifier AND v.version = 1
	WHERE c.kind = $1 AND c.key = $2 FOR NO KEY UPDATE OF c`

// Created implements oda.Engine.
func (s *Store) Created(ctx context.Context, kind oda.Kind, key oda.Key) (*oda.Entity, error) {
	r, err := s.read(ctx, s.write, oda.Ref{Kind: kind}, selectCreated, int16(kind), key.Value)
	if err != nil || r == nil {
		return nil, s.writeError(ctx, err)
	}
	if err := key.Check(r.keyDigest); err != nil {
		return nil, err
	}
	return s.entity(ctx, r)
}
