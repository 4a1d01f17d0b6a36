package postgres

import (
	"context"
	"hash/maphash"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"oda"
)

// Recording goes through a few lanes. A lane sends one transaction at a time
// with what is waiting, so under load many records share a commit, and nobody
// waits for more than the transaction under way and his own. A block always
// takes the same lane: this process never waits for itself at a head.
const (
	lanes       = 4
	laneLength  = 512
	laneRecords = 256
	laneBytes   = 4 << 20
	laneTime    = 20 * time.Second
	enqueueWait = 5 * time.Second
)

// waiting is a record on its way.
type waiting struct {
	add      oda.Addition
	recorded oda.Recorded
	done     chan error
}

func (s *Store) startLanes() {
	ctx, cancel := context.WithCancel(context.Background())
	s.stop = cancel
	for i := range s.lanes {
		s.lanes[i] = make(chan *waiting, laneLength)
		s.done.Go(func() { s.runLane(ctx, s.lanes[i]) })
	}
}

// Record implements oda.Store.
func (s *Store) Record(ctx context.Context, add oda.Addition) (oda.Recorded, error) {
	w := &waiting{add: add, done: make(chan error, 1)}
	if err := s.enqueue(ctx, w); err != nil {
		return oda.Recorded{}, err
	}
	// The record may be committed from here on, so its answer is waited for
	// even if the caller has gone. The lane answers in bounded time.
	err := <-w.done
	return w.recorded, err
}

func (s *Store) enqueue(ctx context.Context, w *waiting) error {
	s.gate.RLock()
	defer s.gate.RUnlock()
	if s.closed {
		return oda.Errorf(oda.Unavailable, "The archive is stopping. Nothing was stored. Try again shortly.")
	}
	lane := s.lanes[maphash.String(s.seed, w.add.Block)%lanes]
	select {
	case lane <- w:
		return nil
	default:
	}
	timer := time.NewTimer(enqueueWait)
	defer timer.Stop()
	select {
	case lane <- w:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return oda.Errorf(oda.Overloaded, "Too many records are waiting. Nothing was stored. Try again shortly.")
	}
}

// runLane sends what is waiting until the lane is closed and empty.
func (s *Store) runLane(ctx context.Context, lane <-chan *waiting) {
	var batch, later []*waiting
	for {
		batch = append(batch[:0], later...)
		if len(batch) == 0 {
			w, open := <-lane
			if !open {
				return
			}
			batch = append(batch, w)
		}
		batch = gather(batch, lane)
		batch, later = apart(batch)
		s.sendLane(ctx, batch)
	}
}

// gather takes what is waiting, as far as it fits into one transaction.
func gather(batch []*waiting, lane <-chan *waiting) []*waiting {
	size := 0
	for _, w := range batch {
		size += len(w.add.Record)
	}
	for len(batch) < laneRecords && size < laneBytes {
		select {
		case w, open := <-lane:
			if !open {
				return batch
			}
			batch = append(batch, w)
			size += len(w.add.Record)
		default:
			return batch
		}
	}
	return batch
}

// apart leaves for the next transaction what has the same key as a record
// before it in the same block: it must find that record stored.
func apart(batch []*waiting) (now, later []*waiting) {
	type key struct{ block, key string }
	seen := make(map[key]bool)
	now = batch[:0]
	for _, w := range batch {
		if w.add.Key != nil {
			k := key{w.add.Block, w.add.Key.Value}
			if seen[k] {
				later = append(later, w)
				continue
			}
			seen[k] = true
		}
		now = append(now, w)
	}
	return now, later
}

// sendLane stores the records and tells each how it went.
func (s *Store) sendLane(ctx context.Context, batch []*waiting) {
	ctx, cancel := context.WithTimeout(ctx, laneTime)
	defer cancel()
	answered := make([]error, len(batch))
	err := s.again(ctx, func(ctx context.Context) error {
		for i, w := range batch {
			answered[i] = oda.Missing(oda.Ref{Kind: oda.ExecutionBlock, ID: w.add.Block})
		}
		return s.write(ctx, func(ctx context.Context, conn *pgxpool.Conn) error { return recordAll(ctx, conn, batch, answered) })
	})
	for i, w := range batch {
		if err != nil {
			// Not with the lane's own time-out: it says nothing of the caller.
			answered[i] = s.storageError(context.Background(), err)
		}
		w.done <- answered[i]
	}
}

// lockBlocks takes the heads of the blocks in the order of their identifiers.
// The statement behind it, in the same transaction, then sees all that was
// committed before, and nobody can add to these blocks. It is left a list of
// them: a block that appears between the two is not held, and must not be
// touched. No identifier has a comma in it.
const lockBlocks = `WITH held AS (
		SELECT identifier FROM heads WHERE kind = 3 AND identifier = ANY ($1::text[]) ORDER BY identifier FOR NO KEY UPDATE
	) SELECT set_config('oda.held', coalesce(string_agg(identifier, ','), ''), true) FROM held`

// recordBatch adds the records whose key is not known yet, and gives for each
// record that has a block where it stands: that of the first time where the
// key is known. Within a block, each record has an instant of its own that is
// later than the one before, whatever the clocks say.
const recordBatch = `WITH input AS (
		SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[], $4::text[], $5::bytea[], $6::bytea[])
			WITH ORDINALITY AS i (identifier, by, at, key, digest, text, nth)
	), head AS (
		SELECT identifier, version, created_by, created_on, last_modified_on, last_sequence
		FROM heads WHERE kind = 3 AND identifier = ANY (string_to_array(current_setting('oda.held'), ','))
	), known AS (
		SELECT i.nth, r.identifier, r.sequence, r.version, r.recorded_by, r.recorded_on, r.digest
		FROM input i JOIN records r ON r.kind = 3 AND r.identifier = i.identifier AND r.key = i.key
	), placed AS (
		SELECT i.*, row_number() OVER (PARTITION BY i.identifier ORDER BY i.nth) AS place
		FROM input i WHERE i.nth NOT IN (SELECT nth FROM known)
	), fresh AS (
		SELECT p.nth, p.identifier, p.key, p.digest, p.text, p.by, h.version, h.created_by, h.created_on,
			h.last_sequence + p.place AS sequence,
			greatest(h.last_modified_on, max(p.at - p.place) OVER (PARTITION BY p.identifier ORDER BY p.place)) + p.place AS recorded_on
		FROM placed p JOIN head h USING (identifier)
	), moved AS (
		UPDATE heads h SET last_sequence = f.sequence, last_modified_by = f.by, last_modified_on = f.recorded_on
		FROM (SELECT DISTINCT ON (identifier) * FROM fresh ORDER BY identifier, nth DESC) f
		WHERE h.kind = 3 AND h.identifier = f.identifier
	), added AS (
		INSERT INTO records (kind, identifier, sequence, version, recorded_by, recorded_on, key, digest, text)
		SELECT 3, identifier, sequence, version, by, recorded_on, key, digest, text FROM fresh ORDER BY nth
	)
	SELECT nth - 1, sequence, version, created_by, created_on, by, recorded_on, NULL::bytea FROM fresh
	UNION ALL
	SELECT k.nth - 1, k.sequence, k.version, h.created_by, h.created_on, k.recorded_by, k.recorded_on, k.digest FROM known k JOIN head h USING (identifier)`

// recordAll stores a batch in one round trip: both statements are sent
// together and are one transaction.
func recordAll(ctx context.Context, conn *pgxpool.Conn, all []*waiting, answered []error) error {
	n := len(all)
	ids, by, at := make([]string, n), make([]string, n), make([]int64, n)
	keys, digests, texts := make([]*string, n), make([][]byte, n), make([][]byte, n)
	for i, w := range all {
		ids[i], by[i], at[i], texts[i] = w.add.Block, w.add.By, int64(w.add.At), w.add.Record
		if w.add.Key != nil {
			keys[i], digests[i] = &w.add.Key.Value, w.add.Key.Digest[:]
		}
	}
	var batch pgx.Batch
	batch.Queue(lockBlocks, ids)
	batch.Queue(recordBatch, ids, by, at, keys, digests, texts)
	results := conn.SendBatch(ctx, &batch)
	if _, err := results.Exec(); err != nil {
		_ = results.Close() // says the same
		return err
	}
	rows, err := results.Query()
	if err != nil {
		_ = results.Close() // says the same
		return err
	}
	var i int
	var r oda.Recorded
	var digest []byte
	m := &r.Metadata
	_, err = pgx.ForEachRow(rows, []any{&i, &r.Sequence, &m.Version, &m.CreatedBy, &m.CreatedOn, &m.LastModifiedBy, &m.LastModifiedOn, &digest}, func() error {
		all[i].recorded, answered[i] = r, nil
		if digest != nil {
			answered[i] = all[i].add.Key.Check(digest)
		}
		return nil
	})
	// Only the end of the batch says that it is committed.
	if closeErr := results.Close(); err == nil {
		err = closeErr
	}
	return err
}
