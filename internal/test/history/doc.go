// Package history tests whether an archive is linearizable: whether everything
// that its clients saw can be explained as if their operations had happened one
// after the other, each at some moment between its call and its answer.
//
// Clients play games. In a game a few clients share two or three entities, send
// requests to an archive over HTTP and note what they sent and received
// (client.go, play.go). Games are short and many, so that entities are often
// created concurrently, and so that a history stays small enough to decide. At
// the end of a game every entity is read once more. Then porcupine searches for
// an order of the operations that the model allows (model.go, check.go).
//
// A write whose answer was lost may have taken effect, perhaps late, or not at
// all. Such writes are decided about before the search (decide.go).
//
// Histories that are too large for a search are for package load.
//
// The tests of this package play games against the engines while connections
// are cut and processes killed, and against deliberately broken archives, which
// must be caught.
package history
