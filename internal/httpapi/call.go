package httpapi

import (
	"crypto/rand"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"runtime/debug"
	"strings"
	"time"

	"oda"
	"oda/internal/admission"
	"oda/internal/auth"
	"oda/internal/contract"
)

// call is one request in progress: what is known about it so far, and the writer
// of its response, which notes what was sent.
type call struct {
	http.ResponseWriter
	api       *API
	access    *access
	r         *http.Request
	op        *contract.Operation // nil if the description does not have it
	caller    *auth.Caller        // nil where anyone may call
	audit     *audit              // nil if it does not write, or nobody wants to know
	id        string              // of the entity, if the path or the answer names one
	user      string              // the acting user; empty if the request names none
	query     map[string][]string
	merged    string // the address with single slashes, relative to the one that was sent; empty if they are the same
	started   time.Time
	requestID string
	taken     int64             // bytes reserved from the budget
	pass      admission.Pass    // while the archive works on the request
	limited   *admission.Caller // nil without limits
	room      *room             // of the answer; nil while it is small
	small     int64             // bytes of a small answer that its connection counts
	status    int
	sent      int64
	failure   error
	kind      oda.Kind
	need      auth.Role // that the caller needs
	own       bool      // recorders may only do it to what they have created
	class     admission.Class
	page      bool   // for people; its query is ignored
	probe     bool   // a health check
	reading   bool   // reading of the body has begun
	ended     bool   // all of the body was read
	broken    bool   // the rest of the body will never arrive
	lasting   bool   // the answer never changes
	waited    bool   // for something to answer with, as long as the client wanted
	accept    bool   // the answer depends on what the client accepts
	headed    uint8  // how many of values are used
	counted   uint16 // the operation, among those that are counted
	out       response

	// The values of the answer's headers. They are part of the call, so that they
	// need no allocations of their own.
	values [9]string
}

func newCall(a *API, w http.ResponseWriter, r *http.Request) *call {
	c := &call{ResponseWriter: w, api: a, access: a.access.Load(), r: r, started: time.Now(), requestID: r.Header.Get("X-Request-Id")}
	if !validRequestID(c.requestID) {
		c.requestID = rand.Text()
	}
	c.mergeSlashes()
	c.head("X-Request-Id", c.requestID)
	c.head("X-Content-Type-Options", "nosniff")
	if len(r.TransferEncoding) > 0 {
		// A chunked request that also has a length may be an attempt to smuggle a
		// request past a proxy. net/http does not say whether it had one, so the
		// connection ends in any case, as RFC 9112, section 6.1 demands.
		c.head("Connection", "close")
	}
	return c
}

// mergeSlashes makes one slash of several in the path. Clients send them when they
// put a path that begins with a slash after an address that ends in one. An
// escaped slash is part of a segment and stays.
func (c *call) mergeSlashes() {
	sent := c.r.URL.EscapedPath()
	if !strings.Contains(sent, "//") {
		return
	}
	var one strings.Builder
	for i := range len(sent) {
		if sent[i] != '/' || i == 0 || sent[i-1] != '/' {
			one.WriteByte(sent[i])
		}
	}
	path, err := url.PathUnescape(one.String())
	if err != nil {
		return // cannot be: sent is valid
	}
	c.r.URL.Path, c.r.URL.RawPath = path, one.String()
	c.merged = strings.Repeat("../", strings.Count(sent[1:], "/")) + strings.TrimPrefix(one.String(), "/")
	if c.r.URL.RawQuery != "" {
		c.merged += "?" + c.r.URL.RawQuery
	}
}

// head sets a header of the answer. The name must be in canonical form.
func (c *call) head(name, value string) {
	if name == "Vary" {
		value = c.access.cors.vary(value)
	}
	if int(c.headed) == len(c.values) {
		c.Header()[name] = []string{value}
		return
	}
	c.values[c.headed] = value
	c.headed++
	c.Header()[name] = c.values[c.headed-1 : c.headed : c.headed]
}

// validRequestID reports whether the request ID of a proxy or client is harmless
// in a log.
func validRequestID(id string) bool {
	for i := range len(id) {
		if id[i] <= ' ' || id[i] > '~' {
			return false
		}
	}
	return id != "" && len(id) <= 128
}

// WriteHeader sends the headers and notes the status.
func (c *call) WriteHeader(status int) {
	if c.status == 0 {
		c.status = status
		c.audited()
	}
	c.pass.Leave() // what is sent slowly takes no room
	c.ResponseWriter.WriteHeader(status)
}

// Write sends a part of the body and counts its bytes.
func (c *call) Write(p []byte) (int, error) {
	if c.status == 0 {
		c.status = http.StatusOK
		c.pass.Leave()
		c.audited()
	}
	write := c.ResponseWriter.Write
	if c.room != nil {
		write = c.room.write
	}
	n, err := write(p)
	c.sent += int64(n)
	return n, err
}

// Unwrap lets http.ResponseController reach the server's own writer.
func (c *call) Unwrap() http.ResponseWriter { return c.ResponseWriter }

// statusGone is logged if the client went away. It is never sent.
const statusGone = 499

// finish ends the call: it turns a panic into a 500, gives the budget back and
// logs one line. The line never shows a document, nor a query, which may name
// users.
func (c *call) finish() {
	abort := false
	if p := recover(); p != nil {
		if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
			abort = true
		} else {
			c.api.cfg.Log.Error("a handler panicked", "request_id", c.requestID, "panic", p, "stack", string(debug.Stack()))
			abort = c.status != 0
			if !abort {
				c.problem(oda.Errorf(oda.Internal, "Internal error. Give the request ID to the operator."))
			}
		}
	}
	c.pass.Leave()
	if c.limited != nil {
		c.access.callers.Leave(c.limited)
	}
	c.endAudit()
	c.api.inFlight.give(c.taken)
	c.leaveRoom()
	if c.awaitsContinue() {
		// The client was never asked for its body. If it sends it anyway, the server
		// reads it for a moment, since closing at once could destroy the answer.
		// Without the deadline that would only take longer.
		_ = http.NewResponseController(c.ResponseWriter).SetReadDeadline(time.Now().Add(lingerTime))
	}
	now := time.Now()
	c.count(now)
	c.logLine(now)
	if abort {
		// This breaks the connection before the response is complete, so that no
		// client takes a part for the whole.
		panic(http.ErrAbortHandler)
	}
}

// lingerTime is how long a client may keep sending a body that nobody reads.
const lingerTime = 500 * time.Millisecond

// awaitsContinue reports whether the client still waits for "100 Continue" before
// it sends its body.
func (c *call) awaitsContinue() bool {
	return !c.reading && c.r.ProtoMajor < 2 && c.r.ContentLength != 0 && c.r.Header["Expect"] != nil
}

// logLine logs the request. It calls the handler of the log directly, because a
// Logger would look up the caller, which is always this function.
func (c *call) logLine(now time.Time) {
	level := slog.LevelInfo
	if c.probe && c.status < 400 {
		level = slog.LevelDebug
	}
	cutOff := c.status < 400 // so it failed after the answer had begun
	if c.failure != nil && (c.status >= 500 || cutOff) && c.status != statusGone {
		level = slog.LevelError
	}
	ctx, log := c.r.Context(), c.api.cfg.Log.Handler()
	if !log.Enabled(ctx, level) {
		return
	}
	var room [13]slog.Attr
	attrs := append(room[:0],
		slog.String("request_id", c.requestID),
		slog.String("client", c.r.RemoteAddr),
		slog.String("method", c.r.Method[:min(len(c.r.Method), 32)]),
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
	_ = log.Handle(ctx, line) // there is no place to report that the log fails
}

// loggedPath returns a path as it appears in the log. It cuts paths that are
// longer than any path of the interface.
func loggedPath(u *url.URL) string {
	path := u.EscapedPath()
	if len(path) > 512 {
		return path[:512] + "…"
	}
	return path
}
