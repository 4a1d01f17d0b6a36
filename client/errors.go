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

// ErrNoAnswer is in the chain of an error if the archive gave no complete
// answer: it could not be reached, or the connection broke. A write may have
// been stored nevertheless.
var ErrNoAnswer = errors.New("no answer from the archive")

// Answer is the cause of an *oda.Error that the archive sent.
type Answer struct {
	Status     int
	RequestID  string        // as in the archive's log
	RetryAfter time.Duration // 0 if the archive did not set it

	after string // the cursor with which a search goes on, if it does
}

// More reports whether a search goes on after what is damaged.
func (a *Answer) More() bool { return a.after != "" }

func (a *Answer) Error() string {
	if a.RequestID == "" {
		return fmt.Sprintf("HTTP status %d", a.Status)
	}
	return fmt.Sprintf("HTTP status %d, request id %s", a.Status, a.RequestID)
}

// Status returns the HTTP status of the answer that caused err, or 0 if there
// was none.
func Status(err error) int {
	if a, ok := errors.AsType[*Answer](err); ok {
		return a.Status
	}
	return 0
}

// Temporary reports whether the same request may succeed later. It is false
// only if the archive itself has refused the request, so that a broken proxy
// never causes a caller to drop anything.
func Temporary(err error) bool {
	switch oda.CodeOf(err) {
	case oda.RequestTimeout, oda.RateLimited, oda.TooManyRunning, oda.Internal, oda.DamagedText, oda.IdentifierService, oda.Overloaded, oda.Unavailable, oda.Unaudited:
		return true
	}
	return false
}

// problem parses an answer that is not a success. The body may have been
// truncated, and may not come from an archive.
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
	if ours && oda.Code(code) == oda.DamagedText {
		link, _ := linked(response.Header) // without one, the search ends here
		answer.after = link.Get("cursor")
	}
	if ours && codes[oda.Code(code)] {
		return &oda.Error{Code: oda.Code(code), Detail: p.Detail, Faults: p.Errors, Err: answer}
	}
	if ours {
		return oda.Errorf(oda.Internal, "The archive answered with a problem that this client does not know, %q: %s", clip(code), clip(p.Detail)).Because(answer)
	}
	detail := fmt.Sprintf("The answer, %q, does not come from an archive. Is this the address of an archive?", clip(response.Status))
	if place := response.Header.Get("Location"); place != "" {
		detail = fmt.Sprintf("The archive redirects to %q. Use that address.", clip(place))
	}
	return oda.Errorf(oda.Internal, "%s", detail).Because(answer)
}

// codes are the problems that this client knows. Any other comes from a newer
// archive or from something else, and becomes Internal.
var codes = map[oda.Code]bool{
	oda.InvalidJSON: true, oda.InvalidRequest: true, oda.InvalidIdentifier: true, oda.InvalidQuery: true, oda.InvalidUser: true, oda.UnknownPosition: true,
	oda.Unauthenticated: true, oda.Forbidden: true, oda.CrossOrigin: true, oda.NotFound: true, oda.NoSuchPath: true, oda.WrongMethod: true, oda.RequestTimeout: true, oda.Precondition: true,
	oda.BodyTooLarge: true, oda.WrongMedia: true, oda.IdentifierMismatch: true, oda.MetadataMismatch: true,
	oda.DuplicateEntity: true, oda.KeyReused: true, oda.StatusMismatch: true, oda.UnknownVersion: true, oda.InvalidNote: true, oda.DiffTooLarge: true, oda.RateLimited: true, oda.TooManyRunning: true, oda.Internal: true, oda.DamagedText: true, oda.IdentifierService: true,
	oda.Overloaded: true, oda.Unavailable: true, oda.Unaudited: true,
}

// garbled is the error for a successful answer whose body is not valid.
func garbled(r *reply, err error) *oda.Error {
	return oda.Errorf(oda.Internal, "The answer is not valid: %v. Is this the address of an archive?", err).Because(r.answer())
}

// clip shortens a part of an answer that is quoted in a message.
func clip(text string) string { return text[:min(len(text), 200)] }
