package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"oda"
)

// ErrNoAnswer is in the chain of an error where the archive gave no whole
// answer: it could not be reached, or the connection broke. A write may have
// been stored nevertheless.
var ErrNoAnswer = errors.New("no answer from the archive")

// Answer is the cause of an *oda.Error that an archive answered.
type Answer struct {
	Status     int
	RequestID  string        // by which the archive's log knows the request
	RetryAfter time.Duration // where the archive said so, else 0
}

func (a *Answer) Error() string {
	if a.RequestID == "" {
		return fmt.Sprintf("HTTP status %d", a.Status)
	}
	return fmt.Sprintf("HTTP status %d, request id %s", a.Status, a.RequestID)
}

// Status is the HTTP status that an error came with, 0 where no answer came.
func Status(err error) int {
	if a, ok := errors.AsType[*Answer](err); ok {
		return a.Status
	}
	return 0
}

// Temporary tells whether the same request may succeed later. It is false only
// where the archive itself has refused the request, so that nothing is
// dropped because of a broken proxy.
func Temporary(err error) bool {
	switch oda.CodeOf(err) {
	case oda.RequestTimeout, oda.Internal, oda.IdentifierService, oda.Overloaded, oda.Unavailable:
		return true
	}
	return false
}

// problem reads an answer that is not a success. The body may have been cut, and
// may come from something else than an archive.
func problem(response *http.Response, body []byte) *oda.Error {
	answer := &Answer{Status: response.StatusCode, RequestID: response.Header.Get("X-Request-Id")}
	if seconds, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil && seconds > 0 && seconds < 1e6 {
		answer.RetryAfter = time.Duration(seconds) * time.Second
	}
	var p struct {
		Type   string      `json:"type"`
		Detail string      `json:"detail"`
		Errors []oda.Fault `json:"errors"`
	}
	err := json.Unmarshal(body, &p)
	code, ours := strings.CutPrefix(p.Type, oda.CodePrefix)
	ours = ours && err == nil
	if ours && codes[oda.Code(code)] {
		return &oda.Error{Code: oda.Code(code), Detail: p.Detail, Faults: p.Errors, Err: answer}
	}
	if ours {
		return oda.Errorf(oda.Internal, "The archive answers with a problem that this client does not know, %q: %s", clip(code), clip(p.Detail)).Because(answer)
	}
	detail := fmt.Sprintf("The answer, %q, does not come from an archive. Is this the address of an archive?", clip(response.Status))
	if place := response.Header.Get("Location"); place != "" {
		detail = fmt.Sprintf("The archive redirects to %q. Use that address.", clip(place))
	}
	return oda.Errorf(oda.Internal, "%s", detail).Because(answer)
}

// codes are the problems that an archive answers. One that is not among them
// comes from a newer archive or from something else, and is Internal.
var codes = map[oda.Code]bool{
	oda.InvalidJSON: true, oda.InvalidRequest: true, oda.InvalidIdentifier: true, oda.InvalidQuery: true, oda.InvalidUser: true,
	oda.CrossOrigin: true, oda.NotFound: true, oda.NoSuchPath: true, oda.WrongMethod: true, oda.RequestTimeout: true, oda.Precondition: true,
	oda.BodyTooLarge: true, oda.WrongMedia: true, oda.IdentifierMismatch: true, oda.MetadataMismatch: true,
	oda.DuplicateEntity: true, oda.KeyReused: true, oda.Internal: true, oda.IdentifierService: true,
	oda.Overloaded: true, oda.Unavailable: true,
}

// garbled is the error for a success whose body is not what it should be.
func garbled(r *reply, err error) *oda.Error {
	return oda.Errorf(oda.Internal, "The answer is not valid: %v. Is this the address of an archive?", err).Because(r.answer())
}

// clip bounds what a message repeats of an answer.
func clip(text string) string { return text[:min(len(text), 200)] }
