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

// A commit waits for the synchronous standby, where there is one, and nobody
// sees what it wrote before. A cancel request ends that wait: PostgreSQL then
// shows the transaction to all and answers it as a success with a warning,
// although it is on one disk only and a failover loses it. So no cancel request
// is ever sent while a connection writes, and a success with a warning is none.
//
// A write whose caller has gone is left alone: its connection is closed. The
// server notices that while it works or waits for a lock
// (client_connection_check_interval), and not while it commits.

// codeWarning is that of the warning, which has no code of its own, and whose
// text is translated. So any plain warning in the course of an operation counts.
// No statement here causes another one.
const codeWarning = "01000"

// errUnconfirmed says that a commit was not confirmed by a standby.
var errUnconfirmed = errors.New("the wait for the synchronous standby was ended")

// link is a connection to the server that knows what it is used for.
type link struct {
	net.Conn
	writing atomic.Bool
	warned  atomic.Bool
}

// linkOf gives the link of a connection.
func linkOf(conn *pgconn.PgConn) *link {
	outer := conn.Conn()
	if encrypted, ok := outer.(*tls.Conn); ok {
		outer = encrypted.NetConn()
	}
	return outer.(*link)
}

// RemoteAddr is where the driver sends a cancel request to, which it does by
// itself whenever a connection breaks: nowhere while the connection writes.
func (l *link) RemoteAddr() net.Addr {
	if l.writing.Load() {
		return &net.TCPAddr{IP: net.IPv4zero}
	}
	return l.Conn.RemoteAddr()
}

// watchReplication makes the connections of a pool links. TLS goes through the
// link and not the other way round: the driver must see it for channel binding.
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

// leaving is what happens when the caller of an operation goes away: the server
// is told to stop reading for him, or the connection that writes is closed.
type leaving struct {
	reading *pgconn.CancelRequestContextWatcherHandler
	link    *link
	closed  bool
}

// HandleCancel implements ctxwatch.Handler.
func (l *leaving) HandleCancel(ctx context.Context) {
	if l.closed = l.link.writing.Load(); l.closed {
		_ = l.link.Close() // the driver finds out and gives the connection up
		return
	}
	l.reading.HandleCancel(ctx)
}

// HandleUnwatchAfterCancel implements ctxwatch.Handler.
func (l *leaving) HandleUnwatchAfterCancel() {
	if !l.closed {
		l.reading.HandleUnwatchAfterCancel()
	}
}

// write is with, for work that writes.
func (s *Store) write(ctx context.Context, work func(context.Context, *pgxpool.Conn) error) error {
	return s.writeWithin(ctx, answerTime, work)
}

// writeWithin is within, for work that writes.
func (s *Store) writeWithin(ctx context.Context, limit time.Duration, work func(context.Context, *pgxpool.Conn) error) error {
	return s.within(ctx, limit, func(ctx context.Context, conn *pgxpool.Conn) error {
		l := linkOf(conn.Conn().PgConn())
		l.warned.Store(false)
		l.writing.Store(true)
		err := work(ctx, conn)
		if !conn.Conn().IsClosed() {
			l.writing.Store(false)
		}
		if l.warned.Load() {
			return fmt.Errorf("%w (%v)", errUnconfirmed, err) // what it was besides proves nothing
		}
		return err
	})
}
