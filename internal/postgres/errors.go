package postgres

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"oda"
)

// Codes of PostgreSQL that this package treats specially.
const (
	codeNull          = "23502"
	codeUnique        = "23505"
	codeSerialization = "40001"
	codeDeadlock      = "40P01"
	codeDiskFull      = "53100"
	codePrivilege     = "42501"
	codeNoTable       = "42P01"
	codeNoColumn      = "42703"
	codeReadOnly      = "25006" // the server became a standby
	codeNotLogged     = "0A000" // the same, to who reads a table that is not logged
	codeHeld          = "55P03" // a lock was not free within lock_timeout
	codeCanceled      = "57014"
	classConnection   = "08"
	classData         = "22" // a value that cannot be stored
	classResources    = "53" // disk full, out of memory, too many connections
	classOperator     = "57" // shutting down, starting up
	classSystem       = "58" // an I/O error
)

// tries is how often a statement is run if it was certainly not committed.
const tries = 4

// again runs work, and repeats it if it certainly changed nothing: the server
// rolled it back because of a conflict with others, or never saw it. If the
// connection broke later, the outcome is unknown, so it is not repeated.
func (s *Store) again(ctx context.Context, work func(context.Context) error) error {
	for try := 1; ; try++ {
		err := work(ctx)
		if err == nil || try == tries || !worthAnotherTry(err) || ctx.Err() != nil {
			return err
		}
		pause := time.Duration(try) * time.Duration(5+rand.IntN(20)) * time.Millisecond // #nosec G404 -- spreads retries
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return err
		}
	}
}

// reading runs work that only reads, and repeats it if that may help.
func (s *Store) reading(ctx context.Context, work func(context.Context, *pgxpool.Conn) error) error {
	return s.again(ctx, func(ctx context.Context) error { return s.with(ctx, work) })
}

func worthAnotherTry(err error) bool {
	if e := rolledBack(err); e != nil {
		return e.Code == codeSerialization || e.Code == codeDeadlock
	}
	return errors.Is(err, errNotBegun) || notSent(err)
}

// rolledBack returns the error with which the server rolled a transaction back, nil
// if err is another error. An error that ends the session proves nothing, since it
// may come just after the commit. Nor does one of class 08, which a connection
// pooler makes up when it loses the server.
func rolledBack(err error) *pgconn.PgError {
	e, ok := errors.AsType[*pgconn.PgError](err)
	if !ok || e.SeverityUnlocalized != "ERROR" || strings.HasPrefix(e.Code, classConnection) {
		return nil
	}
	return e
}

// notSent reports whether the server never saw a statement. If a connection breaks
// before the answer to a commit or a batch, the driver also calls that a closed
// connection and safe to retry, which it is not.
func notSent(err error) bool {
	return pgconn.SafeToRetry(err) && !errors.Is(err, pgconn.ErrConnClosed)
}

// Reasons for which a write is certainly not stored.
var (
	errPool         = errors.New("no connection of the pool became free in time")
	errNoConnection = errors.New("no connection was made")
	errNotBegun     = errors.New("no transaction was begun")
	errNotCommitted = errors.New("the transaction failed before its commit")
	errNotTried     = errors.New("what the write depends on could not be read")
	errHeld         = errors.New("too many entities are locked by others")
)

// notStored reports whether a write that failed with err is certainly not stored.
func notStored(err error) bool {
	for _, reason := range []error{errPool, errNoConnection, errNotBegun, errNotCommitted, errNotTried, errHeld, pgx.ErrTxCommitRollback} {
		if errors.Is(err, reason) {
			return true
		}
	}
	return rolledBack(err) != nil || notSent(err)
}

// writeError turns an error of a write into one for the caller. It says whether
// anything was stored, if that is known.
func (s *Store) writeError(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case isAnswer(err):
		return oda.NothingStored(err)
	case notStored(err):
		if isStrange(rolledBack(err)) {
			s.health.Suspect("the database refuses writes", err)
		}
		return s.problem(ctx, err, " Nothing was stored by this request.")
	case errors.Is(ctx.Err(), context.Canceled):
		return ctx.Err() // the caller has gone
	}
	s.health.Suspect("the database does not confirm writes", err)
	return oda.Uncertain(err)
}

// isStrange reports whether the database has rolled a write back for a reason that is
// not known: neither the request nor others at work at the same time, nor a refusal.
func isStrange(e *pgconn.PgError) bool {
	if e == nil || strings.HasPrefix(e.Code, classData) {
		return false
	}
	switch e.Code {
	case codeSerialization, codeDeadlock, codeHeld, codeCanceled, codeUnique, codeReadOnly:
		return false
	}
	return refusal(e) == "" && !isOldNumber(e)
}

// storageError turns an error of a read into one for the caller.
func (s *Store) storageError(ctx context.Context, err error) error {
	if err == nil || isAnswer(err) {
		return err
	}
	return s.problem(ctx, err, "")
}

// unreadable reports whether a row has a value that cannot be read, such as an
// array with a null element.
func unreadable(err error) bool {
	_, ok := errors.AsType[pgx.ScanArgError](err)
	return ok
}

// isAnswer reports whether an error is meant for the caller as it is.
func isAnswer(err error) bool {
	_, ok := errors.AsType[*oda.Error](err)
	return ok || errors.Is(err, oda.ErrTaken)
}

// problem returns an error for the caller that says what is wrong with the
// database. Outcome says what that means for the request.
func (s *Store) problem(ctx context.Context, err error, outcome string) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if unreadable(err) {
		return oda.Errorf(oda.DamagedText, "The archive's database has a row that cannot be read.%s "+oda.FindDamage, outcome).Because(err)
	}
	if errors.Is(err, errPool) {
		return oda.Errorf(oda.Overloaded, "All connections to the database are in use.%s Try again shortly.", outcome).Because(err)
	}
	e, ok := errors.AsType[*pgconn.PgError](err)
	canceled := ok && e.Code == codeCanceled && outcome == "" // reads wait for locked tables only
	if isHeld(err) && !canceled || errors.Is(err, errHeld) {
		return oda.Errorf(oda.Overloaded, "Another database session has locked what this request needs.%s Try again shortly.", outcome).Because(err)
	}
	unavailable := oda.Errorf(oda.Unavailable, "The archive's database is unavailable.%s Try again shortly.", outcome).Because(err)
	if !ok {
		return unavailable
	}
	if isOldNumber(e) {
		return s.oldNumber(ctx, err)
	}
	if reason := refusal(e); reason != "" {
		s.health.Refused(reason, err)
		return unavailable
	}
	switch {
	case e.Code == codeReadOnly, e.Code == codeNotLogged:
		// These connections lead to a server that is no longer the primary.
		s.reconnect()
		return unavailable
	case e.Code == codeSerialization, e.Code == codeDeadlock:
		return oda.Errorf(oda.Overloaded, "Too many requests are changing the same entities.%s Try again shortly.", outcome).Because(err)
	case e.Code == codeCanceled, strings.HasPrefix(e.Code, classConnection), strings.HasPrefix(e.Code, classResources),
		strings.HasPrefix(e.Code, classOperator):
		return unavailable
	}
	return oda.Errorf(oda.Internal, "Internal error.%s Give the request ID to the operator.", outcome).Because(err)
}
