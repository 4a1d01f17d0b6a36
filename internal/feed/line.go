package feed

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"
)

// line is what a stream is sent over: a connection of its own in HTTP/1.1, or a part
// of one in HTTP/2.
type line interface {
	Write(p []byte) (int, error)
	SetWriteDeadline(t time.Time) error
	// end ends the answer. If it was cut off in the middle, the client must see that.
	end(cut bool)
}

// ownLine is a connection that was taken over, so that the bounds of ordinary
// requests do not apply to it.
type ownLine struct{ net.Conn }

// takeOver takes over the connection of a request and sends the headers of its
// answer. It calls gone when the client has gone.
func takeOver(w http.ResponseWriter, framed bool, gone func()) (line, error) {
	header := w.Header().Clone()
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil, err
	}
	if c, ok := under(conn).(*net.TCPConn); ok {
		_ = c.SetWriteBuffer(sendBuffer) // if it fails, the system chooses the size
	}
	l := &ownLine{conn}
	go l.listen(gone)
	if framed {
		header.Set("Transfer-Encoding", "chunked")
	}
	header.Set("Connection", "close")
	header.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	var b bytes.Buffer
	fmt.Fprintf(&b, "HTTP/1.1 %d OK\r\n", http.StatusOK)
	_ = header.Write(&b) // writing to a buffer does not fail
	b.WriteString("\r\n")
	err = l.SetWriteDeadline(time.Now().Add(sendTime))
	if err == nil {
		_, err = l.Write(b.Bytes())
	}
	return l, err
}

// under returns the connection under TLS.
func under(conn net.Conn) net.Conn {
	if c, ok := conn.(interface{ NetConn() net.Conn }); ok {
		return c.NetConn()
	}
	return conn
}

// listen calls gone when the client has gone. It ignores what the client sends.
func (l *ownLine) listen(gone func()) {
	defer gone()
	if l.SetReadDeadline(time.Time{}) != nil {
		return
	}
	for room := make([]byte, 64); ; {
		if _, err := l.Read(room); err != nil {
			return
		}
	}
}

// end closes the connection. If the client does not read, TLS would try for seconds to
// say goodbye.
func (l *ownLine) end(cut bool) {
	if cut {
		_ = under(l.Conn).Close() // nothing more is sent
	}
	_ = l.Close() // everything was sent before
}

// sharedLine is an answer in HTTP/2, which has its own bounds on what it sends.
type sharedLine struct {
	w       http.ResponseWriter
	control *http.ResponseController

	mu    sync.Mutex // guards the deadline, which is also set when the archive stops
	ended bool       // the writer must not be used any more
}

// errGone says that a client of HTTP/2 has ended the stream or did not receive it in
// time. net/http does not tell which.
var errGone = errors.New("the client has gone or does not receive")

// share sends the headers of an answer in HTTP/2. The context of the request ends
// when the client has gone.
func share(w http.ResponseWriter) (line, error) {
	l := &sharedLine{w: w, control: http.NewResponseController(w)}
	w.WriteHeader(http.StatusOK)
	err := l.SetWriteDeadline(time.Now().Add(sendTime))
	if err == nil {
		_, err = l.Write(nil)
	}
	return l, err
}

// Write sends at once. Between two writes there is no deadline, because in HTTP/2 one
// would end the answer even if there is nothing to send.
func (l *sharedLine) Write(p []byte) (int, error) {
	n, err := l.w.Write(p)
	if err == nil {
		err = l.control.Flush()
	}
	if err == nil {
		err = l.SetWriteDeadline(time.Time{})
	}
	if err != nil {
		err = errGone
	}
	return n, err
}

// SetWriteDeadline bounds the writes from now on.
func (l *sharedLine) SetWriteDeadline(t time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return errGone
	}
	return l.control.SetWriteDeadline(t)
}

// end leaves the answer to net/http, which completes it, or aborts it if the handler
// panics.
func (l *sharedLine) end(bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
}
