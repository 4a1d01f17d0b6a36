// Package suite is the suite that every engine passes.
//
// An engine is an oda.Engine. The suite speaks to it through that interface
// alone and never looks inside, so the engine may be a file, a database or
// another process. Its scenarios are named as the rules of the specification
// read, and stand together by rule: versions.go, records.go, listing.go and so
// on. Three things stand behind them:
//
//   - desk.go is a caller of the store, with a clock and a user in the hand of
//     the test;
//   - model.go holds the rules once more, in the plainest way, over documents
//     that are put together from pieces (draft.go); property.go holds an engine
//     against it with random requests;
//   - the package history judges what callers saw that worked at the same time.
//
// The helpers that are exported serve other tests too, those of an engine's
// own and those of the interface.
package suite
