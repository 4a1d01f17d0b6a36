package recorder

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"oda"
	"oda/client"
	"oda/internal/skuid"
)

// Options configure a recorder. All are optional.
type Options struct {
	// Dir is the spool: a folder on a local disk. Recorders may share it. The
	// default is DefaultDir.
	Dir string
	// Document has the members of the new ExecutionBlock, as a JSON object. The
	// members that the archive writes (eb_id, metadata and request_responses)
	// are ignored. Attach does not use Document.
	Document []byte
	// Sync says when the spool is forced to disk.
	Sync Sync
	// MaxBytes bounds the records that wait for the archive. The default is 1
	// GiB. A record beyond it is dropped, with an error and a line in the log.
	MaxBytes int64
	// CreateTimeout is how long Open waits for the archive. The default is 2 s.
	CreateTimeout time.Duration
	// Logger receives messages for people. The default is slog.Default().
	Logger *slog.Logger

	announceAfter, lease time.Duration // other than the default only in tests
}

const (
	defaultMaxBytes      = 1 << 30
	defaultCreateTimeout = 2 * time.Second

	syncEvery   = 100 * time.Millisecond
	linger      = 10 * time.Millisecond // how long a batch waits for further records
	reportEvery = 10 * time.Second      // at most, about dropped records
)

// Recorder records into one ExecutionBlock. It is safe for concurrent use.
type Recorder struct {
	session *session
	write   *writer
	ship    *shipper
	log     *slog.Logger

	wake   chan struct{} // there is something to send
	hurry  chan struct{} // a caller waits until everything is sent
	stop   context.CancelFunc
	run    sync.WaitGroup
	closed func(context.Context) error
	ended  chan struct{} // closed when sending has ended

	say     said
	running *running

	mu      sync.Mutex
	at      position      // everything before it is settled
	created bool          // the archive has the block
	moved   chan struct{} // closed when at or created has changed
	refused int64
	damaged int64
}

// Open begins a new ExecutionBlock and returns a recorder for it. If the
// archive does not create the block in time, the block is given an identifier
// here and sent to the archive later. Open therefore fails only if the spool
// cannot be written, or if the archive refuses the document.
func Open(ctx context.Context, archive *client.Client, options Options) (*Recorder, error) {
	document, err := bareDocument(options.Document)
	if err != nil {
		return nil, fmt.Errorf("open an ExecutionBlock: %w", err)
	}
	options = options.withDefaults()
	once, cancel := context.WithTimeout(ctx, options.CreateTimeout)
	defer cancel()
	file := blockFile{Spool: spoolForm, URL: archive.URL(), User: archive.User()}
	created, away := archive.CreateBlock(once, document, rand.Text())
	switch {
	case away == nil:
		file.Block = created.ID
	case errors.Is(ctx.Err(), context.Canceled) || isRefused(away):
		return nil, fmt.Errorf("open an ExecutionBlock: %w", away)
	default:
		file.Create = document
		if file.Block, err = mint(); err != nil {
			return nil, fmt.Errorf("open an ExecutionBlock: %w", err)
		}
		if !client.Denied(away) { // the first try to send the block says that
			options.Logger.Warn("the archive is unavailable; the ExecutionBlock was opened without it and will be sent later",
				"eb_id", file.Block, "archive", archive.Address(), "error", away)
		}
	}
	return start(archive, file, options)
}

// generator makes identifiers without the archive. The recorders of a process
// share it, so that no identifier is made twice.
var generator = sync.OnceValues(func() (*skuid.Generator, error) { return skuid.NewGenerator(skuid.DefaultGenerator()) })

func mint() (string, error) {
	g, err := generator()
	if err != nil {
		return "", err
	}
	return g.Next(oda.ExecutionBlock.Prefix())
}

// Attach returns a recorder for an existing ExecutionBlock. It does not contact
// the archive: if the archive does not know the block, the log says so and the
// records wait.
func Attach(archive *client.Client, block string, options Options) (*Recorder, error) {
	if !oda.ValidID(block) {
		return nil, oda.Errorf(oda.InvalidIdentifier, "%.200q is not a valid identifier of an ExecutionBlock.", block)
	}
	return start(archive, blockFile{Spool: spoolForm, Block: block, URL: archive.URL(), User: archive.User()}, options.withDefaults())
}

func (o Options) withDefaults() Options {
	if o.MaxBytes <= 0 {
		o.MaxBytes = defaultMaxBytes
	}
	if o.CreateTimeout <= 0 {
		o.CreateTimeout = defaultCreateTimeout
	}
	if o.announceAfter <= 0 {
		o.announceAfter, o.lease = defaultAnnounceAfter, oda.DefaultLease
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return o
}

// start makes a session and its recorder.
func start(archive *client.Client, file blockFile, o Options) (*Recorder, error) {
	if o.Dir == "" {
		var err error
		if o.Dir, err = DefaultDir(); err != nil {
			return nil, err
		}
	}
	s, err := createSession(o.Dir, file)
	if err != nil {
		return nil, err
	}
	w, err := newWriter(s, o.Sync, o.MaxBytes)
	if err != nil {
		return nil, errors.Join(err, s.remove())
	}
	r := &Recorder{
		session: s, write: w, log: o.Logger.With("eb_id", file.Block),
		wake: make(chan struct{}, 1), hurry: make(chan struct{}, 1),
		running: newRunning(o),
		at:      w.end(), moved: make(chan struct{}), ended: make(chan struct{}),
	}
	r.ship = newShipper(s, archive, o.Logger, r.advanced)
	r.ship.lag = r.Lag
	r.created = r.ship.created
	ctx, stop := context.WithCancel(context.Background())
	r.stop = stop
	r.closed = onceWith(r.close)
	r.run.Go(func() { r.shipping(ctx) })
	r.run.Go(func() { r.syncing(ctx) })
	r.run.Go(func() { r.announcing(ctx) })
	return r, nil
}

// onceWith returns a function whose first call does the work; later calls wait
// for it and return its result.
func onceWith(work func(context.Context) error) func(context.Context) error {
	var once sync.Once
	var err error
	return func(ctx context.Context) error {
		once.Do(func() { err = work(ctx) })
		return err
	}
}

// BlockID returns the identifier of the ExecutionBlock.
func (r *Recorder) BlockID() string { return r.session.block.Block }

// Record records a call with its response. When it returns, the record is in
// the spool. It fails if the record cannot be written as JSON, if it was
// dropped (ErrDropped), if SyncAlways could not force it to disk
// (ErrNotSynced), and after Close (ErrClosed). An error does not concern the
// telescope, and a script should go on.
func (r *Recorder) Record(call Call) error {
	text, err := call.encode()
	if err != nil {
		return err
	}
	return r.append(recordLine, text)
}

// RecordJSON is like Record, for a record that is already JSON and may have any
// members. White space between its parts is removed.
func (r *Recorder) RecordJSON(record []byte) error {
	text, err := oneLine(record)
	if err != nil {
		return err
	}
	return r.append(recordLine, text)
}

func (r *Recorder) append(sort string, text []byte) error { return r.appendAs(0, sort, text) }

// appendAs is append with a number that was taken before, or the next if it is 0.
func (r *Recorder) appendAs(number int64, sort string, text []byte) error {
	err := r.write.append(number, sort, text)
	signal(r.wake) // even after a failure: shipping makes room
	return err
}

// Lag describes the records that wait for the archive. A status counts as one.
type Lag struct {
	Records int64
	Bytes   int64
	Age     time.Duration // since the oldest of them was recorded
}

// Lag returns what the archive has not acknowledged yet.
func (r *Recorder) Lag() Lag {
	waiting, age := r.write.lag()
	return Lag{waiting.records, waiting.bytes, age}
}

// Dropped returns the number of records that were dropped.
func (r *Recorder) Dropped() int64 {
	r.write.mu.Lock()
	defer r.write.mu.Unlock()
	return r.write.dropped
}

// Refused returns the number of records that the archive has refused. They are
// kept in the file refused.log of the session.
func (r *Recorder) Refused() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.refused
}

// Flush waits until the archive has acknowledged everything recorded so far, or
// until the context ends. If records were put aside instead, the error has
// ErrPutAside in its chain.
func (r *Recorder) Flush(ctx context.Context) error {
	if err := r.wait(ctx); err != nil {
		return err
	}
	return r.putAside()
}

// putAside returns an error if records can no longer reach the archive.
func (r *Recorder) putAside() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.refused+r.damaged == 0 {
		return nil
	}
	return fmt.Errorf("%w: %d were refused and %d are damaged; they are kept in %s", ErrPutAside, r.refused, r.damaged, r.session.dir)
}

// wait waits until everything recorded so far is settled.
func (r *Recorder) wait(ctx context.Context) error {
	target := r.write.end()
	signal(r.hurry)
	for {
		there, moved := r.reached(target)
		if there {
			return nil
		}
		select {
		case <-moved:
		case <-r.ended:
			return fmt.Errorf("wait for the archive: %w", ErrClosed)
		case <-ctx.Done():
			return fmt.Errorf("wait for the archive: %w", ctx.Err())
		}
	}
}

// reached reports whether everything before a position is settled. If not, the
// channel is closed when that may have changed.
func (r *Recorder) reached(target position) (bool, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	past := r.at.segment > target.segment || r.at.segment == target.segment && r.at.offset >= target.offset
	return r.created && past, r.moved
}

// Close stops recording and sends what is left until the context ends. Records
// that are not acknowledged by then stay in the spool: the error says so, and
// Resume or "oda record drain" sends them. Records that were put aside stay
// there too (ErrPutAside). A call that has begun and not ended is not recorded, and the
// archive hears no more of it. Later calls return the result of the first.
func (r *Recorder) Close(ctx context.Context) error { return r.closed(ctx) }

func (r *Recorder) close(ctx context.Context) error {
	r.write.close()
	waited := r.wait(ctx)
	r.stop()
	r.run.Wait()
	close(r.ended)
	err := r.write.finish()
	defer r.session.release()
	if there, _ := r.reached(r.write.end()); !there {
		return errors.Join(fmt.Errorf("close the recorder: %w; %d records stay in the spool %s and can be sent with \"oda record drain\"",
			waited, r.Lag().Records, r.session.dir), err)
	}
	if r.session.keeps() {
		return errors.Join(r.putAside(), err)
	}
	return errors.Join(err, r.session.remove())
}

// signal wakes a goroutine, which need not be waiting yet.
func signal(to chan<- struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}
