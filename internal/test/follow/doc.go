// Package follow tests whether followers of the feed of changes see every change
// exactly once and in order, whatever is done to them and to the archive.
//
// While a load writes (package load), followers read the feed by polling, by long
// polls, as a stream and with the Go client, over connections that are cut at random
// (follower.go, page.go, stream.go). A proof has both, and goes on while a test kills,
// restarts and moves the servers (proof.go).
//
// At the end everything that is stored is compared with what the load knows. Then
// each log that somebody read is judged: it
// has every stored version and record once, no change of an entity before an
// earlier one of it, and none before one that was acknowledged when it was sent
// (judge.go). All logs, and further readings from other places, have the same
// changes at the same positions.
//
// The tests of this package prove this for both engines, and show that feeds
// which are broken on purpose are caught.
package follow
