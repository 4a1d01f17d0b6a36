package oda

import (
	"errors"
	"fmt"
	"strings"
)

// Code says what kind of problem an Error is. Server and client share this list,
// and each code is one problem type on the wire.
type Code string

// CodePrefix and a code together are the type of a problem on the wire.
const CodePrefix = "urn:oda:problem:"

// The codes, by the status with which the interface answers them.
const (
	InvalidJSON       Code = "invalid-json"       // 400: the body is not one strict JSON document
	InvalidRequest    Code = "invalid-request"    // 400: the request does not match the API description
	InvalidIdentifier Code = "invalid-identifier" // 400: nothing can be stored under that identifier
	InvalidQuery      Code = "invalid-query"      // 400: the query cannot be answered
	InvalidUser       Code = "invalid-user"       // 400: the acting user is not a valid user name
	UnknownPosition   Code = "unknown-position"   // 400: the log of changes does not reach that position

	Unauthenticated Code = "unauthenticated" // 401: no credentials, or bad ones
	Forbidden       Code = "forbidden"       // 403: the caller's role does not allow it
	CrossOrigin     Code = "cross-origin"    // 403: a browser page of another origin tried to write

	NotFound       Code = "not-found"       // 404: no such entity
	NoSuchPath     Code = "no-such-path"    // 404: no such path in the interface
	WrongMethod    Code = "wrong-method"    // 405: the path exists, but not with this method
	RequestTimeout Code = "request-timeout" // 408: the body did not arrive within the read time-out
	Precondition   Code = "precondition"    // 412: If-Match or If-None-Match does not hold
	BodyTooLarge   Code = "body-too-large"  // 413: the body exceeds the bound
	WrongMedia     Code = "wrong-media"     // 415: the body is not JSON

	IdentifierMismatch Code = "identifier-mismatch" // 422: path and body name different entities
	MetadataMismatch   Code = "metadata-mismatch"   // 422: the metadata is not that of the stored version
	DuplicateEntity    Code = "duplicate-entity"    // 422: an identifier appears twice in one collection
	KeyReused          Code = "key-reused"          // 422: an idempotency key was used before, for another request
	StatusMismatch     Code = "status-mismatch"     // 422: the current status is not the one that the request expects
	UnknownVersion     Code = "unknown-version"     // 422: the request means a version that there is not
	InvalidNote        Code = "invalid-note"        // 422: a note ends before it begins
	DiffTooLarge       Code = "diff-too-large"      // 422: two documents are too large to compare

	RateLimited    Code = "rate-limited"     // 429: the caller sends too much
	TooManyRunning Code = "too-many-running" // 429: a bound on the calls that are running is reached

	Internal          Code = "internal"           // 500: a fault of the server
	DamagedText       Code = "damaged"            // 500: something is no longer what was stored
	IdentifierService Code = "identifier-service" // 500: no identifier is available
	Overloaded        Code = "overloaded"         // 503: a bound on concurrent work is reached
	Unavailable       Code = "unavailable"        // 503: the engine does not answer
	Unaudited         Code = "unaudited"          // 503: the audit log cannot be written
)

// Fault is one place in a request that is wrong. Pointer is a JSON pointer
// into the body, or "query:NAME", "header:NAME", "path:NAME" for a parameter.
type Fault struct {
	Pointer string `json:"pointer"`
	Detail  string `json:"detail"`
}

// Error is a problem that is meant for the caller. Detail is a sentence that a
// person can act on. Err is the cause, for the log only: it never leaves the
// server.
type Error struct {
	Code   Code
	Detail string
	Faults []Fault
	Err    error
}

// Errorf returns an Error whose detail is formatted as by fmt.Sprintf.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Detail: fmt.Sprintf(format, args...)}
}

func (e *Error) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("%s: %s: %v", e.Code, e.Detail, e.Err)
	}
	return fmt.Sprintf("%s: %s", e.Code, e.Detail)
}

func (e *Error) Unwrap() error { return e.Err }

// Clip returns a text of the caller's as a message repeats it: shortened if it is
// longer than any identifier, and valid UTF-8.
func Clip(text string) string {
	if len(text) > maxID {
		text = text[:maxID] + "…"
	}
	return strings.ToValidUTF8(text, "�")
}

// Because sets the cause, for the log, and returns the error.
func (e *Error) Because(err error) *Error {
	e.Err = err
	return e
}

// DamagedStatus returns the error for an entry of the statuses of an entity that is no
// longer what was stored.
func DamagedStatus(ref Ref, sequence int64) *Error {
	return Errorf(DamagedText, "Entry %d of the statuses of %s %s is damaged, so it cannot be read: it is no longer what was stored. "+FindDamage,
		sequence, ref.Kind, ref.ID)
}

// LostStatus returns the error for an entry that is missing, although the entity has
// later ones.
func LostStatus(ref Ref, sequence int64) *Error {
	return Errorf(DamagedText, "Entry %d of the statuses of %s %s is missing in the archive's database, so it cannot be read. "+FindDamage,
		sequence, ref.Kind, ref.ID)
}

// Uncertain returns the error for a write whose commit failed or was cut off. It
// tells the caller that the write may or may not be stored, and how to find out.
func Uncertain(err error) *Error {
	return Errorf(Unavailable, "The archive's storage did not confirm this write: it may or may not be stored. "+
		"Read the entity to find out before you send the write again. "+
		"A request with an Idempotency-Key can be sent again as it is: it is never stored twice.").Because(err)
}

// FindDamage ends the error for anything that is damaged.
const FindDamage = "The operator can find all damage with \"oda verify\", and restore the archive from a backup."

// Damaged returns the error for a version that is no longer what was stored or, unless
// sequence is 0, for one of its records.
func Damaged(ref Ref, version, sequence int64) *Error {
	what := fmt.Sprintf("Version %d of %s %s", version, ref.Kind, ref.ID)
	if sequence != 0 {
		what = fmt.Sprintf("Record %d in version %d of %s %s", sequence, version, ref.Kind, ref.ID)
	}
	return Errorf(DamagedText, "%s is damaged, so it cannot be read: it is no longer what was stored. "+FindDamage, what)
}

// LostVersion returns the error for a version that is missing, although it is the
// current one or the entity has later ones.
func LostVersion(ref Ref, version int64) *Error {
	return Errorf(DamagedText, "Version %d of %s %s is missing in the archive's database, so what depends on it cannot be read. "+FindDamage,
		version, ref.Kind, ref.ID)
}

// LostHistory returns the error for an entity whose history is incomplete, so
// that its past cannot be read.
func LostHistory(ref Ref) *Error {
	return Errorf(DamagedText, "A part of the history of %s %s is missing in the archive's database, so its past cannot be read. "+FindDamage,
		ref.Kind, ref.ID)
}

// DamagedSummary returns the error for an entity whose summary cannot be read.
func DamagedSummary(ref Ref) *Error {
	return Errorf(DamagedText, "What searches know of %s %s is damaged, so they cannot answer with it. "+FindDamage, ref.Kind, ref.ID)
}

// Unreadable returns the error for an entity in a part of the database's file
// that the database cannot read.
func Unreadable(ref Ref) *Error {
	return Errorf(DamagedText, "The archive's database cannot read what it keeps of %s %s: its file is damaged there. "+FindDamage,
		ref.Kind, ref.ID)
}

// NothingStored adds to the error of a damaged text that the write which met it
// has changed nothing. It returns other errors as they are.
func NothingStored(err error) error {
	e, ok := errors.AsType[*Error](err)
	if !ok || e.Code != DamagedText {
		return err
	}
	told := *e
	told.Detail += " Nothing was stored by this request."
	return &told
}

// Lost returns the error for a record that a version lists but that is missing.
func Lost(ref Ref, version, sequence int64) *Error {
	return Errorf(DamagedText, "Record %d in version %d of %s %s is missing in the archive's database, so the version cannot be read. "+FindDamage,
		sequence, version, ref.Kind, ref.ID)
}

// Missing returns the error for an entity that is not in the archive.
func Missing(ref Ref) *Error {
	return Errorf(NotFound, "The requested identifier %s could not be found among the %s.", Clip(ref.ID), ref.Kind.Collection())
}

// CodeOf returns the code of the Error in err's chain, Internal if there is
// none, and "" for nil.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return Internal
}

// MissingVersion returns the error for a version that is not in the archive.
func MissingVersion(ref Ref, version int64) *Error {
	return Errorf(NotFound, "Version %d of %s could not be found among the %s.", version, Clip(ref.ID), ref.Kind.Collection())
}

// MissingAsOf returns the error for an entity that was not yet in the archive at
// an instant, whether it is now or not.
func MissingAsOf(ref Ref, at Instant) *Error {
	return Errorf(NotFound, "The requested identifier %s could not be found among the %s as of %s.", Clip(ref.ID), ref.Kind.Collection(), at)
}
