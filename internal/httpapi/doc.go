// Package httpapi serves the archive over HTTP: both revisions of the
// interface, as api/openapi.yaml describes them.
//
// Start at routes.go, the table of all operations. A handler translates the
// request into the terms of the domain, calls the archive, and writes the answer
// or returns an error. All handlers read requests with request.go and answer with
// response.go and problem.go. Every request is checked against the API
// description before its handler sees it.
package httpapi
