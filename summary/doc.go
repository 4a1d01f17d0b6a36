// Package summary reads in a document what searches, lists and provenance know of it.
//
// The scan of a document, which every request needs, notes what may matter: keys.go
// says which keys do. extract.go keeps these notes, with a hash that shows whether the
// summary has changed, and summarize.go makes the summary from them. What a summary
// holds is oda.Summary, since engines store it.
package summary
