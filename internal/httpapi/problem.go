package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"oda"
	"oda/internal/content"
)

// problemKind is what a code means on the wire.
type problemKind struct {
	status int
	title  string
}

// problems has an entry for every code.
var problems = map[oda.Code]problemKind{
	oda.InvalidJSON:        {http.StatusBadRequest, "The body is not valid JSON"},
	oda.InvalidRequest:     {http.StatusBadRequest, "The request does not match the API description"},
	oda.InvalidIdentifier:  {http.StatusBadRequest, "Invalid identifier"},
	oda.InvalidQuery:       {http.StatusBadRequest, "Invalid query"},
	oda.InvalidUser:        {http.StatusBadRequest, "Invalid user name"},
	oda.UnknownPosition:    {http.StatusBadRequest, "The log of changes does not reach this position"},
	oda.Unauthenticated:    {http.StatusUnauthorized, "Credentials are needed"},
	oda.Forbidden:          {http.StatusForbidden, "Not allowed"},
	oda.CrossOrigin:        {http.StatusForbidden, "Cross-origin write refused"},
	oda.NotFound:           {http.StatusNotFound, "Entity not found"},
	oda.NoSuchPath:         {http.StatusNotFound, "No such path"},
	oda.WrongMethod:        {http.StatusMethodNotAllowed, "Method not allowed"},
	oda.RequestTimeout:     {http.StatusRequestTimeout, "The request did not arrive in time"},
	oda.Precondition:       {http.StatusPreconditionFailed, "Precondition failed"},
	oda.BodyTooLarge:       {http.StatusRequestEntityTooLarge, "The body is too large"},
	oda.WrongMedia:         {http.StatusUnsupportedMediaType, "Unsupported media type"},
	oda.IdentifierMismatch: {http.StatusUnprocessableEntity, "The identifiers in path and body differ"},
	oda.MetadataMismatch:   {http.StatusUnprocessableEntity, "The metadata does not match the stored version"},
	oda.DuplicateEntity:    {http.StatusUnprocessableEntity, "Duplicate entity"},
	oda.KeyReused:          {http.StatusUnprocessableEntity, "The idempotency key was used for another request"},
	oda.StatusMismatch:     {http.StatusUnprocessableEntity, "The current status is not the expected one"},
	oda.UnknownVersion:     {http.StatusUnprocessableEntity, "There is no such version"},
	oda.InvalidNote:        {http.StatusUnprocessableEntity, "The note contradicts itself"},
	oda.DiffTooLarge:       {http.StatusUnprocessableEntity, "The documents are too large to compare"},
	oda.RateLimited:        {http.StatusTooManyRequests, "Too many requests from one caller"},
	oda.TooManyRunning:     {http.StatusTooManyRequests, "Too many calls are running"},
	oda.Internal:           {http.StatusInternalServerError, "Internal server error"},
	oda.DamagedText:        {http.StatusInternalServerError, "The stored text is damaged"},
	oda.IdentifierService:  {http.StatusInternalServerError, "No identifier available"},
	oda.Overloaded:         {http.StatusServiceUnavailable, "The server is overloaded"},
	oda.Unavailable:        {http.StatusServiceUnavailable, "The database is unavailable"},
	oda.Unaudited:          {http.StatusServiceUnavailable, "The audit log cannot be written"},
}

// retryAfter has the values of Retry-After, in seconds.
var retryAfter = map[oda.Code]string{oda.Overloaded: "1", oda.Unavailable: "5", oda.Unaudited: "5", oda.TooManyRunning: "60"}

// problemBody is RFC 9457's document.
type problemBody struct {
	Type     string      `json:"type"`
	Title    string      `json:"title"`
	Status   int         `json:"status"`
	Detail   string      `json:"detail"`
	Instance string      `json:"instance"`
	Errors   []oda.Fault `json:"errors,omitempty"`
}

// problem answers with an error. An error that is not meant for the caller only
// goes to the log.
func (c *call) problem(err error) {
	if errors.Is(err, context.Canceled) && c.lapsed() {
		err = oda.Errorf(oda.Unauthenticated, "The credentials of this request ended while it was waiting. Send it again with new ones.")
	}
	c.failure = err
	if errors.Is(err, context.Canceled) && c.r.Context().Err() != nil {
		c.gone()
		return
	}
	if c.status != 0 {
		// The response has begun. It must not look complete.
		panic(http.ErrAbortHandler)
	}
	e, ok := errors.AsType[*oda.Error](err)
	switch {
	case ok:
	case errors.Is(err, context.DeadlineExceeded) && c.op != nil && c.op.Method != http.MethodGet:
		e = oda.Uncertain(err)
	case errors.Is(err, context.DeadlineExceeded):
		e = oda.Errorf(oda.Overloaded, "The request took too long. Try again shortly.")
	default:
		e = oda.Errorf(oda.Internal, "Internal error. Give the request ID to the operator.")
	}
	c.api.problems.note(e.Code)
	kind, body := written(e, c.requestID)
	c.drain()
	if after := retryAfter[e.Code]; after != "" {
		c.head("Retry-After", after)
	}
	if e.Code == oda.Unauthenticated {
		c.head("Www-Authenticate", "Bearer")
	}
	c.head("Cache-Control", "no-store")
	// A person who must sign in to see a page of the interface is asked to there.
	if c.wantsPage() || c.page && c.api.cfg.Pages != nil && e.Code == oda.Unauthenticated {
		c.head("Vary", "Accept")
		if content.Preferred(c.r.Header, problemType, htmlType) == htmlType {
			c.api.cfg.Pages.Failed(c, c.forPeople(), e, kind.status, kind.title, c.requestID)
			return
		}
	}
	c.head("Content-Type", problemType)
	c.WriteHeader(kind.status)
	if _, err := c.Write(body); err != nil {
		c.gone()
	}
}

// The forms in which an error is answered: programs get a problem, and browsers a
// page where pages are.
const (
	problemType = "application/problem+json"
	htmlType    = "text/html"
)

// wantsPage reports whether the request is for a page, or for a path where one
// could be.
func (c *call) wantsPage() bool {
	return c.api.cfg.Pages != nil && !strings.HasPrefix(c.r.URL.Path, c.api.cfg.BasePath+"/api/") && !c.probe
}

// written returns the problem as it is sent, for the request with that ID.
func written(e *oda.Error, requestID string) (problemKind, []byte) {
	kind := problems[e.Code]
	body, err := json.Marshal(problemBody{
		oda.CodePrefix + string(e.Code), kind.title, kind.status, e.Detail, "urn:oda:request:" + requestID, e.Faults,
	})
	if err != nil {
		panic(err)
	}
	return kind, body
}

// gone notes that the client went away before it got its answer.
func (c *call) gone() {
	c.status = statusGone
	panic(http.ErrAbortHandler)
}
