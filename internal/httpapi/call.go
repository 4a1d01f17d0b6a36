package httpapi

import (
	"crypto/rand"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"runtime/debug"
	"time"

	"oda"
	"oda/internal/contract"
)

// call is one request in progress: what is known of it so far, and the writer
// of its response, which notes what was sent.
type call struct {
	http.ResponseWriter
	api       *API
	r         *http.Request
	op        *contract.Operation // nil beside the description
	page      bool                // made for people: nobody reads its query
	probe     bool                // of health
	kind      oda.Kind
	id        string // of the entity, where the path or the answer names it
	user      string // the acting user, empty if not given
	query     map[string][]string
	started   time.Time
	requestID string
	taken     int64 // bytes of the budget
	reading   bool  // the body was asked for
	ended     bool  // the body came to its end
	broken    bool  // the body did not come to its end, and never will
	status    int
	sent      int64
	failure   error
	lasting   bool // the answer never changes
	accept    bool // the answer depends on what the client accepts
	out       response

	// The values of the answer's headers. They lie together here, so that they
	// need no additional memory.
	values [9]string
	headed int // how many there are
}

func newCall(a *API, w http.ResponseWriter, r *http.Request) *call {
	c := &call{ResponseWriter: w, api: a, r: r, started: time.Now(), requestID: r.Header.Get("X-Request-Id")}
	if !validRequestID(c.requestID) {
		c.requestID = rand.Text()
	}
	c.head("X-Request-Id", c.requestID)
	c.head("X-Content-Type-Options", "nosniff")
	if len(r.TransferEncoding) > 0 {
		// A length beside the chunks may be an attempt to smuggle a request past
		// a proxy, and net/http does not say whether there was one. So the
		// connection ends, as RFC 9112, 6.1 demands.
		c.head("Connection", "close")
	}
	return c
}

// head sets a header of the answer. The name must be in canonical form.
func (c *call) head(name, value string) {
	if c.headed == len(c.values) {
		c.Header()[name] = []string{value}
		return
	}
	c.values[c.headed] = value
	c.headed++
	c.Header()[name] = c.values[c.headed-1 : c.headed : c.headed]
}

// validRequestID accepts the request ID of a proxy or client if it is harmless
// in a log.
func validRequestID(id string) bool {
	for i := range len(id) {
		if id[i] <= ' ' || id[i] > '~' {
			return false
		}
	}
	return id != "" && len(id) <= 128
}

// WriteHeader notes the status.
func (c *call) WriteHeader(status int) {
	if c.status == 0 {
		c.status = status
	}
	c.ResponseWriter.WriteHeader(status)
}

// Write notes the bytes.
func (c *call) Write(p []byte) (int, error) {
	if c.status == 0 {
		c.status = http.StatusOK
	}
	n, err := c.ResponseWriter.Write(p)
	c.sent += int64(n)
	return n, err
}

// Unwrap lets http.ResponseController reach the server's own writer.
func (c *call) Unwrap() http.ResponseWriter { return c.ResponseWriter }

// statusGone is logged, never sent, if the client went away.
const statusGone = 499

// finish ends the call: a panic becomes a 500, the budget is given back, and
// one line is logged. It never shows a document, nor what was asked
// for in a query, which has the names of users.
func (c *call) finish() {
	abort := false
	if p := recover(); p != nil {
		if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
			abort = true
		} else {
			c.api.log.Error("a handler panicked", "request_id", c.requestID, "panic", p, "stack", string(debug.Stack()))
			abort = c.status != 0
			if !abort {
				c.problem(oda.Errorf(oda.Internal, "Internal error. Give the request ID to the operator."))
			}
		}
	}
	c.api.inFlight.give(c.taken)
	if c.awaitsContinue() {
		// It was never asked for its body. If the client sends it anyway, it is read
		// for a moment, since closing at once could destroy the answer.
		_ = http.NewResponseController(c.ResponseWriter).SetReadDeadline(time.Now().Add(lingerTime)) // else it takes longer
	}
	c.logLine()
	if abort {
		// The connection ends without a proper end of the response, so that no
		// client takes a part for the whole answer.
		panic(http.ErrAbortHandler)
	}
}

// lingerTime is how long a client may keep sending what nobody wants.
const lingerTime = 500 * time.Millisecond

// awaitsContinue reports whether the client waits for "100 Continue" before it sends its
// body, and has not got it.
func (c *call) awaitsContinue() bool {
	return !c.reading && c.r.ContentLength != 0 && c.r.Header["Expect"] != nil
}

// logLine passes the line directly to the handler of the log: a Logger would look
// up its place in the code, which is always this one.
func (c *call) logLine() {
	level := slog.LevelInfo
	if c.probe && c.status < 400 {
		level = slog.LevelDebug
	}
	cutOff := c.status < 400 // what failed after the answer had begun
	if c.failure != nil && (c.status >= 500 || cutOff) && c.status != statusGone {
		level = slog.LevelError
	}
	ctx, log := c.r.Context(), c.api.log.Handler()
	if !log.Enabled(ctx, level) {
		return
	}
	now := time.Now()
	var room [13]slog.Attr
	attrs := append(room[:0],
		slog.String("request_id", c.requestID),
		slog.String("client", c.r.RemoteAddr),
		slog.String("method", c.r.Method),
		slog.String("path", loggedPath(c.r.URL)),
		slog.Int("status", c.status),
		slog.Duration("duration", now.Sub(c.started)),
		slog.Int64("bytes", c.sent),
	)
	if c.kind != 0 {
		attrs = append(attrs, slog.String("kind", c.kind.String()))
	}
	if oda.ValidID(c.id) {
		attrs = append(attrs, slog.String("identifier", c.id))
	}
	if c.op != nil {
		attrs = append(attrs, slog.String("operation", c.op.ID))
	}
	if c.user != "" {
		attrs = append(attrs, slog.String("user", c.user))
	}
	if c.failure != nil {
		attrs = append(attrs, slog.String("problem", string(oda.CodeOf(c.failure))))
		if level == slog.LevelError {
			attrs = append(attrs, slog.String("error", c.failure.Error()))
		}
	}
	line := slog.NewRecord(now, level, "request", 0)
	line.AddAttrs(attrs...)
	_ = log.Handle(ctx, line) // nobody is left to tell that the log fails
}

// loggedPath is a path as it appears in the log. The longest that leads anywhere
// is far shorter than the bound.
func loggedPath(u *url.URL) string {
	path := u.EscapedPath()
	if len(path) > 512 {
		return path[:512] + "…"
	}
	return path
}
