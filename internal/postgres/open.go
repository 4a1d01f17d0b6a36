package postgres

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgxpool"

	"oda"
	"oda/internal/engine"
	"oda/internal/engine/migrate"
)

// Time-outs.
const (
	connectTime = 3 * time.Second  // to connect to one server
	acquireTime = 5 * time.Second  // for a free connection in the pool
	answerTime  = 10 * time.Second // for an answer of the server; writeTime is longer for large writes
	openTime    = 60 * time.Second // to reach the database at the start
)

// poolSize is the number of connections unless the DSN names another. It leaves
// room for reads while records are written.
const poolSize = 16

// listingShare limits the connections that listings without a limit may take: one
// of four, and at least one. The others are left to shorter requests.
const listingShare = 4

// listingGrace is how long a request waits for a connection before a listing is
// ended to free one.
const listingGrace = time.Second

// Store is the engine on PostgreSQL. It implements oda.Engine.
type Store struct {
	pool  *pgxpool.Pool
	hosts *hosts
	log   *slog.Logger
	stop  context.CancelFunc
	done  sync.WaitGroup // the gatherer, the numbering and the watch over the schema

	unwatch  context.CancelFunc
	outdated atomic.Pointer[oda.Error]   // why this process may not write any more; nil if it may
	lagging  atomic.Pointer[sequenceLag] // of the sequence of numbers; nil if it does not lag

	updates, creations *together[*store]
	statuses           *together[*saying]

	turns    turns
	held     chan struct{}    // places for stores that wait for a held head
	listings *engine.Listings // those without a limit
	health   *engine.Health
	lookedAt atomic.Pointer[runningPlace] // the end of the last portion of running calls; nil: the beginning

	queue    *engine.Queue[*waiting] // of records, before the gatherer
	gatherer *gatherer
	hints    hints // about the index of days

	numbering *numbering // of changes
	commits   *engine.Commits
}

// Open connects to the database that the DSN names and brings its schema up to
// date, however long that takes. It calls tell with its progress. Its errors are
// single sentences for the operator. They never repeat the DSN, which may hold a
// password.
func Open(ctx context.Context, dsn string, log *slog.Logger, tell ...func(migrate.Status)) (*Store, error) {
	config, steps, err := configAndSteps(dsn)
	if err != nil {
		return nil, err
	}
	return open(ctx, config, len(steps), log, func(pool *pgxpool.Pool) error { return prepare(ctx, pool, steps, log, tell...) })
}

// OpenExisting is like Open, but neither makes an archive nor upgrades its schema.
func OpenExisting(ctx context.Context, dsn string, log *slog.Logger) (*Store, error) {
	config, steps, err := configAndSteps(dsn)
	if err != nil {
		return nil, err
	}
	return open(ctx, config, len(steps), log, func(pool *pgxpool.Pool) error { return upToDate(ctx, pool) })
}

// configAndSteps returns what is needed to open a database: how to connect to it, and the steps
// of its schema.
func configAndSteps(dsn string) (*pgxpool.Config, []step, error) {
	config, err := parse(dsn)
	if err != nil {
		return nil, nil, err
	}
	steps, err := schemaSteps()
	return config, steps, err
}

// parse parses a DSN.
func parse(dsn string) (*pgxpool.Config, error) {
	// Otherwise a part of the password would be taken for the host, which errors name.
	_, rest, _ := strings.Cut(dsn, "://")
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		rest = rest[:end]
	}
	if strings.Count(rest, "@") > 1 {
		return nil, errors.New("the address of the PostgreSQL database is not valid (--db): write @ in a user or a password as %40")
	}
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, fmt.Errorf("the address of the PostgreSQL database is not valid (--db): %w", hideDSN(err))
	}
	configure(config)
	if !strings.Contains(dsn, "pool_max_conns") {
		config.MaxConns = poolSize
	}
	return config, nil
}

// Check returns what is wrong with a DSN, without connecting.
func Check(dsn string) error {
	config, err := parse(dsn)
	if err != nil {
		return err
	}
	return newHosts(config).readPassword(config.ConnConfig)
}

// open prepares a database and opens the archive in it. Steps is how many its schema has
// then.
func open(ctx context.Context, config *pgxpool.Config, steps int, log *slog.Logger, prepare func(*pgxpool.Pool) error) (*Store, error) {
	hosts := newHosts(config)
	if parameters := config.ConnConfig.RuntimeParams; parameters["application_name"] == "" {
		parameters["application_name"] = sessionName(steps)
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("cannot use the PostgreSQL database: %w", hideDSN(err))
	}
	err = checkEncoding(ctx, pool)
	if err == nil {
		err = prepare(pool)
	}
	if err != nil {
		pool.Close()
		where := fmt.Sprintf("%s on %s", config.ConnConfig.Database, config.ConnConfig.Host)
		return nil, fmt.Errorf("cannot open the archive in the PostgreSQL database %s: %w", where, hideDSN(err))
	}
	s := &Store{
		pool: pool, hosts: hosts, log: log, commits: engine.NewCommits(), queue: engine.NewQueue[*waiting](queueLength),
		listings: engine.NewListings(max(1, int(config.MaxConns)/listingShare)),
		held:     make(chan struct{}, max(1, int(config.MaxConns)/heldShare)),
	}
	s.updates, s.creations = &together[*store]{Store: s, run: s.updateTogether}, &together[*store]{Store: s, run: s.createTogether}
	s.statuses = &together[*saying]{Store: s, run: s.sayTogether}
	s.health = engine.NewHealth(log, s.tryWrite)
	if err := s.lookAtNumbers(ctx); err != nil {
		pool.Close()
		return nil, fmt.Errorf("cannot read the log of changes in the PostgreSQL database: %w", hideDSN(err))
	}
	background, stop := context.WithCancel(context.Background())
	s.stop = stop
	s.gatherer = &gatherer{
		queue: s.queue.Items(), busy: make(map[string]bool), wake: make(chan struct{}, 1),
		send:    func(batch []*waiting) []*waiting { return s.sendBatch(background, batch) },
		sendOne: func(block []*waiting) { s.sendBlock(background, block) },
	}
	s.done.Go(s.gatherer.run)
	watching, unwatch := context.WithCancel(background)
	s.unwatch = unwatch
	s.done.Go(func() { s.watchSchema(watching, steps) })
	s.numbering = newNumbering(s)
	s.done.Go(func() { s.numbering.run(background) })
	hosts.open()
	return s, nil
}

// checkEncoding returns an error unless the database takes all characters.
func checkEncoding(ctx context.Context, pool *pgxpool.Pool) error {
	ctx, cancel := context.WithTimeout(ctx, openTime)
	defer cancel()
	var encoding string
	err := pool.QueryRow(ctx, "SELECT current_setting('server_encoding')").Scan(&encoding)
	if err == nil && encoding != "UTF8" {
		err = fmt.Errorf("its encoding is %s, and oda needs UTF8; make another database with 'createdb -T template0 -E UTF8', and name it with --db", encoding)
	}
	return err
}

// sessionSettings are the settings of new connections, unless the DSN has others.
// Every statement here is written for an index. PostgreSQL keeps the plan of a
// prepared statement. A plan that was made while a table was small would read all
// of it, and would still do so when the table has grown. So plans that read or hash
// whole tables are discouraged, and one plan serves all values.
var sessionSettings = map[string]string{
	"plan_cache_mode":   "force_generic_plan",
	"enable_seqscan":    "off",
	"enable_bitmapscan": "off",
	"enable_hashjoin":   "off",
	"enable_mergejoin":  "off",
	"jit":               "off",

	// See replication.go.
	"client_connection_check_interval": "1s",

	// Somebody may lock a whole table. PostgreSQL waits for that before it runs a
	// statement, and so before the statement can bound the wait itself (held.go).
	"lock_timeout": tablePatience.String(),
}

// readBuffer holds what comes from the server. The driver's own buffer holds 8 KiB, so
// an export would make a system call for each document or two.
const readBuffer = 64 << 10

// configure sets what the DSN leaves open, and what must hold in any case.
func configure(config *pgxpool.Config) {
	c := config.ConnConfig
	if c.ConnectTimeout == 0 {
		c.ConnectTimeout = connectTime
	}
	for name, value := range sessionSettings {
		if _, given := c.RuntimeParams[name]; !given {
			c.RuntimeParams[name] = value
		}
	}
	c.RuntimeParams["client_encoding"] = "UTF8" // whatever the DSN, the role or the database says
	watchReplication(&c.Config)
	c.BuildFrontend = func(r io.Reader, w io.Writer) *pgproto3.Frontend {
		return pgproto3.NewFrontend(bufio.NewReaderSize(r, readBuffer), w)
	}
	config.HealthCheckPeriod = 5 * time.Second
	config.MaxConnIdleTime = 5 * time.Minute
}

// hideDSN removes the connection string, which the driver repeats in its errors,
// and puts the error on one line.
func hideDSN(err error) error {
	if parse, ok := errors.AsType[*pgconn.ParseConfigError](err); ok {
		if err = parse.Unwrap(); err == nil {
			return errors.New("it is not a valid connection string")
		}
	}
	if text := err.Error(); strings.Contains(text, "\n") {
		return errors.New(strings.Join(strings.Fields(text), " "))
	}
	return err
}

// Close waits for running records and closes the connections.
func (s *Store) Close() error {
	if !s.queue.Close() {
		return nil
	}
	s.numbering.close()
	s.unwatch()
	s.done.Wait()
	s.stop()
	s.health.Close()
	s.pool.Close()
	return nil
}
