// Package history asks whether an archive is linearizable: whether everything
// that its clients saw can be explained as if their operations had happened one
// after the other, each at some moment between its call and its answer.
//
// Clients play games. In a game a few clients share two or three entities, call
// an archive over HTTP and note what they sent and what they got (client.go,
// play.go). Games are short and many, so that entities are often created under
// everybody's eyes, and so that a history stays small enough to be decided. At
// the end of a game every entity is read once more. Then porcupine searches for
// an order of the operations that the model allows (model.go, check.go), and
// the ledger counts acknowledged writes without any search (ledger.go).
//
// A write whose answer was lost may have taken effect or not, and late. Such
// writes are settled before the search (settle.go).
//
// Where there is too much for a search, as in the crash test and the drill,
// Writes judges whether what was acknowledged is there, once and in order
// (writes.go).
//
// The tests of this package run the games against the engines while their
// connections are cut and their processes killed, and against archives that are
// broken on purpose, which must be caught.
package history
