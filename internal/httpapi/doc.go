// Package httpapi serves the archive over HTTP: both revisions of the
// interface, as api/openapi.yaml describes them.
//
// Start at routes.go: one table of all operations. A handler reads the request
// into the domain's terms, calls the archive, and returns what is to be
// answered or an error; reading requests (request.go) and writing answers (response.go,
// problem.go) are the same for all. Every request is checked against the API
// description before its handler sees it.
package httpapi
