package postgres

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/pgxpool"
)

// A commit waits for the synchronous standby, if there is one, and nobody sees what
// it wrote before that. A cancel request ends the wait: PostgreSQL then makes the
// transaction visible and answers with success and a warning, although it is on one
// disk only and a failover loses it. So no cancel request is ever sent while a
// connection writes, and success with a warning does not count as success.
//
// If the caller of a write goes away, its connection is closed. The server notices
// that while it works or waits for a lock (client_connection_check_interval), but
// not while it commits.

// codeWarning is the code of that warning. It is the general one, and the text is
// translated, so any plain warning during an operation counts. No statement here
// causes another one.
const codeWarning = "01000"

// errUnconfirmed says that a commit was not confirmed by a standby.
var errUnconfirmed = errors.New("the wait for the synchronous standby was ended")

// link is a connection to the server that knows what it is used for.
type link struct {
	net.Conn
	writing atomic.Bool
	warned  atomic.Bool
	left    atomic.Bool // by a caller, while it was writing
}

// linkOf returns the link of a connection.
func linkOf(conn *pgconn.PgConn) *link {
	outer := conn.Conn()
	if encrypted, ok := outer.(*tls.Conn); ok {
		outer = encrypted.NetConn()
	}
	return outer.(*link)
}

// RemoteAddr returns the address to which the driver sends a cancel request, which
// it does whenever a connection breaks. While the connection writes, that is an
// address that leads nowhere.
func (l *link) RemoteAddr() net.Addr {
	if l.writing.Load() {
		return &net.TCPAddr{IP: net.IPv4zero}
	}
	return l.Conn.RemoteAddr()
}

// watchReplication makes the connections of a pool links. TLS runs over the link,
// not the other way round, because the driver must see it for channel binding.
func watchReplication(c *pgconn.Config) {
	dial := c.DialFunc
	c.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &link{Conn: conn}, nil
	}
	c.OnNotice = func(conn *pgconn.PgConn, notice *pgconn.Notice) {
		if notice.SeverityUnlocalized == "WARNING" && notice.Code == codeWarning {
			linkOf(conn).warned.Store(true)
		}
	}
	c.BuildContextWatcherHandler = func(conn *pgconn.PgConn) ctxwatch.Handler {
		cancel := pgconn.CancelRequestContextWatcherHandler{Conn: conn, DeadlineDelay: 2 * time.Second}
		return &leaving{reading: &cancel, link: linkOf(conn)}
	}
}

// leaving handles callers that go away: it tells the server to stop a read, or
// closes a connection that writes.
type leaving struct {
	reading *pgconn.CancelRequestContextWatcherHandler
	link    *link
}

// HandleCancel implements ctxwatch.Handler.
func (l *leaving) HandleCancel(ctx context.Context) {
	if l.link.writing.Load() {
		l.link.left.Store(true)
		_ = l.link.Close()
		return
	}
	l.reading.HandleCancel(ctx)
}

// HandleUnwatchAfterCancel implements ctxwatch.Handler.
func (l *leaving) HandleUnwatchAfterCancel() {
	if !l.link.left.Load() {
		l.reading.HandleUnwatchAfterCancel()
	}
}

// confirmLock keeps sessions from piling up while the standby is away: "oda" and a 2.
const confirmLock = 0x6f646102

// confirm writes nothing that anyone reads. But its commit waits for the disk and for
// the synchronous standby, which then have everything before it.
func (s *Store) confirm(ctx context.Context) error {
	const emit = "SELECT pg_logical_emit_message(true, 'oda', '')::text FROM pg_advisory_xact_lock($1)"
	return s.writeUnnumbered(ctx, answerTime, func(ctx context.Context, conn *pgxpool.Conn) error {
		return patiently(ctx, conn.Conn(), heldPatience, emit, []any{int64(confirmLock)}, []any{new(string)}, func() error { return nil })
	})
}

// write is with, for work that writes.
func (s *Store) write(ctx context.Context, work func(context.Context, *pgxpool.Conn) error) error {
	return s.writeWithin(ctx, answerTime, work)
}

// writeWithin is within, for work that writes.
func (s *Store) writeWithin(ctx context.Context, limit time.Duration, work func(context.Context, *pgxpool.Conn) error) error {
	if lag := s.lagging.Load(); lag != nil {
		return lag.problem(" Nothing was stored by this request.")
	}
	return s.writeUnnumbered(ctx, limit, work)
}

// writeUnnumbered is writeWithin for work that takes no number, which goes on while the
// sequence of numbers lags.
func (s *Store) writeUnnumbered(ctx context.Context, limit time.Duration, work func(context.Context, *pgxpool.Conn) error) error {
	if outdated := s.outdated.Load(); outdated != nil {
		return outdated
	}
	return s.within(ctx, limit, func(ctx context.Context, conn *pgxpool.Conn) error {
		l := linkOf(conn.Conn().PgConn())
		l.warned.Store(false)
		l.writing.Store(true)
		err := work(ctx, conn)
		if l.left.Load() {
			// If the driver had read the answer already, it does not notice that the link
			// is closed. The pool would hand the connection to somebody else.
			_ = conn.Conn().Close(context.Background())
		}
		if !conn.Conn().IsClosed() {
			l.writing.Store(false)
		}
		if l.warned.Load() {
			return fmt.Errorf("%w (%v)", errUnconfirmed, err) // err proves nothing then
		}
		return err
	})
}
