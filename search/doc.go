// Package search finds entities by any combination of filters.
//
// A Search is what is asked; Parse reads it from the parameters of a request and
// Params writes them, in params.go. A new filter is a field of Search, a line in the
// table of that file, and a rule in judge.go, with a term of the index if there is one.
//
// A Searcher answers: it asks the indexes of an engine first, and judges what they
// leave itself, so that the answer is the same on every engine. walk.go makes the
// pages. Conditions on the text of a document are in where.go.
package search
