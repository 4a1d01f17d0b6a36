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

// waiting is a request to record on its way: its records are added together or
// not at all.
type waiting struct {
	adds     []oda.Addition // of one block
	size     int
	recorded []oda.Recorded
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
func (s *Store) Record(ctx context.Context, adds []oda.Addition) ([]oda.Recorded, error) {
	w := &waiting{adds: adds, done: make(chan error, 1)}
	for _, add := range adds {
		w.size += len(add.Record)
	}
	if err := s.enqueue(ctx, w); err != nil {
		return nil, err
	}
	// The records may be committed from here on, so their answer is waited for
	// even if the caller has gone. The lane answers in bounded time.
	if err := <-w.done; err != nil {
		return nil, err
	}
	return w.recorded, nil
}

func (s *Store) enqueue(ctx context.Context, w *waiting) error {
	s.gate.RLock()
	defer s.gate.RUnlock()
	if s.closed {
		return oda.Errorf(oda.Unavailable, "The archive is stopping. Nothing was stored. Try again shortly.")
	}
	lane := s.lanes[maphash.String(s.seed, w.adds[0].Block)%lanes]
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
	records, size := 0, 0
	for _, w := range batch {
		records, size = records+len(w.adds), size+w.size
	}
	for records < laneRecords && size < laneBytes {
		select {
		case w, open := <-lane:
			if !open {
				return batch
			}
			batch = append(batch, w)
			records, size = records+len(w.adds), size+w.size
		default:
			return batch
		}
	}
	return batch
}

// apart leaves for the next transaction what has the same key as a request
// before it in the same block: it must find that record stored.
func apart(batch []*waiting) (now, later []*waiting) {
	type key struct{ block, key string }
	seen := make(map[key]bool)
	now = batch[:0]
next:
	for _, w := range batch {
		for _, add := range w.adds {
			if add.Key != nil && seen[key{add.Block, add.Key.Value}] {
				later = append(later, w)
				continue next
			}
		}
		for _, add := range w.adds {
			if add.Key != nil {
				seen[key{add.Block, add.Key.Value}] = true
			}
		}
		now = append(now, w)
	}
	return now, later
}

// sendLane stores the records and tells each request how it went.
func (s *Store) sendLane(ctx context.Context, batch []*waiting) {
	ctx, cancel := context.WithTimeout(ctx, laneTime)
	defer cancel()
	answered := make([]error, len(batch))
	err := s.again(ctx, func(ctx context.Context) error {
		for i, w := range batch {
			w.recorded = make([]oda.Recorded, len(w.adds))
			answered[i] = oda.Missing(oda.Ref{Kind: oda.ExecutionBlock, ID: w.adds[0].Block})
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
// key is known. A request with a known key whose digest is another one adds
// nothing. Within a block, each record has an instant of its own that is later
// than the one before, whatever the clocks say. The LIMIT keeps PostgreSQL from
// turning the search for known keys round, which would read all keys of the
// archive for each record.
const recordBatch = `WITH input AS (
		SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[], $4::text[], $5::bytea[], $6::bytea[], $7::integer[])
			WITH ORDINALITY AS i (identifier, by, at, key, digest, text, request, nth)
	), head AS (
		SELECT identifier, version, created_by, created_on, last_modified_on, last_sequence
		FROM heads WHERE kind = 3 AND identifier = ANY (string_to_array(current_setting('oda.held'), ','))
	), known AS (
		SELECT i.nth, i.request, r.*, r.digest <> i.digest AS other
		FROM input i CROSS JOIN LATERAL (
			SELECT identifier, sequence, version, recorded_by, recorded_on, digest
			FROM records WHERE kind = 3 AND identifier = i.identifier AND key = i.key LIMIT 1
		) r
	), placed AS (
		SELECT i.*, row_number() OVER (PARTITION BY i.identifier ORDER BY i.nth) AS place
		FROM input i WHERE i.nth NOT IN (SELECT nth FROM known) AND i.request NOT IN (SELECT request FROM known WHERE other)
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

// columns are the parameters of recordBatch: one element for each record.
type columns struct {
	ids, by  []string
	at       []int64
	keys     []*string
	digests  [][]byte
	texts    [][]byte
	requests []int32
	places   []place // where the answer goes
}

// place is a record within a batch.
type place struct{ request, record int }

func columnsOf(batch []*waiting) *columns {
	var c columns
	for i, w := range batch {
		for j, add := range w.adds {
			c.ids, c.by, c.at = append(c.ids, add.Block), append(c.by, add.By), append(c.at, int64(add.At))
			var key *string
			var digest []byte
			if add.Key != nil {
				key, digest = &add.Key.Value, add.Key.Digest[:]
			}
			c.keys, c.digests = append(c.keys, key), append(c.digests, digest)
			c.texts, c.requests = append(c.texts, add.Record), append(c.requests, int32(i))
			c.places = append(c.places, place{i, j})
		}
	}
	return &c
}

// recordAll stores a batch in one round trip: both statements are sent
// together and are one transaction.
func recordAll(ctx context.Context, conn *pgxpool.Conn, requests []*waiting, answered []error) error {
	c := columnsOf(requests)
	var batch pgx.Batch
	batch.Queue(lockBlocks, c.ids)
	batch.Queue(recordBatch, c.ids, c.by, c.at, c.keys, c.digests, c.texts, c.requests)
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
	reused := make(map[int]error)
	m := &r.Metadata
	_, err = pgx.ForEachRow(rows, []any{&i, &r.Sequence, &m.Version, &m.CreatedBy, &m.CreatedOn, &m.LastModifiedBy, &m.LastModifiedOn, &digest}, func() error {
		at := c.places[i]
		w := requests[at.request]
		w.recorded[at.record], answered[at.request] = r, nil
		if digest == nil {
			return nil
		}
		if err := w.adds[at.record].Key.Check(digest); err != nil {
			reused[at.request] = err
		}
		return nil
	})
	for request, err := range reused {
		answered[request] = err
	}
	// Only the end of the batch says that it is committed.
	if closeErr := results.Close(); err == nil {
		err = closeErr
	}
	return err
}
