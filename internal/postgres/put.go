package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"oda"
	"oda/internal/engine"
)

// errRefused says that a statement wrote nothing.
var errRefused = errors.New("the stored state is not the expected one")

// judgeTries is how often a store is tried if oda.Judge cannot explain its refusal,
// because the state has changed again since.
const judgeTries = 3

// Put implements oda.Engine.
func (s *Store) Put(ctx context.Context, puts []oda.Put) ([]*oda.Entity, error) {
	var stored []*oda.Metadata
	for range judgeTries {
		entities, err := s.put(ctx, puts, stored)
		if !errors.Is(err, errRefused) {
			return entities, s.writeError(ctx, err)
		}
		var telescopes []string
		if stored, telescopes, err = s.heads(ctx, puts); err != nil {
			return nil, s.writeError(ctx, fmt.Errorf("%w: %w", errNotTried, err))
		}
		for i := range puts {
			if stored[i] == nil {
				continue
			}
			if err := puts[i].Admit(telescopes[i]); err != nil {
				return nil, err
			}
		}
		if _, err := oda.Judge(puts, stored); err != nil {
			return nil, err
		}
		if err := s.checkKept(ctx, puts); err != nil {
			return nil, s.writeError(ctx, fmt.Errorf("%w: %w", errNotTried, err))
		}
	}
	return nil, oda.Errorf(oda.Overloaded, "The entity is changing too quickly. Nothing was stored. Try again shortly.")
}

// checkKept returns an error if a version whose records are to be kept is damaged or
// missing. The statement writes nothing then.
func (s *Store) checkKept(ctx context.Context, puts []oda.Put) error {
	for _, p := range puts {
		if !p.KeepRecords {
			continue
		}
		r, err := s.read(ctx, s.with, p.Ref, selectCurrent, int16(p.Kind), p.ID)
		if err == nil && r != nil {
			err = r.damage
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// put carries out the puts. Before is the stored metadata as the last try found it,
// nil for the first try.
func (s *Store) put(ctx context.Context, puts []oda.Put, before []*oda.Metadata) ([]*oda.Entity, error) {
	stores := make([]*store, len(puts))
	single := len(puts) == 1 && !puts[0].KeepRecords // one statement does it
	shard := notCounted
	if single {
		shard = anyShard()
	}
	based, shared := make([]sharing, len(puts)), make([]engine.Sharing, len(puts))
	var fresh engine.AtLeast
	for i := range puts {
		var err error
		if based[i], err = s.share(ctx, &puts[i], &fresh); err != nil {
			return nil, fmt.Errorf("%w: %w", errNotTried, err)
		}
		shared[i] = based[i].Sharing
	}
	if err := engine.CheckNew(puts, shared); err != nil {
		return nil, err
	}
	for i := range puts {
		if stores[i] = statement(&puts[i], based[i], shard, before != nil); stores[i] == nil {
			return nil, errRefused
		}
	}
	if err := s.carryOut(ctx, stores, single); err != nil {
		return nil, err
	}
	return answers(stores), nil
}

// carryOut runs a single statement, or several in a transaction.
func (s *Store) carryOut(ctx context.Context, stores []*store, single bool) error {
	deadline := time.Now().Add(heldPatience)
	caller := ctx
	ctx, cancel := context.WithTimeout(ctx, writeTime(stores)+heldPatience) // for all tries
	defer cancel()
	if len(stores) == 1 {
		end, err := s.turns.take(ctx, stores[0].put.Ref, deadline)
		if err != nil {
			return err
		}
		defer end()
	}
	if single {
		return s.storeOne(ctx, stores[0], deadline)
	}
	try := func(patience time.Duration) error {
		return tryWrites(ctx, s, stores, func(ctx context.Context, conn *pgxpool.Conn) error {
			return transact(ctx, conn, func(tx pgx.Tx) error {
				if err := putAll(ctx, tx, stores, patience); err != nil {
					return err
				}
				return s.readKept(caller, ctx, tx, stores)
			})
		})
	}
	return s.retryWhileHeld(ctx, deadline, try(putPatience), try)
}

// putAll runs the statements of several entities in one transaction.
func putAll(ctx context.Context, tx pgx.Tx, stores []*store, patience time.Duration) error {
	ordered := inOrder(stores)
	if err := runAll(tx.SendBatch(ctx, queued(ordered, patience)), ordered); err != nil {
		return err
	}
	for _, st := range stores {
		if st.answer != nil {
			return st.answer
		}
	}
	return count(ctx, tx, stores)
}

// count adds the new entities to the counts. It comes last, after all heads: a
// transaction that locks a count and then waits for a head would deadlock with one
// that does it the other way round.
func count(ctx context.Context, tx pgx.Tx, stores []*store) error {
	var created [len(oda.Kinds) + 1]int64
	for _, st := range stores {
		if st.entity.Metadata.Version == 1 {
			created[st.put.Kind]++
		}
	}
	shard := anyShard()
	var batch pgx.Batch
	for _, kind := range oda.Kinds {
		if n := created[kind]; n > 0 {
			batch.Queue("UPDATE counts SET n = n + $3 WHERE kind = $1 AND shard = $2", int16(kind), shard, n)
		}
	}
	if batch.Len() == 0 {
		return nil
	}
	return tx.SendBatch(ctx, &batch).Close()
}

// A store may take answerTime, and this much more for what it stores. These times are
// meant for a busy server. The longest is less than the time that an answer may take.
const (
	timePerEntity = 10 * time.Millisecond
	timePerRecord = 200 * time.Microsecond
	timePerByte   = time.Microsecond
	writeTimeMost = 60 * time.Second
)

// writeTime returns how long a transaction with these writes may take.
func writeTime[T sharer[T]](writes []T) time.Duration {
	limit := answerTime
	for _, one := range writes {
		limit += one.time()
	}
	return min(limit, writeTimeMost)
}

// time returns how much more a transaction may take with the store.
func (st *store) time() time.Duration {
	size := st.size()
	for _, text := range st.put.Records {
		size += len(text)
	}
	return timePerEntity + time.Duration(len(st.put.Records))*timePerRecord + time.Duration(size)*timePerByte
}

// tryWrites runs work on a connection, with the time that these writes may take.
func tryWrites[T sharer[T]](ctx context.Context, s *Store, writes []T, work func(context.Context, *pgxpool.Conn) error) error {
	limit := writeTime(writes)
	began := time.Now()
	err := s.again(ctx, func(ctx context.Context) error { return s.writeWithin(ctx, limit, work) })
	accepted := 0
	for _, one := range writes {
		if one.refusal() == nil {
			accepted++
		}
	}
	s.committed(accepted, began, err)
	if err == nil {
		s.numbering.wrote()
	}
	return err
}

// stored is the result of a store.
type stored struct {
	oda.Entity
	last int64   // the last sequence number of the block
	kept []int64 // runs of the records that were carried over
}

// scan reads the result of the store.
func (st *store) scan(row pgx.Row) (*stored, error) {
	p := st.put
	e := &stored{Entity: oda.Entity{Ref: p.Ref, Body: p.Body}}
	m := &e.Metadata
	columns := []any{&m.Version, &m.CreatedBy, &m.CreatedOn, &m.LastModifiedBy, &m.LastModifiedOn, &e.last, &e.kept}
	if st.sql == newOnly {
		e.Metadata, columns = p.First(), []any{new(int)}
	}
	err := row.Scan(columns...)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, errRefused
	}
	if unreadable(err) {
		return nil, oda.Damaged(p.Ref, m.Version-1, 0).Because(err)
	}
	if err != nil {
		return nil, err
	}
	return e, nil
}

// readKept reads the first of the records that the entities have kept before they
// are committed, since the answer must not fail after that. The caller reads the
// rest, with its own context.
func (s *Store) readKept(caller, ctx context.Context, tx pgx.Tx, stores []*store) error {
	for _, st := range stores {
		e := st.entity
		if e.kept == nil {
			continue
		}
		of := engine.Version{Ref: e.Ref, Number: e.Metadata.Version - 1}
		runs, err := currentRuns(of, e.kept, e.last, e.last)
		if err != nil {
			return err
		}
		e.Records, err = engine.Ahead(runs,
			func(runs engine.Runs) oda.Texts { return textsWithin(ctx, tx, of, runs) },
			func(runs engine.Runs) oda.Texts { return s.texts(caller, of, runs) })
		if err != nil {
			return err
		}
	}
	return nil
}

// answers returns the stored entities.
func answers(stores []*store) []*oda.Entity {
	entities := make([]*oda.Entity, len(stores))
	for i, st := range stores {
		if st.put.Listed {
			st.entity.Records = oda.TextsOf(st.put.Records)
		}
		entities[i] = &st.entity.Entity
	}
	return entities
}

// heads returns the stored metadata of the entities, nil for new ones, and their
// telescopes, empty for those that have none.
func (s *Store) heads(ctx context.Context, puts []oda.Put) (stored []*oda.Metadata, telescopes []string, err error) {
	stored, telescopes = make([]*oda.Metadata, len(puts)), make([]string, len(puts))
	kinds, ids := make([]int16, len(puts)), make([]string, len(puts))
	for i, p := range puts {
		kinds[i], ids[i] = int16(p.Kind), p.ID
	}
	err = s.reading(ctx, func(ctx context.Context, conn *pgxpool.Conn) error {
		rows, err := conn.Query(ctx, `SELECT p.nth - 1, h.version, h.created_by, h.created_on, h.last_modified_by, h.last_modified_on, coalesce(h.telescope, '')
			FROM unnest($1::smallint[], $2::text[]) WITH ORDINALITY AS p (kind, identifier, nth) JOIN heads h USING (kind, identifier)`, kinds, ids)
		if err != nil {
			return err
		}
		var i int
		var m oda.Metadata
		var telescope string
		row := []any{&i, &m.Version, &m.CreatedBy, &m.CreatedOn, &m.LastModifiedBy, &m.LastModifiedOn, &telescope}
		_, err = pgx.ForEachRow(rows, row, func() error {
			one := m
			stored[i], telescopes[i] = &one, telescope
			return nil
		})
		return err
	})
	return stored, telescopes, err
}
