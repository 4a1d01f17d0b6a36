package peers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"sync"
	"time"

	"zombiezen.com/go/sqlite"

	"oda/bench/measure"
	engine "oda/internal/sqlite"
)

// RawSQLite does the statements of the embedded engine on a file of its own
// with the engine's tables and settings, straight from Go: no HTTP, no JSON, no
// rules. It is the limit of what the engine can do. Its methods are for one
// goroutine at a time.
type RawSQLite struct {
	writer    *rawConn
	readers   []*rawConn
	documents int
	text      []byte // of a document
	position  int64
	instant   int64
	records   [16][]byte
	random    *rand.Rand
}

// rawBlock is the one block of the archive, rawDocument its i-th document.
const rawBlock = "eb-raw-000000000"

func rawDocument(i int) string { return fmt.Sprintf("sbd-raw-%09d", i) }

// The kinds, as the engine numbers them.
const (
	rawSBDefinition   int64 = 1
	rawExecutionBlock int64 = 3
)

const rawUser = "DefaultUser"

// RawSQLite makes an archive with so many documents of a size, and a block to
// record into. Close ends it; the file stays in the folder of the lab.
func (l *Lab) RawSQLite(ctx context.Context, documents, size int) (*RawSQLite, error) {
	path := sqlitePath(l.SQLite("raw"))
	// The engine makes the tables, so they are the engine's.
	store, err := engine.Open(ctx, path, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	if err := store.Close(); err != nil {
		return nil, fmt.Errorf("make the tables of an archive: %w", err)
	}
	r := &RawSQLite{
		documents: documents, text: Document(size, rawDocument(0)),
		instant: time.Now().UnixMicro(), random: rand.New(rand.NewPCG(7, 7)),
	}
	for i := range r.records {
		r.records[i] = Record(i)
	}
	if r.writer, err = openRaw(path); err != nil {
		return nil, fmt.Errorf("open the raw archive: %w", err)
	}
	for range runtime.GOMAXPROCS(0) {
		reader, err := openRaw(path)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("open the raw archive to read: %w", err), r.Close())
		}
		r.readers = append(r.readers, reader)
	}
	if err := r.fill(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("fill the raw archive: %w", err), r.Close())
	}
	return r, nil
}

// Close closes the file.
func (r *RawSQLite) Close() error {
	errs := []error{r.writer.close()}
	for _, reader := range r.readers {
		errs = append(errs, reader.close())
	}
	return errors.Join(errs...)
}

// fill stores the block and the documents, many in a transaction.
func (r *RawSQLite) fill(ctx context.Context) error {
	const together = 512
	for first := 0; first < r.documents; first += together {
		err := r.transaction(func() error {
			if first == 0 {
				if err := r.create(rawExecutionBlock, rawBlock, EmptyBlock(rawBlock)); err != nil {
					return err
				}
			}
			for i := first; i < min(first+together, r.documents); i++ {
				if err := r.create(rawSBDefinition, rawDocument(i), r.text); err != nil {
					return err
				}
			}
			return ctx.Err()
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// transaction does something and commits it with the state, as every commit
// of the engine does.
func (r *RawSQLite) transaction(do func() error) error {
	if err := r.writer.exec("BEGIN IMMEDIATE", nil); err != nil {
		return err
	}
	err := do()
	if err == nil {
		err = r.writer.exec(rawUpdateState, nil, r.position, int64(r.documents), int64(0), int64(1), int64(0))
	}
	if err == nil {
		err = r.writer.exec("COMMIT", nil)
	}
	if err != nil && !r.writer.AutocommitEnabled() {
		return errors.Join(err, r.writer.exec("ROLLBACK", nil))
	}
	return err
}

// rawHead is what the head of an entity says.
type rawHead struct{ entity, version, lastSequence, position int64 }

func (r *RawSQLite) head(kind int64, id string) (h rawHead, err error) {
	err = r.writer.exec(rawSelectHead, func(s *sqlite.Stmt) {
		h = rawHead{s.ColumnInt64(0), s.ColumnInt64(1), s.ColumnInt64(6), s.ColumnInt64(7)}
		_, _ = s.ColumnText(2), s.ColumnText(4)
	}, kind, id)
	if err == nil && h.entity == 0 {
		err = fmt.Errorf("%s is not there", id)
	}
	return h, err
}

// create stores the first version of an entity.
func (r *RawSQLite) create(kind int64, id string, text []byte) error {
	r.instant++
	if err := r.writer.exec(rawInsertHead, nil, kind, id, int64(1), rawUser, r.instant, rawUser, r.instant, nil, nil); err != nil {
		return err
	}
	return r.version(&rawHead{entity: r.writer.LastInsertRowID()}, text)
}

// version stores the next version of an entity and moves its head.
func (r *RawSQLite) version(h *rawHead, text []byte) error {
	r.instant++
	r.position++
	h.version, h.position = h.version+1, r.position
	err := r.writer.exec(rawInsertVersion, nil, h.position, h.entity, h.version, rawUser, r.instant, h.lastSequence, h.lastSequence, nil, []byte{}, text)
	if err != nil {
		return err
	}
	return r.moveHead(h)
}

func (r *RawSQLite) moveHead(h *rawHead) error {
	return r.writer.exec(rawUpdateHead, nil, h.version, rawUser, r.instant, h.lastSequence, h.position, h.entity)
}

// Record adds records to the block, so many in a transaction: 1 is a commit for
// each, more is what the engine does when many come at once. Each record of a
// transaction counts as one operation that took as long as the transaction.
func (r *RawSQLite) Record(ctx context.Context, together int, length time.Duration) (measure.Sample, error) {
	return r.repeat(ctx, together, length, func() error {
		h, err := r.head(rawExecutionBlock, rawBlock)
		if err != nil {
			return err
		}
		for range together {
			r.instant++
			r.position++
			h.lastSequence++
			text := r.records[h.lastSequence%int64(len(r.records))]
			err := r.writer.exec(rawInsertRecord, nil, r.position, h.entity, h.lastSequence, h.version, rawUser, r.instant, nil, nil, text)
			if err != nil {
				return err
			}
		}
		return r.moveHead(&h)
	})
}

// Update stores documents again, so many in a transaction.
func (r *RawSQLite) Update(ctx context.Context, together int, length time.Duration) (measure.Sample, error) {
	return r.repeat(ctx, together, length, func() error {
		for range together {
			h, err := r.head(rawSBDefinition, rawDocument(r.random.IntN(r.documents)))
			if err != nil {
				return err
			}
			if err := r.version(&h, r.text); err != nil {
				return err
			}
		}
		return nil
	})
}

// repeat does transactions until the time is up.
func (r *RawSQLite) repeat(ctx context.Context, together int, length time.Duration, do func() error) (measure.Sample, error) {
	tally := measure.NewTally()
	start := time.Now()
	for begin := start; begin.Sub(start) < length && ctx.Err() == nil; {
		if err := r.transaction(do); err != nil {
			return measure.Sample{}, fmt.Errorf("write to the raw archive: %w", err)
		}
		now := time.Now()
		for range together {
			tally.Done(now.Sub(begin), 0)
		}
		begin = now
	}
	return measure.Total(time.Since(start), tally), ctx.Err()
}

// Get reads documents at random by identifier, from as many goroutines as
// there are processors, each with a connection of its own.
func (r *RawSQLite) Get(ctx context.Context, length time.Duration) (measure.Sample, error) {
	tallies := make([]*measure.Tally, len(r.readers))
	start := time.Now()
	var all sync.WaitGroup
	for i, reader := range r.readers {
		tallies[i] = measure.NewTally()
		random := rand.New(rand.NewPCG(8, uint64(i)))
		all.Go(func() {
			for begin := start; begin.Sub(start) < length && ctx.Err() == nil; {
				n, err := readRaw(reader, rawDocument(random.IntN(r.documents)))
				now := time.Now()
				if err != nil {
					tallies[i].Fail(err)
				} else {
					tallies[i].Done(now.Sub(begin), n)
				}
				begin = now
			}
		})
	}
	all.Wait()
	return measure.Total(time.Since(start), tallies...), ctx.Err()
}

// readRaw reads a document and gives its length.
func readRaw(c *rawConn, id string) (n int64, err error) {
	err = c.exec(rawSelectCurrent, func(s *sqlite.Stmt) {
		_, _ = s.ColumnText(2), s.ColumnText(4)
		text := make([]byte, s.ColumnLen(10))
		n = int64(s.ColumnBytes(10, text))
	}, rawSBDefinition, id)
	if err == nil && n == 0 {
		err = fmt.Errorf("%s is not there", id)
	}
	return n, err
}
