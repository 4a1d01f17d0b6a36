// Package suite is the suite that every engine passes.
//
// An engine is an oda.Engine. The suite uses only that interface and never
// looks inside, so the engine may be a file, a database or another process. Its
// scenarios are named like the rules of the specification, and grouped by rule:
// versions.go, records.go, listing.go and so on. Those that a client can see are run
// twice: against an engine, and through the Go client against a server. They rest on
// these things:
//
//   - desk.go is a caller of the store, whose clock and user the test controls;
//   - archive.go is what a desk asks of a store; spoken.go asks it over HTTP;
//   - model.go has the rules once more, as simply as possible, for documents
//     that are built from pieces (draft.go); property.go compares an engine with
//     it by random requests;
//   - the package history checks what concurrent callers saw.
//
// The exported helpers also serve the tests of the engines and of the API.
package suite
