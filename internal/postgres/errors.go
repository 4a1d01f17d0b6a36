package postgres

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"oda"
)

// Codes of PostgreSQL that have a meaning here.
const (
	codeUnique        = "23505"
	codeSerialization = "40001"
	codeDeadlock      = "40P01"
	codeReadOnly      = "25006" // the server became a standby
	codeCanceled      = "57014"
	classConnection   = "08"
	classResources    = "53" // disk full, out of memory, too many connections
	classOperator     = "57" // shutting down, starting up
	classSystem       = "58" // an I/O error
)

// tries bounds how often a statement is run that was certainly not committed.
const tries = 4

// again runs work and repeats it while it fails in a way that certainly left
// nothing behind: the server rolled it back because of a conflict with
// others, or never heard of it. A connection that breaks after that proves
// nothing, so it is not repeated.
func (s *Store) again(ctx context.Context, work func(context.Context) error) error {
	for try := 1; ; try++ {
		err := work(ctx)
		if err == nil || try == tries || !nothingHappened(err) || ctx.Err() != nil {
			return err
		}
		pause := time.Duration(try) * time.Duration(5+rand.IntN(20)) * time.Millisecond
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return err
		}
	}
}

func nothingHappened(err error) bool {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code == codeSerialization || e.Code == codeDeadlock
	}
	if errors.Is(err, errNotBegun) {
		return true
	}
	// The driver also calls it a closed connection, and safe, when a connection
	// breaks while the answer to a commit or a batch is awaited.
	return pgconn.SafeToRetry(err) && !errors.Is(err, pgconn.ErrConnClosed)
}

// errPool says that the pool is exhausted.
var errPool = errors.New("no connection of the pool became free in time")

// storageError turns an error of PostgreSQL into one for the caller.
func (s *Store) storageError(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*oda.Error](err); ok || errors.Is(err, oda.ErrTaken) {
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if errors.Is(err, errPool) {
		return oda.Errorf(oda.Overloaded, "All connections to the database are in use. Nothing was stored. Try again shortly.").Because(err)
	}
	e, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return unavailable(err)
	}
	switch {
	case e.Code == codeReadOnly:
		// These connections lead to a server that gave its role away.
		s.pool.Reset()
		return unavailable(err)
	case e.Code == codeSerialization, e.Code == codeDeadlock:
		return oda.Errorf(oda.Overloaded, "Too many changes of the same entities are going on. Nothing was stored. Try again shortly.").Because(err)
	case e.Code == codeCanceled, strings.HasPrefix(e.Code, classConnection), strings.HasPrefix(e.Code, classResources),
		strings.HasPrefix(e.Code, classOperator), strings.HasPrefix(e.Code, classSystem):
		return unavailable(err)
	}
	return oda.Errorf(oda.Internal, "The archive could not do this because of a fault of its own. Tell the operator.").Because(err)
}

func unavailable(err error) error {
	return oda.Errorf(oda.Unavailable, "The archive's database does not answer as it should. "+
		"It is not certain whether a write that gets this answer was stored: read before you send it again, or send it again with "+
		"the same Idempotency-Key.").Because(err)
}
