package httpapi

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"oda"
	"oda/archive"
	"oda/internal/rawjson"
	"oda/internal/serving"
	"oda/summary"
)

// check checks the parameters against the API description and notes the query and
// the user.
func (c *call) check() error {
	if c.op == nil {
		return nil
	}
	if !c.page {
		if err := c.checkQuery(); err != nil {
			return err
		}
		if err := c.checkConditions(); err != nil {
			return err
		}
	}
	if err := c.op.CheckParameters(c.parameter); err != nil {
		return err
	}
	if err := c.checkHeaders(); err != nil {
		return err
	}
	if user := c.r.Header.Get(forwardedUser); c.namesUser() && oda.ValidUser(user) {
		c.user = user
	}
	return nil
}

// checkQuery parses the query and refuses parameters that the operation does not
// have.
func (c *call) checkQuery() error {
	if c.r.URL.RawQuery == "" {
		return nil
	}
	var err error
	if c.query, err = url.ParseQuery(c.r.URL.RawQuery); err != nil {
		return oda.Errorf(oda.InvalidRequest, "The query of the address is not well-formed. "+
			"Write a percent sign as %%25 and a semicolon as %%3B.").Because(err)
	}
	return c.op.CheckQuery(c.query)
}

// forwardedUser names the acting user, unless the caller is known better.
const forwardedUser = "X-Forwarded-User"

// single lists the headers that have one value, each with the code of the problem
// if it has several.
var single = [...]struct {
	name string
	code oda.Code
}{{forwardedUser, oda.InvalidUser}, {"Idempotency-Key", oda.InvalidRequest}, {"Content-Type", oda.InvalidRequest}}

// checkHeaders refuses a header with different values where the operation reads only
// one, since a proxy may have added the other. The same value twice is fine.
func (c *call) checkHeaders() error {
	for _, h := range single {
		values := c.r.Header[h.name]
		if h.name == forwardedUser && !c.namesUser() {
			continue
		}
		if len(values) < 2 || len(slices.Compact(slices.Clone(values))) == 1 {
			continue
		}
		if c.op.TakesHeader(h.name) || h.name == "Content-Type" && c.op.HasBody() {
			return &oda.Error{
				Code: h.code, Detail: fmt.Sprintf("The header %s is given more than once, with different values. Nothing was stored. Give it once.", h.name),
				Faults: []oda.Fault{{Pointer: "header:" + h.name, Detail: "is given more than once, with different values"}},
			}
		}
	}
	return nil
}

// parameter returns the first value of a parameter, and whether there is one.
func (c *call) parameter(in, name string) (value string, given bool) {
	var values []string
	switch in {
	case "query":
		values = c.query[name]
	case "header":
		if name == forwardedUser && !c.namesUser() {
			return "", false
		}
		values = c.r.Header.Values(name)
	default:
		return c.r.PathValue(name), true
	}
	if len(values) == 0 {
		return "", false
	}
	return values[0], true
}

// one returns the value of a query parameter, empty if it is not given. It is an
// error if it is given twice.
func (c *call) one(name string) (string, error) {
	switch values := c.query[name]; len(values) {
	case 0:
		return "", nil
	case 1:
		return values[0], nil
	default:
		return "", &oda.Error{
			Code: oda.InvalidRequest, Detail: fmt.Sprintf("The query parameter %s is given %d times. Give it once.", name, len(values)),
			Faults: []oda.Fault{{Pointer: "query:" + name, Detail: "is given more than once"}},
		}
	}
}

// integer returns the value of a query parameter that is an integer, or otherwise
// if it is not given.
func (c *call) integer(name string, otherwise int64) (int64, error) {
	text, err := c.one(name)
	if err != nil || text == "" {
		return otherwise, err
	}
	return strconv.ParseInt(text, 10, 64) // the description allows nothing else
}

// body reads the body and checks it against the API description. It returns the
// text and the index of its declared values.
func (c *call) body() ([]byte, []rawjson.Node, error) {
	text, err := c.readBody()
	if err != nil {
		return nil, nil, err
	}
	nodes, err := c.op.CheckBody(text, c.api.cfg.Bounds.Depth)
	return text, nodes, err
}

// documents is like body, for a body that holds entities.
func (c *call) documents() ([]byte, rawjson.Index, error) {
	text, err := c.readBody()
	if err != nil {
		return nil, rawjson.Index{}, err
	}
	index, err := c.op.CheckWatched(text, c.api.cfg.Bounds.Depth, summary.Watched)
	if more := index.Size() - int64(len(text)); more > 0 && err == nil && len(text) > firstRead {
		err = c.take(more) // the index takes more memory than the body
	}
	return text, index, err
}

// document reads the body as one entity.
func (c *call) document() (*oda.Document, []byte, error) {
	text, index, err := c.documents()
	if err != nil {
		return nil, nil, err
	}
	return oda.NewDocument(c.kind, text, index, 0, ""), text, nil
}

// firstRead is how much memory a body gets before any of it has arrived, even if
// its announced length is larger. A client that sends little takes little.
const firstRead = 64 << 10

// readBody reads the body, and waits until there is room to work on it. Meanwhile
// the caller's credential may have ended.
func (c *call) readBody() ([]byte, error) {
	text, err := c.receive()
	if err == nil {
		err = c.enter()
	}
	if err == nil && c.lapsed() {
		err = oda.Errorf(oda.Unauthenticated, "The credentials of this request ended while it was arriving. Nothing was stored. "+
			"Send it again with new ones.")
	}
	return text, err
}

func (c *call) receive() ([]byte, error) {
	length := c.r.ContentLength
	if length == 0 {
		return nil, nil
	}
	if !isJSON(c.r.Header) {
		return nil, oda.Errorf(oda.WrongMedia, "The body must be JSON: send it with Content-Type: application/json and without a Content-Encoding.")
	}
	most := c.mostBody()
	if length > most {
		return nil, c.tooLarge()
	}
	room := min(length, firstRead)
	if length < 0 {
		room = 4 << 10
	}
	if err := c.take(room + 1); err != nil {
		return nil, err
	}
	c.reading = true
	buf := make([]byte, 0, room+1) // room for one more byte, to see the end without growing
	for {
		n, err := c.r.Body.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		switch {
		case int64(len(buf)) > most:
			return nil, c.tooLarge()
		case err == io.EOF:
			// Closing keeps net/http from looking for more when the answer is sent.
			// All of the body was read, so closing cannot fail.
			_ = c.r.Body.Close()
			c.ended = true
			return buf, nil
		case err != nil:
			c.broken = true
			if errors.Is(err, os.ErrDeadlineExceeded) {
				return nil, oda.Errorf(oda.RequestTimeout, "The body did not arrive in time. Nothing was stored. "+
					"Send it again, in smaller parts if the connection is slow.").Because(err)
			}
			return nil, oda.Errorf(oda.InvalidRequest, "The body is incomplete. Send it again.").Because(err)
		case len(buf) == cap(buf):
			more := min(int64(cap(buf)), most+1-int64(cap(buf)))
			if length > 0 {
				more = min(more, max(length+1-int64(cap(buf)), 1))
			}
			if err := c.take(more); err != nil {
				return nil, err
			}
			buf = append(make([]byte, 0, int64(cap(buf))+more), buf...)
		}
	}
}

func (c *call) take(n int64) error {
	if !c.reserve(n) {
		return oda.Errorf(oda.Overloaded, "Too many bytes are being sent to the archive at once. Nothing was stored. Try again shortly.")
	}
	return nil
}

// reserve reserves memory until the call ends. It reports whether there was room.
func (c *call) reserve(n int64) bool {
	if !c.api.inFlight.take(n, c.recording()) {
		return false
	}
	c.taken += n
	return true
}

// mostBody is how many bytes the body may have.
func (c *call) mostBody() int64 {
	if c.op != nil && c.op.ID == beginOperation {
		return min(runningBody, c.api.cfg.Bounds.Body)
	}
	return c.api.cfg.Bounds.Body
}

func (c *call) tooLarge() error {
	if most := c.mostBody(); most < c.api.cfg.Bounds.Body {
		return oda.Errorf(oda.BodyTooLarge, "The body is larger than %d bytes, which is all that this operation takes. Nothing was stored. Send less.", most)
	}
	return oda.Errorf(oda.BodyTooLarge, "The body is larger than the limit of %d bytes. Nothing was stored. "+
		"Send less at a time, or ask the operator for a larger limit (--max-body).", c.api.cfg.Bounds.Body)
}

// isJSON reports whether the headers announce JSON in UTF-8. A body without a type
// counts as JSON.
func isJSON(h http.Header) bool {
	for _, encoding := range h["Content-Encoding"] {
		if encoding != "" && !strings.EqualFold(encoding, "identity") {
			return false
		}
	}
	value := h.Get("Content-Type")
	if value == "" || value == "application/json" {
		return true
	}
	media, params, err := mime.ParseMediaType(value)
	if err != nil || media != "application/json" {
		return false
	}
	charset, ok := params["charset"]
	return !ok || strings.EqualFold(charset, "utf-8")
}

// drainTime is how long drain waits for the rest of a refused body.
const drainTime = 10 * time.Second

// drain reads the rest of a refused body. A client that reads nothing before it
// has sent everything then sees the answer, not a broken connection. If the rest
// takes too long, the connection is closed; a spare one sooner, since others need it. In
// HTTP/2 the answer tells the client to stop sending, and the connection goes on.
func (c *call) drain() {
	if c.r.Body == nil || c.r.Body == http.NoBody || c.ended || c.r.ProtoMajor >= 2 {
		return
	}
	if c.awaitsContinue() || c.broken {
		c.head("Connection", "close")
		return
	}
	wait := drainTime
	if serving.IsSpare(c.r.Context()) {
		wait = lingerTime
	}
	if err := http.NewResponseController(c).SetReadDeadline(time.Now().Add(wait)); err != nil {
		return
	}
	if _, err := io.Copy(io.Discard, c.r.Body); err != nil {
		c.head("Connection", "close")
	}
}

// write returns what the request says about a write, besides the document.
func (c *call) write(operation string, received []byte) archive.Write {
	return archive.Write{User: c.user, Telescopes: c.telescopes(), Key: c.r.Header.Get("Idempotency-Key"), Operation: operation, Received: received}
}
